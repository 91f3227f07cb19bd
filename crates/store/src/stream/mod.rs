//! The log of a cluster's collections in streams: NATS JetStream, through the trait that `crates/nats` implements.
//!
//! Everything builds on one operation: a publish that expects the stream's last sequence number. Of two processes with
//! the same expectation one is refused. So a new owner's message makes every expectation of the former one fail.
//! `docs/decisions/049-log-in-a-stream.md` has the argument, and the handling of a stream that lost acknowledged
//! messages.
//!
//! Start at `message.rs`, the format of a message. `publish.rs` determines the outcome of a publish; `chain.rs` reads a
//! stream and reports what is missing. `log.rs` is the log over both, and `reader.rs` reads it in a process that does
//! not write. `memory.rs` is a stream with fault injection.

mod chain;
#[doc(hidden)]
pub mod fuzzed;
mod log;
mod memory;
mod message;
mod name;
mod publish;
mod reader;

pub use memory::{MemoryStreams, StreamFault};

pub(crate) use log::StreamLog;
pub(crate) use name::{bucket_prefix, name_of, prefix_of};
pub(crate) use reader::StreamReader;

use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// The place of the log of collections in a bucket.
#[derive(Debug, Clone)]
pub enum SharedLog {
    /// In the bucket, beside the segments.
    Bucket,
    /// In streams.
    Streams {
        /// The streams.
        streams: Arc<dyn Streams>,
        /// Whether writes that a stream has lost are given up, so that the collection takes writes again. An operator
        /// decides that.
        accept_loss: bool,
    },
}

impl SharedLog {
    /// Returns its name in the bucket's record.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            SharedLog::Bucket => "bucket",
            SharedLog::Streams { .. } => "nats",
        }
    }

    /// Records that the collections were opened: the operator's decision does not cover later losses.
    pub fn opened(&mut self) {
        if let SharedLog::Streams { accept_loss, .. } = self {
            *accept_loss = false;
        }
    }
}

/// Streams shared by several processes. Calls block, and each has a deadline.
pub trait Streams: Send + Sync + std::fmt::Debug {
    /// Creates a stream with a subject of its own; an existing one is not an error.
    fn create(&self, name: &str) -> io::Result<()>;

    /// Opens a stream; `None` if it does not exist.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Stream>>>;

    /// Returns the names of the streams that begin with `prefix`.
    fn names(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// Removes a stream with its messages; an absent one is not an error. Messages published to it from then on are
    /// never acknowledged.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Returns the max bytes of a message.
    fn message_max(&self) -> usize;

    /// Returns the name of the streams in messages to users.
    fn place(&self) -> String;
}

/// A stream: messages with consecutive sequence numbers.
///
/// # Contract
/// - **By expectation.** A message that expects `n` is stored as `n + 1` if `n` is the last number ever assigned, and
///   otherwise never.
/// - **Durable.** A message acknowledged with [`PublishOutcome::Stored`] survives a crash of any minority of servers.
///   Streams have broken this (`chain.rs` detects it).
/// - **Reads** show what was stored before the call, or an earlier state of it. [`Stream::get`] and [`Stream::bounds`]
///   are current, except for a moment after the stream's leader was replaced.
pub trait Stream: Send + Sync + std::fmt::Debug {
    /// Publishes messages one after another without waiting in between: the first expects `expected`, each further one
    /// the number of the previous one. Returns the outcome of each. The log publishes one at a time, because a later
    /// message may be stored although the previous one was refused (`publish.rs`).
    fn publish(&self, expected: u64, messages: &[Bytes]) -> Vec<PublishOutcome>;

    /// Returns the numbers that it holds.
    fn bounds(&self) -> io::Result<Bounds>;

    /// Reads a message; `None` if it does not exist.
    fn get(&self, sequence: u64) -> io::Result<Option<Bytes>>;

    /// Reads the messages of a range, inclusive, in order. Numbers without a message are left out.
    fn read(&self, from: u64, to: u64, each: &mut dyn FnMut(u64, Bytes)) -> io::Result<()>;

    /// Removes messages below a number.
    fn purge(&self, below: u64) -> io::Result<()>;

    /// Returns the max bytes of the messages of groups, including what a server adds to each. There is space for owner
    /// records beyond it: a stream filled by groups can still be taken over.
    fn bytes_max(&self) -> u64 {
        u64::MAX
    }
}

/// The outcome of the publish of one message.
#[derive(Debug)]
pub enum PublishOutcome {
    /// Stored under this number, durably.
    Stored(u64),
    /// Not stored, nor will be: the stream's last number differs from the expected one.
    Refused,
    /// Not stored, nor will be: no space, or no permission.
    Denied(io::Error),
    /// No answer, or an inconclusive one: it may be stored, or may yet be.
    Lost(io::Error),
}

/// The numbers that a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Number of the oldest message; one more than `last` if there is none.
    pub first: u64,
    /// The last number assigned; 0 before the first.
    pub last: u64,
}
