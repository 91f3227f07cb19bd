//! Commits queued writes: one of the waiting tasks commits for all of them.
//!
//! The store's queue chooses a leader among the waiting writes. Its task commits the group: on its own worker thread
//! while the disk is quick, on another thread while it is slow. The other tasks wait without a thread.

use meridian_store::{PendingWrite, WriteError, WriteReceipt, WriteStep};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use tokio::time::{Duration, Instant};

/// Up to this mean duration of a commit, switching threads (twice, some tens of microseconds each) costs more than the
/// other tasks gain by it.
const QUICK: Duration = Duration::from_millis(1);
/// Chooses the thread on which a group is committed.
#[derive(Debug, Default)]
pub(super) struct CommitExecutor {
    /// Mean duration of recent commits, in nanoseconds: each commit counts for an eighth. Disks are often quick but for
    /// one sync in fifty; a max would send most commits to another thread because of these.
    mean: AtomicU64,
    /// Workers that are running a commit.
    held: AtomicUsize,
}

/// A worker that runs a commit.
struct CommitGuard<'a>(&'a AtomicUsize);

impl Drop for CommitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl CommitExecutor {
    /// Waits until a queued write is committed, and commits the group if this write leads it. Dropping the future
    /// cancels the write, unless it is being committed. A commit of `small` writes may run on this thread.
    pub(super) async fn finish(
        self: Arc<Self>,
        pending: PendingWrite,
        deadline: Instant,
        small: bool,
    ) -> Result<WriteReceipt, WriteError> {
        if small {
            match pending.poll(Waker::noop()) {
                Poll::Ready(WriteStep::Done(outcome)) => return outcome,
                // The leader at once, so no other task is writing: committing here saves the wakeup when the disk is
                // done.
                Poll::Ready(WriteStep::Lead) => self.commit(|| pending.lead()),
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
            // Hands the other tasks of this worker to another one first, so that none of them waits for the disk.
            None => tokio::task::block_in_place(commit),
        }
        self.note(began.elapsed());
    }

    /// Takes the worker, unless commits are slow or no other worker would be left. So other requests continue, however
    /// long the disk takes this time.
    fn hold(&self, workers: usize) -> Option<CommitGuard<'_>> {
        if Duration::from_nanos(self.mean.load(Ordering::Relaxed)) > QUICK {
            return None;
        }
        // Counted before the test, so that two commits cannot both take the last free worker; `held` undoes it on
        // refusal.
        let before = self.held.fetch_add(1, Ordering::AcqRel);
        let held = CommitGuard(&self.held);
        (before + 1 < workers).then_some(held)
    }

    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.mean.load(Ordering::Relaxed);
        // A lost update of two concurrent commits is harmless: this is an estimate.
        self.mean.store(mean - mean / 8 + took / 8, Ordering::Relaxed);
    }
}

/// Waits for the outcome of a write; if it leads, the commit gets a blocking thread.
async fn wait(pending: Arc<PendingWrite>, deadline: Instant) -> Result<WriteReceipt, WriteError> {
    let mut late = false;
    loop {
        let step = poll_fn(|cx| pending.poll(cx.waker()));
        let next = if late { Ok(step.await) } else { tokio::time::timeout_at(deadline, step).await };
        match next {
            Ok(WriteStep::Done(outcome)) => return outcome,
            // Many tasks write: the commit gets a thread of its own, so that no worker is blocked.
            Ok(WriteStep::Lead) => {
                // The clone keeps the write queued if this task is dropped meanwhile: a commit in progress must not be
                // cancelled.
                let (leader, current) = (pending.clone(), meridian_observe::current());
                // If it panics, the queue has reported an error to every write of the group.
                let _ = tokio::task::spawn_blocking(move || current.run(|| leader.lead())).await;
            }
            // At the deadline a write is cancelled. One that is being committed is awaited, since its outcome is near.
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
    fn one_worker_is_always_left_for_others() {
        let commits = CommitExecutor::default();
        assert!(commits.hold(1).is_none());
        let first = commits.hold(3);
        let second = commits.hold(3);
        assert!(first.is_some() && second.is_some() && commits.hold(3).is_none());
        drop(first);
        assert!(commits.hold(3).is_some());
    }

    #[test]
    fn a_slow_disk_sends_commits_to_another_thread_until_it_is_quick_again() {
        let (commits, quick) = (CommitExecutor::default(), Duration::from_micros(200));
        // Now and then a sync takes long: the disk is quick.
        for n in 0..200 {
            assert!(commits.hold(2).is_some(), "after {n}");
            commits.note(if n % 50 == 49 { Duration::from_millis(5) } else { quick });
        }
        (0..8).for_each(|_| commits.note(Duration::from_millis(5)));
        assert!(commits.hold(2).is_none());
        // A long stall is forgotten in some seventy commits.
        commits.note(Duration::from_secs(60));
        let until_quick = (1..).take_while(|_| {
            commits.note(quick);
            commits.hold(2).is_none()
        });
        assert!((60..100).contains(&until_quick.count()));
    }
}
