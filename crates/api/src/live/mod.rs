//! `GET /collections/{c}/stream`: events as they are acknowledged, as Server-Sent Events or over a WebSocket.
//!
//! A stream is a position that moves through the writes, in their order. It is notified of each write and reads what
//! came after its position from the store. Catching up and following are therefore one mechanism, and nothing is lost
//! or repeated between them. It reads on only when its client has taken the events before, so a slow client makes it
//! fall behind instead of filling memory. Between two reads it holds neither a thread nor a permit.
//!
//! Events that were deleted, replaced or expired before they were read are not sent.

mod fence;
mod follow;
mod request;
mod socket;
mod sse;
mod streams;

pub use streams::EventStreams;

use crate::entry::Path;
use crate::problem::{Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use crate::socket::MayUpgrade;
use axum::body::Body;
use axum::response::Response;
use follow::Follower;
use request::StreamRequest;

/// `GET /collections/{c}/stream`
pub async fn get(
    state: Scope,
    Path(name): Path<String>,
    MayUpgrade(socket): MayUpgrade,
    context: Context,
) -> Result<Response> {
    let collection = state.collection(&name)?;
    let request = StreamRequest::take(&context, &*collection)?;
    let slot = state.live.enter(&state)?;
    let follower = Follower::new(state.clone(), context.lease.account().clone(), collection, request, slot)?;
    Ok(match socket {
        Some(upgrade) => upgrade.carry(move |to| socket::send(to, follower)),
        None => respond::events(Body::new(sse::SseBody::follow(follower))),
    })
}

/// The error for a position beyond the newest write of the collection.
fn not_yet(name: &str, text: &str, newest: &str) -> Problem {
    Problem::parameter(name, format!("the position {text:?} is yet to come: the newest is {newest}"))
}
