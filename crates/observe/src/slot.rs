//! The processor slot of work, which is given back while the work waits for another process or for maintenance.

use std::fmt;

/// A processor slot held by work.
pub trait Slot: Send + Sync + fmt::Debug {
    /// Gives the slot back while the work waits. Does nothing if no slot is held.
    fn rest(&self);

    /// Takes a slot again if one was given back. Blocks until it is the work's turn, or until `over` reports that the
    /// work is no longer wanted.
    fn wake(&self, over: &dyn Fn() -> bool);
}
