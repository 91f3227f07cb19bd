//! When which saved search is polled: as each falls due, and one of each tenant in turn.

use super::fair_queue::FairQueue;
use super::search::SavedSearch;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Duration, Instant};

/// The saved searches to poll.
#[derive(Debug)]
pub(super) struct PollSchedule {
    polls: Mutex<Polls>,
    changed: Notify,
    /// Permits of polls that run.
    pub(super) places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Polls {
    /// By due time: tenant and id.
    later: BinaryHeap<Reverse<(Instant, Arc<str>, String)>>,
    /// Due polls, one of each tenant in turn.
    due: FairQueue<String>,
}

impl PollSchedule {
    pub(super) fn new(at_once: usize) -> PollSchedule {
        let places = Arc::new(Semaphore::new(at_once.max(1)));
        PollSchedule { polls: Mutex::default(), changed: Notify::new(), places }
    }

    /// Schedules a saved search.
    pub(super) fn add(&self, at: Instant, search: &SavedSearch) {
        let (tenant, id) = (search.definition.tenant.clone(), search.id.clone());
        self.polls.lock().later.push(Reverse((at, tenant, id)));
        self.changed.notify_one();
    }

    /// Waits for the next due saved search and returns it.
    pub(super) async fn next(&self) -> String {
        loop {
            let first = {
                let mut polls = self.polls.lock();
                let Polls { later, due } = &mut *polls;
                let now = Instant::now();
                while let Some(first) = later.peek_mut().filter(|first| first.0.0 <= now) {
                    let Reverse((_, tenant, id)) = PeekMut::pop(first);
                    due.push(&tenant, 1, id);
                }
                if let Some(id) = due.pop() {
                    return id;
                }
                later.peek().map(|Reverse((at, ..))| *at)
            };
            // An entry added meanwhile stays until its turn.
            match first {
                None => self.changed.notified().await,
                Some(at) => drop(tokio::time::timeout_at(at, self.changed.notified()).await),
            }
        }
    }
}

/// Returns the time of a saved search's first poll after a start, spread so that they do not all run at once.
pub(super) fn spread(pause: Duration, random: u64) -> Instant {
    Instant::now() + pause.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}
