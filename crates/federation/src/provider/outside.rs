//! A declared provider at work: pages are asked for one after the other, within its limits.

use super::declaration::{Declared, Keywords, Method, Paging};
use super::fetch::{self, Failure, Http, Raw};
use super::guard;
use super::health::{Gate, Health};
use super::template::{self, Template};
use super::{Asking, Fault, Provider};
use crate::pipeline::Sink;
use crate::question::Question;
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Answers kept where a declaration allows it.
const CACHED_MAX: usize = 32;

/// The year 2100, in microseconds: the end of an interval that has none.
const FAR_OFF: i64 = 4_102_444_800_000_000;

/// A declared provider.
#[derive(Debug)]
pub struct Outside {
    declared: Arc<Declared>,
    http: Arc<Http>,
    health: Mutex<Health>,
    cache: Mutex<VecDeque<(String, Instant, Raw)>>,
}

/// Where the next page is.
#[derive(Debug, Clone)]
enum Page {
    /// The pages and the results before it.
    Numbered(u64, u64),
    /// At this address.
    At(String),
    /// Behind this text.
    Behind(String),
}

impl Outside {
    /// Over a declaration; all share the connections of `http`.
    pub fn new(declared: Arc<Declared>, http: Arc<Http>) -> Outside {
        let health = Mutex::new(Health::new(declared.limits, Instant::now()));
        Outside { declared, http, health, cache: Mutex::default() }
    }

    async fn pages(&self, sink: Sink) -> Result<(), Fault> {
        let declared = &self.declared;
        let (mut page, mut taken) = (Page::Numbered(0, 0), 0_usize);
        for number in 1..=declared.pages_max {
            sink.room().await;
            let (raw, called) = self.page(&sink, &page).await?;
            let call = Instant::now();
            let read = sink.answer(declared.clone(), raw).await.inspect_err(|_| self.health.lock().failed(call))?;
            if called {
                self.health.lock().succeeded();
            }
            taken += read.items;
            if read.items == 0 || taken >= sink.question().limit {
                break;
            }
            page = match (declared.paging, read.next) {
                (Paging::Page | Paging::Offset, _) if read.items >= self.size(&sink) => {
                    Page::Numbered(number, taken as u64)
                }
                (Paging::Link, Some(link)) => Page::At(link),
                (Paging::Cursor, Some(cursor)) => Page::Behind(cursor),
                _ => break,
            };
        }
        Ok(())
    }

    /// Why it cannot be asked at all, whatever the question.
    fn lacks(&self) -> Option<String> {
        self.declared.missing_credential().map(|name| format!("it needs {name} in the server's environment"))
    }

    fn size(&self, sink: &Sink) -> usize {
        self.declared.size.min(sink.question().limit)
    }

