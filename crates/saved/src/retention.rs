//! Retention of the packets of all saved searches: over the bound, the oldest of all are evicted.

use meridian_admission::ByteBudget;
use meridian_federation::delivery::Outbox;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Packets in the order of their creation.
#[derive(Debug)]
pub(crate) struct PacketRetention {
    pub(crate) budget: ByteBudget,
    bytes_max: usize,
    line: Mutex<Line>,
}

#[derive(Debug)]
struct Line {
    packets: VecDeque<(Weak<Outbox>, u64)>,
    /// At this length, entries of packets that are gone are removed.
    swept_at: usize,
}

/// Min length at which entries are removed.
const SWEPT_MIN: usize = 4_096;

impl PacketRetention {
    pub(crate) fn new(bytes_max: usize) -> PacketRetention {
        let line = Line { packets: VecDeque::new(), swept_at: SWEPT_MIN };
        // The budget only counts; the queue decides which packets are evicted.
        PacketRetention { budget: ByteBudget::new(usize::MAX), bytes_max, line: Mutex::new(line) }
    }

    /// Appends a packet. Returns `false` if the outbox has been sealed.
    pub(crate) fn keep(&self, outbox: &Arc<Outbox>, make: impl FnOnce(u64) -> String) -> bool {
        // Outside of the queue's lock, so that saved searches do not wait for each other to format packets.
        let Some(seq) = outbox.push_evicting(make) else { return false };
        let mut line = self.line.lock();
        line.packets.push_back((Arc::downgrade(outbox), seq));
        while self.budget.held() > self.bytes_max
            && let Some((oldest, seq)) = line.packets.pop_front()
        {
            // Entries may outlive their outbox or packet; evicting them is a no-op.
            if let Some(outbox) = oldest.upgrade() {
                outbox.evict_through(seq);
            }
        }
        if line.packets.len() >= line.swept_at {
            let kept = |(outbox, seq): &(Weak<Outbox>, u64)| outbox.upgrade().is_some_and(|o| o.numbers().0 <= *seq);
            line.packets.retain(kept);
            // Doubling makes the sweep constant time for each packet on average.
            line.swept_at = SWEPT_MIN.max(2 * line.packets.len());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[test]
    fn the_oldest_of_all_give_way_and_the_line_stays_short() {
        let retention = PacketRetention::new(1_000);
        let outbox = |bytes| Arc::new(Outbox::from(0, bytes, retention.budget.clone(), Instant::now()));
        let (quiet, busy) = (outbox(1_000), outbox(1_000));
        assert!(retention.keep(&quiet, |_| "q".repeat(100)));
        for _ in 0..9 {
            assert!(retention.keep(&busy, |_| "b".repeat(100)));
        }
        assert_eq!((quiet.numbers(), retention.budget.held()), ((0, 1, 0), 1_000));
        assert!(retention.keep(&busy, |_| "b".repeat(100)));
        assert_eq!((quiet.numbers(), busy.numbers()), ((1, 1, 1), (0, 10, 0)));
        let small = outbox(100);
        for _ in 0..5 * SWEPT_MIN {
            assert!(retention.keep(&small, |_| "s".repeat(100)));
            assert!(retention.budget.held() <= 1_000 && retention.line.lock().packets.len() <= SWEPT_MIN + 20);
        }
        drop((quiet, busy, small));
        assert_eq!(retention.budget.held(), 0);
    }
}
