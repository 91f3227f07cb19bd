//! The state of webhooks, and dead letters: packets given up, kept for diagnosis. Each saved search keeps its last
//! twenty. All together keep a bounded number of bytes; beyond it, the tenant with the most bytes loses its oldest.
//!
//! Each letter has an entry in the line of its tenant until it is dropped. Lock order: a holder of a [`WebhookState`]
//! may lock the lines, never the other way round.

use super::status::{DeadLetterReport, WebhookReport};
use meridian_model::time;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Weak};

/// Max dead letters of each saved search.
const LETTERS_MAX: usize = 20;
/// Approximate overhead of a letter, in bytes.
const LETTER_BYTES: usize = 256;

/// The state of one webhook.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WebhookState {
    /// The packet to send next.
    next: u64,
    sent: u64,
    /// Packets evicted before they were sent.
    lost: u64,
    /// Packets given up.
    dead: u64,
    /// The last packets given up.
    letters: VecDeque<DeadLetter>,
    /// Why the last call failed, if it did.
    #[serde(skip)]
    pub(super) failing: Option<String>,
}

impl WebhookState {
    pub(crate) fn from(next: u64) -> WebhookState {
        WebhookState { next, ..WebhookState::default() }
    }

    /// Number of the packet to send next. Those before it were sent or given up.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Records a packet sent.
    pub(super) fn took(&mut self, seq: u64) {
        // A state on disk may have any numbers.
        self.sent = self.sent.saturating_add(1);
        self.next = seq.saturating_add(1);
    }

    /// Records that the packets before this one were evicted.
    pub(super) fn skip_to(&mut self, first: u64) {
        self.lost = self.lost.saturating_add(first.saturating_sub(self.next));
        self.next = first;
    }

    fn give_up(&mut self, letter: DeadLetter) {
        self.dead = self.dead.saturating_add(1);
        // The webhook moves on: one packet that it never accepts must not block the others.
        self.next = letter.seq.saturating_add(1);
        self.letters.push_back(letter);
        if self.letters.len() > LETTERS_MAX {
            self.letters.pop_front();
        }
    }

    fn forget(&mut self, seq: u64) {
        self.letters.retain(|letter| letter.seq != seq);
    }

    /// The state for `GET /saved-searches`, optionally with the dead letters.
    pub(crate) fn report(&self, url: &str, letters: bool) -> WebhookReport {
        let letter = |letter: &DeadLetter| DeadLetterReport {
            seq: letter.seq,
            at: letter.at.clone(),
            tries: letter.tries,
            why: letter.why.clone(),
            packet: serde_json::from_str(&letter.packet).unwrap_or_default(),
        };
        WebhookReport {
            url: url.to_owned(),
            next_packet: self.next,
            sent: self.sent,
            lost: self.lost,
            dead: self.dead,
            failing: self.failing.clone(),
            dead_letters: letters.then(|| self.letters.iter().map(letter).collect()),
        }
    }
}

/// A packet given up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DeadLetter {
    seq: u64,
    at: String,
    tries: u32,
    why: String,
    packet: String,
    /// Its entry in a line, removed when dropped.
    #[serde(skip)]
    _ticket: Option<Arc<Ticket>>,
}

impl DeadLetter {
    /// Makes a dead letter from its number, the time, the calls made, and the last failure.
    pub(super) fn new(seq: u64, at: i64, tries: u32, why: String, packet: String) -> DeadLetter {
        DeadLetter { seq, at: time::format_instant(at), tries, why, packet, _ticket: None }
    }

    fn bytes(&self) -> usize {
        LETTER_BYTES + self.why.len() + self.packet.len()
    }
}

/// The dead letters of all saved searches.
#[derive(Debug)]
pub(crate) struct DeadLetters {
    lines: Arc<Mutex<Lines>>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Lines {
    tenants: HashMap<Arc<str>, Line>,
    /// Letters ever added.
    made: u64,
    bytes: usize,
}

/// The letters of a tenant.
#[derive(Debug, Default)]
struct Line {
    /// Oldest first.
    letters: BTreeMap<Age, Entry>,
    bytes: usize,
}

impl Lines {
    fn insert(&mut self, tenant: &Arc<str>, age: Age, entry: Entry) {
        let line = self.tenants.entry(tenant.clone()).or_default();
        self.bytes += entry.bytes;
        line.bytes += entry.bytes;
        line.letters.insert(age, entry);
    }

