//! One search: its account of who was asked and how that went, and its end, which always comes.
//!
//! Whatever work is done for a provider holds an [`Arc`] of its [`Leg`]. When the last of it is dropped (done, lost to a panic,
//! or thrown away because it was late) the provider's state is told. So nothing has to remember to do so, and nothing can
//! forget. A search ends when all its legs have, or at its deadline, or when it is given up; then those that are still open
//! are told as such, and the last packet follows.

use crate::area::Area;
use crate::delivery::Outbox;
use crate::leg::Leg;
use crate::pipeline::Seen;
use crate::provider::Provider;
use crate::question::Question;
use crate::settings::Settings;
use crate::status::{LegStatus, SearchStatus};
use meridian_admission::ByteBudget;
use meridian_query::CancelFlag;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Room among the packets of all searches comes free without a word: it is looked for so often.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(100);

/// Longest sentence about a provider, in bytes.
const DETAIL_BYTES_MAX: usize = 400;

/// How a provider's part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Everything that it gives, up to the limit.
    Complete,
    /// It was not asked, for it does not take such questions.
    Skipped,
    /// Time ran out.
    Timeout,
    /// It is broken.
    Error,
    /// It was not to be asked, or would not answer.
    Refused,
}

impl State {
    /// Its word in packets.
    pub fn word(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Skipped => "skipped",
            State::Timeout => "timeout",
            State::Error => "error",
            State::Refused => "refused",
        }
    }
}

/// Counters over all searches.
#[derive(Debug, Default)]
pub struct Tally {
    /// Searches begun.
    pub begun: AtomicU64,
    /// Questions that joined a running search.
    pub joined: AtomicU64,
    /// Questions refused for want of a place.
    pub refused: AtomicU64,
    /// Work thrown away because its search was over.
    pub late: AtomicU64,
    /// Work lost to a panic.
    pub lost: AtomicU64,
    /// Results sent.
    pub results: AtomicU64,
    /// Results left out because another was the same or nearly.
    pub duplicates: AtomicU64,
    /// Results left out because they do not match the question.
    pub unmatched: AtomicU64,
    /// Images of results that a model looked at.
    pub images_seen: AtomicU64,
    /// Images that could not be fetched or read.
    pub images_failed: AtomicU64,
    /// Images that took longer than their results wait.
    pub images_late: AtomicU64,
    /// Images that were not asked for, because too many waited.
    pub images_passed: AtomicU64,
}

/// A search, running or ended.
#[derive(Debug)]
pub struct Search {
    /// Its name.
    pub id: String,
    /// What is asked.
    pub question: Arc<Question>,
    /// When it came.
    pub arrived: Instant,
    /// When it is over at the latest.
    pub deadline: Instant,
    /// Its packets.
    pub outbox: Arc<Outbox>,
    /// What it has sent already, for the stage that looks for duplicates.
    pub seen: Mutex<Seen>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) packet_bytes: usize,
    ledger: Mutex<Ledger>,
    over: CancelFlag,
    ended: watch::Sender<bool>,
    all_told: Notify,
}

#[derive(Debug, Default)]
struct Ledger {
    sealed: bool,
    entries: BTreeMap<String, Entry>,
    result_packets: u64,
    first: Option<Duration>,
    last: Option<Duration>,
    kept: usize,
}

/// The last packet.
#[derive(Serialize)]
struct Last<'a> {
    search: &'a str,
    seq: u64,
    kind: &'static str,
    state: &'static str,
    packets: u64,
    result_packets: u64,
    providers: BTreeMap<&'a str, &'static str>,
    ttfp_ms: Option<u64>,
    ttlp_ms: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<usize>,
}

/// The most bytes that the last packet of a search takes which asks all of these: it cannot be cut.
pub(crate) fn last_bytes(providers: &[&str]) -> usize {
    let (most, word) = (u64::MAX, State::Complete.word());
    let last = Last {
        search: &"0".repeat(32),
        seq: most,
        kind: "complete",
        state: word,
        packets: most,
        result_packets: most,
        providers: providers.iter().map(|name| (*name, word)).collect(),
        ttfp_ms: Some(most),
        ttlp_ms: Some(most),
        more: providers.to_vec(),
        kept: Some(usize::MAX),
    };
    json!(last).to_string().len()
}

#[derive(Debug, Default)]
struct Entry {
    state: Option<(State, String)>,
    results: u64,
    ms: u64,
    /// Whether it may have more than it was asked for.
    more: bool,
    not_kept: bool,
    /// Lots of results that wait for a slow reader.
    waiting: usize,
}

