//! HTTP/2 (RFC 9113): a request is a stream, and many users share a connection.
//!
//! Not hand-written: flow control and header compression are the bulk of the protocol, and the library reports events
//! as they happen.

use super::address::Address;
use super::fault::{CLOSED, ExchangeError};
use super::stream::Stream;
use crate::generate::Question;
use crate::protocol::{Client, Exchange};
use h2::client::{Connection, SendRequest};
use h2::{Ping, Reason};
use http::{Request, Uri};
use std::rc::Rc;
use tokio::sync::Mutex;

/// Flow-control window of one stream, and of a whole connection: large enough that the server need not wait.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Max header lines of a request.
const HEADERS: usize = 64;

/// Number of connections that may end before they have taken a request, until it counts as refused. A server that
/// takes few streams on each (nginx: `keepalive_requests`) rejects many users of a connection more than once.
const CONNECTIONS_MAX: usize = 16;

/// A connection that users share, opened when first needed and reopened when lost.
#[derive(Debug)]
pub struct Line {
    address: Address,
    held: Mutex<OpenConnection>,
}

#[derive(Debug, Default)]
struct OpenConnection {
    sender: Option<SendRequest<bytes::Bytes>>,
    /// Number of connections so far, so that only the failed one is dropped.
    opened: u64,
}

/// One user's streams.
#[derive(Debug)]
pub struct Http2 {
    line: Rc<Line>,
}

impl Line {
    /// Creates an unopened connection.
    pub fn new(address: Address) -> Rc<Line> {
        Rc::new(Line { address, held: Mutex::default() })
    }

    /// Returns a handle for one stream, the number of its connection, and whether that had been open before.
    async fn sender(&self) -> Result<(SendRequest<bytes::Bytes>, u64, bool), ExchangeError> {
        let mut held = self.held.lock().await;
        if let Some(sender) = &held.sender {
            return Ok((sender.clone(), held.opened, true));
        }
        let (sender, connection) = connect(&self.address).await?;
        // It ends with the last handle; errors show at the streams.
        drop(tokio::task::spawn_local(connection));
        held.opened += 1;
        held.sender = Some(sender.clone());
        Ok((sender, held.opened, false))
    }

    async fn lost(&self, number: u64) {
        let mut held = self.held.lock().await;
        // Another user may have replaced the connection since. Dropping the new one would break the streams on it.
        if held.opened == number {
            held.sender = None;
        }
    }
}

async fn connect(
    address: &Address,
) -> Result<(SendRequest<bytes::Bytes>, Connection<Stream, bytes::Bytes>), ExchangeError> {
    let stream = Stream::open(address).await?;
    if address.tls.is_some() && stream.alpn() != Some(b"h2") {
        return Err(ExchangeError::failed("TLS: the server does not speak HTTP/2"));
    }
    let mut builder = h2::client::Builder::new();
    // Until the server has announced how many streams it allows, one: it refuses further ones.
    builder.enable_push(false).initial_max_send_streams(1);
    builder.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    builder.handshake(stream).await.map_err(|e| fault(&e))
}

impl Http2 {
    /// Creates a user of a connection.
    pub fn new(line: Rc<Line>) -> Http2 {
        Http2 { line }
    }

    /// Sends once, and reports of a failure whether it may be repeated as the same request.
    async fn once(&self, of: &mut Exchange<'_>) -> Result<(), (ExchangeError, Resend)> {
        let (sender, number, reused) = self.line.sender().await.map_err(|fault| (fault, Resend::No))?;
        let answered = stream(sender, &self.line.address, of).await;
        let Err(wrong) = answered else { return Ok(()) };
        match wrong {
            StreamError::Request(detail) => Err((ExchangeError::failed(detail), Resend::No)),
            // The stream failed, and the connection continues.
            StreamError::Protocol(error) if error.is_reset() => Err((fault(&error), Resend::No)),
            StreamError::Protocol(error) => {
                self.line.lost(number).await;
                Err((fault(&error), again(&error, reused, of)))
            }
        }
    }
}

/// Whether a request that a connection was lost with may be sent again, as the same request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Resend {
    /// It may have been processed.
    No,
    /// The connection had worked and was lost before any byte of a response, and the request was not sent or changes
    /// nothing. A server may close an idle connection at any time. Repeated once, because the next connection is new.
    Stale,
    /// The server closes the connection gracefully and reports that it has not processed this stream.
    NotTaken,
}

