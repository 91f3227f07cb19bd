//! Servers to try the lab on: [`null`] proves its ceiling, [`Mock`] is any number of sources with delays and faults.
//!
//! The answer of a source to its n-th call follows from the file's seed, so two runs against it meet the
//! same. The log of calls is the truth for a client's completeness.

mod file;
pub mod null;
mod serve;
mod source;
mod stream;

pub use file::{Delay, Fault, MockFile, SourceFile, StreamFile, Wrong};
pub use serve::Mock;
pub use source::{Reply, Source};
pub use stream::Packets;

#[cfg(test)]
mod tests;
