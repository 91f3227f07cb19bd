//! `GET /audit`: operators read the whole log, admins the acts on their tenant and on collections visible to them.

use super::NEW_NAME;
use crate::contract::{AuditPage, Link};
use crate::protocol::params::Params;
use crate::protocol::params::format::{self, Format, LINES};
use crate::protocol::problem::{Problem, Result};
use crate::request::blocking;
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use meridian_admission::identity::Identity;
use meridian_backend::RecordedAct;
use meridian_model::Interval;
use meridian_model::policy::access::Pattern;

const LIMIT_DEFAULT: usize = 100;
/// Max lines of a page; a line has about 300 bytes.
const LIMIT_MAX: usize = 1_000;

/// `GET /audit`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, LINES)?;
    let after = params.take("after").map(|text| number(&text)).transpose()?.unwrap_or(0);
    let limit = params.take_count("limit", LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let datetime = params.take("datetime");
    params.finish()?;
    let times = datetime.as_deref().map(Interval::parse).transpose();
    let times = times.map_err(|e| Problem::parameter("datetime", e.to_string()))?;
    let (log, caller) = (state.audit.log().clone(), state.caller().clone());
    let created = state.registry.tenant(&caller.tenant).map_or(i64::MAX, |tenant| tenant.created);
    let run = context.lease.run(&state, context.deadline(None, state.config.timeout_default)?).await?;
    // The log filters while it reads, so that pages are full even if few lines are visible to the caller.
    let page = blocking::run(run, move |control| {
        let wanted = |line: &RecordedAct| {
            // Called only to yield to other queries. The result is checked again below.
            let _ = control.check();
            may_see(&caller, created, line)
                && times.as_ref().is_none_or(|times| (times.start..=times.end).contains(&line.time))
        };
        let page = log.page(after, limit, &wanted).map_err(errors::store_problem)?;
        control.check().map_err(errors::query_problem)?;
        Ok(page)
    });
    let page = page.await?;
    let next = page.next.map(|after| next_url(&context, (after, limit), datetime.as_deref(), format));
    if format == Format::NdJson {
        // The lines are sent verbatim: a reader of all of them can verify the hashes.
        let text: String = page.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
        let mut response =
            ([(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()))], text).into_response();
        if let Some(next) = next {
            respond::insert(response.headers_mut(), header::LINK, &format!("<{next}>; rel=\"next\""));
        }
        return Ok(response);
    }
    let links = next.map(|href| Link {
        href,
        rel: "next".into(),
        media_type: "application/json".into(),
        title: "Later acts".into(),
        templated: None,
    });
    let acts = page.lines.into_iter().map(Into::into).collect();
    respond::json("application/json", &AuditPage { acts, links: links.into_iter().collect() })
}

/// Returns whether the caller may read a line. Collections outside its pattern do not exist for it. Lines older than
/// its tenant concern an earlier tenant of the same name. If several servers write the log, this depends on their
/// clocks agreeing. Lines about tokens and users name the collections that those cover, so a caller with a narrower
/// pattern sees only its own.
fn may_see(caller: &Identity, created: i64, line: &RecordedAct) -> bool {
    let pattern = &caller.grant.collections;
    let of_tenant = *caller.tenant == *line.act.tenant && line.time >= created;
    // A rename is shown to callers that may see both names.
    let new = line.act.change.as_deref().and_then(|change| change.strip_prefix(NEW_NAME));
    let covered = match &line.act.collection {
        Some(name) => pattern.covers(name) && new.is_none_or(|new| pattern.covers(new)),
        None => pattern.includes(&Pattern::all()) || *line.act.who == *caller.name,
    };
    caller.is_operator() || of_tenant && covered
}

fn number(text: &str) -> Result<u64> {
    let wrong = || Problem::parameter("after", format!("{text:?} is not the number of a line: expected 0 or more"));
    text.parse().map_err(|_| wrong())
}

fn next_url(context: &Context, (after, limit): (u64, usize), datetime: Option<&str>, format: Format) -> String {
    let of_time = datetime.map_or_else(String::new, |text| {
        format!("&datetime={}", percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC))
    });
    context.url(&format!("/audit?after={after}&limit={limit}{of_time}&f={}", format.word()))
}
