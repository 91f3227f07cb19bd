//! A declared provider: requests page after page from its source, within its limits.

use super::call_record::CallRecord;
use super::drift::SchemaDrift;
use super::tokens::Tokens;
use super::variables::{Page, Variables};
use super::{Fault, Provider, ProviderFuture, Sink};
use crate::declaration::template::Template;
use crate::declaration::{Keywords, Method, Paging, SourceDeclaration};
use crate::fetch::{self, Http, RawResponse, Redirects};
use crate::health::{Gate, Health};
use crate::question::Question;
use meridian_backend::View;
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Max cached responses, if a declaration allows caching.
const CACHED_MAX: usize = 32;

/// A declared provider.
#[derive(Debug)]
pub struct RemoteProvider {
    declared: Arc<SourceDeclaration>,
    http: Arc<Http>,
    tokens: Tokens,
    health: Mutex<Health>,
    cache: Mutex<VecDeque<(String, Instant, RawResponse)>>,
}

impl RemoteProvider {
    /// Creates a provider from a declaration. All share the connections of `http`.
    pub fn new(declared: Arc<SourceDeclaration>, http: Arc<Http>) -> RemoteProvider {
        let health = Mutex::new(Health::new(declared.limits, Instant::now()));
        RemoteProvider { declared, http, tokens: Tokens::default(), health, cache: Mutex::default() }
    }

    async fn pages(&self, sink: Sink) -> Result<(), Fault> {
        let declared = &self.declared;
        let (mut page, mut items, mut missing) = (Page::Numbered(0, 0), 0_usize, Vec::new());
        for number in 1..=declared.pages_max {
            sink.wait_for_space().await;
            let (raw, called) = self.page(&sink, &page).await?;
            let call = Instant::now();
            // A response that cannot be mapped counts against the source, although its status was a success.
            let read = sink.response(declared.clone(), raw).await.inspect_err(|_| self.health.lock().failed(call))?;
            if called {
                self.health.lock().succeeded();
            }
            items += read.items;
            match number {
                1 => missing = read.missing,
                // A field is missing only if absent from every page: one page without a value proves nothing.
                _ => missing.retain(|key| read.missing.contains(key)),
            }
            let asked = self.variables(sink.question(), &page, None).size();
            let is_full = read.items >= asked;
            // The limit counts accepted results, so pages are requested until enough are accepted.
            if read.items == 0 || sink.wanted().await == 0 {
                break;
            }
            page = match (declared.paging, read.next) {
                (Paging::Page | Paging::Offset, _) if is_full => Page::Numbered(number, items as u64),
                (Paging::Link, Some(link)) => Page::At(link),
                (Paging::Cursor, Some(cursor)) => Page::Behind(cursor),
                (Paging::None, _) if is_full && declared.counts => {
                    sink.more(format!(
                        "there may be more: the provider gave the {asked} results requested, and has no second page"
                    ));
                    break;
                }
                _ => break,
            };
            if number == declared.pages_max {
                sink.more(format!("there may be more: at most {number} pages are requested"));
            }
        }
        if let Some(drift) = SchemaDrift::of(sink.question(), declared, &missing)
            && let Some(results) = sink.all_unmatched().await
        {
            sink.remark(drift.report(results)?);
        }
        Ok(())
    }

    /// Returns why it cannot be queried, whatever the question.
    fn unavailable(&self) -> Option<String> {
        self.declared.missing_credential().map(|name| format!("it needs {name} in the server's environment"))
    }

    fn variables<'a>(&'a self, question: &'a Question, page: &'a Page, token: Option<&'a str>) -> Variables<'a> {
        Variables { declared: &self.declared, question, page, token }
    }

    /// Returns one page, and whether it was requested rather than cached.
    async fn page(&self, sink: &Sink, page: &Page) -> Result<(RawResponse, bool), Fault> {
        let declared = &self.declared;
        let (url, form) = address(&self.variables(sink.question(), page, None))?;
        // The key excludes the token, which changes while the response does not.
        let key = format!("{url} {form:?}");
        if let Some(raw) = self.remembered(&key) {
            return Ok((raw, false));
        }
        let mut tries = 0;
        loop {
            // Inside the loop: a retry is a call, and counts against rate and budget like any other.
            self.acquire(sink).await?;
            let token = self.token(declared.timeout.min(sink.time_left())).await?;
            let request = self.request(&url, &form, &self.variables(sink.question(), page, token.as_deref()))?;
            let time = declared.timeout.min(sink.time_left());
            let watch = CallRecord::begin(&self.health, declared.timeout);
            let (request, mut span) = fetch::traced(request, &declared.name);
            let result = fetch::call(request, time, declared.answer_bytes, &self.http.budget).await;
            if result.is_err() {
                span.fail();
            }
            drop(span);
            watch.end(&result);
            let failure = match result {
                Ok(raw) => {
                    self.remember(key, &raw);
                    return Ok((raw, true));
                }
                Err(failure) => failure,
            };
            if token.is_some() && !failure.source_is_broken {
                // The source rejected the request; the next attempt gets a fresh token.
                self.tokens.forget().await;
            }
            let wait = failure
                .again
                .filter(|wait| tries < declared.retries && *wait + declared.timeout / 10 < sink.time_left());
            match wait {
                Some(wait) if self.health.lock().may_retry() => tokio::time::sleep(wait).await,
                _ if failure.refused => return Err(Fault::Refused(failure.why)),
                _ if failure.late => return Err(Fault::Timeout(failure.why)),
                _ => return Err(Fault::Error(failure.why)),
            }
            tries += 1;
        }
    }