    fn remove(&mut self, tenant: &str, age: Age) -> Option<Entry> {
        let line = self.tenants.get_mut(tenant)?;
        let entry = line.letters.remove(&age)?;
        self.bytes -= entry.bytes;
        line.bytes -= entry.bytes;
        if line.letters.is_empty() {
            self.tenants.remove(tenant);
        }
        Some(entry)
    }
}

/// When a letter was given up, in microseconds since 1970, and a number to break ties.
type Age = (i64, u64);

/// The owner of a letter, and its size.
#[derive(Debug)]
struct Entry {
    webhook_state: Weak<Mutex<WebhookState>>,
    seq: u64,
    bytes: usize,
}

/// The entry of a letter, removed from its line when dropped.
#[derive(Debug)]
struct Ticket {
    lines: Arc<Mutex<Lines>>,
    tenant: Arc<str>,
    age: Age,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.lines.lock().remove(&self.tenant, self.age);
    }
}

impl DeadLetters {
    /// No letters, of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> DeadLetters {
        DeadLetters { lines: Arc::default(), bytes_max }
    }

    /// Bytes of all letters.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.lock().bytes
    }

    /// Adds a webhook of a tenant, which is new or was kept with its letters across a clean stop.
    pub(crate) fn enter(&self, tenant: &Arc<str>, webhook_state: WebhookState) -> Arc<Mutex<WebhookState>> {
        let webhook_state = Arc::new(Mutex::new(webhook_state));
        for letter in &mut webhook_state.lock().letters {
            letter._ticket = Some(self.place(tenant, &webhook_state, letter));
        }
        self.make_room();
        webhook_state
    }

    /// Adds a packet of a tenant that was given up.
    pub(super) fn bury(&self, tenant: &Arc<str>, webhook_state: &Arc<Mutex<WebhookState>>, mut letter: DeadLetter) {
        let mut held = webhook_state.lock();
        letter._ticket = Some(self.place(tenant, webhook_state, &letter));
        held.give_up(letter);
        // `make_room` locks other webhooks, perhaps this one too.
        drop(held);
        self.make_room();
    }

    fn place(&self, tenant: &Arc<str>, webhook_state: &Arc<Mutex<WebhookState>>, letter: &DeadLetter) -> Arc<Ticket> {
        let mut lines = self.lines.lock();
        // By time, not in order of arrival: letters of a clean stop return in the order of the registry.
        let age = (time::parse_instant(&letter.at, None).unwrap_or_default(), lines.made);
        let entry = Entry { webhook_state: Arc::downgrade(webhook_state), seq: letter.seq, bytes: letter.bytes() };
        lines.made += 1;
        lines.insert(tenant, age, entry);
        Arc::new(Ticket { lines: self.lines.clone(), tenant: tenant.clone(), age })
    }

    fn make_room(&self) {
        // The lines are unlocked here before the webhook is locked, which keeps the lock order.
        while let Some(oldest) = self.take_oldest() {
            if let Some(webhook_state) = oldest.webhook_state.upgrade() {
                webhook_state.lock().forget(oldest.seq);
            }
        }
    }

    /// Removes the oldest entry of the tenant with the most bytes, while the lines exceed their bound.
    fn take_oldest(&self) -> Option<Entry> {
        let mut lines = self.lines.lock();
        if lines.bytes <= self.bytes_max {
            return None;
        }
        let (tenant, line) = lines.tenants.iter().max_by_key(|(_, line)| line.bytes)?;
        let (tenant, age) = (tenant.clone(), *line.letters.first_key_value()?.0);
        lines.remove(&tenant, age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(seq: u64, at: i64) -> DeadLetter {
        DeadLetter::new(seq, at, 1, "it answered 500".to_owned(), "{}".to_owned())
    }

    fn tenant() -> Arc<str> {
        "default".into()
    }

    /// Returns the number of packets given up, and the numbers of those kept.
    fn told(webhook_state: &Mutex<WebhookState>) -> (u64, Vec<u64>) {
        let report = webhook_state.lock().report("https://example.org/", true);
        let letters = report.dead_letters.expect("letters");
        let seqs = letters.iter().map(|letter| letter.seq);
        (report.dead, seqs.collect())
    }

    #[test]
    fn letters_of_one_saved_search_are_bounded() {
        let letters = DeadLetters::new(usize::MAX);
        let webhook_state = letters.enter(&tenant(), WebhookState::from(0));
        for seq in 0..50 {
            letters.bury(&tenant(), &webhook_state, letter(seq, 0));
        }
        assert_eq!(told(&webhook_state), (50, (30..50).collect()));
        assert_eq!((webhook_state.lock().next(), letters.bytes()), (50, 20 * letter(0, 0).bytes()));
        drop(webhook_state);
        assert_eq!(letters.bytes(), 0);
    }

    #[test]
    fn of_the_letters_of_all_the_oldest_give_way() {
        let one = letter(0, 0).bytes();
        let letters = DeadLetters::new(5 * one);
        let (quiet, busy) =
            (letters.enter(&tenant(), WebhookState::from(0)), letters.enter(&tenant(), WebhookState::from(0)));
        letters.bury(&tenant(), &quiet, letter(0, 0));
        for seq in 0..4 {
            letters.bury(&tenant(), &busy, letter(seq, 1));
        }
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((1, vec![0]), (4, vec![0, 1, 2, 3]), 5 * one));
        letters.bury(&tenant(), &busy, letter(4, 2));
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((1, vec![]), (5, vec![0, 1, 2, 3, 4]), 5 * one));
        letters.bury(&tenant(), &quiet, letter(1, 3));
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((2, vec![1]), (5, vec![1, 2, 3, 4]), 5 * one));

        // After a clean stop the oldest stay the same in any order of webhooks, even with a smaller bound.
        let kept = |webhook_state: &Mutex<WebhookState>| -> WebhookState {
            serde_json::from_str(&serde_json::to_string(&*webhook_state.lock()).expect("JSON")).expect("a post")
        };
        let fewer = DeadLetters::new(3 * one);
        let (again, then) = (fewer.enter(&tenant(), kept(&quiet)), fewer.enter(&tenant(), kept(&busy)));
        assert_eq!((told(&again), told(&then), fewer.bytes()), ((2, vec![1]), (5, vec![3, 4]), 3 * one));
        drop(then);
        assert_eq!(fewer.bytes(), one);
        assert_eq!(letters.bytes(), 5 * one);
    }

    #[test]
    fn a_tenant_with_many_letters_loses_its_own() {
        let one = letter(0, 0).bytes();
        let letters = DeadLetters::new(4 * one);
        let (few, many): (Arc<str>, Arc<str>) = ("few".into(), "many".into());
        let (quiet, busy) = (letters.enter(&few, WebhookState::from(0)), letters.enter(&many, WebhookState::from(0)));
        letters.bury(&few, &quiet, letter(0, 0));
        for seq in 0..10 {
            letters.bury(&many, &busy, letter(seq, 1));
        }
        assert_eq!((told(&quiet), told(&busy)), ((1, vec![0]), (10, vec![7, 8, 9])));
        drop((quiet, busy));
        assert!(letters.bytes() == 0 && letters.lines.lock().tenants.is_empty());
    }

    #[test]
    fn a_state_with_any_numbers_goes_on() {
        let last = format!(r#"{{"next":{0},"sent":{0},"lost":{0},"dead":{0},"letters":[]}}"#, u64::MAX);
        let mut state: WebhookState = serde_json::from_str(&last).expect("a state");
        state.skip_to(7);
        state.took(u64::MAX);
        state.give_up(letter(u64::MAX, 1));
        let report = state.report("http://a", false);
        assert_eq!(
            (report.next_packet, report.sent, report.lost, report.dead),
            (u64::MAX, u64::MAX, u64::MAX, u64::MAX)
        );
    }
}