    /// One page, and whether it was asked for (and not remembered).
    async fn page(&self, sink: &Sink, page: &Page) -> Result<(Raw, bool), Fault> {
        let declared = &self.declared;
        let client = self.http.client(declared.allow_private).map_err(Fault::Error)?;
        let (url, form) = self.address(sink, page)?;
        if !declared.allow_private {
            guard::may_call(&url).map_err(Fault::Error)?;
        }
        let key = format!("{url} {form:?}");
        if let Some(raw) = self.remembered(&key) {
            return Ok((raw, false));
        }
        let mut tries = 0;
        loop {
            self.leave(sink).await?;
            let request = self.request(client, &url, &form, sink)?;
            let time = declared.timeout.min(sink.time_left());
            let watch = Watch { outside: self, began: Instant::now(), done: false };
            let result = fetch::call(request, time, declared.answer_bytes).await;
            watch.end(&result);
            let failure = match result {
                Ok(raw) => {
                    self.remember(key, &raw);
                    return Ok((raw, true));
                }
                Err(failure) => failure,
            };
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

    /// Waits until the source may be called, where that is soon enough.
    async fn leave(&self, sink: &Sink) -> Result<(), Fault> {
        loop {
            let gate = self.health.lock().ask(Instant::now());
            match gate {
                Gate::Open => return Ok(()),
                Gate::Wait(wait) if wait < sink.time_left() => tokio::time::sleep(wait).await,
                Gate::Wait(_) => {
                    return Err(Fault::Refused("its rate limit leaves no call before the deadline".to_owned()));
                }
                Gate::Broken(left) => {
                    let ms = left.as_millis();
                    return Err(Fault::Refused(format!("it failed too often: it is tried again in {ms} ms")));
                }
                Gate::Spent => return Err(Fault::Refused("its budget for the day is spent".to_owned())),
            }
        }
    }

    fn address(&self, sink: &Sink, page: &Page) -> Result<(Url, Vec<(String, String)>), Fault> {
        let declared = &self.declared;
        let bad = |e: String| Fault::Error(format!("no address to call could be made: {e}"));
        let value = |name: &str, format: &str| self.value(sink, page, name, format);
        let filled = |list: &[(String, Template)]| -> Vec<(String, String)> {
            list.iter().filter_map(|(name, template)| Some((name.clone(), template.fill(&value)?))).collect()
        };
        let encoded = |name: &str, format: &str| {
            value(name, format)
                .map(|v| percent_encoding::utf8_percent_encode(&v, percent_encoding::NON_ALPHANUMERIC).to_string())
        };
        let plain =
            declared.url.fill(&encoded).ok_or_else(|| bad("the question lacks what it is made of".to_owned()))?;
        let mut url = Url::parse(&plain).map_err(|e| bad(e.to_string()))?;
        let query = filled(&declared.query);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        if let Page::At(link) = page {
            // A link may be relative to the page that it stood on; it leads to the same host and nowhere else.
            let next = url.join(link).map_err(|e| bad(e.to_string()))?;
            if next.host() != url.host() {
                return Err(Fault::Error("its next page is on another host".to_owned()));
            }
            return Ok((next, filled(&declared.body)));
        }
        Ok((url, filled(&declared.body)))
    }

    fn request(
        &self,
        client: &reqwest::Client,
        url: &Url,
        form: &[(String, String)],
        sink: &Sink,
    ) -> Result<RequestBuilder, Fault> {
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
        let value = |name: &str, format: &str| self.value(sink, &Page::Numbered(0, 0), name, format);
        for (name, template) in &self.declared.headers {
            if let Some(text) = template.fill(&value) {
                request = request.header(name, text);
            }
        }
        Ok(request)
    }

    /// The value of a variable, if the question has it.
    fn value(&self, sink: &Sink, page: &Page, name: &str, format: &str) -> Option<String> {
        let question = sink.question();
        let words = question.keywords.as_ref();
        let around = |pick: fn((f64, f64, f64)) -> f64| question.area().map(|area| number(pick(area.circle())));
        let side = |at: usize| question.area().map(|area| number(area.sides()[at]));
        let instant = |micros: i64| {
            let open = micros == i64::MIN || micros == i64::MAX;
            (!open).then(|| template::instant(micros, format)).flatten()
        };
        match name {
            "words" => words.map(|w| w.plain()),
            "boolean" => words.map(|w| w.boolean("-")),
            "boolean_not" => words.map(|w| w.boolean("NOT ")),
            "first_word" => words.map(|w| w.first()),
            "lon" => around(|c| c.0),
            "lat" => around(|c| c.1),
            "radius_m" => around(|c| c.2.ceil()),
            "radius_km" => around(|c| c.2 / 1000.0),
            "west" => side(0),
            "south" => side(1),
            "east" => side(2),
            "north" => side(3),
            "author" => question.author.clone(),
            "start" => instant(question.interval.start),
            "end" => instant(question.interval.end),
            // For sources that want both ends: the open one is put far off.
            "after" if question.has_time() => template::instant(question.interval.start.max(0), format),
            "before" if question.has_time() => template::instant(question.interval.end.min(FAR_OFF), format),
            "language" => question.language.clone(),
            "limit" => Some(self.size(sink).to_string()),
            "page" => match page {
                Page::Numbered(n, _) => Some((self.declared.first + n).to_string()),
                _ => None,
            },
            "offset" => match page {
                Page::Numbered(_, n) => Some((self.declared.first + n).to_string()),
                _ => None,
            },
            "cursor" => match page {
                Page::Behind(cursor) => Some(cursor.clone()),
                _ => None,
            },
            _ => std::env::var(name.strip_prefix("env.")?).ok(),
        }
    }

    fn remembered(&self, key: &str) -> Option<Raw> {
        let mut cache = self.cache.lock();
        cache.retain(|(_, at, _)| at.elapsed() < self.declared.cache);
        cache.iter().find(|(k, ..)| k == key).map(|(.., raw)| raw.clone())
    }

    fn remember(&self, key: String, raw: &Raw) {
        if !self.declared.cache.is_zero() {
            let mut cache = self.cache.lock();
            if cache.len() >= CACHED_MAX {
                cache.pop_front();
            }
            cache.push_back((key, Instant::now(), raw.clone()));
        }
    }
}

fn number(value: f64) -> String {
    format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Notes how a call ended, also where its search ended first: a source that lets most of its time pass is failing, however
/// short the patience of those who ask.
struct Watch<'a> {
    outside: &'a Outside,
    began: Instant,
    done: bool,
}

impl Watch<'_> {
    fn end(mut self, result: &Result<Raw, Failure>) {
        self.done = true;
        match result {
            Err(failure) if failure.late => self.judge(),
            Err(failure) if failure.source_is_broken => self.outside.health.lock().failed(Instant::now()),
            // It lives, though it does not like what it is asked.
            Err(_) => self.outside.health.lock().succeeded(),
            Ok(_) => {}
        }
    }

    fn judge(&self) {
        if self.began.elapsed() >= self.outside.declared.timeout / 2 {
            self.outside.health.lock().failed(Instant::now());
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.judge();
        }
    }
}

impl Provider for Outside {
    fn name(&self) -> &str {
        &self.declared.name
    }

