//! Which snapshots stay available, and so which dead rows may be dropped.
//!
//! A snapshot stays available for a while after its last use. The process that writes a collection keeps the
//! [`Horizon`]: a merge drops rows that were dead below its floor. Other processes use snapshots too. A gateway
//! reports each use to the writer ([`Uses`]), where it counts as a use. A process that reads the files directly
//! states its use in a pin (`pins.rs`).
//!
//! A process that takes over does not know of earlier uses. So it counts everything that may have been used until
//! then as used at its start. This covers uses that reach no writer during the change.

use std::collections::{BTreeMap, VecDeque};

/// Tracks which snapshots of a partition were used recently.
///
/// It keeps the min number used in each second. The floor is the min over the lifetime of a snapshot (plus a second,
/// for rounding). No available snapshot sees rows that were dead below the floor. Times are in microseconds of one
/// monotonic clock.
#[derive(Debug, Clone)]
pub struct Horizon {
    /// (second, min number used in it), oldest first.
    uses: VecDeque<(i64, u64)>,
    /// Snapshots below this one are gone.
    dropped: u64,
    /// Min number that other processes use; `None` if no use is known.
    pinned: Option<u64>,
    memory_seconds: i64,
}

impl Horizon {
    /// The state at the start of a process: snapshots from `dropped` on may have been used until `now`. `memory` is
    /// how long a snapshot stays after its last use.
    pub fn new(memory: std::time::Duration, dropped: u64, now: i64) -> Horizon {
        // Earlier uses are unknown, so the oldest snapshot that may exist counts as used just now.
        let uses = VecDeque::from([(now / 1_000_000, dropped)]);
        let memory_seconds = i64::try_from(memory.as_secs()).unwrap_or(i64::MAX - 1).saturating_add(1);
        Horizon { uses, dropped, pinned: None, memory_seconds }
    }

    /// Records a use of the newest snapshot.
    pub fn note(&mut self, now: i64, seq: u64) {
        let second = now / 1_000_000;
        match self.uses.back_mut() {
            // One entry per second bounds the list by the lifetime of snapshots.
            Some((last, min)) if *last >= second => *min = (*min).min(seq),
            _ => {
                self.uses.push_back((second, seq));
                self.forget(second);
            }
        }
    }

    /// Records a use of an older snapshot; returns false if it is gone.
    pub fn take_again(&mut self, now: i64, seq: u64) -> bool {
        if seq < self.dropped {
            return false;
        }
        self.note(now, seq);
        true
    }

    /// Fixes the floor below which a merge drops dead rows; snapshots below it are gone from now on.
    pub fn drop_below(&mut self, now: i64, current: u64) -> u64 {
        // Fixed when the merge starts, not when it ends: a snapshot taken in between could otherwise lose visible
        // rows.
        self.dropped = self.floor(now, current);
        self.dropped
    }

    /// The floor that [`Horizon::drop_below`] would fix now.
    pub fn floor(&mut self, now: i64, current: u64) -> u64 {
        self.forget(now / 1_000_000);
        let uses = self.uses.iter().map(|(_, seq)| *seq).chain(self.pinned);
        let floor = uses.min().unwrap_or(current).min(current);
        // Never lowered: rows below an earlier floor may be gone already.
        self.dropped.max(floor)
    }

    /// Sets the min snapshot that other processes use until the next call; `None` if no use is known.
    pub fn pin(&mut self, min: Option<u64>) {
        self.pinned = min;
    }

    /// Records that another process has dropped rows visible to snapshots below this one.
    pub fn follow(&mut self, dropped: u64) {
        self.dropped = self.dropped.max(dropped);
    }

    /// Snapshots below this one are gone.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn forget(&mut self, second: i64) {
        while self.uses.front().is_some_and(|(used, _)| *used < second - self.memory_seconds) {
            self.uses.pop_front();
        }
    }
}

/// Snapshot uses not reported to their writer yet: one number per partition, since the min covers the others.
#[derive(Debug, Clone)]
pub struct Uses<K> {
    min: BTreeMap<K, u64>,
    /// Max partitions.
    max: usize,
}

impl<K: Ord> Uses<K> {
    /// An empty set, of at most `max` partitions.
    pub fn new(max: usize) -> Uses<K> {
        Uses { min: BTreeMap::new(), max }
    }

    /// Records a use of a partition's snapshot; returns false if there is no room for another partition.
    pub fn note(&mut self, of: K, seq: u64) -> bool {
        if let Some(min) = self.min.get_mut(&of) {
            *min = seq.min(*min);
            return true;
        }
        let has_room = self.min.len() < self.max;
        if has_room {
            self.min.insert(of, seq);
        }
        has_room
    }

    /// Takes some uses to report; a use whose report fails is recorded again.
    pub fn take(&mut self, most: usize) -> Vec<(K, u64)> {
        std::iter::from_fn(|| self.min.pop_first()).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: i64 = 1_000_000;
    const MEMORY: Duration = Duration::from_secs(300);

    #[test]
    fn a_snapshot_stays_five_minutes_after_its_last_use() {
        let mut horizon = Horizon::new(MEMORY, 0, 0);
        horizon.note(400 * SECOND, 10);
        // The start of the process counts as a use of everything, but no longer 400 s later.
        assert_eq!(horizon.drop_below(700 * SECOND, 50), 10);
        assert!(horizon.take_again(700 * SECOND, 10));
        assert_eq!(horizon.drop_below(1000 * SECOND, 60), 10);
        assert_eq!(horizon.drop_below(1002 * SECOND, 60), 60);
        assert!(!horizon.take_again(1002 * SECOND, 59));
        assert!(horizon.take_again(1002 * SECOND, 60));
    }

    #[test]
    fn a_snapshot_that_another_process_uses_stays() {
        let mut horizon = Horizon::new(MEMORY, 0, 0);
        horizon.pin(Some(20));
        assert_eq!(horizon.drop_below(900 * SECOND, 50), 20);
        horizon.pin(None);
        assert_eq!(horizon.drop_below(900 * SECOND, 50), 50);
        horizon.pin(Some(30));
        assert_eq!(horizon.drop_below(900 * SECOND, 60), 50, "what is gone does not come back");
    }

    #[test]
    fn nothing_goes_while_nobody_asked_to_drop() {
        let mut horizon = Horizon::new(MEMORY, 5, 0);
        assert!(horizon.take_again(9_999 * SECOND, 5));
        assert!(!horizon.take_again(9_999 * SECOND, 4));
    }

    #[test]
    fn uses_are_one_number_a_partition_and_bounded() {
        let mut uses = Uses::new(2);
        assert!(uses.note("a", 9) && uses.note("a", 7) && uses.note("a", 8) && uses.note("b", 1));
        assert!(!uses.note("c", 1) && uses.note("b", 2));
        assert_eq!(uses.take(1), [("a", 7)]);
        assert!(uses.note("c", 3));
        assert_eq!(uses.take(9), [("b", 1), ("c", 3)]);
        assert_eq!(uses.take(9), []);
    }
}
