//! Handles an unread body, of a refused request or of one whose handler does not need it.
//!
//! A small body is read and discarded, so that its connection stays usable. A large one is left unread, since reading
//! it would cost more than the response. Its connection then ends with the response, and lingers so that the client can
//! read it (`server/connection/wire.rs`). Over HTTP/2 a small one is read too: the rest of a stream is refused by
//! RST_STREAM, and some clients then drop the response.

use crate::request::body::frame;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::Duration;

/// Max size of a body that is read and discarded.
const DRAIN_BYTES_MAX: u64 = 256 << 10;
/// Max time for that.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Receives the rest of a body that is dropped before its end.
type Slot = Arc<Mutex<Option<Body>>>;

/// The part of a body that a handler left unread.
#[derive(Debug)]
pub struct UnreadBody {
    slot: Slot,
    /// Whether the client waits for `100 Continue` before it sends.
    expects: bool,
}

/// Lends a body to a handler. Also returns the handle to the unread rest, unless there is no body.
pub fn lend(headers: &HeaderMap, body: Body) -> (Body, Option<UnreadBody>) {
    if body.is_end_stream() {
        return (body, None);
    }
    let slot = Slot::default();
    let rest = UnreadBody { slot: slot.clone(), expects: headers.contains_key(header::EXPECT) };
    (Body::new(LentBody { body: Some(body), slot }), Some(rest))
}

impl UnreadBody {
    /// Reads the rest, or marks the response as the last one of its connection. If a handler still holds the body in
    /// another task, it keeps reading.
    pub async fn settle(self, response: &mut Response) {
        let Some(body) = self.slot.lock().take() else { return };
        discard(self.expects, body, response).await;
    }
}

/// Reads an unwanted body, or marks the response as the last one of its connection.
pub async fn refuse(headers: &HeaderMap, body: Body, response: &mut Response) {
    discard(headers.contains_key(header::EXPECT), body, response).await;
}

async fn discard(expects: bool, mut body: Body, response: &mut Response) {
    // The handler may have ended the connection already, for example because the body is too slow.
    if !response.headers().contains_key(header::CONNECTION) && !read_if_small(expects, &mut body).await {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Reads and discards a body if it is small. Returns whether all of it was consumed.
async fn read_if_small(expects: bool, body: &mut Body) -> bool {
    let is_small = body.size_hint().upper().is_some_and(|bytes| bytes <= DRAIN_BYTES_MAX);
    // A client that waits for `100 Continue` has sent no body yet; reading would make it send one.
    body.is_end_stream() || is_small && !expects && drain(body).await
}

/// Reads a body to its end; returns false if it is too slow or is interrupted.
async fn drain(body: &mut Body) -> bool {
    let all = async {
        loop {
            match frame(body).await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return false,
                None => return true,
            }
        }
    };
    tokio::time::timeout(DRAIN_MAX, all).await.unwrap_or(false)
}

/// A body lent to a handler.
struct LentBody {
    /// `None` once it has ended.
    body: Option<Body>,
    slot: Slot,
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        // No rest can be read after an error.
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *self.slot.lock() = Some(body);
        }
    }
}
