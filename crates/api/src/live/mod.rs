//! `GET /collections/{c}/stream`: events as they are acknowledged, as Server-Sent Events or over a WebSocket.
//!
//! A stream is a position that moves through what was written, in the order in which it was written. It is told when
//! something was written and reads what came after its position from the store, so that catching up and following are
//! one way, and nothing is lost or repeated between them. It reads on only when its client has taken what there was:
//! a slow client makes it fall back, not the memory grow. Between two looks it has neither thread nor place.
//!
//! What was deleted, replaced or has expired before it was read is not sent.

mod fence;
mod follow;
mod frame;
mod news;
mod request;
mod socket;

pub use news::Live;

use crate::entry::Path;
use crate::limiter;
use crate::problem::{Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::socket::MayUpgrade;
use crate::state::AppState;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use follow::Follower;
use request::Asked;

/// `GET /collections/{c}/stream`
pub async fn get(
    State(state): State<AppState>,
    Path(name): Path<String>,
    MayUpgrade(socket): MayUpgrade,
    context: Context,
) -> Result<Response> {
    let collection = state.collection(&name)?;
    let asked = Asked::take(&context, &*collection)?;
    let turn = state.live.enter(&state).ok_or_else(|| {
        let most = state.config.streams_max;
        let detail = format!("{most} streams are open, as many as may: try again");
        limiter::overloaded(detail, most)
    })?;
    let follower = Follower::new(state.clone(), collection, asked, turn)?;
    Ok(match socket {
        Some(upgrade) => upgrade.carry(move |to| socket::send(to, follower)),
        None => respond::events(Body::new(frame::Events::follow(follower))),
    })
}

/// The refusal of a position that is not one of this collection.
fn not_yet(name: &str, text: &str, newest: &str) -> Problem {
    Problem::parameter(name, format!("the position {text:?} is yet to come: the newest is {newest}"))
}
