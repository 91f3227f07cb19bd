//! The executor of a scan server: which scan works, which waits, which is answered busy.
//!
//! A scan has one state at a time, and these are all ways between them:
//!
//! ```text
//! waiting -> working -> resting -> queued -> working …   a started scan goes on until it leaves
//! waiting -> busy                                        a scan that did not start never will
//! ```
//!
//! So a scan is answered busy before its first batch or not at all. `working` holds one of the executor's places. A scan gives its
//! place up after each batch (`resting`), and joins the end of the queue when it wants the next one (`queued`). The queue is
//! one line, first in, first out, for new scans and for started ones.
//!
//! Nothing waits here and no clock is read. The caller holds a lock around each call, which makes a change of
//! state atomic. A busy timeout and a free place cannot both have the same scan.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// How much an executor takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Scans that work on a batch at a time.
    pub places: usize,
    /// Started scans at a time; each holds memory until it leaves.
    pub started: usize,
    /// Scans that wait for their start.
    pub waiting: usize,
}

/// Why a scan is answered busy as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The server ends: nothing starts any more.
    Draining,
    /// As many scans as there may be wait already.
    Full,
    /// A scan of this name is there already.
    Known,
}

/// The next step of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn<K> {
    /// Work on a batch of this scan: its first, or a further one.
    Work(K),
    /// Answer this scan busy. It is forgotten here.
    Busy(K),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not started. Its place in the line, and up to when it may wait.
    Waiting {
        order: u64,
        until: Option<Duration>,
    },
    Working,
    Resting,
    /// Started, and in the line again.
    Queued {
        order: u64,
    },
}

/// Scans, named by `K`, and the queue for a place.
#[derive(Debug)]
pub struct Executor<K> {
    limits: Limits,
    scans: HashMap<K, State>,
    /// The line, in two parts: a scan that waits may be held back by the limit of started ones, one that goes on may not.
    waiting: BTreeMap<u64, K>,
    queued: BTreeMap<u64, K>,
    /// Scans that wait for a limited time, the one that ends first in front.
    patience: BTreeSet<(Duration, u64)>,
    /// Given out in the line so far.
    orders: u64,
    working: usize,
    draining: bool,
}

impl<K: Clone + Eq + Hash> Executor<K> {
    /// An executor without scans. Each limit is at least 1: an executor of no places would take scans and start none.
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

    /// A scan arrives and waits for its start. A busy timeout of zero waits for ever; the request's own deadline ends that, by
    /// [`Executor::leave`].
    ///
    /// # Errors
    /// It is answered busy at once.
    pub fn arrive(&mut self, scan: K, busy_timeout: Duration, now: Duration) -> Result<(), Refused> {
        if self.draining {
            return Err(Refused::Draining);
        }
        if self.scans.contains_key(&scan) {
            return Err(Refused::Known);
        }
        if self.waiting.len() >= self.limits.waiting {
            return Err(Refused::Full);
        }
        let order = self.order();
        let until = (!busy_timeout.is_zero()).then(|| now.saturating_add(busy_timeout));
        self.patience.extend(until.map(|until| (until, order)));
        self.waiting.insert(order, scan.clone());
        self.scans.insert(scan, State::Waiting { order, until });
        Ok(())
    }

    /// The next step now; called again until there is none. Scans whose time to start has passed come first:
    /// at its last moment a scan is busy, even if a place is free.
    pub fn next(&mut self, now: Duration) -> Option<Turn<K>> {
        if let Some((until, order)) = self.patience.first().copied().filter(|(until, _)| *until <= now) {
            self.patience.remove(&(until, order));
            let scan = self.waiting.remove(&order)?;
            self.scans.remove(&scan);
            return Some(Turn::Busy(scan));
        }
        if self.working >= self.limits.places {
            return None;
        }
        let starts = self.waiting.first_key_value().filter(|_| self.started() < self.limits.started);
        let goes_on = self.queued.first_key_value();
        let scan = match (starts, goes_on) {
            (Some((a, _)), Some((b, _))) if a < b => self.waiting.pop_first()?.1,
            (Some(_), None) => self.waiting.pop_first()?.1,
            (_, Some(_)) => self.queued.pop_first()?.1,
            (None, None) => return None,
        };
        if let Some(State::Waiting { order, until: Some(until) }) = self.scans.insert(scan.clone(), State::Working) {
            // From here on it cannot be answered busy any more.
            self.patience.remove(&(until, order));
        }
        self.working += 1;
        Some(Turn::Work(scan))
    }

    /// A scan has worked on its batch and gives its place up.
    pub fn rest(&mut self, scan: &K) {
        if let Some(state @ State::Working) = self.scans.get_mut(scan) {
            *state = State::Resting;
            self.working -= 1;
        }
    }

    /// A scan that rests wants its next batch: it joins the end of the line. However long that is, it is never answered busy.
    pub fn again(&mut self, scan: &K) {
        let order = self.order();
        if let Some(state @ State::Resting) = self.scans.get_mut(scan) {
            *state = State::Queued { order };
            self.queued.insert(order, scan.clone());
        }
    }

    /// A scan is over, in whatever state: at its end, its deadline, or with its client gone.
    pub fn leave(&mut self, scan: &K) {
        match self.scans.remove(scan) {
            Some(State::Waiting { order, until }) => {
                self.waiting.remove(&order);
                if let Some(until) = until {
                    self.patience.remove(&(until, order));
                }
            }
            Some(State::Working) => self.working -= 1,
            Some(State::Queued { order }) => _ = self.queued.remove(&order),
            Some(State::Resting) | None => {}
        }
    }

    /// From now on nothing starts. Scans that wait are answered busy, which the caller does; started ones go on to their end.
    pub fn drain(&mut self) -> Vec<K> {
        self.draining = true;
        self.patience.clear();
        let turned_away: Vec<K> = std::mem::take(&mut self.waiting).into_values().collect();
        turned_away.iter().for_each(|scan| _ = self.scans.remove(scan));
        turned_away
    }

    /// When [`Executor::next`] answers a scan busy if nothing happens before; `None` if no scan waits for a limited time.
    pub fn due(&self) -> Option<Duration> {
        self.patience.first().map(|(until, _)| *until)
    }

    /// Scans that work on a batch.
    pub fn working(&self) -> usize {
        self.working
    }

    /// Scans that have started and not left. A server that drains may end once there are none.
    pub fn started(&self) -> usize {
        self.scans.len() - self.waiting.len()
    }

    /// Scans that wait for their start.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }
}
