//! A source: its response to the n-th call, and the delay. Pure: the same seed, call and time give the same response.

use super::file::{Delay, MockFault, SourceFile};
use super::items::items;
use super::stream::Packets;
use crate::generate::stream;
use rand::RngExt;
use rand_distr::{Distribution, LogNormal};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

/// A source ready to respond.
#[derive(Debug)]
pub struct Source {
    file: Arc<SourceFile>,
    seed: u64,
    number: u64,
    delays: Vec<f64>,
    /// When each worker is free again, the earliest on top.
    free: BinaryHeap<Reverse<Duration>>,
    /// Calls that the rate limit still allows, and the time of that count.
    allowed: f64,
    since: Duration,
}

/// A source's reply to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Delay of the reply.
    pub delay: Duration,
    /// Status of the response.
    pub status: u16,
    /// The faults.
    pub wrong: Option<MockFault>,
    /// Its body.
    pub body: String,
    /// Number of items in the body, or in all packets.
    pub items: u64,
    /// The packets instead of a body, if the source is a stream.
    pub packets: Option<Packets>,
}

impl Source {
    /// Reads the files of the source; `number` distinguishes it from the others of its file.
    pub fn new(file: &SourceFile, seed: u64, number: u64) -> Result<Source, String> {
        let delays = match &file.delay {
            Delay::Empirical { file } => delays(file)?,
            Delay::Fixed { .. } | Delay::Lognormal { .. } => Vec::new(),
        };
        Ok(Source {
            allowed: file.rate_limit.max(1.0),
            free: std::iter::repeat_n(Reverse(Duration::ZERO), file.workers).collect(),
            file: Arc::new(file.clone()),
            seed,
            number,
            delays,
            since: Duration::ZERO,
        })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns whether a path belongs to this source.
    pub fn answers(&self, path: &str) -> bool {
        let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.file.name.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
    }

    /// Returns the response to the `n`-th call (from 0), `now` after the start of the mock.
    pub fn reply(&mut self, n: u64, path: &str, now: Duration) -> Reply {
        // A stream for each call, so that the response does not depend on the order in which calls arrive.
        let mut random = stream(self.seed, &[self.number, n]);
        let drawn: f64 = random.random();
        let wrong = self.file.fault.iter().find(|fault| {
            (fault.from_s..fault.to_s).contains(&now.as_secs_f64())
                && stream_share(self.seed, self.number, n) < fault.share
        });
        let mut ms = self.delay(&mut random);
        if let Some(fault) = wrong.filter(|fault| fault.kind == MockFault::Slow) {
            ms *= fault.factor;
        }
        let wrong = wrong.map(|fault| fault.kind);
        let work = Duration::from_secs_f64((ms / 1e3).min(86_400.0));
        // Before the queue: a refused call must not occupy a worker.
        if !self.is_allowed(now) {
            let body = r#"{"error":"too many calls"}"#.to_owned();
            return Reply { delay: Duration::ZERO, status: 429, wrong: None, body, items: 0, packets: None };
        }
        let delay = self.queued(now, work);
        if drawn < self.file.error_share {
            let body = r#"{"error":"something went wrong"}"#.to_owned();
            return Reply { delay, status: self.file.error_status, wrong, body, items: 0, packets: None };
        }
        if let Some(stream) = &self.file.stream {
            let items = stream.packets.saturating_mul(self.file.items);
            let packets = Packets::new(Arc::clone(&self.file), self.seed, self.number, n, wrong);
            return Reply { delay, status: 200, wrong, body: String::new(), items, packets: Some(packets) };
        }
        let (body, items) = self.page(path, wrong == Some(MockFault::Schema));
        Reply { delay, status: 200, wrong, body, items, packets: None }
    }

    fn delay(&self, random: &mut rand_pcg::Pcg64) -> f64 {
        match &self.file.delay {
            Delay::Fixed { ms } => *ms,
            Delay::Lognormal { median_ms, sigma } => {
                LogNormal::new(median_ms.ln(), *sigma).map_or(*median_ms, |law| law.sample(random))
            }
            Delay::Empirical { .. } => {
                self.delays.get(random.random_range(0..self.delays.len())).copied().unwrap_or(0.0)
            }
        }
    }

    /// Returns the duration of a call that arrives `now`, including its wait for a worker. The workers' time is
    /// computed, not slept, so a late timer delays one response but costs the source no capacity.
    fn queued(&mut self, now: Duration, work: Duration) -> Duration {
        // The worker that is free first takes the call. The heap is the whole queue: only the times at which workers
        // become free matter.
        let Some(Reverse(free)) = self.free.pop() else { return work };
        let done = free.max(now) + work;
        self.free.push(Reverse(done));
        done - now
    }

    /// A bucket that fills at the limit's rate and holds one second of calls.
    fn is_allowed(&mut self, now: Duration) -> bool {
        let rate = self.file.rate_limit;
        if rate <= 0.0 {
            return true;
        }
        let filled = now.saturating_sub(self.since).as_secs_f64() * rate;
        self.allowed = (self.allowed + filled).min(rate.max(1.0));
        self.since = now;
        let allowed = self.allowed >= 1.0;
        if allowed {
            self.allowed -= 1.0;
        }
        allowed
    }

    /// Returns a page, whose content depends only on the path.
    fn page(&self, path: &str, changed: bool) -> (String, u64) {
        let (own, query) = path.split_once('?').unwrap_or((path, ""));
        let others: Vec<&str> =
            query.split('&').filter(|part| !part.is_empty() && !part.starts_with("page=")).collect();
        let page =
            query.split('&').find_map(|part| part.strip_prefix("page=")?.parse::<u64>().ok()).unwrap_or(1).max(1);
        let of = others.iter().fold(hash(own), |sum, part| sum ^ hash(part).rotate_left(17));
        let mut random = stream(self.seed, &[self.number, of, page]);
        let here = if page <= self.file.pages { self.file.items } else { 0 };
        let items = items(&self.file, &mut random, (page, here), changed);
        let next = if page < self.file.pages {
            let mut parts: Vec<String> = others.iter().map(|part| (*part).to_owned()).collect();
            parts.push(format!("page={}", page + 1));
            format!("\"{own}?{}\"", parts.join("&"))
        } else {
            "null".to_owned()
        };
        let name = if changed { "results" } else { "items" };
        let body = format!(
            r#"{{"source":"{}","page":{page},"pages":{},"next":{next},"{name}":[{}]}}"#,
            self.file.name, self.file.pages, items
        );
        (body, here)
    }
}

/// Returns whether a fault with a share affects the n-th call: drawn separately from the delay, so that a fault
/// changes no delay.
fn stream_share(seed: u64, number: u64, n: u64) -> f64 {
    stream(seed, &[number, n, 1]).random()
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn delays(path: &std::path::Path) -> Result<Vec<f64>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("delay.file {}: {e}", path.display()))?;
    let mut delays = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match line.trim().parse::<f64>() {
            Ok(ms) if (0.0..=86_400_000.0).contains(&ms) => delays.push(ms),
            _ => {
                return Err(format!(
                    "delay.file {}:{}: expected milliseconds, one number a line",
                    path.display(),
                    i + 1
                ));
            }
        }
    }
    if delays.is_empty() { Err(format!("delay.file {}: it holds no delay", path.display())) } else { Ok(delays) }
}
