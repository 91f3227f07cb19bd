//! Packets on their way to whoever asked: numbered without gaps, kept for a reader that comes back, bounded in memory.
//!
//! A packet gets its number in the moment that it is kept, under one lock, so that no two have the same and none is
//! missing. What a reader has taken stays until its room is needed, be it by another search; what nobody has taken is never
//! thrown away: when there is no room, the packet is not taken in, and whoever made it says so in the state of its provider.
//! Only of a question that stands, whose readers may stay away for days, the oldest packets give way; their numbers say what
//! is missing.

mod reader;

pub use reader::Reader;

use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The packets of one search.
#[derive(Debug)]
pub struct Outbox {
    state: Mutex<State>,
    changed: Notify,
    bytes_max: usize,
    budget: ByteBudget,
}

#[derive(Debug)]
struct State {
    packets: VecDeque<Arc<str>>,
    /// Number of the first packet kept.
    first: u64,
    /// Bytes of the packets kept.
    share: ByteShare,
    /// What each reader takes next.
    readers: HashMap<u64, u64>,
    readers_made: u64,
    /// What has been taken by somebody.
    taken: u64,
    /// Since when nobody reads.
    alone: Option<Instant>,
    came: bool,
    sealed: bool,
    /// No packet is kept back from readers any more, though the numbers may go on later.
    closed: bool,
    /// Packets that gave way before anybody had taken them.
    lost: u64,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Packets below this number have been taken by all who read.
    fn floor(&self) -> u64 {
        self.readers.values().copied().min().unwrap_or(self.taken)
    }
}

/// The reader asks for what is kept no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// The first number that can be had.
    pub first: u64,
}

impl Outbox {
    /// An empty one that keeps so many bytes.
    pub fn new(bytes_max: usize, budget: ByteBudget, now: Instant) -> Outbox {
        Outbox::from(0, bytes_max, budget, now)
    }

    /// The same, whose first packet has this number.
    pub fn from(first: u64, bytes_max: usize, budget: ByteBudget, now: Instant) -> Outbox {
        let state = State {
            packets: VecDeque::new(),
            first,
            share: budget.empty(),
            readers: HashMap::new(),
            readers_made: 0,
            taken: first,
            alone: Some(now),
            came: false,
            sealed: false,
            closed: false,
            lost: 0,
        };
        Outbox { state: Mutex::new(state), changed: Notify::new(), bytes_max, budget }
    }

    /// Keeps the packet that `make` writes for its number. `false` where there is no room, or the search has ended.
    pub fn push(&self, make: impl FnOnce(u64) -> String) -> bool {
        let mut state = self.state.lock();
        if state.sealed {
            return false;
        }
        let packet = make(state.next());
        let over = |bytes: usize| bytes + packet.len() > self.bytes_max;
        let floor = state.floor();
        while (over(state.share.bytes()) || self.budget.is_short()) && state.first < floor {
            self.forget_first(&mut state);
        }
        if over(state.share.bytes()) || self.budget.held() + packet.len() > self.budget.limit() {
            return false;
        }
        self.keep(&mut state, packet);
        true
    }

    /// Keeps a packet that must not be missing, whatever room there is: states of providers, which are few.
    pub fn push_state(&self, make: impl FnOnce(u64) -> String) {
        let mut state = self.state.lock();
        if !state.sealed {
            let packet = make(state.next());
            self.keep(&mut state, packet);
        }
    }

    /// Keeps the last packet: no other comes after it.
    pub fn seal(&self, make: impl FnOnce(u64) -> String) {
        let mut state = self.state.lock();
        if !state.sealed {
            let packet = make(state.next());
            self.keep(&mut state, packet);
            state.sealed = true;
        }
    }

    /// Keeps a packet whatever is kept already: the oldest give way, read or not. Its number; `None` after the last packet.
    pub fn press(&self, make: impl FnOnce(u64) -> String) -> Option<u64> {
        let mut state = self.state.lock();
        if state.sealed {
            return None;
        }
        let seq = state.next();
        let packet = make(seq);
        while state.share.bytes() + packet.len() > self.bytes_max && !state.packets.is_empty() {
            self.forget_first(&mut state);
        }
        self.keep(&mut state, packet);
        Some(seq)
    }

    /// Lets go of the packets up to this number, read or not.
    pub fn forget(&self, through: u64) {
        let mut state = self.state.lock();
        while state.first <= through && !state.packets.is_empty() {
            self.forget_first(&mut state);
        }
    }

