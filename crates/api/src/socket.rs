//! WebSockets, within limits.

use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::SplitSink;
use std::convert::Infallible;
use std::sync::Arc;

/// Longest message and frame that a client may send, in bytes; a longer one ends the connection.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes set aside for what a client sends: clients say little.
const READ_BYTES: usize = 4 << 10;

/// Where messages to a client go.
pub type ToClient = SplitSink<WebSocket, Message>;

/// A request to go on over a WebSocket.
pub struct Upgrade {
    socket: WebSocketUpgrade,
    /// Counts the sockets that are open, so that a server that stops lets them say farewell.
    open: Arc<()>,
}

impl Upgrade {
    /// Goes on over the socket until all is sent, or the client leaves. What it says is of no interest; that it has gone is, also
    /// while it takes nothing.
    pub fn carry<F>(self, send: impl FnOnce(ToClient) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Upgrade { socket, open } = self;
        socket.on_upgrade(async move |socket| {
            let (to, mut from) = socket.split();
            let left = async {
                loop {
                    match from.next().await {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => {}
                    }
                }
            };
            tokio::select! {
                () = send(to) => {}
                () = left => {}
            }
            drop(open);
        })
    }
}

/// The upgrade that a request asks for, if it does.
pub struct MayUpgrade(pub Option<Upgrade>);

impl FromRequestParts<AppState> for MayUpgrade {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.ok();
        Ok(MayUpgrade(upgrade.map(|upgrade| {
            let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
            Upgrade { socket: upgrade.read_buffer_size(READ_BYTES), open: state.sockets.clone() }
        })))
    }
}
