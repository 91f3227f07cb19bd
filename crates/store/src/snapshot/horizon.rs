//! How long a snapshot stays available.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// Remembers which snapshots were used recently, so that a merge knows which dead rows it may drop.
///
/// The min number used in each second is kept. The min over the last five minutes (and a second, for rounding) is the
/// floor. No snapshot that is still available sees rows that were dead by then.
#[derive(Debug)]
pub(crate) struct Horizon {
    state: Mutex<HorizonState>,
}

#[derive(Debug)]
struct HorizonState {
    /// (second, min number used in it), oldest first.
    uses: VecDeque<(i64, u64)>,
    /// Snapshots below this one are gone.
    dropped: u64,
    /// Min number that another process uses; its owner renews it.
    pinned: Option<u64>,
    memory_seconds: i64,
}

impl Horizon {
    /// After a restart: snapshots from `dropped` on may have been handed out just before.
    pub(crate) fn new(memory: std::time::Duration, dropped: u64, elapsed: i64) -> Horizon {
        // The uses before the restart are unknown, so the oldest snapshot that may exist counts as used just now.
        let uses = VecDeque::from([(elapsed / 1_000_000, dropped)]);
        let memory_seconds = memory.as_secs() as i64 + 1;
        Horizon { state: Mutex::new(HorizonState { uses, dropped, pinned: None, memory_seconds }) }
    }

    /// Notes that the snapshot returned by `take` is used now. `take` runs under the lock, so the floor cannot rise
    /// in between.
    pub(crate) fn take<T>(&self, elapsed: i64, take: impl FnOnce() -> (u64, T)) -> T {
        let mut state = self.state.lock();
        let (seq, taken) = take();
        state.note(elapsed / 1_000_000, seq);
        taken
    }

    /// Notes a use of an older snapshot; `false` if it is gone.
    pub(crate) fn take_again(&self, elapsed: i64, seq: u64) -> bool {
        // Compared and noted under one lock: no merge drops what this snapshot shows between the two.
        let mut state = self.state.lock();
        if seq < state.dropped {
            return false;
        }
        state.note(elapsed / 1_000_000, seq);
        true
    }

    /// Fixes the floor below which a merge drops dead rows; snapshots before it are gone from now on.
    pub(crate) fn drop_below(&self, elapsed: i64, current: u64) -> u64 {
        let mut state = self.state.lock();
        // Fixed when the merge starts, not when it ends: a snapshot taken in between could otherwise lose rows that it
        // shows.
        state.dropped = state.floor(elapsed, current);
        state.dropped
    }

    /// The floor that [`Horizon::drop_below`] would fix now.
    pub(crate) fn floor(&self, elapsed: i64, current: u64) -> u64 {
        self.state.lock().floor(elapsed, current)
    }

    /// Other processes use snapshots from this one on, until more is said; `None`: none is known to.
    pub(crate) fn pin(&self, min: Option<u64>) {
        self.state.lock().pinned = min;
    }

    /// Another process has dropped what snapshots below this one show.
    pub(crate) fn follow(&self, dropped: u64) {
        let mut state = self.state.lock();
        state.dropped = state.dropped.max(dropped);
    }

    /// Snapshots below this one are gone.
    pub(crate) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }
}

impl HorizonState {
    fn note(&mut self, second: i64, seq: u64) {
        match self.uses.back_mut() {
            // One entry a second bounds the list by the memory of snapshots.
            Some((last, min)) if *last >= second => *min = (*min).min(seq),
            _ => {
                self.uses.push_back((second, seq));
                self.forget(second);
            }
        }
    }

    fn floor(&mut self, elapsed: i64, current: u64) -> u64 {
        self.forget(elapsed / 1_000_000);
        let uses = self.uses.iter().map(|(_, seq)| *seq).chain(self.pinned);
        let floor = uses.min().unwrap_or(current).min(current);
        // Never lowered: rows below an earlier floor may be gone already.
        self.dropped.max(floor)
    }

    fn forget(&mut self, second: i64) {
        while self.uses.front().is_some_and(|(used, _)| *used < second - self.memory_seconds) {
            self.uses.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND: i64 = 1_000_000;

    #[test]
    fn a_snapshot_stays_five_minutes_after_its_last_use() {
        let horizon = Horizon::new(Duration::from_secs(300), 0, 0);
        horizon.take(400 * SECOND, || (10, ()));
        // The start of the process counts as a use of everything: 400 s later it does no more.
        assert_eq!(horizon.drop_below(700 * SECOND, 50), 10);
        assert!(horizon.take_again(700 * SECOND, 10));
        assert_eq!(horizon.drop_below(1000 * SECOND, 60), 10);
        assert_eq!(horizon.drop_below(1002 * SECOND, 60), 60);
        assert!(!horizon.take_again(1002 * SECOND, 59));
        assert!(horizon.take_again(1002 * SECOND, 60));
    }

    #[test]
    fn a_snapshot_that_another_process_uses_stays() {
        let horizon = Horizon::new(Duration::from_secs(300), 0, 0);
        horizon.pin(Some(20));
        assert_eq!(horizon.drop_below(900 * SECOND, 50), 20);
        horizon.pin(None);
        assert_eq!(horizon.drop_below(900 * SECOND, 50), 50);
        horizon.pin(Some(30));
        assert_eq!(horizon.drop_below(900 * SECOND, 60), 50, "what is gone does not come back");
    }

    #[test]
    fn nothing_goes_while_nobody_asked_to_drop() {
        let horizon = Horizon::new(Duration::from_secs(300), 5, 0);
        assert!(horizon.take_again(9_999 * SECOND, 5));
        assert!(!horizon.take_again(9_999 * SECOND, 4));
    }
}
