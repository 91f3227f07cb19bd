//! Streams over a WebSocket: each event is a text message with its feature, which has its position in it.

use super::follow::{End, Follower, Next};
use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use meridian_model::Seq;
use serde_json::json;
use std::time::Duration;

/// How long the last message may take to leave.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Carries a stream until it ends or its client leaves.
pub(super) async fn carry(socket: WebSocket, follower: Follower) {
    let (to, mut from) = socket.split();
    // What a client says is of no interest; that it has gone is, also while it takes nothing.
    let left = async {
        loop {
            match from.next().await {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    };
    tokio::select! {
        () = send(to, follower) => {}
        () = left => {}
    }
}

async fn send(mut to: SplitSink<WebSocket, Message>, mut follower: Follower) {
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

async fn farewell(mut to: SplitSink<WebSocket, Message>, end: End) {
    let text = json!({ "end": end.reason, "detail": end.detail, "after": end.after.to_id() }).to_string();
    let _ = tokio::time::timeout(FAREWELL_MAX, async {
        to.send(Message::text(text)).await?;
        to.send(Message::Close(None)).await
    })
    .await;
}
