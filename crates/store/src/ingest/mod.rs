//! Writes: from a caller's batch to a durable group that readers see.
//!
//! Start at `partition/`, the state machine that commits a group. `queue.rs` forms groups of concurrent writes.
//! `stage/` computes a group before any of it is durable. `idempotency.rs` recognises a batch that was sent before.
//! `replay.rs` applies the records of the log; `following.rs` does so for the log of another process, which `tail.rs`
//! reads. `bodies.rs` has the bodies of log records.

pub(crate) mod bodies;
pub(crate) mod digest;
mod following;
pub(crate) mod idempotency;
pub(crate) mod partition;
pub(crate) mod queue;
mod replay;
pub(crate) mod stage;
pub(crate) mod tail;
