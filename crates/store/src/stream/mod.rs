//! The log of a cluster's collections in streams: NATS JetStream, by the trait that `crates/nats` implements.
//!
//! One operation carries it: a publish with the last sequence number that the stream is expected to have. Of two processes that expect the
//! same one is refused. So a message of a new owner makes every expectation of the former one fail. `docs/decisions/049-log-in-a-stream.md` has
//! the argument, and says what a stream that lost acknowledged messages leads to.
//!
//! Start at `message.rs`: what a message says of itself. `publish.rs` finds out what came of a publish, `chain.rs` reads a stream and names what is
//! missing, `log.rs` is the log over both, `reader.rs` reads it in a process that does not write. `memory.rs` is a stream that fails on purpose.

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

/// Where the log of collections in a bucket is.
#[derive(Debug, Clone)]
pub enum SharedLog {
    /// In the bucket, beside the segments.
    Bucket,
    /// In streams.
    Streams {
        /// The streams.
        streams: Arc<dyn Streams>,
        /// Writes that a stream has lost are given up: the collection takes writes again. An operator decides that.
        accept_loss: bool,
    },
}

impl SharedLog {
    /// The bucket's record of it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            SharedLog::Bucket => "bucket",
            SharedLog::Streams { .. } => "nats",
        }
    }

    /// Notes that the collections were opened: no operator has decided to give up what a stream loses from here on.
    pub fn opened(&mut self) {
        if let SharedLog::Streams { accept_loss, .. } = self {
            *accept_loss = false;
        }
    }
}

/// Streams that several processes share. Calls block, and each has a deadline.
pub trait Streams: Send + Sync + std::fmt::Debug {
    /// Makes a stream, of one subject of its own; one that is there is well.
    fn create(&self, name: &str) -> io::Result<()>;

    /// Opens a stream; `None`: there is none.
    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Stream>>>;

    /// Names of the streams that begin so.
    fn names(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// Removes a stream with its messages; one that is absent is well. What is published to it from then on is never acknowledged.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Max bytes of a message.
    fn message_max(&self) -> usize;

    /// How messages to people name the streams.
    fn place(&self) -> String;
}

/// A stream: messages with sequence numbers, the next always one more than the last.
///
/// # Contract
/// - **By expectation.** A message that expects `n` is stored as `n + 1` if the last number ever given is `n`, and otherwise never.
/// - **Durable.** A message that was answered [`PublishOutcome::Stored`] survives a crash of any minority of servers. Streams have broken this
///   (`chain.rs` finds it).
/// - **Reads** show what was stored before the call, or an earlier state of it. [`Stream::get`] and [`Stream::bounds`] are current, except
///   for a moment after the stream's leader was replaced.
pub trait Stream: Send + Sync + std::fmt::Debug {
    /// Publishes messages one after another without waiting between them: the first expects `expected`, each further one the number of the
    /// previous one. Gives an answer for each. The log publishes one at a time, as a further one may be stored where the previous one was
    /// refused (`publish.rs`).
    fn publish(&self, expected: u64, messages: &[Bytes]) -> Vec<PublishOutcome>;

    /// The numbers that it holds.
    fn bounds(&self) -> io::Result<Bounds>;

    /// Reads a message; `None`: there is none of this number.
    fn get(&self, sequence: u64) -> io::Result<Option<Bytes>>;

    /// Reads the messages of a range, both ends included, in order. Numbers without a message are left out.
    fn read(&self, from: u64, to: u64, each: &mut dyn FnMut(u64, Bytes)) -> io::Result<()>;

    /// Removes messages below a number.
    fn purge(&self, below: u64) -> io::Result<()>;

    /// Max bytes of the messages of groups, with what a server puts around each. There is room for owner records beyond it: a stream that groups
    /// have filled can still be taken over.
    fn bytes_max(&self) -> u64 {
        u64::MAX
    }
}

/// The outcome of the publish of one message.
#[derive(Debug)]
pub enum PublishOutcome {
    /// Stored under this number, durably.
    Stored(u64),
    /// Not stored, nor will be: the stream's last number is another than expected.
    Refused,
    /// Not stored, nor will be: there is no room, or no right.
    Denied(io::Error),
    /// No answer came, or one that does not say: it may be stored, or may yet be.
    Lost(io::Error),
}

/// The numbers that a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of the oldest message; one more than `last` if there is none.
    pub first: u64,
    /// The last number that was given; 0: none was.
    pub last: u64,
}
