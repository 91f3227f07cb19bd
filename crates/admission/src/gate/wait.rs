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
    Thread(Arc<Seat>),
}

impl Waiter {
    /// Wakes the waiter with the outcome of its wait.
    pub(super) fn wake(self, outcome: Outcome) {
        match self {
            // A task that has left receives nothing, and has already given up its place.
            Waiter::Task(tell) => _ = tell.send(outcome),
            Waiter::Thread(seat) => seat.wake(),
        }
    }
}

/// Where a thread waits.
#[derive(Debug, Default)]
pub(super) struct Seat {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Seat {
    fn wake(&self) {
        *self.called.lock() = true;
        self.changed.notify_one();
    }

    /// Waits at most this long to be called. Returns whether it was called.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let mut called = self.called.lock();
        if !*called {
            // On a spurious wake-up this returns false, and the caller waits again.
            self.changed.wait_for(&mut called, longest);
        }
        std::mem::take(&mut *called)
    }
}
