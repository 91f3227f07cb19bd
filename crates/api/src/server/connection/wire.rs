//! The byte stream of a connection, below the HTTP/1.1 library.
//!
//! The stream does three things that the library cannot do, or not as cheaply. It ends a connection whose client takes
//! too long to send a head (`head_timeout.rs`). It replaces the library's own refusals with problem documents. The
//! library refuses a malformed or too large head, or too long a target, with a bare status before our code sees it. And
//! if a client may still be sending, the connection lingers before it closes, so that the client can read the reason.

use super::head_timeout::HeadTimeout;
use super::read_head::{OriginField, RequestLine};
use crate::entry::Entry;
use crate::protocol::problem::{Kind, Problem};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Duration, Sleep};

/// Max length of a request target, in bytes: the library's own limit.
pub const TARGET_BYTES_MAX: usize = 65_534;
/// Max size of a request head, in bytes: the longest target, and 32 KiB for its fields.
pub const HEAD_BYTES_MAX: usize = (64 + 32) << 10;
/// Max number of fields in a head: the library's own limit.
pub const FIELDS_MAX: usize = 100;
/// How much of a refused request is read and discarded. The rest stays unread: reading it would cost more than the
/// refusal.
const LINGER_BYTES_MAX: usize = 256 << 10;
/// Max total time for which a connection lingers.
const LINGER_MAX: Duration = Duration::from_secs(2);

/// The exchanges of one connection that our code handles.
#[derive(Clone, Default)]
pub struct Exchanges(Arc<Counts>);

#[derive(Default)]
struct Counts {
    /// Even while no exchange is in progress. Odd from the arrival of a request until the library drops the body of its
    /// response.
    count: AtomicU32,
    /// Whether a response closes the connection because its request was not read to the end.
    closes: AtomicBool,
}

/// One request and its response.
pub struct Exchange(Option<Exchanges>);

impl Exchanges {
    /// Records that a request has arrived.
    pub fn begin(&self) -> Exchange {
        // Relaxed: only the task of this connection counts and reads.
        self.0.count.fetch_add(1, Ordering::Relaxed);
        Exchange(Some(self.clone()))
    }

    fn now(&self) -> u32 {
        self.0.count.load(Ordering::Relaxed)
    }
}

impl Exchange {
    /// Ties the exchange to a response: it ends when the library drops the body.
    pub fn of(mut self, response: Response) -> hyper::Response<ExchangeBody> {
        // After a protocol switch the library writes no responses of its own, so the exchange never ends.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0 = None;
        }
        // Only refusals close, if the request's body is not worth reading.
        let closes = response.headers().get(header::CONNECTION).is_some_and(|value| value == "close");
        if let Some(exchanges) = self.0.as_ref().filter(|_| closes) {
            exchanges.0.closes.store(true, Ordering::Relaxed);
        }
        response.map(|body| ExchangeBody { body, _exchange: self })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(exchanges) = &self.0 {
            exchanges.0.count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The body of a response, with its exchange.
pub struct ExchangeBody {
    body: Body,
    _exchange: Exchange,
}

impl HttpBody for ExchangeBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The stream of one connection.
pub struct Wire<S> {
    stream: S,
    exchanges: Exchanges,
    /// The count of exchanges at the last complete flush. While it is unchanged, whatever the library writes is a
    /// response of its own.
    flushed: u32,
    /// The request line, as far as read since that flush.
    line: RequestLine,
    /// The origin of the page that sends the request, if any, read where `sharing` is set.
    origin: OriginField,
    /// Lets listed pages read refusals; `None` if no origin is listed.
    sharing: Option<Arc<Entry>>,
    /// The unsent rest of the problem document that replaces a response of the library.
    refusal: Option<Bytes>,
    linger: Option<Linger>,
    head_timeout: HeadTimeout,
}

/// The end of a connection whose client may still be sending.
struct Linger {
    /// Number of bytes that may still be read and discarded.
    bytes: usize,
    until: Pin<Box<Sleep>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Creates the stream of a connection whose client may take `head_timeout` for each head.
    pub fn new(stream: S, exchanges: Exchanges, head_timeout: Duration, sharing: Option<Arc<Entry>>) -> Wire<S> {
        Wire {
            stream,
            flushed: exchanges.now(),
            exchanges,
            line: RequestLine::default(),
            origin: OriginField::default(),
            sharing,
            refusal: None,
            linger: None,
            head_timeout: HeadTimeout::new(head_timeout),
        }
    }

    /// Returns whether these bytes are a refusal by the library itself, which a problem document then replaces.
    ///
    /// Between the last byte of a response and the next request, the library writes nothing but such a refusal. Every
    /// write is followed by a flush, so once an ended exchange is flushed, none of its bytes are left.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if self.refusal.is_some() {
            return true;
        }
        // An exchange has begun or ended since the last flush, so these bytes may belong to one of our responses.
        if self.exchanges.now() != self.flushed {
            return false;
        }
        let Some(problem) = problem_of(bytes, &self.line) else { return false };
        let mut more = HeaderMap::new();
        if let Some(entry) = &self.sharing {
            entry.share(self.origin.found(), &mut more);
        }
        self.refusal = Some(canned(&problem, &more, self.line.is_head()));
        true
    }

