//! `/tracks`: the objects that passed, with the first and last time of each.

use crate::contract::links;
use crate::contract::{TrackSummary, Tracks};
use crate::protocol::params::Params;
use crate::protocol::params::format;
use crate::protocol::params::page::{LIMIT_DEFAULT, LIMIT_MAX};
use crate::protocol::params::selection::{self, EventSelection};
use crate::protocol::problem::{Problem, Result};
use crate::protocol::tags;
use crate::request::after::Consistency;
use crate::request::blocking;
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::respond;
use crate::response::stream;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use meridian_model::time;
use meridian_observe::{self as observe, Stage};
use meridian_query::{ByValue, Passage, Passages};
use serde_json::Value;

/// The media type of the response: objects are no features.
const MEDIA_TYPE: &str = "application/json";

/// `GET /collections/{c}/tracks`
pub async fn get(state: Scope, Path(name): Path<String>, context: Context) -> Result<Response> {
    let collection = context.collection(&state, &name).await?;
    let schema = collection.schema();
    let mut params = Params::parse(context.query.as_deref())?;
    format::only("json", &mut params)?;
    let limit = params.take_count("limit", LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let after = params.take("after").map(|text| meridian_query::object_of(&schema, &text, "after")).transpose();
    let after = after.map_err(|e| Problem::invalid_parameter("after", e))?;
    let timeout = params.take_timeout()?;
    let consistency = Consistency::take(&mut params, &context.headers, &state)?;
    let selection = EventSelection::take(&mut params, &schema)?;
    params.finish_with(&selection::queryable_names(&schema))?;
    let question = Passages { predicate: selection.predicate, after, limit };

    let deadline = context.deadline(timeout, state.config.timeout_default)?;
    let run = context.read(&state, &*collection, deadline).await?;
    let shared = state.clone();
    let url = context.this_url();
    blocking::run(run, move |control| {
        let read = collection.passages(consistency.newest(true), &question, control).map_err(errors::query_problem)?;
        let answer = &read.value;
        let encode = observe::stage(Stage::Encode);
        let mut page_links = vec![links::link(&url, "self", MEDIA_TYPE, "This document")];
        if let Some(last) = answer.passages.last().filter(|_| answer.more) {
            // By object instead of row number: new events between two pages must not shift the next one.
            let next = links::with(&links::without(&url, "after"), "after", &text_of(&last.object));
            page_links.push(links::link(next, "next", MEDIA_TYPE, "The next objects"));
        }
        let document = Tracks {
            tracks: answer.passages.iter().map(summary).collect(),
            number_returned: answer.passages.len() as u64,
            links: page_links,
        };
        let bytes = serde_json::to_vec(&document).map_err(Problem::internal)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        respond::set_read_headers(&mut headers, &read.head, shared.now(), consistency.name);
        tags::of_read(&mut headers, &*collection, &read.head);
        drop(encode);
        stream::finished(&shared, headers, bytes)
    })
    .await
}

fn summary(passage: &Passage) -> TrackSummary {
    let object = match &passage.object {
        ByValue::Int(n) => Value::from(*n),
        other => Value::from(text_of(other)),
    };
    // An event without a start or an end.
    let open = |t: i64| t == i64::MIN || t == i64::MAX;
    let instant = |t: i64| (!open(t)).then(|| time::format_instant(t));
    TrackSummary { object, count: passage.count, first: instant(passage.first), last: instant(passage.last) }
}

fn text_of(object: &ByValue) -> String {
    match object {
        ByValue::Text(text) => text.clone(),
        ByValue::Int(n) => n.to_string(),
        ByValue::Bool(b) => b.to_string(),
        ByValue::Null => String::new(),
    }
}
