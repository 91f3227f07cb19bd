//! Sends Server-Sent Events to a client, one message at a time.
//!
//! A message is handed to the connection, which drops it once the system has accepted all of it. Only then is the next
//! one sent. A client that does not read therefore keeps one message in memory, whichever library buffers it.

use crate::protocol::connection_control::HangUp;
use crate::request::dispatch::VoidReason;
use crate::response::respond;
use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::Frame;
use parking_lot::Mutex;
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Duration;

/// The sending half of a stream. The response ends when it is dropped.
pub struct SseSender {
    messages: mpsc::Sender<Bytes>,
    /// Sent after all messages. It has its own slot, because a message may still be waiting.
    last: Arc<Mutex<Option<Bytes>>>,
    /// Closed once the connection has dropped the response.
    gone: oneshot::Receiver<()>,
    hang_up: HangUp,
}

/// Creates a stream: its sending half, and its response, which begins with these bytes.
pub fn stream(head: &'static str) -> (SseSender, Response) {
    let ((messages, receiver), (alive, gone)) = (mpsc::channel(1), oneshot::channel());
    let (last, hang_up) = (Arc::default(), HangUp::default());
    let head = Some(Bytes::from_static(head.as_bytes())).filter(|head| !head.is_empty());
    let body = SseBody { head, messages: receiver, last: Arc::clone(&last), _alive: alive };
    let mut response = respond::events(Body::new(body));
    response.extensions_mut().insert(hang_up.clone());
    (SseSender { messages, last, gone, hang_up }, response)
}

/// Returns the last event of a stream whose caller has become void. It has no position: the client has the newest one.
pub fn access_ended(why: VoidReason) -> Bytes {
    let (reason, detail) = why.words();
    let data = json!({ "reason": reason, "detail": detail });
    format!("event: end\ndata: {data}\n\n").into()
}

impl SseSender {
    /// Sends a message and waits until the system has accepted it. Returns false if the client is gone.
    ///
    /// If the future is dropped earlier, the message is still sent.
    pub async fn send(&mut self, message: impl AsRef<[u8]> + Send + 'static) -> bool {
        let (waits, taken) = oneshot::channel();
        let message = Bytes::from_owner(PendingMessage { message, _waits: waits });
        // There is room, since the previous message was accepted.
        if self.messages.send(message).await.is_err() {
            return false;
        }
        // Closed when the message is dropped: sent, or lost with its connection.
        let _ = taken.await;
        !self.messages.is_closed()
    }

    /// Completes when the client is gone.
    pub async fn gone(&mut self) {
        let _ = (&mut self.gone).await;
    }

    /// Ends the stream with this message, and hangs up if the system has not accepted it within `grace`.
    pub async fn end_within(self, message: Bytes, grace: Duration) {
        let SseSender { messages, last, hang_up, .. } = self;
        let (waits, taken) = oneshot::channel();
        *last.lock() = Some(Bytes::from_owner(PendingMessage { message, _waits: waits }));
        drop((messages, last));
        // The end of the body is not enough: the library may have taken all of it, and still hold it for the client.
        if tokio::time::timeout(grace, taken).await.is_err() {
            hang_up.call();
        }
    }
}

/// A message that waits to be accepted by the system.
struct PendingMessage<M> {
    message: M,
    /// Dropped with the message; the sender waits for that.
    _waits: oneshot::Sender<()>,
}

impl<M: AsRef<[u8]>> AsRef<[u8]> for PendingMessage<M> {
    fn as_ref(&self) -> &[u8] {
        self.message.as_ref()
    }
}

/// The body of the response.
struct SseBody {
    head: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    last: Arc<Mutex<Option<Bytes>>>,
    /// Dropped with the body; the sender learns from that.
    _alive: oneshot::Sender<()>,
}

impl hyper::body::Body for SseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        let message = ready!(self.messages.poll_recv(cx));
        Poll::Ready(message.or_else(|| self.last.lock().take()).map(|message| Ok(Frame::data(message))))
    }
}
