//! How queued writes come to be committed: one of the tasks that wait commits for all of them.
//!
//! The store's queue names a leader among the writes that wait. Its task commits the group: on the worker thread that it
//! is on while the disk answers at once, on another thread where it does not. The other tasks wait without a thread.

use meridian_store::{Pending, Turn, WriteError, Written};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// While no commit takes longer, changing threads (some tens of microseconds, twice) costs more than it gives others.
const QUICK: Duration = Duration::from_millis(1);

/// Decides on which thread a group is committed.
#[derive(Debug, Default)]
pub(super) struct CommitExecutor {
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

impl CommitExecutor {
    /// Waits until a queued write is committed, and commits for all that wait when it is its turn. Dropped, the write is
    /// taken back, unless it is being committed. A commit of `small` writes may stay on this thread.
    pub(super) async fn finish(
        self: Arc<Self>,
        pending: Pending,
        deadline: Instant,
        small: bool,
    ) -> Result<Written, WriteError> {
        if small {
            match pending.poll(Waker::noop()) {
                Poll::Ready(Turn::Done(outcome)) => return outcome,
                // No other task writes: this one goes on here at once when the disk has answered.
                Poll::Ready(Turn::Lead) => self.commit(|| pending.lead()),
                Poll::Pending => {}
            }
        }
        wait(Arc::new(pending), deadline).await
    }

    /// Commits on this thread, a worker of the runtime.
    fn commit(&self, commit: impl FnOnce()) {
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

/// Waits for the outcome of a write, with a thread of its own for the commit where it leads.
async fn wait(pending: Arc<Pending>, deadline: Instant) -> Result<Written, WriteError> {
    let mut late = false;
    loop {
        let turn = poll_fn(|cx| pending.poll(cx.waker()));
        let next = if late { Ok(turn.await) } else { tokio::time::timeout_at(deadline.into(), turn).await };
        match next {
            Ok(Turn::Done(outcome)) => return outcome,
            // Many write: with a thread for the one that commits, the others stay on theirs.
            Ok(Turn::Lead) => {
                let leader = pending.clone();
                // Should it panic, the queue has answered for it.
                let _ = tokio::task::spawn_blocking(move || leader.lead()).await;
            }
            // At the deadline a write is taken back; one that is being committed is waited for, its outcome is near.
            Err(_) => match pending.give_up() {
                Some(refusal) => return Err(refusal),
                None => late = true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_is_always_left_to_others() {
        let commits = CommitExecutor::default();
        assert!(commits.hold(1).is_none());
        let first = commits.hold(3);
        let second = commits.hold(3);
        assert!(first.is_some() && second.is_some() && commits.hold(3).is_none());
        drop(first);
        assert!(commits.hold(3).is_some());
    }

    #[test]
    fn a_slow_commit_sends_those_after_it_to_another_thread_until_they_are_quick_again() {
        let commits = CommitExecutor::default();
        commits.note(Duration::from_millis(50));
        assert!(commits.hold(2).is_none());
        let until_quick = (1..).take_while(|_| {
            commits.note(Duration::from_micros(200));
            commits.hold(2).is_none()
        });
        assert!((20..40).contains(&until_quick.count()));
    }
}
