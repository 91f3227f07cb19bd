//! Streams as Server-Sent Events.
//!
//! Each event is a message with its position as `id` and its feature as `data`. While there is nothing to send, a
//! message of an `id` alone is sent at intervals. It keeps the connection open, and moves the client's
//! `Last-Event-ID` past events that did not match.

use super::follow::{End, Follower, Update};
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

/// The body of a stream's response.
pub(super) struct SseBody {
    chunks: mpsc::Receiver<Bytes>,
    /// Sent after the last chunk. It has its own slot, because the queue is full when a slow client is disconnected.
    last: Arc<Mutex<Option<Bytes>>>,
}

impl SseBody {
    /// Runs the stream in a task, which ends with the stream or when its client disconnects.
    pub(super) fn follow(follower: Follower) -> SseBody {
        let (send, chunks) = mpsc::channel(1);
        let last = Arc::new(Mutex::new(None));
        tokio::spawn(run(follower, send, last.clone()));
        SseBody { chunks, last }
    }
}

async fn run(mut follower: Follower, send: mpsc::Sender<Bytes>, last: Arc<Mutex<Option<Bytes>>>) {
    // One chunk is queued at most, so at a disconnect it is known which updates the client was not sent.
    let mut update = Update::KeepAlive(follower.at());
    loop {
        let chunk = match &update {
            Update::Events(events) => messages(events),
            Update::KeepAlive(at) => format!(":\nid: {at}\n\n").into_bytes(),
            Update::Missing(detail) => {
                format!("event: missing\ndata: {}\n\n", json!({ "detail": detail })).into_bytes()
            }
            Update::End(end) => {
                *last.lock() = Some(end_message(end));
                return;
            }
        };
        let send_timeout = follower.send_timeout(chunk.len());
        match tokio::time::timeout(send_timeout, send.send(chunk.into())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                // The chunk in the queue is still sent before the end message; the one that found no room is not.
                let after = position_before(&update, follower.at());
                *last.lock() = Some(end_message(&follower.too_slow(after)));
                return;
            }
        }
        tokio::select! {
            (back, read) = follower.next() => (follower, update) = (back, read),
            // A client that disconnects while nothing is written would otherwise be noticed only at the next keep-alive.
            () = send.closed() => return,
        }
    }
}

/// The position of a client that was not sent this update.
fn position_before(update: &Update, at: Seq) -> Seq {
    match update {
        Update::Events(events) => events.first().map_or(at, |(first, _)| Seq(first.0.saturating_sub(1))),
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

fn end_message(end: &End) -> Bytes {
    let data = json!({ "reason": end.reason, "detail": end.detail, "after": end.after.to_id() });
    format!("id: {}\nevent: end\ndata: {data}\n\n", end.after).into()
}

impl hyper::body::Body for SseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = ready!(self.chunks.poll_recv(cx));
        Poll::Ready(chunk.or_else(|| self.last.lock().take()).map(|chunk| Ok(Frame::data(chunk))))
    }
}