impl Search {
    /// A search that came at `arrived`.
    pub fn new(
        id: String,
        question: Question,
        arrived: Instant,
        settings: &Settings,
        budget: ByteBudget,
        tally: Arc<Tally>,
    ) -> Search {
        Search {
            id,
            arrived,
            deadline: arrived + question.deadline,
            question: Arc::new(question),
            outbox: Arc::new(Outbox::new(settings.buffer_bytes, budget, Instant::now())),
            seen: Mutex::default(),
            tally,
            packet_bytes: settings.packet_bytes,
            ledger: Mutex::default(),
            over: CancelFlag::new(),
            ended: watch::Sender::new(false),
            all_told: Notify::new(),
        }
    }

    /// Whether no more work is wanted.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Raised when the search is over, for plain code that looks at flags.
    pub fn over(&self) -> CancelFlag {
        self.over.clone()
    }

    /// Completes when the search is over.
    pub async fn ended(&self) {
        // The sender lives as long as the search, so this cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Completes when every provider's state is told.
    pub async fn all_told(&self) {
        loop {
            let told = self.all_told.notified();
            if self.ledger.lock().entries.values().all(|entry| entry.state.is_some()) {
                return;
            }
            told.await;
        }
    }

    /// Notes a provider that is asked.
    pub(crate) fn begin(self: &Arc<Search>, provider: Arc<dyn Provider>) -> Arc<Leg> {
        self.ledger.lock().entries.insert(provider.name().to_owned(), Entry::default());
        Arc::new(Leg::new(self.clone(), provider))
    }

    /// Tells that a provider is not asked.
    pub(crate) fn skip(&self, provider: &str, why: String) {
        self.ledger.lock().entries.insert(provider.to_owned(), Entry::default());
        self.tell(provider, State::Skipped, why, false);
    }

    /// Sends a packet of results; `false` where there is no room for it.
    pub(crate) fn send(&self, provider: &str, features: &[String]) -> bool {
        let mut ledger = self.ledger.lock();
        if ledger.sealed {
            return true;
        }
        let head = |seq: u64| {
            let (search, provider) = (json!(self.id), json!(provider));
            let list = features.join(",");
            format!(
                "{{\"search\":{search},\"seq\":{seq},\"provider\":{provider},\"kind\":\"results\",\"features\":[{list}]}}"
            )
        };
        if !self.outbox.push(head) {
            return false;
        }
        self.tally.results.fetch_add(features.len() as u64, Ordering::Relaxed);
        let at = self.arrived.elapsed();
        ledger.first.get_or_insert(at);
        ledger.last = Some(at);
        ledger.result_packets += 1;
        if let Some(entry) = ledger.entries.get_mut(provider) {
            entry.results += features.len() as u64;
        }
        true
    }

    /// The same once there is room, which its reader makes. Waits for that until the search is over.
    pub(crate) async fn send_when_read(&self, provider: &str, features: &[String]) {
        loop {
            let mut changed = pin!(self.outbox.changed());
            changed.as_mut().enable();
            if self.send(provider, features) {
                return;
            }
            let _ = tokio::time::timeout(LOOK_FOR_ROOM, changed).await;
        }
    }

    /// Notes that results of a provider wait for their reader, or do so no more.
    pub(crate) fn waits_for_reader(&self, provider: &str, begins: bool) {
        if let Some(entry) = self.ledger.lock().entries.get_mut(provider) {
            entry.waiting = if begins { entry.waiting + 1 } else { entry.waiting.saturating_sub(1) };
        }
    }

    /// Tells how a provider's part ended; `more` where it may have more than it was asked for.
    pub(crate) fn tell(&self, provider: &str, state: State, detail: String, more: bool) {
        let mut ledger = self.ledger.lock();
        if !ledger.sealed {
            self.tell_in(&mut ledger, provider, state, detail, more);
        }
        drop(ledger);
        self.all_told.notify_waiters();
    }

    fn tell_in(&self, ledger: &mut Ledger, provider: &str, state: State, detail: String, more: bool) {
        let Some(entry) = ledger.entries.get_mut(provider) else { return };
        let detail = self.cut(&detail).to_owned();
        entry.ms = self.arrived.elapsed().as_millis() as u64;
        entry.more = more;
        let (results, ms) = (entry.results, entry.ms);
        self.outbox.push_state(|seq| {
            let mut packet = json!({"search": self.id, "seq": seq, "provider": provider, "kind": "provider",
                "state": state.word(), "detail": detail, "results": results, "ms": ms});
            if more {
                packet["more"] = true.into();
            }
            packet.to_string()
        });
        entry.state = Some((state, detail));
    }

    /// What a source says may be long; a packet is not, though a sign of text may take six bytes of JSON.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(DETAIL_BYTES_MAX.min(self.packet_bytes / 8))]
    }

