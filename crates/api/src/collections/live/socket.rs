//! Streams over a WebSocket: each event is a text message with its feature, which contains its position.

use super::follow::{Delivery, End, Follower, Update};
use super::message::Message;
use crate::response::socket::{CloseCode, SocketClosed, SocketSender};
use bytes::Bytes;
use meridian_model::Seqs;
use serde_json::json;
use std::time::Duration;

/// Max time to send the last message.
const END_MESSAGE_MAX: Duration = Duration::from_secs(1);

/// Sends updates until the stream ends.
pub(super) async fn send(to: &mut SocketSender, mut follower: Follower) {
    let mut update = Update::KeepAlive(follower.at());
    // The client was sent everything up to this position.
    let mut sent = follower.at();
    loop {
        let message = match update {
            Update::Events(message) => message,
            Update::KeepAlive(at) => Message::short(json!({ "position": at.to_id() }).to_string()),
            Update::Missing(detail) => Message::short(json!({ "missing": detail }).to_string()),
            Update::End(end) => return send_end(to, end).await,
        };
        let (held, events) = (message.held(), message.ends.len());
        let end = match follower.deliver(held, send_all(to, &mut sent, message)).await {
            Delivery::Done(Ok(())) => {
                follower.count_sent(events);
                None
            }
            Delivery::Done(Err(SocketClosed)) => return,
            Delivery::Slow => Some(follower.too_slow(sent)),
            Delivery::Evicted => Some(follower.evicted(sent)),
            Delivery::Closing => Some(follower.closing(sent)),
        };
        if let Some(end) = end {
            // The message was dropped with its delivery.
            follower.drop_message();
            return send_end(to, end).await;
        }
        // Includes events that did not match.
        sent = follower.at();
        (follower, update) = follower.next().await;
    }
}

/// Sends the texts of some events, or a short one, and moves the position past the events sent.
async fn send_all(to: &mut SocketSender, sent: &mut Seqs, message: Message) -> Result<(), SocketClosed> {
    let (mut text, mut begin) = (Bytes::from_owner(message.text), 0);
    for (seq, end) in message.ends {
        to.feed(text.split_to(end - begin)).await?;
        (*sent, begin) = (message.from.past(seq), end);
    }
    if !text.is_empty() {
        to.feed(text).await?;
    }
    to.flush().await
}

async fn send_end(to: &mut SocketSender, end: End) {
    let text = json!({ "end": end.reason, "detail": end.detail, "after": end.after.to_id() }).to_string();
    let code = match end.reason {
        "closing" => CloseCode::Away,
        "slow" => CloseCode::Policy,
        "evicted" | "busy" => CloseCode::Again,
        "error" => CloseCode::Error,
        _ => CloseCode::Normal,
    };
    let _ = tokio::time::timeout(END_MESSAGE_MAX, async {
        // A partly sent message can only be followed by a close frame.
        if to.is_between_messages() {
            to.send(text).await?;
        }
        to.close(code, &format!("{}: resume after {}", end.reason, end.after)).await
    })
    .await;
}
