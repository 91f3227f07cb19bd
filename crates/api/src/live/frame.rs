//! Streams as Server-Sent Events.
//!
//! Each event is a message with its position as `id` and its feature as `data`. Where there is nothing to send, an `id`
//! alone comes every so often: it keeps the connection, and moves the client's `Last-Event-ID` past what did not match.

use super::follow::{End, Follower, Next};
use bytes::Bytes;
use hyper::body::Frame;
use meridian_model::Seq;
use parking_lot::Mutex;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// The body of a stream.
pub(super) struct Events {
    pieces: mpsc::Receiver<Bytes>,
    /// Comes after the last piece: the queue has no room when a slow client is let go.
    last: Arc<Mutex<Option<Bytes>>>,
}

impl Events {
    /// Follows in a task of its own, which ends with the stream or with its client.
    pub(super) fn follow(follower: Follower) -> Events {
        let (send, pieces) = mpsc::channel(1);
        let last = Arc::new(Mutex::new(None));
        tokio::spawn(run(follower, send, last.clone()));
        Events { pieces, last }
    }
}

async fn run(mut follower: Follower, send: mpsc::Sender<Bytes>, last: Arc<Mutex<Option<Bytes>>>) {
    // What the client has for sure, should it be let go: of what is on its way it may have any part.
    let mut next = Next::Alive(follower.at());
    loop {
        let piece = match &next {
            Next::Events(events) => messages(events),
            Next::Alive(at) => format!(":\nid: {at}\n\n").into_bytes(),
            Next::Missing(detail) => format!("event: missing\ndata: {}\n\n", json!({ "detail": detail })).into_bytes(),
            Next::End(end) => {
                *last.lock() = Some(farewell(end));
                return;
            }
        };
        let patience = follower.patience(piece.len());
        match tokio::time::timeout(patience, send.send(piece.into())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                // The piece in the queue still goes before the farewell; the one that found no room does not.
                let after = before(&next, follower.at());
                *last.lock() = Some(farewell(&follower.too_slow(after)));
                return;
            }
        }
        tokio::select! {
            (back, told) = follower.next() => (follower, next) = (back, told),
            () = send.closed() => return,
        }
    }
}

/// Where a client stands that did not get this.
fn before(next: &Next, at: Seq) -> Seq {
    match next {
        Next::Events(events) => events.first().map_or(at, |(first, _)| Seq(first.0.saturating_sub(1))),
        _ => at,
    }
}

fn messages(events: &[(Seq, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(events.iter().map(|(_, feature)| feature.len() + 32).sum());
    for (seq, feature) in events {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(seq.to_id().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(feature);
        out.extend_from_slice(b"\n\n");
    }
    out
}

fn farewell(end: &End) -> Bytes {
    let data = json!({ "reason": end.reason, "detail": end.detail, "after": end.after.to_id() });
    format!("id: {}\nevent: end\ndata: {data}\n\n", end.after).into()
}

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(self.pieces.poll_recv(cx));
        Poll::Ready(piece.or_else(|| self.last.lock().take()).map(|piece| Ok(Frame::data(piece))))
    }
}
