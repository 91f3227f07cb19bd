//! One search: its ledger of providers and their outcomes, and its end, which always comes.
//!
//! All work for a provider holds an [`Arc`] of its [`Leg`](crate::provider::Leg). When the last reference is dropped
//! (done, panicked or discarded as late), the leg reports the provider's state. So no code path can forget to report.
//!
//! A search ends when all its legs have ended, at its deadline, or when it is abandoned. Legs still open are then
//! reported as such, and the last packet follows.

mod ledger;

pub use ledger::State;
pub(crate) use ledger::last_bytes;

use crate::area::Area;
use crate::delivery::Outbox;
use crate::question::Question;
use crate::seen::ResultFingerprints;
use crate::settings::Settings;
use crate::status::{LegStatus, SearchStatus};
use crate::tally::Tally;
use ledger::{CompletePacket, Entry, Ledger};
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::View;
use meridian_observe::{Span, WorkContext};
use meridian_query::CancelFlag;
use parking_lot::Mutex;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Notify, watch};
use tokio::time::{Duration, Instant};

/// Poll interval for space in the budget of all searches, which has no notification.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(100);

/// Max length of a provider's detail, in bytes.
const DETAIL_BYTES_MAX: usize = 400;

/// A search, running or ended.
#[derive(Debug)]
pub struct Search {
    /// Its id.
    pub id: String,
    /// The question.
    pub question: Arc<Question>,
    /// The caller that started it. Only this owner, with the same rights, and admins of the tenant may see it.
    pub owner: String,
    /// The collections that its owner sees.
    pub view: View,
    /// When the request arrived.
    pub arrived: Instant,
    /// Deadline of the search.
    pub deadline: Instant,
    /// Its packets.
    pub outbox: Arc<Outbox>,
    /// Reservation in the packet budget for the bytes of its question: an ended search keeps both.
    _held: ByteShare,
    /// Fingerprints of the results sent, for the deduplicate stage. Empty once it has ended.
    pub seen: Mutex<ResultFingerprints>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) packet_bytes: usize,
    /// The request or trace that the work belongs to.
    pub(crate) current: WorkContext,
    /// Its span in a trace, until it ends.
    span: Mutex<Span>,
    ledger: Mutex<Ledger>,
    over: CancelFlag,
    ended: watch::Sender<bool>,
    all_reported: Notify,
}

impl Search {
    /// Creates a search that arrived at `arrived`.
    pub fn new(
        id: String,
        question: Question,
        (owner, view): (String, View),
        arrived: Instant,
        settings: &Settings,
        budget: ByteBudget,
        tally: Arc<Tally>,
    ) -> Search {
        let mut held = budget.empty();
        // Reserved beyond the limit if need be: admission bounds the number of searches, and the body limit bounds the
        // size of a question.
        held.grow(question.bytes());
        Search {
            id,
            arrived,
            deadline: arrived + question.deadline,
            question: Arc::new(question),
            owner,
            view,
            outbox: Arc::new(Outbox::new(settings.buffer_bytes, budget, Instant::now())),
            _held: held,
            seen: Mutex::default(),
            tally,
            packet_bytes: settings.packet_bytes,
            current: WorkContext::default(),
            span: Mutex::new(Span::none()),
            ledger: Mutex::default(),
            over: CancelFlag::new(),
            ended: watch::Sender::new(false),
            all_reported: Notify::new(),
        }
    }

    /// Creates a search recorded as `span`, for work that `current` is a part of.
    pub(crate) fn traced(self, span: Span, current: WorkContext) -> Search {
        let current = span.within(current);
        Search { current, span: Mutex::new(span), ..self }
    }