    /// Waits until the limits allow a call, if that is soon enough.
    async fn acquire(&self, sink: &Sink) -> Result<(), Fault> {
        loop {
            // Checked again after each wait: another search may have used the call.
            let gate = self.health.lock().ask(Instant::now());
            match gate {
                Gate::Open => return Ok(()),
                Gate::Wait(wait) if wait < sink.time_left() => tokio::time::sleep(wait).await,
                Gate::Wait(_) => {
                    return Err(Fault::Refused("its rate limit leaves no call before the deadline".to_owned()));
                }
                Gate::BreakerOpen(left) => {
                    let ms = left.as_millis();
                    return Err(Fault::Refused(format!("it failed too often: it is tried again in {ms} ms")));
                }
                Gate::BudgetSpent => return Err(Fault::Refused("its budget for the day is spent".to_owned())),
            }
        }
    }

    /// Returns the access token, if the source requires one. A source that issues none counts as failing.
    async fn token(&self, time: Duration) -> Result<Option<String>, Fault> {
        let token = self.tokens.get(&self.declared, &self.http, time).await;
        token.inspect_err(|_| self.health.lock().failed(Instant::now()))
    }

    /// Requests the first page once and returns the raw response, to test a declaration.
    pub async fn try_once(&self, question: &Question) -> Result<RawResponse, Fault> {
        let page = Page::Numbered(0, 0);
        let (url, form) = address(&self.variables(question, &page, None))?;
        let token = self.token(self.declared.timeout).await?;
        let request = self.request(&url, &form, &self.variables(question, &page, token.as_deref()))?;
        let answer = fetch::call(request, self.declared.timeout, self.declared.answer_bytes, &self.http.budget).await;
        answer.map_err(|failure| Fault::Error(failure.why))
    }

    fn request(
        &self,
        url: &Url,
        form: &[(String, String)],
        variables: &Variables<'_>,
    ) -> Result<RequestBuilder, Fault> {
        let is_plain = self.declared.headers.is_empty() && matches!(self.declared.method, Method::Get);
        let redirects = if is_plain { Redirects::Anywhere } else { Redirects::SameAddress };
        let client = self.http.client(self.declared.allow_private, redirects).map_err(Fault::Error)?;
        let mut request = match self.declared.method {
            Method::Get => client.get(url.clone()),
            Method::Post => {
                let pairs = Url::parse_with_params("http://form/", form).map_err(|e| Fault::Error(e.to_string()))?;
                client
                    .post(url.clone())
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(pairs.query().unwrap_or_default().to_owned())
            }
        };
        for (name, template) in &self.declared.headers {
            if let Some(text) = template.fill(&|name, format| variables.value(name, format)) {
                request = request.header(name, text);
            }
        }
        Ok(request)
    }

    fn remembered(&self, key: &str) -> Option<RawResponse> {
        let mut cache = self.cache.lock();
        cache.retain(|(_, at, _)| at.elapsed() < self.declared.cache);
        cache.iter().find(|(k, ..)| k == key).map(|(.., raw)| raw.clone())
    }

    fn remember(&self, key: String, raw: &RawResponse) {
        if !self.declared.cache.is_zero() {
            let mut cache = self.cache.lock();
            if cache.len() >= CACHED_MAX {
                cache.pop_front();
            }
            cache.push_back((key, Instant::now(), RawResponse::apart(raw.content_type.clone(), raw.bytes.clone())));
        }
    }

