//! The packets of a search on their way to its readers: numbered without gaps, kept for reconnects, bounded in memory.
//!
//! A packet gets its number under the same lock that appends it. So numbers are unique and consecutive.
//!
//! Packets that a reader has taken stay until this or another search needs their bytes. Unread packets are never
//! evicted: without space, the new packet is refused. The caller then reports the loss in the provider's state.
//!
//! The outbox of a saved search differs, since its readers may be away for days. It evicts its oldest packets, read or
//! not; the numbers show the gap.

mod reader;

pub use reader::Reader;

use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

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
    /// Number of the oldest packet kept.
    first: u64,
    /// The kept bytes, reserved from the budget of all searches.
    share: ByteShare,
    /// Number of the packet that each reader takes next, by reader id.
    readers: HashMap<u64, u64>,
    readers_made: u64,
    /// Packets below this number were taken by at least one reader.
    taken: u64,
    /// Time since which there has been no reader.
    unread_since: Option<Instant>,
    had_reader: bool,
    sealed: bool,
    /// Whether readers end once they have all packets, though more may still be appended.
    closed: bool,
    /// Number of packets evicted before any reader took them.
    lost: u64,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Returns the number below which every present reader has taken all packets, so that they may be evicted.
    fn floor(&self) -> u64 {
        // Without readers, packets that any reader took may go: a reader that returns for them gets `PacketEvicted`.
        self.readers.values().copied().min().unwrap_or(self.taken)
    }
}

/// The requested packet has been evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketEvicted {
    /// Number of the oldest packet still kept.
    pub first: u64,
}

impl Outbox {
    /// Creates an empty outbox that keeps at most `bytes_max` bytes.
    pub fn new(bytes_max: usize, budget: ByteBudget, now: Instant) -> Outbox {
        Outbox::from(0, bytes_max, budget, now)
    }

    /// Like [`Outbox::new`], with `first` as the number of the first packet.
    pub fn from(first: u64, bytes_max: usize, budget: ByteBudget, now: Instant) -> Outbox {
        let state = State {
            packets: VecDeque::new(),
            first,
            share: budget.empty(),
            readers: HashMap::new(),
            readers_made: 0,
            taken: first,
            unread_since: Some(now),
            had_reader: false,
            sealed: false,
            closed: false,
            lost: 0,
        };
        Outbox { state: Mutex::new(state), changed: Notify::new(), bytes_max, budget }
    }

    /// Appends the packet that `make` writes for its number. Returns `false` without space, or after the last packet.
    pub fn push(&self, make: impl FnOnce(u64) -> String) -> bool {
        let mut state = self.state.lock();
        if state.sealed {
            return false;
        }
        let packet = make(state.next());
        let over = |bytes: usize| bytes + packet.len() > self.bytes_max;
        let floor = state.floor();
        // Only packets that every reader has taken are evicted: first for this outbox's bound, then for the shared
        // budget.
        while (over(state.share.bytes()) || self.budget.is_short()) && state.first < floor {
            self.evict_first(&mut state);
        }
        // The remaining packets are unread: the new one is refused rather than an old one lost.
        if over(state.share.bytes()) || self.budget.held() + packet.len() > self.budget.limit() {
            return false;
        }
        self.keep(&mut state, packet);
        true
    }

    /// Appends a packet that must not be lost, even over the budget: provider states, which are few.
    pub fn push_state(&self, make: impl FnOnce(u64) -> String) {
        // A state that arrives after the last packet is dropped, since that packet has stated the number of packets.
        let mut state = self.state.lock();
        if !state.sealed {
            let packet = make(state.next());
            self.keep(&mut state, packet);
        }
    }

    /// Appends the last packet; no packet follows it.
    pub fn seal(&self, make: impl FnOnce(u64) -> String) {
        let mut state = self.state.lock();
        if !state.sealed {
            let packet = make(state.next());
            self.keep(&mut state, packet);
            state.sealed = true;
        }
    }

    /// Appends a packet and evicts the oldest ones to make space, read or not. Returns its number; `None` after the
    /// last packet.
    pub fn push_evicting(&self, make: impl FnOnce(u64) -> String) -> Option<u64> {
        let mut state = self.state.lock();
        if state.sealed {
            return None;
        }
        let seq = state.next();
        let packet = make(seq);
        // A saved search keeps the newest results. A slow reader is notified of the gap by the numbers.
        while state.share.bytes() + packet.len() > self.bytes_max && !state.packets.is_empty() {
            self.evict_first(&mut state);
        }
        self.keep(&mut state, packet);
        Some(seq)
    }

