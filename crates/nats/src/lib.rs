//! The log of a cluster over NATS JetStream: streams, as the store needs them.
//!
//! [`open`] gives the store what it publishes to ([`meridian_store::stream::Streams`]); what is published, and what an answer means, is the
//! store's own. The calls go through `async-nats`, whose tasks run on a runtime of the caller; the thread that calls waits for the answer,
//! until its deadline.
//!
//! A server that acknowledges before its disk has the message may lose it at a power failure. So each server's setting `sync_interval: always`
//! is looked up when the log is opened.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | what the operator sets, and what is wrong with it |
//! | `calls.rs` | blocking calls over a runtime, with deadlines |
//! | `connect.rs` | the connection |
//! | `streams.rs` | streams: made, opened, removed |
//! | `stream.rs` | the messages of one |
//! | `fault.rs` | what an error of the server means |
//! | `synced.rs` | whether the servers sync each message |

mod calls;
mod connect;
mod fault;
#[doc(hidden)]
pub mod fuzzed;
mod options;
mod stream;
mod streams;
mod synced;

pub use options::NatsOptions;

use calls::Calls;
use meridian_store::StoreError;
use meridian_store::stream::Streams;
use std::sync::Arc;
use streams::NatsStreams;
use tokio::runtime::Handle;

/// Connects to the servers, and checks that they keep what they acknowledge.
///
/// `handle`: the runtime on which calls run. Blocks, for some seconds at most.
///
/// # Errors
/// [`StoreError::Invalid`] of a setting, by its name, and of servers that do not sync each message; [`StoreError::Io`] where they do not answer.
pub fn open(options: &NatsOptions, handle: &Handle) -> Result<Arc<dyn Streams>, StoreError> {
    options.check()?;
    synced::check(options)?;
    open_to_look(options, handle)
}

/// The same for a caller that writes nothing: whether the servers sync each message is not its concern.
///
/// # Errors
/// [`StoreError::Invalid`] of a setting, by its name; [`StoreError::Io`] where the servers do not answer.
pub fn open_to_look(options: &NatsOptions, handle: &Handle) -> Result<Arc<dyn Streams>, StoreError> {
    options.check()?;
    let calls = Calls::new(handle.clone());
    let client = connect::connect(options, &calls)?;
    Ok(Arc::new(NatsStreams::new(client, calls, options)))
}
