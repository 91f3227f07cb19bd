//! How long a snapshot stays available: the rule of `model::policy::horizon`, shared by readers and merges.

use meridian_model::policy::horizon::Horizon as Rule;
use parking_lot::Mutex;

/// The horizon of a collection. Times are in microseconds of [`crate::seams::Clock::elapsed`].
#[derive(Debug)]
pub(crate) struct Horizon(Mutex<Rule>);

impl Horizon {
    /// Restores the horizon after a restart: snapshots from `dropped` on may have been handed out just before.
    pub(crate) fn new(memory: std::time::Duration, dropped: u64, elapsed: i64) -> Horizon {
        Horizon(Mutex::new(Rule::new(memory, dropped, elapsed)))
    }

    /// Records a use of the snapshot returned by `take` now. `take` runs under the lock, so the floor cannot rise in
    /// between.
    pub(crate) fn take<T>(&self, elapsed: i64, take: impl FnOnce() -> (u64, T)) -> T {
        let mut rule = self.0.lock();
        let (seq, taken) = take();
        rule.note(elapsed, seq);
        taken
    }

    /// Records a use of an older snapshot; returns false if it is gone.
    pub(crate) fn take_again(&self, elapsed: i64, seq: u64) -> bool {
        // Compared and recorded under one lock, so that no merge drops what this snapshot shows in between.
        self.0.lock().take_again(elapsed, seq)
    }

    /// Fixes the floor below which a merge drops dead rows; snapshots before it are gone from now on.
    pub(crate) fn drop_below(&self, elapsed: i64, current: u64) -> u64 {
        self.0.lock().drop_below(elapsed, current)
    }

    /// Returns the floor that [`Horizon::drop_below`] would fix now.
    pub(crate) fn floor(&self, elapsed: i64, current: u64) -> u64 {
        self.0.lock().floor(elapsed, current)
    }

    /// Records that other processes use snapshots from this one on, until the next call; `None` if no use is known.
    pub(crate) fn pin(&self, min: Option<u64>) {
        self.0.lock().pin(min);
    }

    /// Records that another process has dropped rows shown by snapshots below this one.
    pub(crate) fn follow(&self, dropped: u64) {
        self.0.lock().follow(dropped);
    }

    /// Returns the number below which snapshots are gone.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.lock().dropped()
    }
}
