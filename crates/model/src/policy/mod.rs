//! Rules that the server and the simulator share, as pure code: the choice of a scan server ([`selector`]), which scans such a
//! server starts and which it answers busy ([`busy`]), the job that a worker takes next ([`queue`], [`turns`]), the question
//! that runs next or is refused ([`admission`]), what a caller may do ([`access`]), what keeps a place in a cache ([`places`]), how much its
//! tenant may use ([`quota`], [`part`], [`pool`]), into which groups partitions are divided ([`groups`]), which process should own a group
//! ([`placement`]), who may try to own the data of a cluster ([`lease`]) and who gets it on purpose ([`handover`]), which forms its processes
//! write ([`level`]), how a process becomes and stays the owner ([`owner`]), up to when what it has flushed is complete ([`complete`]), which
//! snapshots stay available ([`horizon`]) and how long what a reader says counts ([`pins`]), and whose certificate lets a process call another
//! ([`names`]).
//!
//! Nothing here waits, reads a clock or generates random numbers: time and randomness are parameters, so that a simulated
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
pub mod selector;
mod share;
pub mod turns;