    /// Writes the rest of a refusal.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(text) = self.refusal.as_mut().filter(|text| !text.is_empty()) {
            let n = ready!(Pin::new(&mut self.stream).poll_write(cx, text))?;
            drop(text.split_to(n));
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and discards some of what the refused client still sends, and waits until it closes. A connection closed
    /// with unread bytes is reset, and the refusal may be lost with it.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(linger) = &mut self.linger else { return Poll::Ready(()) };
        let mut room = [0; 4096];
        while linger.bytes > 0 {
            let mut buf = ReadBuf::new(&mut room);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    linger.bytes = linger.bytes.saturating_sub(buf.filled().len());
                }
                // The client has closed, or the stream has failed.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        // Beyond the byte limit nothing more is read, but the client still has time to read the refusal.
        linger.until.as_mut().poll(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = &buf.filled()[before..];
        self.line.read(read);
        if self.sharing.is_some() {
            self.origin.read(read);
        }
        // Even: no request is being handled, so the library waits for a head or for the rest of one.
        let exchange = self.exchanges.now();
        if outcome.is_pending() && exchange.is_multiple_of(2) {
            return self.head_timeout.poll(exchange, cx);
        }
        outcome
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replaces(bytes) {
            // Reported as written, so that the library proceeds to flush and shut down, where the problem document is
            // sent instead.
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(bytes.first().map_or(&[], |first| first)) {
            return Poll::Ready(Ok(bytes.iter().map(|slice| slice.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refuse(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        let exchange = self.exchanges.now();
        // Even: no exchange is in progress, so what follows belongs to the next request.
        if exchange.is_multiple_of(2) && exchange != self.flushed {
            (self.flushed, self.line, self.origin) = (exchange, RequestLine::default(), OriginField::default());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refuse(cx))?;
        // Shut down only once: a second call after the end was sent may fail, and lingering is polled many times.
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if self.refusal.is_none() && !self.exchanges.0.closes.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            let until = Box::pin(tokio::time::sleep(LINGER_MAX));
            self.linger = Some(Linger { bytes: LINGER_BYTES_MAX, until });
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }
}

/// Returns the problem that corresponds to a refusal of the library.
fn problem_of(bytes: &[u8], line: &RequestLine) -> Option<Problem> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let too_long = || {
        let detail = format!(
            "the target of the request is over {TARGET_BYTES_MAX} bytes, escapes included: shorten the filter, or split it over several requests"
        );
        Problem::new(Kind::TargetTooLong, detail).with("limit_bytes", TARGET_BYTES_MAX)
    };
    Some(match status {
        b"414" => too_long(),
        // The library rejects the head before it notices that the target alone is too long.
        b"431" if line.bytes > TARGET_BYTES_MAX => too_long(),
        b"431" => head_too_large(),
        b"400" => Problem::new(
            Kind::Malformed,
            match line.unescaped {
                None => "the head of the request is not HTTP/1.1".to_owned(),
                Some(byte) => {
                    format!(
                        "the target of the request contains {:?}: expected its escaped form, %{byte:02X}",
                        byte as char
                    )
                }
            },
        ),
        _ => return None,
    })
}

/// Returns the refusal of a head that is too large.
pub fn head_too_large() -> Problem {
    Problem::new(
        Kind::HeadTooLarge,
        format!("the head of the request is over {HEAD_BYTES_MAX} bytes, or has more than {FIELDS_MAX} fields"),
    )
    .with("limit_bytes", HEAD_BYTES_MAX)
}

/// Formats a problem as a complete response with more headers, after which the connection closes. The response to a HEAD
/// has no body.
pub fn canned(problem: &Problem, more: &HeaderMap, is_head: bool) -> Bytes {
    let status = problem.status();
    let body = problem.document().to_string();
    let retry = problem.retry_seconds().map(|seconds| format!("{}: {seconds}\r\n", header::RETRY_AFTER));
    let more = more.iter().map(|(name, value)| format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    let head = format!(
        "HTTP/1.1 {} {}\r\n{}{}{}: {}\r\n{}: no-store\r\n{}: nosniff\r\n{}: close\r\n{}: {}\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        retry.unwrap_or_default(),
        more.collect::<String>(),
        header::CONTENT_TYPE,
        crate::protocol::problem::PROBLEM_JSON,
        header::CACHE_CONTROL,
        header::X_CONTENT_TYPE_OPTIONS,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        body.len()
    );
    Bytes::from(head + if is_head { "" } else { body.as_str() })
}
