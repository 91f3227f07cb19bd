//! The body of a response while it is sent. It is charged to the tenant. It holds the request's place under the quota,
//! unless it is a stream of events, which has a place of its own. It ends once its caller is void.

use crate::entry::tracked::TrackedRequest;
use crate::protocol::problem::Kind;
use crate::request::dispatch::{VoidReason, ticks};
use crate::request::quota::{self, SMALL_BYTES};
use crate::response::stream::BrokenOff;
use crate::response::{respond, sse};
use crate::state::AppState;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use meridian_admission::identity::Caller;
use meridian_admission::{QuotaPermit, RequestPermit};
use meridian_model::policy::quota::Quota;
use meridian_observe::StageTimer;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Interval;

/// Wraps the response's body so that it is charged and can end early. Server-Sent Events then end with an event that
/// gives the reason. Any other body ends with an error, so that no client mistakes it for complete.
pub fn charged(
    response: Response,
    caller: &Caller,
    place: Option<RequestPermit<'_>>,
    state: &AppState,
    tracked: Option<TrackedRequest>,
) -> Response {
    if let Some(bytes) = response.body().size_hint().exact() {
        // A small response is sent at once, so there is nothing to hold, check or measure meanwhile.
        let is_traced = tracked.as_ref().is_some_and(TrackedRequest::is_recorded);
        if bytes <= SMALL_BYTES || (place.is_none() && !is_traced) {
            match place {
                Some(place) if bytes <= SMALL_BYTES => place.charge(Quota::ResultBytesPerSecond, bytes),
                _ => quota::charge_sent(state, caller, bytes),
            }
            return response;
        }
    }
    let (caller, state) = (caller.clone(), state.clone());
    let between_events = respond::is_events(&response).then_some(true);
    // Counted among the streams instead, as is a WebSocket.
    let place = place.filter(|_| between_events.is_none()).map(RequestPermit::keep);
    response.map(|body| {
        let ticks = state.may_become_void(&caller).then(ticks);
        let send = tracked.as_ref().map(TrackedRequest::sending);
        Body::new(ChargedBody {
            body,
            caller,
            state,
            ticks,
            between_events,
            _place: place,
            _send: send,
            _tracked: tracked,
        })
    })
}

/// A body that is charged while it is sent.
struct ChargedBody {
    body: Body,
    caller: Caller,
    state: AppState,
    /// Ticks at which to check whether the caller has become void; `None` if it cannot.
    ticks: Option<Interval>,
    /// Of Server-Sent Events, whether the last one was sent in full: those of another gateway arrive in any pieces.
    between_events: Option<bool>,
    _place: Option<QuotaPermit>,
    /// Declared before `_tracked`, so that it is dropped before the request's measurement, which contains it.
    _send: Option<StageTimer>,
    _tracked: Option<TrackedRequest>,
}

impl ChargedBody {
    /// Ends the response of a void caller.
    fn end(&mut self) -> Result<Frame<Bytes>, axum::Error> {
        let why = VoidReason::of(&self.caller, &self.state);
        if self.between_events != Some(true) {
            let kind = if why == VoidReason::Gone { Kind::NotFound } else { Kind::Unauthorized };
            return Err(axum::Error::new(BrokenOff(Some(kind))));
        }
        self.ticks = None;
        // Drops the stream, which ends its sender.
        self.body = Body::empty();
        Ok(Frame::data(sse::access_ended(why)))
    }
}

impl HttpBody for ChargedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Polled until pending, so that this task wakes at the next tick even if the body has nothing to send.
        while self.ticks.as_mut().is_some_and(|ticks| ticks.poll_tick(cx).is_ready()) {
            if self.state.is_void(&self.caller) {
                return Poll::Ready(Some(self.end()));
            }
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // Charged per frame: a client that disconnects early pays for the bytes that were sent.
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            let data = frame.data_ref().map_or(&b""[..], |data| &data[..]);
            quota::charge_sent(&self.state, &self.caller, data.len() as u64);
            let ends_event = data.ends_with(b"\n\n");
            self.between_events = self.between_events.map(|_| ends_event);
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
