//! WebSockets, within limits.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::request::Parts;
use std::convert::Infallible;

/// Longest message and frame that a client may send, in bytes; a longer one ends the connection.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes set aside for what a client sends: clients say little.
const READ_BYTES: usize = 4 << 10;

/// A request to go on over a WebSocket, where there is one.
pub struct Upgrade(pub Option<WebSocketUpgrade>);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.ok();
        Ok(Upgrade(upgrade.map(|upgrade| {
            upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX).read_buffer_size(READ_BYTES)
        })))
    }
}
