//! The state of webhooks, and dead letters: packets given up, kept for diagnosis. Each saved search keeps its last
//! twenty. All together keep a bounded number of bytes; the oldest are evicted.
//!
//! Each letter has an entry in one queue until it is dropped. Lock order: a holder of a [`WebhookState`] may lock the
//! queue, never the other way round.

use super::status::{DeadLetterReport, WebhookReport};
use meridian_model::time;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
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
        self.sent += 1;
        self.next = seq + 1;
    }

    /// Records that the packets before this one were evicted.
    pub(super) fn skip_to(&mut self, first: u64) {
        self.lost += first - self.next;
        self.next = first;
    }

    fn give_up(&mut self, letter: DeadLetter) {
        self.dead += 1;
        // The webhook moves on: one packet that it never accepts must not block the others.
        self.next = letter.seq + 1;
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
    /// Its entry in the queue, removed when dropped.
    #[serde(skip)]
    _ticket: Option<Arc<Ticket>>,
}

impl DeadLetter {
    /// A packet given up: its number, the time, the calls made, and why the last one failed.
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
    line: Arc<Mutex<Line>>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Line {
    /// Oldest first.
    letters: BTreeMap<Age, Entry>,
    /// Letters ever added.
    made: u64,
    bytes: usize,
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

/// The entry of a letter, removed from the queue when dropped.
#[derive(Debug)]
struct Ticket {
    line: Arc<Mutex<Line>>,
    age: Age,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        if let Some(entry) = line.letters.remove(&self.age) {
            line.bytes -= entry.bytes;
        }
    }
}

impl DeadLetters {
    /// An empty queue of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> DeadLetters {
        DeadLetters { line: Arc::default(), bytes_max }
    }

    /// Bytes of all letters.
    pub(crate) fn bytes(&self) -> usize {
        self.line.lock().bytes
    }

    /// Adds a webhook that is new, or was kept over a clean stop with its letters.
    pub(crate) fn enter(&self, webhook_state: WebhookState) -> Arc<Mutex<WebhookState>> {
        let webhook_state = Arc::new(Mutex::new(webhook_state));
        for letter in &mut webhook_state.lock().letters {
            letter._ticket = Some(self.place(&webhook_state, letter));
        }
        self.make_room();
        webhook_state
    }

    /// Adds a packet that was given up.
    pub(super) fn bury(&self, webhook_state: &Arc<Mutex<WebhookState>>, mut letter: DeadLetter) {
        let mut held = webhook_state.lock();
        letter._ticket = Some(self.place(webhook_state, &letter));
        held.give_up(letter);
        // `make_room` locks other webhooks, perhaps this one too.
        drop(held);
        self.make_room();
    }

    fn place(&self, webhook_state: &Arc<Mutex<WebhookState>>, letter: &DeadLetter) -> Arc<Ticket> {
        let mut line = self.line.lock();
        // By time, not by arrival here: letters of a clean stop come back in the order of the registry.
        let age = (time::parse_instant(&letter.at, None).unwrap_or_default(), line.made);
        let entry = Entry { webhook_state: Arc::downgrade(webhook_state), seq: letter.seq, bytes: letter.bytes() };
        line.made += 1;
        line.bytes += entry.bytes;
        line.letters.insert(age, entry);
        Arc::new(Ticket { line: self.line.clone(), age })
    }

    fn make_room(&self) {
        // The queue is unlocked here before the webhook is locked, which keeps the lock order.
        while let Some(oldest) = self.take_oldest() {
            if let Some(webhook_state) = oldest.webhook_state.upgrade() {
                webhook_state.lock().forget(oldest.seq);
            }
        }
    }

    /// Removes the oldest entry while the queue exceeds its bound.
    fn take_oldest(&self) -> Option<Entry> {
        let mut line = self.line.lock();
        if line.bytes <= self.bytes_max {
            return None;
        }
        let (_, oldest) = line.letters.pop_first()?;
        line.bytes -= oldest.bytes;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(seq: u64, at: i64) -> DeadLetter {
        DeadLetter::new(seq, at, 1, "it answered 500".to_owned(), "{}".to_owned())
    }

    /// The number of packets given up, and the numbers of those kept.
    fn told(webhook_state: &Mutex<WebhookState>) -> (u64, Vec<u64>) {
        let report = webhook_state.lock().report("https://example.org/", true);
        let letters = report.dead_letters.expect("letters");
        let seqs = letters.iter().map(|letter| letter.seq);
        (report.dead, seqs.collect())
    }

    #[test]
    fn letters_of_one_saved_search_are_bounded() {
        let letters = DeadLetters::new(usize::MAX);
        let webhook_state = letters.enter(WebhookState::from(0));
        for seq in 0..50 {
            letters.bury(&webhook_state, letter(seq, 0));
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
        let (quiet, busy) = (letters.enter(WebhookState::from(0)), letters.enter(WebhookState::from(0)));
        letters.bury(&quiet, letter(0, 0));
        for seq in 0..4 {
            letters.bury(&busy, letter(seq, 1));
        }
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((1, vec![0]), (4, vec![0, 1, 2, 3]), 5 * one));
        letters.bury(&busy, letter(4, 2));
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((1, vec![]), (5, vec![0, 1, 2, 3, 4]), 5 * one));
        letters.bury(&quiet, letter(1, 3));
        assert_eq!((told(&quiet), told(&busy), letters.bytes()), ((2, vec![1]), (5, vec![1, 2, 3, 4]), 5 * one));

        // After a clean stop the oldest stay the same in any order of webhooks, even with a smaller bound.
        let kept = |webhook_state: &Mutex<WebhookState>| -> WebhookState {
            serde_json::from_str(&serde_json::to_string(&*webhook_state.lock()).expect("JSON")).expect("a post")
        };
        let fewer = DeadLetters::new(3 * one);
        let (again, then) = (fewer.enter(kept(&quiet)), fewer.enter(kept(&busy)));
        assert_eq!((told(&again), told(&then), fewer.bytes()), ((2, vec![1]), (5, vec![3, 4]), 3 * one));
        drop(then);
        assert_eq!(fewer.bytes(), one);
        assert_eq!(letters.bytes(), 5 * one);
    }
}