    /// Evicts the packets up to this number, read or not.
    pub fn evict_through(&self, through: u64) {
        let mut state = self.state.lock();
        // Idempotent: the retention may name packets that this outbox has already evicted.
        while state.first <= through && !state.packets.is_empty() {
            self.evict_first(&mut state);
        }
    }

    /// Ends readers once they have all packets. More packets can still be appended.
    pub fn close(&self) {
        self.state.lock().closed = true;
        // Notified after the flag is set: a reader that wakes checks the flag.
        self.changed.notify_waiters();
    }

    /// Returns whether readers end once they have all packets.
    pub fn is_closed(&self) -> bool {
        let state = self.state.lock();
        state.closed || state.sealed
    }

    /// Returns whether the last packet has been appended.
    pub fn is_sealed(&self) -> bool {
        self.state.lock().sealed
    }

    /// Returns whether the search has ended and has no packet with this number or a later one.
    pub fn is_over_before(&self, from: u64) -> bool {
        let state = self.state.lock();
        state.sealed && from >= state.next()
    }

    /// Returns the number of the oldest packet kept, the number of the next packet, and the count of packets evicted
    /// unread.
    pub fn numbers(&self) -> (u64, u64, u64) {
        let state = self.state.lock();
        (state.first, state.next(), state.lost)
    }

    /// Returns the number of the oldest packet kept, and the number below which all packets were taken by some reader.
    pub fn taken(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.first, state.taken)
    }

    /// Returns the number of the oldest packet kept, and the packets from there on.
    pub fn kept(&self) -> (u64, Vec<Arc<str>>) {
        let state = self.state.lock();
        (state.first, state.packets.iter().cloned().collect())
    }

    fn keep(&self, state: &mut State, packet: String) {
        // Cannot fail: callers that respect the bound have checked it, and states may exceed it.
        state.share.grow(packet.len());
        state.packets.push_back(packet.into());
        self.changed.notify_waiters();
    }

    fn evict_first(&self, state: &mut State) {
        if let Some(packet) = state.packets.pop_front() {
            // Only packets that no reader has taken count as lost.
            state.lost += u64::from(state.first >= state.taken);
            state.first += 1;
            state.share.shrink(packet.len());
        }
    }

    /// Completes on the next change: a packet appended or taken, a reader added or removed. Changes count from when it
    /// is enabled.
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
        /// Over any sequence of disconnects, a client receives every accepted packet once and in order.
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
            assert_eq!(outbox.read(0).expect_err("forgotten"), PacketEvicted { first: 1 });
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
            // Packets that were read stay for a reconnect while the budget has space.
            assert!(budget.held() >= 400, "{}", budget.held());
            drop((readers, outboxes));
            assert_eq!(budget.held(), 0);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for_and_one_that_left_is_noticed() {
        let outbox = outbox(100);
        let mut reader = outbox.read(0).expect("a reader");
        assert!(outbox.push(|_| "x".repeat(60)));
        let (short, long) = (Duration::from_secs(30), Duration::from_secs(3_600));
        assert!(tokio::time::timeout(long, outbox.wait_for_space()).await.is_err());
        reader.next().await;
        outbox.wait_for_space().await;
        assert!(tokio::time::timeout(long, outbox.abandoned(short, short)).await.is_err());
        drop(reader);
        let left = Instant::now();
        outbox.abandoned(short, long).await;
        assert_eq!(left.elapsed(), short);
    }

    #[test]
    fn of_a_standing_question_the_oldest_give_way_and_a_reader_left_behind_is_told() {
        block_on(async {
            let outbox = Arc::new(Outbox::from(7, 100, ByteBudget::new(1 << 20), Instant::now()));
            let mut reader = outbox.read(7).expect("a reader");
            for seq in 7..10 {
                assert_eq!(outbox.push_evicting(|seq| format!("{seq:040}")), Some(seq));
            }
            assert_eq!((outbox.numbers(), outbox.budget.held()), ((8, 10, 1), 80));
            assert!(reader.next().await.is_none(), "what it would read is gone");
            assert_eq!(outbox.read(7).expect_err("forgotten"), PacketEvicted { first: 8 });
            let mut reader = outbox.read(8).expect("a reader");
            assert_eq!(reader.next().await.expect("a packet").0, 8);
            outbox.evict_through(8);
            assert_eq!(outbox.numbers(), (9, 10, 1), "what was taken is not lost");
            outbox.close();
            assert_eq!(outbox.push_evicting(|_| "x".to_owned()), Some(10));
            assert_eq!((reader.next().await.expect("a packet").0, reader.next().await.expect("a packet").0), (9, 10));
            assert!(reader.next().await.is_none() && outbox.is_closed());
        });
    }
}
