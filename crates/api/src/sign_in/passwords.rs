//! The queue of work on passwords.
//!
//! One hash takes some 30 ms of a processor and 19 MiB. They run one at a time, off the threads of the async runtime, so that
//! attempts to sign in cost the other clients no more than that, however many there are.

use crate::overload;
use crate::problem::{Problem, Result};
use crate::state::AppState;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Max requests that wait; further ones get 503.
const WAITING_MAX: usize = 32;
/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Runs work on passwords.
pub struct Passwords {
    /// Of requests that run or wait.
    places: Arc<Semaphore>,
    /// Of the one that runs.
    turn: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Passwords {
        Passwords { places: Arc::new(Semaphore::new(WAITING_MAX + 1)), turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Passwords {
    /// Runs `work` when it is its turn.
    ///
    /// # Errors
    /// 503 where too many wait, or the wait is too long.
    pub async fn run<T: Send + 'static>(
        &self,
        state: &AppState,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let busy = || {
            let detail = "too many passwords are being checked: try again".to_owned();
            overload::overloaded(state, detail, WAITING_MAX)
        };
        let place = self.places.clone().try_acquire_owned().map_err(|_| busy())?;
        let turn = tokio::time::timeout(WAIT_MAX, self.turn.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| busy())?.map_err(Problem::internal)?;
        let run = move || {
            let done = work();
            // Held to the end of the work: a client that has gone does not let another begin beside it.
            drop((turn, place));
            done
        };
        tokio::task::spawn_blocking(run).await.map_err(Problem::internal)
    }
}