fn again(error: &h2::Error, reused: bool, of: &Exchange<'_>) -> Resend {
    // Part of the answer has arrived, so the request was processed and must not be sent again.
    if of.record.first_byte.is_some() {
        return Resend::No;
    }
    // GOAWAY (RFC 9113, section 6.8): streams above the last one that it names were not and will not be processed. The
    // library gives this error to those only, and to unsent ones; lower streams continue to their end.
    if error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR) {
        return Resend::NotTaken;
    }
    let harmless = of.record.sent.is_none() || matches!(of.question.method(), b"GET" | b"HEAD");
    if reused && harmless { Resend::Stale } else { Resend::No }
}

impl Client for Http2 {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        let (sender, mut connection) = connect(&self.line.address).await?;
        let mut pings = connection.ping_pong().ok_or_else(|| ExchangeError::failed("the connection failed"))?;
        // A pong shows that the server speaks HTTP/2; the preface alone has no response.
        let answered = tokio::select! {
            _ = connection => false,
            pong = pings.ping(Ping::opaque()) => pong.is_ok(),
        };
        drop(sender);
        if answered { Ok(()) } else { Err(ExchangeError::failed("the server does not speak HTTP/2")) }
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        let (mut stale, mut turned_back) = (false, 0);
        loop {
            let Err((fault, again)) = self.once(of).await else { return Ok(()) };
            match again {
                Resend::NotTaken if turned_back + 1 < CONNECTIONS_MAX => turned_back += 1,
                Resend::NotTaken => {
                    return Err(ExchangeError::refused("the server ended every connection before it took the request"));
                }
                Resend::Stale if !stale => stale = true,
                Resend::Stale | Resend::No => return Err(fault),
            }
        }
    }

    fn abandon(&mut self) {
        // The stream was reset when its exchange was dropped; the connection is shared with others.
    }
}

/// Why a stream failed.
enum StreamError {
    /// The request cannot be sent in this form.
    Request(&'static str),
    /// The other side failed, or the path to it.
    Protocol(h2::Error),
}

impl From<h2::Error> for StreamError {
    fn from(error: h2::Error) -> StreamError {
        StreamError::Protocol(error)
    }
}

async fn stream(
    sender: SendRequest<bytes::Bytes>,
    address: &Address,
    of: &mut Exchange<'_>,
) -> Result<(), StreamError> {
    let Exchange { question, record, scan, clock, .. } = of;
    let request = head(question, address).ok_or(StreamError::Request("the request cannot be put as one of HTTP/2"))?;
    // Waits while the server allows no further stream.
    let mut sender = sender.ready().await?;
    // After the wait for a stream: the server has not seen the request before.
    record.was_sent(clock.now());
    let body = question.body();
    let (answer, mut upload) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        upload.send_data(bytes::Bytes::copy_from_slice(body), true)?;
    }
    let answer = answer.await?;
    record.first_byte.get_or_insert_with(|| clock.now());
    record.status = answer.status().as_u16();
    if record.status >= 400 {
        let stated = answer.headers().get(http::header::RETRY_AFTER);
        scan.retry_after = stated.and_then(|seconds| seconds.to_str().ok()?.trim().parse().ok());
    }
    let mut download = answer.into_body();
    while let Some(piece) = download.data().await {
        let piece = piece?;
        scan.take(&piece, clock.now());
        // Without it the window is used up and the server stops sending.
        download.flow_control().release_capacity(piece.len())?;
    }
    Ok(())
}

/// Converts the head of a request from its HTTP/1.1 form.
fn head(question: &Question, address: &Address) -> Option<Request<()>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut read = httparse::Request::new(&mut headers);
    read.parse(&question.bytes[..question.body_at]).ok()?;
    let host = read.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"))?;
    let uri = Uri::builder()
        .scheme(if address.tls.is_some() { "https" } else { "http" })
        .authority(host.value)
        .path_and_query(read.path?)
        .build();
    let mut request = Request::builder().method(read.method?).uri(uri.ok()?);
    for header in read.headers.iter().filter(|header| !header.name.eq_ignore_ascii_case("host")) {
        // Names are lower case in HTTP/2 (RFC 9113, section 8.2), which the type ensures.
        request = request.header(header.name, header.value);
    }
    request.body(()).ok()
}

fn fault(error: &h2::Error) -> ExchangeError {
    if let Some(io) = error.get_io() {
        return ExchangeError::broken(io);
    }
    match error.reason() {
        Some(Reason::REFUSED_STREAM | Reason::ENHANCE_YOUR_CALM) => {
            ExchangeError::refused("the server refused the stream")
        }
        Some(Reason::NO_ERROR) => ExchangeError::failed(CLOSED),
        Some(reason) if error.is_reset() => ExchangeError::failed(format!("the stream was reset: {reason}")),
        Some(reason) => ExchangeError::failed(format!("the connection was ended: {reason}")),
        None => ExchangeError::failed("the connection failed"),
    }
}
