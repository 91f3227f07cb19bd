//! Streams as Server-Sent Events.
//!
//! Each event is a message with its position as `id` and its feature as `data`. While there is nothing to send, a
//! message with only an `id` is sent at intervals. It keeps the connection open, and moves the client's `Last-Event-ID`
//! past events that did not match.

use super::follow::{Delivery, End, Follower, Update};
use super::message::Message;
use crate::response::sse::SseSender;
use crate::state::readers::LEAVE_MAX;
use bytes::Bytes;
use serde_json::json;

/// Sends updates until the stream ends or its client disconnects.
pub(super) async fn send(mut to: SseSender, mut follower: Follower) {
    let mut update = Update::KeepAlive(follower.at());
    loop {
        let message = match update {
            Update::Events(message) => message,
            Update::KeepAlive(at) => Message::short(format!(":\nid: {at}\n\n")),
            Update::Missing(detail) => {
                Message::short(format!("event: missing\ndata: {}\n\n", json!({ "detail": detail })))
            }
            Update::End(end) => return to.end_within(end_message(&end), LEAVE_MAX).await,
        };
        // The message in hand is sent before an end message, so a client that gets the end has both.
        let (held, events) = (message.held(), message.ends.len());
        let end = match follower.deliver(held, to.send(message)).await {
            Delivery::Done(true) => {
                follower.count_sent(events);
                None
            }
            Delivery::Done(false) => return,
            Delivery::Slow => Some(follower.too_slow(follower.at())),
            Delivery::Evicted => Some(follower.evicted(follower.at())),
            Delivery::Closing => Some(follower.closing(follower.at())),
        };
        if let Some(end) = end {
            return to.end_within(end_message(&end), LEAVE_MAX).await;
        }
        tokio::select! {
            (back, read) = follower.next() => (follower, update) = (back, read),
            // A client that disconnects while nothing is written would otherwise be noticed only at the next
            // keep-alive.
            () = to.gone() => return,
        }
    }
}

fn end_message(end: &End) -> Bytes {
    let data = json!({ "reason": end.reason, "detail": end.detail, "after": end.after.to_id() });
    format!("id: {}\nevent: end\ndata: {data}\n\n", end.after).into()
}
