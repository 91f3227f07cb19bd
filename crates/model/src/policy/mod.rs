//! Rules that the server and the simulator share, as pure code: which scan server is asked ([`selector`]), and which job
//! a worker takes next ([`queue`]).
//!
//! Nothing here waits, reads a clock or draws by itself: time and chance are handed in, so that a simulated run and a real
//! one go through the same lines.

pub mod queue;
pub mod selector;
