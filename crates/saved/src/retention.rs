//! Retention of the packets of all saved searches: above the bound, the tenant with the most bytes loses its oldest.

use meridian_admission::ByteBudget;
use meridian_federation::delivery::Outbox;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

/// The packets of each tenant, in the order of their creation.
#[derive(Debug)]
pub(crate) struct PacketRetention {
    bytes_max: usize,
    lines: Mutex<HashMap<Arc<str>, Line>>,
}

/// The packets of a tenant.
#[derive(Debug)]
struct Line {
    /// The budget only counts; the line decides which packets are evicted.
    budget: ByteBudget,
    packets: VecDeque<(Weak<Outbox>, u64)>,
    /// At this length, entries of packets that are gone are removed.
    swept_at: usize,
}

/// Min length at which entries are removed.
const SWEPT_MIN: usize = 4_096;

impl Default for Line {
    fn default() -> Self {
        Line { budget: ByteBudget::new(usize::MAX), packets: VecDeque::new(), swept_at: SWEPT_MIN }
    }
}

impl PacketRetention {
    pub(crate) fn new(bytes_max: usize) -> PacketRetention {
        PacketRetention { bytes_max, lines: Mutex::default() }
    }

    /// The budget of a tenant's outboxes.
    pub(crate) fn budget(&self, tenant: &Arc<str>) -> ByteBudget {
        self.lines.lock().entry(tenant.clone()).or_default().budget.clone()
    }

    /// Forgets a tenant without saved searches.
    pub(crate) fn forget(&self, tenant: &str) {
        self.lines.lock().remove(tenant);
    }

    /// Bytes of all packets.
    pub(crate) fn held(&self) -> usize {
        self.lines.lock().values().map(|line| line.budget.held()).sum()
    }

    /// Appends a packet to an outbox of a tenant. Returns `false` if the outbox has been sealed.
    pub(crate) fn keep(&self, tenant: &Arc<str>, outbox: &Arc<Outbox>, make: impl FnOnce(u64) -> String) -> bool {
        // Outside of the lock, so that saved searches do not wait for each other to format packets.
        let Some(seq) = outbox.push_evicting(make) else { return false };
        let mut lines = self.lines.lock();
        lines.entry(tenant.clone()).or_default().append(outbox, seq);
        // By tenant, so that one with many packets only evicts its own.
        while lines.values().map(|line| line.budget.held()).sum::<usize>() > self.bytes_max
            && let Some(largest) = lines.values_mut().max_by_key(|line| line.budget.held())
            && let Some((oldest, seq)) = largest.packets.pop_front()
        {
            // Entries may outlive their outbox or packet; evicting them is a no-op.
            if let Some(outbox) = oldest.upgrade() {
                outbox.evict_through(seq);
            }
        }
        true
    }
}

impl Line {
    fn append(&mut self, outbox: &Arc<Outbox>, seq: u64) {
        self.packets.push_back((Arc::downgrade(outbox), seq));
        if self.packets.len() >= self.swept_at {
            let kept = |(outbox, seq): &(Weak<Outbox>, u64)| outbox.upgrade().is_some_and(|o| o.numbers().0 <= *seq);
            self.packets.retain(kept);
            // Doubling makes the sweep constant time for each packet on average.
            self.swept_at = SWEPT_MIN.max(2 * self.packets.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn outbox(retention: &PacketRetention, tenant: &Arc<str>, bytes: usize) -> Arc<Outbox> {
        Arc::new(Outbox::from(0, bytes, retention.budget(tenant), Instant::now()))
    }

    #[test]
    fn the_oldest_of_all_give_way_and_the_line_stays_short() {
        let (retention, tenant) = (PacketRetention::new(1_000), "a".into());
        let outbox = |bytes| outbox(&retention, &tenant, bytes);
        let (quiet, busy) = (outbox(1_000), outbox(1_000));
        assert!(retention.keep(&tenant, &quiet, |_| "q".repeat(100)));
        for _ in 0..9 {
            assert!(retention.keep(&tenant, &busy, |_| "b".repeat(100)));
        }
        assert_eq!((quiet.numbers(), retention.held()), ((0, 1, 0), 1_000));
        assert!(retention.keep(&tenant, &busy, |_| "b".repeat(100)));
        assert_eq!((quiet.numbers(), busy.numbers()), ((1, 1, 1), (0, 10, 0)));
        let small = outbox(100);
        for _ in 0..5 * SWEPT_MIN {
            assert!(retention.keep(&tenant, &small, |_| "s".repeat(100)));
            assert!(retention.held() <= 1_000 && retention.lines.lock()["a"].packets.len() <= SWEPT_MIN + 20);
        }
        drop((quiet, busy, small));
        assert_eq!(retention.held(), 0);
    }

    #[test]
    fn a_tenant_with_many_packets_evicts_its_own() {
        let retention = PacketRetention::new(1_000);
        let (few, many): (Arc<str>, Arc<str>) = ("few".into(), "many".into());
        let (quiet, busy) = (outbox(&retention, &few, 1_000), outbox(&retention, &many, 1_000));
        for _ in 0..5 {
            assert!(retention.keep(&few, &quiet, |_| "q".repeat(100)));
        }
        for _ in 0..100 {
            assert!(retention.keep(&many, &busy, |_| "b".repeat(100)));
        }
        assert_eq!((quiet.numbers(), busy.numbers(), retention.held()), ((0, 5, 0), (95, 100, 95), 1_000));
    }
}
