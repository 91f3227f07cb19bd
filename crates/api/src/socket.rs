//! WebSockets, within limits.

use crate::entry::{Dispatch, void};
use crate::state::AppState;
use axum::extract::FromRequestParts;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::SplitSink;
use meridian_admission::identity::Caller;
use std::convert::Infallible;
use std::sync::Arc;

/// Max size of a message and of a frame from a client, in bytes; a larger one closes the connection.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Read buffer for messages of a client, in bytes: clients send little.
const READ_BYTES: usize = 4 << 10;

/// The sending half of a socket.
pub type ToClient = SplitSink<WebSocket, Message>;

/// A request to upgrade to a WebSocket.
pub struct Upgrade {
    socket: WebSocketUpgrade,
    /// Counts open sockets, so that a server that stops lets them send their last message.
    open: Arc<()>,
    caller: Caller,
    state: AppState,
}

impl Upgrade {
    /// Upgrades, and runs `send` until it is done, the client disconnects or its credential is revoked. Messages of the client are ignored, but
    /// they are read: this is how a disconnect is noticed while the client takes nothing.
    pub fn carry<F>(self, send: impl FnOnce(ToClient) -> F + Send + 'static) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let Upgrade { socket, open, caller, state } = self;
        socket.on_upgrade(async move |socket| {
            let (to, mut from) = socket.split();
            let disconnected = async {
                loop {
                    match from.next().await {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => {}
                    }
                }
            };
            tokio::select! {
                () = send(to) => {}
                () = disconnected => {}
                () = void(caller, state) => {}
            }
            // After the last message: a server that stops waits for this.
            drop(open);
        })
    }
}

/// The upgrade that a request asks for, if it does.
pub struct MayUpgrade(pub Option<Upgrade>);

impl FromRequestParts<AppState> for MayUpgrade {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let caller = parts.extensions.get::<Dispatch>().map(|dispatch| dispatch.caller.clone());
        let caller = caller.unwrap_or_else(|| state.callers.nobody.clone());
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await.ok();
        Ok(MayUpgrade(upgrade.map(|upgrade| {
            let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
            let (open, state) = (state.sockets.clone(), state.clone());
            Upgrade { socket: upgrade.read_buffer_size(READ_BYTES), open, caller, state }
        })))
    }
}
