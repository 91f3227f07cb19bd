//! Streams over a WebSocket: each event is a text message with its feature, which has its position in it.

use super::follow::{End, Follower, Next};
use crate::socket::ToClient;
use axum::extract::ws::Message;
use futures_util::SinkExt;
use meridian_model::Seq;
use serde_json::json;
use std::time::Duration;

/// How long the last message may take to leave.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Sends until the stream ends.
pub(super) async fn send(mut to: ToClient, mut follower: Follower) {
    let mut next = Next::Alive(follower.at());
    loop {
        let messages: Vec<(Seq, String)> = match next {
            Next::Events(events) => {
                events.into_iter().map(|(seq, json)| (seq, String::from_utf8_lossy(&json).into_owned())).collect()
            }
            Next::Alive(at) => vec![(at, json!({ "position": at.to_id() }).to_string())],
            Next::Missing(detail) => vec![(follower.at(), json!({ "missing": detail }).to_string())],
            Next::End(end) => return farewell(to, end).await,
        };
        for (seq, text) in messages {
            let patience = follower.patience(text.len());
            match tokio::time::timeout(patience, to.send(Message::text(text))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    let end = follower.too_slow(Seq(seq.0.saturating_sub(1)));
                    return farewell(to, end).await;
                }
            }
        }
        (follower, next) = follower.next().await;
    }
}

async fn farewell(mut to: ToClient, end: End) {
    let text = json!({ "end": end.reason, "detail": end.detail, "after": end.after.to_id() }).to_string();
    let _ = tokio::time::timeout(FAREWELL_MAX, async {
        to.send(Message::text(text)).await?;
        to.send(Message::Close(None)).await
    })
    .await;
}
