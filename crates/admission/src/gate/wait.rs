//! Waiters: a task, or a thread that was preempted.

use super::Refusal;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

type Outcome = Result<(), Refusal>;

/// A task or thread that waits for a slot.
#[derive(Debug)]
pub(super) enum Waiter {
    Task(oneshot::Sender<Outcome>),
    Thread(Arc<Parker>),
}

impl Waiter {
    /// Wakes the waiter with the outcome of its wait.
    pub(super) fn wake(self, outcome: Outcome) {
        match self {
            // A task that has left receives nothing, and has already given up its place.
            Waiter::Task(tell) => _ = tell.send(outcome),
            Waiter::Thread(parker) => parker.unpark(),
        }
    }
}

/// Parks a thread until it is woken.
#[derive(Debug, Default)]
pub(super) struct Parker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Parker {
    fn unpark(&self) {
        *self.woken.lock() = true;
        self.changed.notify_one();
    }

    /// Waits at most this long to be woken. Returns whether it was woken.
    pub(super) fn park_timeout(&self, longest: Duration) -> bool {
        let mut woken = self.woken.lock();
        if !*woken {
            // On a spurious wake-up this returns false, and the caller waits again.
            self.changed.wait_for(&mut woken, longest);
        }
        std::mem::take(&mut *woken)
    }
}