    /// Checks whether it can answer a question of any client; the error is a sentence that gives the reason.
    pub fn accepts(&self, question: &Question) -> Result<(), String> {
        if let Some(why) = self.unavailable() {
            return Err(why);
        }
        let takes = &self.declared.takes;
        let has = |part: &String| match part.as_str() {
            "keywords" => question.keywords.is_some(),
            "place" => question.place.is_some(),
            "author" => question.author.is_some(),
            "time" => question.has_time(),
            "media" => question.media.is_some(),
            _ => question.language.is_some(),
        };
        if let Some(part) = takes.needs.iter().find(|part| !has(part)) {
            return Err(format!("it accepts only questions with {part}"));
        }
        if !takes.needs_one_of.is_empty() && !takes.needs_one_of.iter().any(has) {
            return Err(format!("it accepts only questions with {}", takes.needs_one_of.join(" or ")));
        }
        if let Some(part) = takes.not.iter().find(|part| has(part)) {
            return Err(format!("it accepts no questions with {part}"));
        }
        if takes.keywords == Keywords::All && question.keywords.as_ref().is_some_and(|w| w.has_alternatives()) {
            return Err("it accepts no keywords with OR".to_owned());
        }
        match (takes.radius_max_m, question.area().map(|area| area.circle().2)) {
            (Some(most), Some(metres)) if metres > most => {
                Err(format!("it accepts at most {most} m around a position"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the URL of a page, and its form.
fn address(variables: &Variables<'_>) -> Result<(Url, Vec<(String, String)>), Fault> {
    let declared = variables.declared;
    let bad = |e: String| Fault::Error(format!("the URL could not be built: {e}"));
    let value = |name: &str, format: &str| variables.value(name, format);
    let filled = |list: &[(String, Template)]| -> Vec<(String, String)> {
        list.iter().filter_map(|(name, template)| Some((name.clone(), template.fill(&value)?))).collect()
    };
    let encoded = |name: &str, format: &str| {
        value(name, format)
            .map(|v| percent_encoding::utf8_percent_encode(&v, percent_encoding::NON_ALPHANUMERIC).to_string())
    };
    let plain = declared.url.fill(&encoded).ok_or_else(|| bad("the question lacks one of its variables".to_owned()))?;
    let mut url = Url::parse(&plain).map_err(|e| bad(e.to_string()))?;
    let mut query = filled(&declared.query);
    if let Some(sign) = &declared.sign {
        let signature =
            sign.of(&query, &value).ok_or_else(|| bad("the secret to sign it with is missing".to_owned()))?;
        query.push((sign.name.clone(), signature));
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    if let Page::At(link) = variables.page {
        url = next_page(&url, link)?;
    }
    if !declared.allow_private {
        fetch::may_call(&url).map_err(Fault::Error)?;
    }
    Ok((url, filled(&declared.body)))
}

/// Returns the address of the next page. It gets the headers of the declaration, keys among them, so it must stay at the
/// same scheme, host and port.
fn next_page(url: &Url, link: &str) -> Result<Url, Fault> {
    // A link may be relative to its page.
    let next = url.join(link).map_err(|e| Fault::Error(format!("the URL could not be built: {e}")))?;
    match next.origin() == url.origin() {
        true => Ok(next),
        false => {
            Err(Fault::Error(format!("its next page is at another address, {}", next.origin().ascii_serialization())))
        }
    }
}

impl Provider for RemoteProvider {
    fn name(&self) -> &str {
        &self.declared.name
    }

    fn title(&self) -> &str {
        &self.declared.title
    }

    fn takes(&self, question: &Question, _: &View) -> Result<(), String> {
        self.accepts(question)
    }

    fn sure_of(&self) -> &[String] {
        &self.declared.sure_of
    }

    fn allows_private(&self) -> bool {
        self.declared.allow_private
    }

    fn at_once(&self) -> usize {
        self.declared.at_once
    }

    fn ask(&self, sink: Sink) -> ProviderFuture<'_> {
        Box::pin(self.pages(sink))
    }

    fn report(&self, _: &View) -> Value {
        let now = Instant::now();
        let mut health = self.health.lock();
        let spent = health.spent_today(now);
        let limits = self.declared.limits;
        let takes = &self.declared.takes;
        let keywords = match takes.keywords {
            Keywords::None => "none",
            Keywords::All => "all",
            Keywords::Boolean => "boolean",
        };
        json!({
            "ready": self.unavailable().is_none(),
            "detail": self.unavailable(),
            "takes": {"keywords": keywords, "needs": takes.needs, "needs_one_of": takes.needs_one_of, "not": takes.not},
            "breaker": health.breaker(now),
            "budget": (limits.budget > 0.0).then_some(limits.budget),
            "spent": spent,
            "rate": (limits.rate > 0.0).then_some(limits.rate),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_page_at_another_address_is_not_called() {
        let url = Url::parse("https://a.example/search?q=x").expect("a URL");
        for (link, to) in [
            ("?q=x&page=2", Some("https://a.example/search?q=x&page=2")),
            ("/next", Some("https://a.example/next")),
            ("https://a.example:443/next", Some("https://a.example/next")),
            ("https://a.example:8443/next", None),
            ("http://a.example/next", None),
            ("https://b.example/next", None),
            ("//b.example/next", None),
        ] {
            assert_eq!(next_page(&url, link).ok().as_ref().map(Url::as_str), to, "{link}");
        }
    }
}
