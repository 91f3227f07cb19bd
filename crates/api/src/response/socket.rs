//! WebSockets (RFC 6455), within limits.
//!
//! A socket has small buffers in both directions, so its memory is bounded, and counts as part of its connection's.
//! Messages to the client above [`FRAGMENT_BYTES`] are sent in fragments, so the library never copies a whole one.

use super::charged::ChargedConnection;
use crate::protocol::connection_control::AfterSwitch;
use crate::protocol::fields;
use crate::protocol::problem::{Kind, Problem};
use crate::request::dispatch::{Dispatch, VoidReason, void};
use crate::state::AppState;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use meridian_admission::identity::Caller;
use tokio::time::{Duration, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
pub use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

/// The version of the protocol.
const VERSION: &str = "13";
/// Max size in bytes of a message and of a frame from a client; a larger one closes the connection.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Read buffer in bytes: clients send little.
const READ_BYTES: usize = 4 << 10;
/// Bytes to a client that are collected before they are written.
const WRITE_BYTES: usize = 8 << 10;
/// Max bytes of a frame to a client. A larger message is split.
const FRAGMENT_BYTES: usize = 16 << 10;
/// Max bytes that wait for a client: a frame on top of those collected, and the replies to its pings.
const UNSENT_BYTES: usize = 32 << 10;
/// Max bytes of a reason for closing (RFC 6455, 5.5).
const REASON_BYTES: usize = 123;
/// Max time to send the close frame of a caller whose access has ended.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// The client is gone, or the connection failed.
#[derive(Debug)]
pub struct SocketClosed;

/// The sending half of a socket.
pub struct SocketSender {
    sink: SplitSink<WebSocketStream<ChargedConnection<TokioIo<Upgraded>>>, Message>,
    /// Whether a message was partly sent, so that no other can begin.
    in_message: bool,
}

impl SocketSender {
    /// Sends a UTF-8 text. Completes when the connection has accepted it; [`SocketSender::flush`] sends it off.
    pub async fn feed(&mut self, mut text: Bytes) -> Result<(), SocketClosed> {
        let mut kind = Data::Text;
        loop {
            let part = text.split_to(text.len().min(FRAGMENT_BYTES));
            let is_last = text.is_empty();
            // Set before the await: if this future is dropped within the message, only a close frame may follow.
            self.in_message = true;
            self.sink
                .feed(Message::Frame(Frame::message(part, OpCode::Data(kind), is_last)))
                .await
                .map_err(|_| SocketClosed)?;
            if is_last {
                self.in_message = false;
                return Ok(());
            }
            // Frames after the first are continuations (RFC 6455, 5.4).
            kind = Data::Continue;
        }
    }

    /// Completes when the system has accepted everything.
    pub async fn flush(&mut self) -> Result<(), SocketClosed> {
        self.sink.flush().await.map_err(|_| SocketClosed)
    }

    /// Sends a text, and waits until the system has accepted it.
    pub async fn send(&mut self, text: impl Into<Bytes>) -> Result<(), SocketClosed> {
        self.feed(text.into()).await?;
        self.flush().await
    }

    /// Pings the client.
    pub async fn ping(&mut self) -> Result<(), SocketClosed> {
        self.sink.send(Message::Ping(Bytes::new())).await.map_err(|_| SocketClosed)
    }

    /// Returns whether a message can begin, because none is partly sent.
    pub fn is_between_messages(&self) -> bool {
        !self.in_message
    }

    /// Sends the reason for closing. May be called within a message.
    pub async fn close(&mut self, code: CloseCode, reason: &str) -> Result<(), SocketClosed> {
        // A control frame has at most 125 bytes, two of which are the code. Truncation must not split a character.
        let end = reason.floor_char_boundary(REASON_BYTES);
        let frame = CloseFrame { code, reason: reason[..end].into() };
        self.sink.send(Message::Close(Some(frame))).await.map_err(|_| SocketClosed)
    }
}

/// A request to upgrade to a WebSocket.
pub struct Upgrade {
    switch: OnUpgrade,
    accept: HeaderValue,
    caller: Caller,
    /// Whether the gateway that relayed the request charges what is sent.
    is_relayed: bool,
    state: AppState,
}

impl Upgrade {
    /// Returns the upgrade that a request asks for, if any.
    ///
    /// # Errors
    /// 426 for another version of the protocol, 400 for a key that is absent or malformed (RFC 6455, 4.2).
    fn of(parts: &mut Parts, state: &AppState) -> Result<Option<Upgrade>, Problem> {
        let headers = &parts.headers;
        let asks = parts.method == Method::GET
            // Upgrades exist only in HTTP/1.1. HTTP/2 would need an extended CONNECT (RFC 8441), which is not offered.
            && parts.version == Version::HTTP_11
            && is_listed(headers, &header::CONNECTION, "upgrade")
            && is_listed(headers, &header::UPGRADE, "websocket");
        if !asks {
            return Ok(None);
        }
        match fields::only(headers, &header::SEC_WEBSOCKET_VERSION) {
            Some((version, false)) if version == VERSION => {}
            _ => return Err(other_version()),
        }
        let key = match fields::only(headers, &header::SEC_WEBSOCKET_KEY) {
            Some((key, false)) if is_key(key.as_bytes()) => key,
            _ => {
                let detail = "a WebSocket needs one Sec-WebSocket-Key: expected 16 bytes in base64";
                return Err(Problem::new(Kind::Malformed, detail));
            }
        };
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).map_err(Problem::internal)?;
        let Some(switch) = parts.extensions.remove::<OnUpgrade>() else { return Ok(None) };
        let dispatch = parts.extensions.get::<Dispatch>();
        let is_relayed = dispatch.is_some_and(|dispatch| dispatch.arrival.relayed.is_some());
        let caller = dispatch.map(|dispatch| dispatch.caller.clone());
        // The entry point always sets it. Without it, the socket has a caller without rights.
        let caller = caller.unwrap_or_else(|| state.callers.nobody.clone());
        Ok(Some(Upgrade { switch, accept, caller, is_relayed, state: state.clone() }))
    }

    /// Upgrades, and runs `send` until it is done, the client disconnects or its caller becomes void. A close frame
    /// reports the latter. The client's messages are read but ignored: reading is how a disconnect is noticed while the
    /// client reads nothing.
    pub fn carry(
        self,
        send: impl for<'a> FnOnce(&'a mut SocketSender) -> BoxFuture<'a, ()> + Send + 'static,
    ) -> Response {
        let Upgrade { switch, accept, caller, is_relayed, state } = self;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        // Runs in the connection's task, so that the socket counts as a connection and ends with the server.
        response.extensions_mut().insert(AfterSwitch::new(async move {
            let Ok(io) = switch.await else { return };
            let charged = (!is_relayed).then(|| (caller.clone(), state.clone()));
            let io = ChargedConnection::new(TokioIo::new(io), charged);
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits())).await;
            let (sink, mut from) = socket.split();
            let disconnected = async {
                loop {
                    match from.next().await {
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => {}
                    }
                }
            };
            let mut to = SocketSender { sink, in_message: false };
            // Whichever ends first drops the others.
            let is_void = tokio::select! {
                () = send(&mut to) => false,
                () = disconnected => false,
                () = void(caller.clone(), state.clone()) => true,
            };
            if is_void {
                let why = VoidReason::of(&caller, &state);
                let code = if why == VoidReason::Gone { CloseCode::Normal } else { CloseCode::Policy };
                let _ = timeout(CLOSE_MAX, to.close(code, why.words().1)).await;
            }
        }));
        response
    }
}

fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(UNSENT_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Refuses another version of the protocol, and names the one that is spoken (RFC 6455, 4.4).
fn other_version() -> Problem {
    Problem::new(Kind::NotImplemented, format!("WebSockets have another version here: expected {VERSION}"))
        .with_status(StatusCode::UPGRADE_REQUIRED)
        .header(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION))
        .header(header::UPGRADE, HeaderValue::from_static("websocket"))
        .header(header::CONNECTION, HeaderValue::from_static("upgrade"))
}

/// Returns whether a text has the form of 16 bytes in base64.
fn is_key(text: &[u8]) -> bool {
    let digits = text.strip_suffix(b"==").unwrap_or_default();
    digits.len() == 22 && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}

/// Returns whether a list-valued field contains this word.
fn is_listed(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    fields::elements(headers, name).any(|element| element.eq_ignore_ascii_case(word.as_bytes()))
}

/// The upgrade that a request asks for, if any.
pub struct OptionalUpgrade(pub Option<Upgrade>);

impl FromRequestParts<AppState> for OptionalUpgrade {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        Upgrade::of(parts, state).map(OptionalUpgrade)
    }
}
