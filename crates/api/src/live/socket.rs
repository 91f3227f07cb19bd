//! Streams over a WebSocket: each event is a text message with its feature, which contains its position.

use super::follow::{End, Follower, Update};
use crate::socket::ToClient;
use axum::extract::ws::Message;
use futures_util::SinkExt;
use meridian_model::Seq;
use serde_json::json;
use std::time::Duration;

/// Max time to send the last message.
const END_MESSAGE_MAX: Duration = Duration::from_secs(1);

/// Sends updates until the stream ends.
pub(super) async fn send(mut to: ToClient, mut follower: Follower) {
    let mut update = Update::KeepAlive(follower.at());
    loop {
        let messages: Vec<(Seq, String)> = match update {
            Update::Events(events) => {
                events.into_iter().map(|(seq, json)| (seq, String::from_utf8_lossy(&json).into_owned())).collect()
            }
            Update::KeepAlive(at) => vec![(at, json!({ "position": at.to_id() }).to_string())],
            Update::Missing(detail) => vec![(follower.at(), json!({ "missing": detail }).to_string())],
            Update::End(end) => return send_end(to, end).await,
        };
        for (seq, text) in messages {
            let send_timeout = follower.send_timeout(text.len());
            match tokio::time::timeout(send_timeout, to.send(Message::text(text))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    // The client may have received this message in part: it resumes before it.
                    let end = follower.too_slow(Seq(seq.0.saturating_sub(1)));
                    return send_end(to, end).await;
                }
            }
        }
        (follower, update) = follower.next().await;
    }
}

async fn send_end(mut to: ToClient, end: End) {
    let text = json!({ "end": end.reason, "detail": end.detail, "after": end.after.to_id() }).to_string();
    let _ = tokio::time::timeout(END_MESSAGE_MAX, async {
        to.send(Message::text(text)).await?;
        to.send(Message::Close(None)).await
    })
    .await;
}
