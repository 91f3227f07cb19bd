//! The executor of a scan server: decides which scan runs, which waits, and which is rejected as busy.
//!
//! A scan has one state at a time, and these are all transitions:
//!
//! ```text
//! waiting -> working -> resting -> queued -> working …   a started scan goes on until it leaves
//! waiting -> busy                                        a scan that did not start never will
//! ```
//!
//! So a scan is rejected as busy before its first batch or never. `working` holds one of the executor's places. A
//! scan gives its place up after each batch (`resting`), and joins the end of the queue when it wants the next one
//! (`queued`). New and started scans share one FIFO queue.
//!
//! Nothing here blocks or reads a clock. The caller holds a lock around each call, so each transition is atomic: a
//! scan cannot both time out as busy and get a place.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// Limits of an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Max scans that work on a batch at a time.
    pub places: usize,
    /// Max started scans at a time; each holds memory until it leaves.
    pub started: usize,
    /// Max scans that wait for their start.
    pub waiting: usize,
}

/// Why a scan is rejected as busy on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanRefusal {
    /// The server is draining: nothing starts any more.
    Draining,
    /// The max number of scans are waiting.
    Full,
    /// A scan of this name already exists.
    Known,
}

/// The next action of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorStep<K> {
    /// Work on a batch of this scan: its first or a further one.
    Work(K),
    /// Reject this scan as busy; the executor has forgotten it.
    Busy(K),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not started. Has its position in the queue, and the time until which it may wait.
    Waiting {
        order: u64,
        until: Option<Duration>,
    },
    Working,
    Resting,
    /// Started, and in the queue again.
    Queued {
        order: u64,
    },
}

/// Scans, named by `K`, and the queue for a place.
#[derive(Debug)]
pub struct Executor<K> {
    limits: Limits,
    scans: HashMap<K, State>,
    /// The queue, in two parts: the limit of started scans may hold back a waiting scan, but never a started one.
    waiting: BTreeMap<u64, K>,
    queued: BTreeMap<u64, K>,
    /// Scans that wait with a timeout, the earliest first.
    patience: BTreeSet<(Duration, u64)>,
    /// Positions assigned so far.
    orders: u64,
    working: usize,
    draining: bool,
}

impl<K: Clone + Eq + Hash> Executor<K> {
    /// An executor without scans. Each limit is at least 1: an executor without places would accept scans and start
    /// none.
    pub fn new(limits: Limits) -> Executor<K> {
        let Limits { places, started, waiting } = limits;
        Executor {
            limits: Limits { places: places.max(1), started: started.max(1), waiting: waiting.max(1) },
            scans: HashMap::new(),
            waiting: BTreeMap::new(),
            queued: BTreeMap::new(),
            patience: BTreeSet::new(),
            orders: 0,
            working: 0,
            draining: false,
        }
    }

    /// Adds a scan that waits for its start. A busy timeout of zero waits forever; the request's own deadline then
    /// ends the wait through [`Executor::leave`].
    ///
    /// # Errors
    /// The scan is rejected as busy immediately.
    pub fn arrive(&mut self, scan: K, busy_timeout: Duration, now: Duration) -> Result<(), ScanRefusal> {
        if self.draining {
            return Err(ScanRefusal::Draining);
        }
        if self.scans.contains_key(&scan) {
            return Err(ScanRefusal::Known);
        }
        if self.waiting.len() >= self.limits.waiting {
            return Err(ScanRefusal::Full);
        }
        let order = self.order();
        let until = (!busy_timeout.is_zero()).then(|| now.saturating_add(busy_timeout));
        self.patience.extend(until.map(|until| (until, order)));
        self.waiting.insert(order, scan.clone());
        self.scans.insert(scan, State::Waiting { order, until });
        Ok(())
    }

    /// The next action; call it until it returns `None`. Scans whose timeout has expired come first: a scan at its
    /// timeout is rejected even if a place is free.
    pub fn next(&mut self, now: Duration) -> Option<ExecutorStep<K>> {
        if let Some((until, order)) = self.patience.first().copied().filter(|(until, _)| *until <= now) {
            self.patience.remove(&(until, order));
            let scan = self.waiting.remove(&order)?;
            self.scans.remove(&scan);
            return Some(ExecutorStep::Busy(scan));
        }
        if self.working >= self.limits.places {
            return None;
        }
        // The limit holds back new scans only: started ones hold memory until they end, so they must always proceed.
        let starts = self.waiting.first_key_value().filter(|_| self.started() < self.limits.started);
        let goes_on = self.queued.first_key_value();
        // The lower position first: both parts form one FIFO queue.
        let scan = match (starts, goes_on) {
            (Some((a, _)), Some((b, _))) if a < b => self.waiting.pop_first()?.1,
            (Some(_), None) => self.waiting.pop_first()?.1,
            (_, Some(_)) => self.queued.pop_first()?.1,
            (None, None) => return None,
        };
        if let Some(State::Waiting { order, until: Some(until) }) = self.scans.insert(scan.clone(), State::Working) {
            // From here on it can no longer be rejected as busy.
            self.patience.remove(&(until, order));
        }
        self.working += 1;
        Some(ExecutorStep::Work(scan))
    }

    /// Releases the place of a scan that has finished a batch.
    pub fn rest(&mut self, scan: &K) {
        // A scan that left meanwhile has released its place already.
        if let Some(state @ State::Working) = self.scans.get_mut(scan) {
            *state = State::Resting;
            self.working -= 1;
        }
    }

    /// Queues a resting scan for its next batch. However long the queue is, it is never rejected as busy.
    pub fn again(&mut self, scan: &K) {
        let order = self.order();
        if let Some(state @ State::Resting) = self.scans.get_mut(scan) {
            *state = State::Queued { order };
            self.queued.insert(order, scan.clone());
        }
    }

    /// Removes a scan in any state: at its end, at its deadline, or when its client has gone.
    pub fn leave(&mut self, scan: &K) {
        match self.scans.remove(scan) {
            Some(State::Waiting { order, until }) => {
                self.waiting.remove(&order);
                if let Some(until) = until {
                    self.patience.remove(&(until, order));
                }
            }
            // Otherwise the place would stay taken: no `rest` follows.
            Some(State::Working) => self.working -= 1,
            Some(State::Queued { order }) => _ = self.queued.remove(&order),
            Some(State::Resting) | None => {}
        }
    }

    /// Stops all starts. Returns the waiting scans, which the caller rejects as busy; started ones run to their end.
    pub fn drain(&mut self) -> Vec<K> {
        self.draining = true;
        // Cleared with the waiting scans: `next` expects a waiting scan behind each entry.
        self.patience.clear();
        let turned_away: Vec<K> = std::mem::take(&mut self.waiting).into_values().collect();
        turned_away.iter().for_each(|scan| _ = self.scans.remove(scan));
        turned_away
    }

    /// When [`Executor::next`] will reject a scan as busy if nothing else happens; `None` if no scan waits with a
    /// timeout.
    pub fn due(&self) -> Option<Duration> {
        self.patience.first().map(|(until, _)| *until)
    }

    /// Number of scans that work on a batch.
    pub fn working(&self) -> usize {
        self.working
    }

    /// Number of scans that have started and not left. A draining server may exit once there are none.
    pub fn started(&self) -> usize {
        self.scans.len() - self.waiting.len()
    }

    /// Number of scans that wait for their start.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }
}
