//! How long a snapshot stays available: the rule of `model::policy::horizon`, shared by readers and merges.

use meridian_model::policy::horizon::Horizon as Rule;
use parking_lot::Mutex;

/// The horizon of a collection. Times are in microseconds of [`crate::seams::Clock::elapsed`].
#[derive(Debug)]
pub(crate) struct Horizon(Mutex<Rule>);

impl Horizon {
    /// After a restart: snapshots from `dropped` on may have been handed out just before.
    pub(crate) fn new(memory: std::time::Duration, dropped: u64, elapsed: i64) -> Horizon {
        Horizon(Mutex::new(Rule::new(memory, dropped, elapsed)))
    }

    /// Notes that the snapshot returned by `take` is used now. `take` runs under the lock, so the floor cannot rise
    /// in between.
    pub(crate) fn take<T>(&self, elapsed: i64, take: impl FnOnce() -> (u64, T)) -> T {
        let mut rule = self.0.lock();
        let (seq, taken) = take();
        rule.note(elapsed, seq);
        taken
    }

    /// Notes a use of an older snapshot; `false` if it is gone.
    pub(crate) fn take_again(&self, elapsed: i64, seq: u64) -> bool {
        // Compared and noted under one lock: no merge drops what this snapshot shows between the two.
        self.0.lock().take_again(elapsed, seq)
    }

    /// Fixes the floor below which a merge drops dead rows; snapshots before it are gone from now on.
    pub(crate) fn drop_below(&self, elapsed: i64, current: u64) -> u64 {
        self.0.lock().drop_below(elapsed, current)
    }

    /// The floor that [`Horizon::drop_below`] would fix now.
    pub(crate) fn floor(&self, elapsed: i64, current: u64) -> u64 {
        self.0.lock().floor(elapsed, current)
    }

    /// Other processes use snapshots from this one on, until more is said; `None`: none is known to.
    pub(crate) fn pin(&self, min: Option<u64>) {
        self.0.lock().pin(min);
    }

    /// Another process has dropped what snapshots below this one show.
    pub(crate) fn follow(&self, dropped: u64) {
        self.0.lock().follow(dropped);
    }

    /// Snapshots below this one are gone.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.lock().dropped()
    }
}
