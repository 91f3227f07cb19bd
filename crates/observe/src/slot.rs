//! The processor slot of work, which is not kept while the work waits for another process.

use crate::current;
use std::fmt;

/// A processor slot that work holds.
pub trait Slot: Send + Sync + fmt::Debug {
    /// Gives it back: the work waits for another process. Nothing happens if there is none.
    fn rest(&self);

    /// Takes one again, if one was given back. Blocks until it is the work's turn, or until `over` says that it is no longer wanted.
    fn wake(&self, over: &dyn Fn() -> bool);
}

/// Waits for another process on this thread, by `wait`. Its work has no slot meanwhile; other work runs. `over` says when the work is
/// no longer wanted: then it is not its turn that is waited for.
pub fn away<T>(over: &dyn Fn() -> bool, wait: impl FnOnce() -> T) -> T {
    // Upgraded before the wait: what was given back is taken again by the same slot.
    let Some(slot) = current::with(|current| current.slot.as_ref().and_then(std::sync::Weak::upgrade)) else {
        return wait();
    };
    slot.rest();
    let outcome = wait();
    slot.wake(over);
    outcome
}
