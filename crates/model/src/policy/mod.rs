//! Rules that the server and the simulator share, as pure code:
//! - scan servers: the choice of one ([`selector`]), and which scans it starts or rejects as busy ([`busy`]);
//! - work: the next job of a worker ([`queue`], [`turns`]), the next query or its refusal ([`admission`]), when
//!   refused clients retry ([`retry_times`]), and which entries stay in a cache ([`places`]);
//! - callers: what one may do ([`access`]), how much its tenant may use ([`quota`], [`part`], [`pool`]), and whose
//!   certificate lets a process call another ([`names`]);
//! - owners: the groups of partitions ([`groups`]), which process should own one ([`placement`]), and who may try to
//!   ([`lease`]);
//! - handovers: who gets a group in a voluntary one ([`handover`]), and how a process becomes and stays the owner
//!   ([`owner`]);
//! - the bucket: which formats processes write ([`level`]), and the time up to which flushed writes are complete
//!   ([`complete`]);
//! - its readers: which snapshots stay available ([`horizon`]), and how long a reader's pin counts ([`pins`]).
//!
//! Nothing here waits, reads a clock or generates random numbers. Time and randomness are parameters, so a simulated
//! run and a real one execute the same code.

pub mod access;
pub mod admission;
pub mod busy;
pub mod complete;
pub mod groups;
pub mod handover;
pub mod horizon;
pub mod lease;
pub mod level;
pub mod names;
pub mod owner;
pub mod part;
pub mod pins;
pub mod placement;
pub mod places;
pub mod pool;
pub mod queue;
pub mod quota;
pub mod retry_times;
pub mod selector;
mod share;
pub mod turns;
