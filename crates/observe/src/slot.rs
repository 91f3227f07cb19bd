//! The processor slot of work, which is given back while the work waits for another process.

use crate::current;
use std::fmt;

/// A processor slot held by work.
pub trait Slot: Send + Sync + fmt::Debug {
    /// Gives the slot back while the work waits for another process. Does nothing if no slot is held.
    fn rest(&self);

    /// Takes a slot again if one was given back. Blocks until it is the work's turn, or until `over` reports that the
    /// work is no longer wanted.
    fn wake(&self, over: &dyn Fn() -> bool);
}

/// Runs `wait`, which waits for another process on this thread. The work holds no slot meanwhile, so other work runs.
/// Once `over` reports that the work is no longer wanted, it does not wait for its turn.
pub fn away<T>(over: &dyn Fn() -> bool, wait: impl FnOnce() -> T) -> T {
    // Upgraded before the wait, so that the same slot that was given back is taken again.
    let Some(slot) = current::with(|current| current.slot.as_ref().and_then(std::sync::Weak::upgrade)) else {
        return wait();
    };
    slot.rest();
    let outcome = wait();
    slot.wake(over);
    outcome
}
