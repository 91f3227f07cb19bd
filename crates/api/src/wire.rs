//! The bytes of a connection, as the HTTP library reads and writes them.
//!
//! The stream does two things that the library does not. A write fails when the client takes nothing for too long. And what
//! the library answers by itself, before any of our code sees the request, becomes a problem document: it refuses a head that
//! is malformed, too large, or whose target is too long, with a bare status.

use crate::problem::{Kind, Problem};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{StatusCode, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// Longest target that the library reads, in bytes.
pub const TARGET_BYTES_MAX: usize = 65_534;
/// Largest head of a request, in bytes: the longest target, and 32 KiB for its fields.
pub const HEAD_BYTES_MAX: usize = (64 + 32) << 10;
/// Most fields of a head: the library's own limit.
const FIELDS_MAX: usize = 100;
/// How much of a refused request is read and thrown away so that its client can read why, and for how long.
const LINGER_BYTES_MAX: usize = 1 << 20;
const LINGER_MAX: Duration = Duration::from_secs(2);

/// Answers of this server's code on one connection: even while there is none, odd from a request's arrival until its
/// answer's body is given up.
#[derive(Clone, Default)]
pub struct Turns(Arc<AtomicU32>);

/// One answer in the making.
pub struct Turn(Option<Turns>);

impl Turns {
    /// Notes that a request has come.
    pub fn begin(&self) -> Turn {
        self.0.fetch_add(1, Ordering::Relaxed);
        Turn(Some(self.clone()))
    }

    fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Turn {
    /// Ties the turn to an answer: it is over when the library lets go of the body.
    pub fn of(mut self, response: Response) -> hyper::Response<Answer> {
        // Behind a switch of protocols no byte is the library's own: the turn never ends.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0 = None;
        }
        response.map(|body| Answer { body, _turn: self })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = &self.0 {
            turns.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The body of an answer of this server's code.
pub struct Answer {
    body: Body,
    _turn: Turn,
}

impl HttpBody for Answer {
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

/// A connection's stream.
pub struct Wire {
    stream: TcpStream,
    stall: Duration,
    /// Set while a write waits.
    patience: Option<Pin<Box<Sleep>>>,
    turns: Turns,
    /// The turn after which everything was written: while it is still that turn, what is written is the library's own.
    written: u32,
    /// The line with the target, in what was read since then.
    line: Line,
    refusal: Option<Refusal>,
}

/// The first line of a head, as far as it was read.
#[derive(Default)]
struct Line {
    bytes: usize,
    ended: bool,
}

impl Line {
    fn read(&mut self, bytes: &[u8]) {
        if !self.ended {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            self.bytes += end.unwrap_or(bytes.len());
            self.ended = end.is_some();
        }
    }
}

/// A problem document in the place of what the library said.
struct Refusal {
    text: Bytes,
    shut: bool,
    /// Bytes that may still be thrown away.
    linger: usize,
    until: Pin<Box<Sleep>>,
}

impl Wire {
    /// The stream of a connection whose writes may stall for `stall`.
    pub fn new(stream: TcpStream, stall: Duration, turns: Turns) -> Wire {
        let written = turns.now();
        Wire { stream, stall, patience: None, turns, written, line: Line::default(), refusal: None }
    }

    /// Turns a wait that lasts too long into an error.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.patience = None;
            return outcome;
        }
        let stall = self.stall;
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        match patience.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.patience = None;
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client took nothing of its answer")))
            }
        }
    }

    /// Whether bytes to be written are a refusal of the library's own; a problem document is then said in their place.
    ///
    /// Between the last byte of an answer and the next request the library has nothing to say but that. A flush comes after
    /// all that was to be written, so a turn that was over at a flush leaves nothing behind it.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if self.refusal.is_some() {
            return true;
        }
        if self.turns.now() != self.written {
            return false;
        }
        let Some(problem) = problem_of(bytes, &self.line) else { return false };
        self.refusal = Some(Refusal {
            text: canned(&problem),
            shut: false,
            linger: LINGER_BYTES_MAX,
            until: Box::pin(tokio::time::sleep(LINGER_MAX)),
        });
        true
    }

    /// Writes what is left of a refusal.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(refusal) = self.refusal.as_mut().filter(|refusal| !refusal.text.is_empty()) {
            let outcome = Pin::new(&mut self.stream).poll_write(cx, &refusal.text);
            let n = ready!(self.bounded(cx, outcome))?;
            if let Some(refusal) = &mut self.refusal {
                drop(refusal.text.split_to(n));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and throws away what the refused client still sends: a connection closed with bytes unread is reset, and the
    /// refusal may be lost with it.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(refusal) = &mut self.refusal else { return Poll::Ready(()) };
        let mut room = [0; 4096];
        while refusal.linger > 0 {
            let mut buf = ReadBuf::new(&mut room);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    refusal.linger = refusal.linger.saturating_sub(buf.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return refusal.until.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.line.read(&buf.filled()[before..]);
        outcome
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.replaces(bytes.first().map_or(&[], |first| first)) {
            return Poll::Ready(Ok(bytes.iter().map(|slice| slice.len()).sum()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refuse(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        let turn = self.turns.now();
        if turn.is_multiple_of(2) && turn != self.written {
            (self.written, self.line) = (turn, Line::default());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_refuse(cx))?;
        if self.refusal.as_ref().is_none_or(|refusal| !refusal.shut) {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        }
        if let Some(refusal) = &mut self.refusal {
            refusal.shut = true;
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

/// The problem that a refusal of the library's own stands for.
fn problem_of(bytes: &[u8], line: &Line) -> Option<Problem> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let too_long = || {
        let detail = format!(
            "the target of the request is over {TARGET_BYTES_MAX} bytes, escapes included: a filter may be shorter, or its work shared by several requests"
        );
        Problem::new(Kind::TargetTooLong, detail).with("limit_bytes", TARGET_BYTES_MAX)
    };
    Some(match status {
        b"414" => too_long(),
        // The library gives up on the head before it sees that the target alone is too long.
        b"431" if line.bytes > TARGET_BYTES_MAX => too_long(),
        b"431" => Problem::new(
            Kind::HeadTooLarge,
            format!("the head of the request is over {HEAD_BYTES_MAX} bytes, or has more than {FIELDS_MAX} fields"),
        )
        .with("limit_bytes", HEAD_BYTES_MAX),
        b"400" => Problem::new(Kind::Malformed, "the head of the request is no HTTP/1.1"),
        _ => return None,
    })
}

/// A problem as a whole answer, after which the connection ends.
fn canned(problem: &Problem) -> Bytes {
    let status = problem.status();
    let body = problem.document().to_string();
    let head = format!(
        "HTTP/1.1 {} {}\r\n{}: {}\r\n{}: no-store\r\n{}: nosniff\r\n{}: close\r\n{}: {}\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        header::CONTENT_TYPE,
        crate::problem::PROBLEM_JSON,
        header::CACHE_CONTROL,
        header::X_CONTENT_TYPE_OPTIONS,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        body.len()
    );
    Bytes::from(head + &body)
}