    fn title(&self) -> &str {
        &self.declared.title
    }

    fn takes(&self, question: &Question) -> Result<(), String> {
        if let Some(why) = self.lacks() {
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
            return Err(format!("it takes only questions with {part}"));
        }
        if !takes.needs_one_of.is_empty() && !takes.needs_one_of.iter().any(has) {
            return Err(format!("it takes only questions with {}", takes.needs_one_of.join(" or ")));
        }
        if let Some(part) = takes.not.iter().find(|part| has(part)) {
            return Err(format!("it takes no questions with {part}"));
        }
        if takes.keywords == Keywords::All && question.keywords.as_ref().is_some_and(|w| w.has_alternatives()) {
            return Err("it takes no keywords with OR".to_owned());
        }
        match (takes.radius_max_m, question.area().map(|area| area.circle().2)) {
            (Some(most), Some(metres)) if metres > most => Err(format!("it takes at most {most} m around a position")),
            _ => Ok(()),
        }
    }

    fn sure_of(&self) -> &[String] {
        &self.declared.sure_of
    }

    fn at_once(&self) -> usize {
        self.declared.at_once
    }

    fn ask(&self, sink: Sink) -> Asking<'_> {
        Box::pin(self.pages(sink))
    }

    fn report(&self) -> Value {
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
            "ready": self.lacks().is_none(),
            "detail": self.lacks(),
            "takes": {"keywords": keywords, "needs": takes.needs, "needs_one_of": takes.needs_one_of, "not": takes.not},
            "breaker": health.breaker(now),
            "budget": (limits.budget > 0.0).then_some(limits.budget),
            "spent": spent,
            "rate": (limits.rate > 0.0).then_some(limits.rate),
        })
    }
}
