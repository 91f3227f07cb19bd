//! Where a writer commits for all that wait: on the worker thread that it is on while the disk answers at once, or with
//! another thread in its place for the worker's other tasks.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// While no commit takes longer, changing threads (some tens of microseconds, twice) costs more than it gives others.
const QUICK: Duration = Duration::from_millis(1);

/// What is known of commits so far.
#[derive(Debug, Default)]
pub struct Lead {
    /// Nanoseconds that a commit may take: of the longest, less an eighth for each after it.
    longest: AtomicU64,
    /// Workers that are held by a commit now.
    held: AtomicUsize,
}

/// A worker held by a commit.
struct Held<'a>(&'a AtomicUsize);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lead {
    /// Commits on this thread, a worker of the runtime.
    pub fn commit(&self, commit: impl FnOnce()) {
        let workers = tokio::runtime::Handle::current().metrics().num_workers();
        let held = self.hold(workers);
        let began = Instant::now();
        match held {
            Some(_held) => commit(),
            None => tokio::task::block_in_place(commit),
        }
        self.note(began.elapsed());
    }

    /// Holds the worker, unless commits are slow or no other worker would be left for everybody else's requests: however
    /// long the disk takes this time, they go on.
    fn hold(&self, workers: usize) -> Option<Held<'_>> {
        if Duration::from_nanos(self.longest.load(Ordering::Relaxed)) > QUICK {
            return None;
        }
        let before = self.held.fetch_add(1, Ordering::AcqRel);
        let held = Held(&self.held);
        (before + 1 < workers).then_some(held)
    }

    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let longest = self.longest.load(Ordering::Relaxed);
        self.longest.store(took.max(longest - longest.div_ceil(8)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_is_always_left_to_others() {
        let lead = Lead::default();
        assert!(lead.hold(1).is_none());
        let first = lead.hold(3);
        let second = lead.hold(3);
        assert!(first.is_some() && second.is_some() && lead.hold(3).is_none());
        drop(first);
        assert!(lead.hold(3).is_some());
    }

    #[test]
    fn a_slow_commit_sends_those_after_it_to_another_thread_until_they_are_quick_again() {
        let lead = Lead::default();
        lead.note(Duration::from_millis(50));
        assert!(lead.hold(2).is_none());
        let commits = (1..).take_while(|_| {
            lead.note(Duration::from_micros(200));
            lead.hold(2).is_none()
        });
        assert!((20..40).contains(&commits.count()));
    }
}
