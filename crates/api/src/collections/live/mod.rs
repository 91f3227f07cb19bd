//! `GET /collections/{c}/stream`: events as they are acknowledged, as Server-Sent Events or over a WebSocket.
//!
//! A stream is a position that moves through the writes, in their order. It is notified of each write and reads the
//! events after its position from the store. Catching up and following are therefore one mechanism, and nothing is lost
//! or repeated between them. It reads on only when its client has received the previous events, so a slow client makes
//! it fall behind instead of filling memory. Between two reads it holds neither a thread nor a permit.
//!
//! One message waits for a client. Before the message is rendered, its memory is reserved from its tenant's memory for
//! responses. If there is none, the stream waits for its turn. A client that does not read is evicted when others need
//! the memory. The memory of a stream's conditions comes from a separate pool, for as long as the stream is open.
//!
//! Events that were deleted, replaced or expired before they were read are not sent.

mod fence;
mod follow;
mod message;
mod pace;
mod pending_message;
mod reading;
mod request;
mod socket;
mod sse;

use crate::protocol::problem::{Problem, Result};
use crate::request::context::Context;
use crate::request::dispatch::Path;
use crate::request::overload::overloaded;
use crate::request::quota;
use crate::request::scope::Scope;
use crate::response::socket::OptionalUpgrade;
use axum::response::Response;
use follow::Follower;
use futures_util::FutureExt;
use message::Framing;
use request::StreamRequest;
pub use request::position;

/// Bytes of memory per byte of a parsed request; a list of short numbers takes the most.
const PARSED_TIMES: usize = 32;

/// `GET /collections/{c}/stream`
pub async fn get(
    state: Scope,
    Path(name): Path<String>,
    OptionalUpgrade(socket): OptionalUpgrade,
    context: Context,
) -> Result<Response> {
    let collection = state.collection(&name)?;
    let request = StreamRequest::take(&context, &*collection)?;
    let slot = quota::stream_slot(&state, state.caller())?;
    let bytes = PARSED_TIMES * context.query.as_deref().map_or(0, str::len);
    // From a separate pool, for which no client is evicted: a stream keeps its conditions even while idle, for up to an
    // hour.
    let conditions = state.conditions().try_take_some(bytes).ok_or_else(|| {
        let detail = "the conditions of open streams use all the memory that there is for them: try again";
        overloaded(&state, detail.to_owned(), state.config.streams_max)
    })?;
    let framing = if socket.is_some() { Framing::Texts } else { Framing::Sse };
    let account = context.lease.account().clone();
    let follower = Follower::new(state.clone(), account, collection, (request, conditions), framing, slot)?;
    Ok(match socket {
        Some(upgrade) => upgrade.carry(move |to| socket::send(to, follower).boxed()),
        None => {
            let (to, response) = crate::response::sse::stream("");
            tokio::spawn(sse::send(to, follower));
            response
        }
    })
}

/// Returns the problem for a position beyond the newest write of the collection.
fn not_yet(name: &str, text: &str, newest: &str) -> Problem {
    Problem::parameter(name, format!("the position {text:?} is yet to come: the newest is {newest}"))
}