    /// Notes results that are in their collection now.
    pub(crate) fn kept(&self, results: usize) {
        self.ledger.lock().kept += results;
    }

    /// Says, once of each provider, that results of it could not be kept. They are delivered all the same.
    pub(crate) fn not_kept(&self, provider: &str, why: String) {
        let mut ledger = self.ledger.lock();
        let sealed = ledger.sealed;
        let Some(entry) = ledger.entries.get_mut(provider) else { return };
        if sealed || std::mem::replace(&mut entry.not_kept, true) {
            return;
        }
        let detail = self.cut(&why);
        self.outbox.push_state(|seq| {
            json!({"search": self.id, "seq": seq, "provider": provider, "kind": "keep", "state": "error", "detail": detail})
                .to_string()
        });
    }

    /// Ends the search: whoever is still asked is told as late (or given up), and the last packet is sent. Once.
    pub(crate) fn seal(&self, why_open: &str) {
        let mut ledger = self.ledger.lock();
        if !ledger.sealed {
            let open = ledger.entries.iter().filter(|(_, entry)| entry.state.is_none());
            let open: Vec<(String, bool)> = open.map(|(name, entry)| (name.clone(), entry.waiting > 0)).collect();
            for (provider, waits) in open {
                let why =
                    if waits { "whoever asked reads too slowly: not all its results could be sent" } else { why_open };
                self.tell_in(&mut ledger, &provider, State::Timeout, why.to_owned(), false);
            }
            ledger.sealed = true;
            let word = ledger.word();
            self.outbox.seal(|seq| {
                let ms = |at: Option<Duration>| at.map(|at| at.as_millis() as u64);
                let last = Last {
                    search: &self.id,
                    seq,
                    kind: "complete",
                    state: word,
                    packets: seq + 1,
                    result_packets: ledger.result_packets,
                    providers: ledger.states(),
                    ttfp_ms: ms(ledger.first),
                    ttlp_ms: ms(ledger.last),
                    more: ledger.with_more().collect(),
                    kept: self.question.keep.is_some().then_some(ledger.kept),
                };
                json!(last).to_string()
            });
        }
        drop(ledger);
        self.over.cancel();
        self.ended.send_replace(true);
    }

    /// How it stands, for `GET /searches/{id}`.
    pub fn status(&self) -> SearchStatus {
        let ledger = self.ledger.lock();
        let leg = |entry: &Entry| {
            let (state, detail) =
                entry.state.as_ref().map_or(("asked", ""), |(state, detail)| (state.word(), detail.as_str()));
            LegStatus { state, detail: detail.to_owned(), results: entry.results, ms: entry.ms, more: entry.more }
        };
        // Where an address was found, among others.
        let circle = match self.question.area() {
            Some(Area::Circle { lon, lat, radius_m }) => Some(([*lon, *lat], *radius_m)),
            _ => None,
        };
        SearchStatus {
            search: self.id.clone(),
            state: if ledger.sealed { ledger.word() } else { "running" },
            deadline_ms: self.question.deadline.as_millis() as u64,
            result_packets: ledger.result_packets,
            results: ledger.entries.values().map(|entry| entry.results).sum(),
            providers: ledger.entries.iter().map(|(name, entry)| (name.clone(), leg(entry))).collect(),
            near: circle.map(|(near, _)| near),
            radius: circle.map(|(_, radius)| radius),
        }
    }
}

impl Ledger {
    /// `complete` where everybody who was asked gave all; `absent` where nobody did and nothing came; else `partial`.
    fn word(&self) -> &'static str {
        let mut asked = self
            .entries
            .values()
            .filter_map(|e| e.state.as_ref())
            .map(|(s, _)| *s)
            .filter(|s| *s != State::Skipped)
            .peekable();
        let nobody = asked.peek().is_none();
        let (mut all, mut any) = (true, false);
        for state in asked {
            all &= state == State::Complete;
            any |= state == State::Complete;
        }
        match (all && !nobody, any || self.result_packets > 0) {
            (true, _) => "complete",
            (false, true) => "partial",
            (false, false) => "absent",
        }
    }

    /// Those who may have more than they were asked for.
    fn with_more(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, entry)| entry.more).map(|(name, _)| name.as_str())
    }

    fn states(&self) -> BTreeMap<&str, &'static str> {
        let state = |entry: &Entry| entry.state.as_ref().map_or("timeout", |(state, _)| state.word());
        self.entries.iter().map(|(name, entry)| (name.as_str(), state(entry))).collect()
    }
}
