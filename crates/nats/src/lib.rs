//! The log of a cluster over NATS JetStream: streams, as the store needs them.
//!
//! [`open`] returns the streams that the store publishes to ([`meridian_store::stream::Streams`]). The store decides
//! what is published, and what a response means. The calls go through `async-nats`, whose tasks run on a runtime of the
//! caller. The calling thread waits for the response, until its deadline.
//!
//! A server that acknowledges a message before it is on disk may lose it at a power failure. So the setting
//! `sync_interval: always` of each server is checked when the log is opened.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the operator's settings, and their checks |
//! | `calls.rs` | blocking calls over a runtime, with deadlines |
//! | `connect.rs` | the connection |
//! | `streams.rs` | streams: created, opened, removed |
//! | `stream.rs` | the messages of one stream |
//! | `fault.rs` | the meaning of a server's error |
//! | `synced.rs` | checks that the servers sync each message |

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

/// Connects to the servers, and checks that acknowledged messages are durable.
///
/// `handle`: runtime of the calls. Blocks for a few seconds at most.
///
/// # Errors
/// [`StoreError::Invalid`] for a setting, by its name, and for servers that do not sync each message;
/// [`StoreError::Io`] if they do not respond.
pub fn open(options: &NatsOptions, handle: &Handle) -> Result<Arc<dyn Streams>, StoreError> {
    options.check()?;
    synced::check(options)?;
    open_to_look(options, handle)
}

/// As [`open`], for a read-only caller: whether the servers sync each message does not matter to it.
///
/// # Errors
/// [`StoreError::Invalid`] for a setting, by its name; [`StoreError::Io`] if the servers do not respond.
pub fn open_to_look(options: &NatsOptions, handle: &Handle) -> Result<Arc<dyn Streams>, StoreError> {
    options.check()?;
    let calls = Calls::new(handle.clone());
    let client = connect::connect(options, &calls)?;
    Ok(Arc::new(NatsStreams::new(client, calls, options)))
}
