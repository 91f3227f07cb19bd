//! The body of a response on its way out: it is charged to the tenant, holds the request's place among those at a time,
//! and ends once the credential of its caller is revoked or has expired.

use super::revocation::ticks;
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use meridian_admission::Held;
use meridian_admission::identity::Caller;
use meridian_model::policy::quota::Quota;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Interval;

/// The response, with a body that is charged and can end early. It then ends as a failure, so that no client takes what it
/// has for the whole.
pub fn charged(response: Response, caller: Caller, place: Option<Held>, state: &AppState) -> Response {
    if let Some(bytes) = response.body().size_hint().exact() {
        // What is there already is sent at once.
        caller.ledger.charge(Quota::ResultBytesPerSecond, bytes);
        return response;
    }
    if place.is_none() && !caller.is_revocable() {
        return response;
    }
    let state = state.clone();
    response.map(|body| {
        let ticks = caller.is_revocable().then(ticks);
        Body::new(Charged { body, caller, state, ticks, _place: place })
    })
}

struct Charged {
    body: Body,
    caller: Caller,
    state: AppState,
    /// When to check the credential, if there is one.
    ticks: Option<Interval>,
    _place: Option<Held>,
}

impl HttpBody for Charged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Polled until it is pending, so that this task wakes at the next tick although the body has nothing to send.
        while self.ticks.as_mut().is_some_and(|ticks| ticks.poll_tick(cx).is_ready()) {
            if self.caller.is_void(self.state.now()) {
                return Poll::Ready(Some(Err(axum::Error::new("the credential was revoked or has expired"))));
            }
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            self.caller.ledger.charge(Quota::ResultBytesPerSecond, bytes);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
