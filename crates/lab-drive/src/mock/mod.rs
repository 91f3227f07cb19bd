//! Servers for trying the lab: [`null`] proves its ceiling, [`Mock`] is any number of sources with delays and faults.
//!
//! The response of a source to its n-th call follows from the file's seed, so two runs against it get the same
//! responses. The log of calls is the ground truth for a client's completeness.

mod file;
mod items;
pub mod null;
mod serve;
mod source;
mod stream;

pub use file::{Delay, Fault, MockFault, MockFile, SourceFile, StreamFile};
pub use serve::Mock;
pub use source::{Reply, Source};
pub use stream::Packets;

#[cfg(test)]
mod tests;
