//! Limits the changes of the registry that run, and those that wait for their turn.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Max changes that run, or wait on a thread.
pub const RUNNING_MAX: usize = 64;
/// Max further changes that wait without a thread.
pub const WAITING_MAX: usize = 256;

/// The turns of the changes of the registry.
pub struct Turns {
    /// Held by the changes that run.
    pub running: Arc<Semaphore>,
    /// Held by the changes that wait.
    waiting: Semaphore,
}

impl Turns {
    /// Creates turns of which this many run at a time, and this many more wait.
    pub fn new(running: usize, waiting: usize) -> Turns {
        Turns { running: Arc::new(Semaphore::new(running)), waiting: Semaphore::new(waiting) }
    }

    /// Waits for a turn. `None` at once if too many wait already, and later if it does not come in time.
    pub async fn take(&self, wait_max: Duration) -> Option<OwnedSemaphorePermit> {
        // Given back when the wait ends, also because the client disconnects.
        let _place = self.waiting.try_acquire().ok()?;
        let turn = self.running.clone().acquire_owned();
        tokio::time::timeout(wait_max, turn).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test(start_paused = true)]
    async fn a_change_is_refused_at_once_while_too_many_wait() {
        let turns = Turns::new(1, 2);
        let first = turns.take(LONG).await;
        assert!(first.is_some());
        let (mut second, mut third) = (Box::pin(turns.take(LONG)), Box::pin(turns.take(LONG)));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(matches!(turns.take(LONG).now_or_never(), Some(None)));
        drop(third);
        let mut fourth = Box::pin(turns.take(LONG));
        assert!(fourth.as_mut().now_or_never().is_none(), "it waits in the place of the third");
        drop(first);
        let second = second.await;
        assert!(second.is_some());
        drop(second);
        assert!(fourth.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_come_in_time_gives_its_place_back() {
        let turns = Turns::new(1, 1);
        let first = turns.take(LONG).await;
        assert!(turns.take(LONG).await.is_none());
        drop(first);
        assert!(turns.take(LONG).await.is_some());
    }
}