    /// Lets readers go once they have what is there. Packets are still taken in.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_waiters();
    }

    /// Whether readers are let go once they have what is there.
    pub fn is_closed(&self) -> bool {
        let state = self.state.lock();
        state.closed || state.sealed
    }

    /// Whether the last packet is there.
    pub fn is_sealed(&self) -> bool {
        self.state.lock().sealed
    }

    /// Whether the last packet is there, and comes before the one of this number: nothing is left to be read from it on.
    pub fn is_over_before(&self, from: u64) -> bool {
        let state = self.state.lock();
        state.sealed && from >= state.next()
    }

    /// The number of the first packet kept, that of the next to come, and how many gave way before anybody had taken them.
    pub fn numbers(&self) -> (u64, u64, u64) {
        let state = self.state.lock();
        (state.first, state.next(), state.lost)
    }

    /// The number of the first packet kept, and that below which all packets have been taken by somebody.
    pub fn taken(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.first, state.taken)
    }

    /// The packets kept, oldest first, and the number of the first.
    pub fn kept(&self) -> (u64, Vec<Arc<str>>) {
        let state = self.state.lock();
        (state.first, state.packets.iter().cloned().collect())
    }

    fn keep(&self, state: &mut State, packet: String) {
        state.share.grow(packet.len());
        state.packets.push_back(packet.into());
        self.changed.notify_waiters();
    }

    fn forget_first(&self, state: &mut State) {
        if let Some(packet) = state.packets.pop_front() {
            state.lost += u64::from(state.first >= state.taken);
            state.first += 1;
            state.share.shrink(packet.len());
        }
    }

    /// Completes when a packet came, or one was taken, or a reader came or left, from when it was enabled on.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn outbox(bytes: usize) -> Arc<Outbox> {
        Arc::new(Outbox::new(bytes, ByteBudget::new(1 << 20), Instant::now()))
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
    }

    proptest! {
        /// However a reader breaks off and comes back: every packet that was taken in reaches it, once, in order.
        #[test]
        fn numbers_have_no_gaps_over_broken_connections(steps in proptest::collection::vec(0..4_u8, 1..200)) {
            block_on(async {
                let outbox = outbox(300);
                let (mut reader, mut expected, mut pushed) = (outbox.read(0).ok(), 0_u64, 0_u64);
                for step in steps {
                    match step {
                        0 | 1 => pushed += u64::from(outbox.push(|seq| format!("{seq:020}"))),
                        2 => if let Some(reader) = &mut reader && expected < pushed {
                            let (seq, packet) = reader.next().await.expect("a packet");
                            assert_eq!((seq, packet.parse()), (expected, Ok(expected)));
                            expected += 1;
                        },
                        _ => {
                            drop(reader.take());
                            reader = Some(outbox.read(expected).expect("what was not read is kept"));
                        }
                    }
                }
                outbox.seal(|seq| format!("{seq:020}"));
                assert!(!outbox.push(|_| String::new()));
                let mut reader = outbox.read(expected).expect("kept");
                while let Some((seq, _)) = reader.next().await {
                    assert_eq!(seq, expected);
                    expected += 1;
                }
                assert_eq!(expected, pushed + 1);
            });
        }
    }

    #[test]
    fn what_is_read_gives_way_and_what_is_not_stays() {
        block_on(async {
            let outbox = outbox(100);
            let mut reader = outbox.read(0).expect("a reader");
            let push = || outbox.push(|_| "x".repeat(40));
            assert!(push() && push() && !push());
            reader.next().await;
            assert!(push());
            assert_eq!(outbox.read(0).expect_err("forgotten"), Gone { first: 1 });
            assert_eq!(outbox.budget.held(), 80);
            drop(reader);
            drop(Arc::into_inner(outbox));
        });
    }

    #[test]
    fn what_others_have_read_never_takes_the_room_of_what_is_new() {
        block_on(async {
            let budget = ByteBudget::new(1_000);
            let outboxes: Vec<Arc<Outbox>> =
                (0..50).map(|_| Arc::new(Outbox::new(10_000, budget.clone(), Instant::now()))).collect();
            let mut readers: Vec<Reader> = outboxes.iter().map(|outbox| outbox.read(0).expect("a reader")).collect();
            for round in 0..3 {
                for (outbox, reader) in outboxes.iter().zip(&mut readers) {
                    assert!(outbox.push(|_| "x".repeat(100)) && outbox.push(|_| "x".repeat(100)));
                    assert!(budget.held() <= 1_000);
                    assert_eq!(reader.next().await.map(|(seq, _)| seq), Some(2 * round));
                    assert_eq!(reader.next().await.map(|(seq, _)| seq), Some(2 * round + 1));
                }
            }
            // As long as there is room, what was read stays for a reader that comes back.
            assert!(budget.held() >= 400, "{}", budget.held());
            drop((readers, outboxes));
            assert_eq!(budget.held(), 0);
        });
    }

    #[test]
    fn a_slow_reader_is_waited_for_and_one_that_left_is_noticed() {
        block_on(async {
            let outbox = outbox(100);
            let mut reader = outbox.read(0).expect("a reader");
            assert!(outbox.push(|_| "x".repeat(60)));
            let (short, long) = (Duration::from_millis(30), Duration::from_secs(60));
            assert!(tokio::time::timeout(short, outbox.room()).await.is_err());
            reader.next().await;
            outbox.room().await;
            assert!(tokio::time::timeout(short, outbox.abandoned(short / 3, short / 3)).await.is_err());
            drop(reader);
            tokio::time::timeout(long, outbox.abandoned(short, long)).await.expect("noticed");
        });
    }

    #[test]
    fn of_a_standing_question_the_oldest_give_way_and_a_reader_left_behind_is_told() {
        block_on(async {
            let outbox = Arc::new(Outbox::from(7, 100, ByteBudget::new(1 << 20), Instant::now()));
            let mut reader = outbox.read(7).expect("a reader");
            for seq in 7..10 {
                assert_eq!(outbox.press(|seq| format!("{seq:040}")), Some(seq));
            }
            assert_eq!((outbox.numbers(), outbox.budget.held()), ((8, 10, 1), 80));
            assert!(reader.next().await.is_none(), "what it would read is gone");
            assert_eq!(outbox.read(7).expect_err("forgotten"), Gone { first: 8 });
            let mut reader = outbox.read(8).expect("a reader");
            assert_eq!(reader.next().await.expect("a packet").0, 8);
            outbox.forget(8);
            assert_eq!(outbox.numbers(), (9, 10, 1), "what was taken is not lost");
            outbox.close();
            assert_eq!(outbox.press(|_| "x".to_owned()), Some(10));
            assert_eq!((reader.next().await.expect("a packet").0, reader.next().await.expect("a packet").0), (9, 10));
            assert!(reader.next().await.is_none() && outbox.is_closed());
        });
    }
}