    /// Returns whether the search has ended.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || Instant::now() >= self.deadline
    }

    /// Returns a flag raised when the search ends, for blocking code that polls it.
    pub fn over(&self) -> CancelFlag {
        self.over.clone()
    }

    /// Completes when the search ends.
    pub async fn ended(&self) {
        // The sender lives as long as the search, so this cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Completes when every provider's state has been reported.
    pub async fn all_reported(&self) {
        loop {
            // Created before the check: `notify_waiters` reaches futures that exist at the time.
            let reported = self.all_reported.notified();
            if self.ledger.lock().entries.values().all(|entry| entry.state.is_some()) {
                return;
            }
            reported.await;
        }
    }

    /// Registers a provider that is queried.
    pub(crate) fn register(&self, provider: &str) {
        self.ledger.lock().entries.insert(provider.to_owned(), Entry::default());
    }

    /// Reports that a provider is not queried.
    pub(crate) fn skip(&self, provider: &str, why: String) {
        self.ledger.lock().entries.insert(provider.to_owned(), Entry::default());
        self.report(provider, State::Skipped, why, false);
    }

    /// Sends a packet of results. Returns `false` without space for it.
    pub(crate) fn send(&self, provider: &str, features: &[String]) -> bool {
        let mut ledger = self.ledger.lock();
        // Results that arrive after the end are discarded, and the caller must not retry them.
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
        // Numbered and appended under the ledger's lock, so that no packet can follow the last one.
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

    /// Like [`Search::send`], once a reader has made space. Waits at most until the search ends.
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

    /// Records that results of a provider start or stop waiting for a reader.
    pub(crate) fn waits_for_reader(&self, provider: &str, begins: bool) {
        if let Some(entry) = self.ledger.lock().entries.get_mut(provider) {
            entry.waiting = if begins { entry.waiting + 1 } else { entry.waiting.saturating_sub(1) };
        }
    }

    /// Reports the outcome of a provider. `more` if it may have more results than requested.
    pub(crate) fn report(&self, provider: &str, state: State, detail: String, more: bool) {
        let mut ledger = self.ledger.lock();
        if !ledger.sealed {
            self.tell_in(&mut ledger, provider, state, detail, more);
        }
        // Released first: the supervisor takes it as soon as it wakes.
        drop(ledger);
        self.all_reported.notify_waiters();
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

    /// Details from a source may be long. A packet is bounded, and a byte of text may take six bytes of JSON.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        &text[..text.floor_char_boundary(DETAIL_BYTES_MAX.min(self.packet_bytes / 8))]
    }

    /// Counts results written to their collection.
    pub(crate) fn kept(&self, results: usize) {
        self.ledger.lock().kept += results;
    }

    /// Reports, once per provider, that results could not be stored. They are delivered nevertheless.
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

    /// Ends the search, once: reports open providers as timed out and sends the last packet.
    pub(crate) fn seal(&self, why_open: &str) {
        let mut ledger = self.ledger.lock();
        if !ledger.sealed {
            // The ledger's lock is held from here to the last packet. So a leg that ends meanwhile reports either
            // before `complete` or not at all.
            let open = ledger.entries.iter().filter(|(_, entry)| entry.state.is_none());
            let open: Vec<(String, bool)> = open.map(|(name, entry)| (name.clone(), entry.waiting > 0)).collect();
            for (provider, waits) in open {
                let why =
                    if waits { "the client reads too slowly: not all its results could be sent" } else { why_open };
                self.tell_in(&mut ledger, &provider, State::Timeout, why.to_owned(), false);
            }
            ledger.sealed = true;
            let mut span = std::mem::replace(&mut *self.span.lock(), Span::none());
            span.set("meridian.providers", ledger.entries.len() as u64);
            span.set("meridian.result_packets", ledger.result_packets);
            let word = ledger.word();
            self.outbox.seal(|seq| {
                let ms = |at: Option<Duration>| at.map(|at| at.as_millis() as u64);
                let last = CompletePacket {
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
        *self.seen.lock() = ResultFingerprints::default();
        // Signalled after the last packet exists, so that no waiter sees an ended search without it.
        self.over.cancel();
        self.ended.send_replace(true);
    }

    /// Returns its state, for `GET /searches/{id}`.
    pub fn status(&self) -> SearchStatus {
        let ledger = self.ledger.lock();
        let leg = |entry: &Entry| {
            let (state, detail) =
                entry.state.as_ref().map_or(("asked", ""), |(state, detail)| (state.word(), detail.as_str()));
            LegStatus { state, detail: detail.to_owned(), results: entry.results, ms: entry.ms, more: entry.more }
        };
        // The position of an address, if it was geocoded.
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
