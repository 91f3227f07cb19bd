//! The known searches, and the slots of running ones.

use super::Searches;
use super::retry_schedule::RetrySchedule;
use crate::asker::SearchKey;
use crate::search::Search;
use meridian_admission::QuotaPermit;
use meridian_model::policy::pool::Pool;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant};

/// The known searches.
pub(super) struct Registry {
    pub(super) all: HashMap<String, Arc<Search>>,
    /// Slots of running searches, by tenant.
    pub(super) slots: Pool<Arc<str>>,
    /// Running searches: arrival and number, to deadline.
    pub(super) running: BTreeMap<RunningKey, Instant>,
    /// Slots assigned since the start, which makes keys unique.
    pub(super) places: u64,
    /// Ended searches that can still be read, oldest first.
    pub(super) ended: VecDeque<EndedSearch>,
    /// Joinable searches, to their id.
    pub(super) joinable: HashMap<SearchKey, String>,
    /// Exponential mean of the duration of searches.
    pub(super) takes: Option<Duration>,
    /// When refused clients may retry.
    pub(super) retries: RetrySchedule,
    pub(super) stopped: bool,
}

/// An ended search.
pub(super) struct EndedSearch {
    pub(super) id: String,
    pub(super) tenant: Arc<str>,
    /// Dropped with the entry, which releases its supervisor.
    pub(super) _kept: oneshot::Sender<()>,
}

/// A slot: arrival of its search, and a number.
type RunningKey = (Instant, u64);

impl Registry {
    /// Creates an empty registry; `searches_max` is the max number of concurrent searches.
    pub(super) fn new(searches_max: usize) -> Registry {
        Registry {
            all: HashMap::new(),
            slots: Pool::new(searches_max),
            running: BTreeMap::new(),
            places: 0,
            ended: VecDeque::new(),
            joinable: HashMap::new(),
            takes: None,
            retries: RetrySchedule::new(Instant::now()),
            stopped: false,
        }
    }

    /// Returns the running search with this key, if it began less than `join` ago.
    pub(super) fn joined(&self, key: &SearchKey, join: Duration) -> Option<Arc<Search>> {
        let search = self.joinable.get(key).and_then(|id| self.all.get(id))?;
        // An ended search is not joined: a client that repeats a question wants fresh results.
        (search.arrived.elapsed() < join && !search.is_over()).then(|| search.clone())
    }

    /// Forgets the oldest ended search of the tenant that has most of them, so that no tenant loses its own to
    /// another's.
    pub(super) fn forget_one(&mut self) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        self.ended.iter().for_each(|ended| *counts.entry(&*ended.tenant).or_default() += 1);
        let most = counts.values().copied().max();
        // Among tenants with equally many, the one whose oldest search ended first.
        let first = self.ended.iter().position(|ended| counts.get(&*ended.tenant).copied() == most);
        if let Some(first) = first {
            self.forget(first);
        }
    }

    /// Forgets the ended search at this index.
    pub(super) fn forget(&mut self, place: usize) {
        if let Some(ended) = self.ended.remove(place) {
            self.all.remove(&ended.id);
        }
    }

    pub(super) fn note_end(&mut self, took: Duration) {
        self.takes = Some(self.takes.map_or(took, |mean| (mean * 7 + took) / 8));
        self.retries.note_end(Instant::now());
    }

    /// Returns the time until a slot is likely to be free. That is when the oldest search has run for the mean
    /// duration, at most until its deadline.
    pub(super) fn free_in(&self, now: Instant) -> Duration {
        let Some(((arrived, _), deadline)) = self.running.first_key_value() else { return Duration::ZERO };
        let end = self.takes.map_or(*deadline, |takes| (*deadline).min(*arrived + takes));
        end.saturating_duration_since(now)
    }
}

pub(super) enum Admission {
    Join(Arc<Search>),
    Running(RunningSlot),
}

/// A slot of a running search, released when dropped.
pub(super) struct RunningSlot {
    pub(super) searches: Arc<Searches>,
    pub(super) key: RunningKey,
    pub(super) tenant: Arc<str>,
    /// Its slot in the tenant's share, released when dropped.
    pub(super) _held: QuotaPermit,
}

impl Drop for RunningSlot {
    fn drop(&mut self) {
        let mut registry = self.searches.registry.lock();
        registry.running.remove(&self.key);
        registry.slots.give_back(self.tenant.clone(), 1);
    }
}
