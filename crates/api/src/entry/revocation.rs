//! Ends what is still being sent once the credential of its caller is revoked or has expired.

use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use meridian_admission::identity::Caller;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often a credential is checked again: streams end within a second of its revocation.
const INTERVAL: Duration = Duration::from_millis(500);

/// Completes when the caller's credential is void; never for a caller without one.
pub async fn void(caller: Caller, state: AppState) {
    if !caller.is_revocable() {
        return std::future::pending().await;
    }
    let mut ticks = ticks();
    while !caller.is_void(state.now()) {
        ticks.tick().await;
    }
}

/// Ends the body of a response when the caller's credential is void. It ends as a failure, so that no client takes what
/// it has for the whole.
pub fn ending(response: Response, caller: Caller, state: &AppState) -> Response {
    // What is there already is sent at once.
    if !caller.is_revocable() || response.body().size_hint().exact().is_some() {
        return response;
    }
    let state = state.clone();
    response.map(|body| Body::new(Ending { body, caller, state, ticks: ticks() }))
}

fn ticks() -> Interval {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

struct Ending {
    body: Body,
    caller: Caller,
    state: AppState,
    ticks: Interval,
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Polled until it is pending, so that this task wakes at the next tick although the body has nothing to send.
        while self.ticks.poll_tick(cx).is_ready() {
            if self.caller.is_void(self.state.now()) {
                return Poll::Ready(Some(Err(axum::Error::new("the credential was revoked or has expired"))));
            }
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
