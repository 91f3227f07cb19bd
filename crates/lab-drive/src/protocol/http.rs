//! HTTP/1.1, the hot path: one connection, one request at a time, and no allocation for a response like the last.

use super::address::Address;
use super::body::{Chunk, Framing};
use super::fault::{CLOSED, ExchangeError};
use super::stream::Stream;
use crate::protocol::{Client, Exchange};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

/// Max bytes of a response read at once; heads must fit.
const BUFFER: usize = 16 << 10;

/// Max header lines of a response.
const HEADERS: usize = 64;

/// Servers close idle connections after 5 s at the earliest (Apache httpd, Node.js), and any time after. A request
/// sent then may be lost.
const IDLE: Duration = Duration::from_secs(4);

/// A connection, opened when first needed and reopened when lost.
#[derive(Debug)]
pub struct Http {
    address: Address,
    stream: Option<Stream>,
    /// When the last response on it ended.
    used: Instant,
    buffer: Box<[u8]>,
    filled: usize,
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) length: usize,
    status: u16,
    pub(crate) framing: Framing,
    keep: bool,
    retry_after: Option<u32>,
}

impl Http {
    /// Creates an unopened connection.
    pub fn new(address: Address) -> Http {
        Http { address, stream: None, used: Instant::now(), buffer: vec![0; BUFFER].into(), filled: 0 }
    }

    async fn once(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        let Exchange { question, record, scan, clock, .. } = of;
        self.open().await?;
        let Some(stream) = &mut self.stream else { return Err(ExchangeError::failed(CLOSED)) };
        self.filled = 0;
        record.was_sent(clock.now());
        stream.send(&question.bytes).await?;
        let head = loop {
            if self.filled > 0
                && let Some(head) = head(&self.buffer[..self.filled], question.bytes.starts_with(b"HEAD "))?
            {
                if head.status >= 200 {
                    break head;
                }
                // An interim response (100, 103): the final one follows, possibly at once.
                self.buffer.copy_within(head.length..self.filled, 0);
                self.filled -= head.length;
                continue;
            }
            if self.filled == self.buffer.len() {
                return Err(ExchangeError::failed("the head of the answer is larger than 16 KiB"));
            }
            read(stream, &mut self.buffer, &mut self.filled).await?;
            // Only the time of the first read: an interim response counts, as the server has begun to respond.
            record.first_byte.get_or_insert_with(|| clock.now());
        };
        record.status = head.status;
        scan.retry_after = head.retry_after;
        let mut framing = head.framing;
        let mut now = clock.now();
        let mut at = head.length;
        loop {
            if at < self.filled {
                let fed = framing
                    .feed(&self.buffer[at..self.filled], |bytes| scan.take(bytes, now))
                    .map_err(ExchangeError::failed)?;
                at += fed.used;
            }
            if framing.is_whole() {
                break;
            }
            (at, self.filled) = (0, 0);
            match read(stream, &mut self.buffer, &mut self.filled).await {
                Ok(()) => now = clock.now(),
                // Such a body ends with its connection (RFC 9112, section 6.3).
                Err(fault) if fault.detail == CLOSED && framing == Framing::Close => break,
                Err(fault) if fault.detail == CLOSED => return Err(ExchangeError::failed("the answer broke off")),
                Err(fault) => return Err(fault),
            }
        }
        // Bytes past the end of the response belong to no request: such a connection cannot be trusted with the next
        // one.
        let keep = head.keep && framing != Framing::Close && at == self.filled;
        if !keep {
            self.stream = None;
        }
        self.used = Instant::now();
        Ok(())
    }
}

impl Client for Http {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        if self.stream.is_none() {
            self.stream = Some(Stream::open(&self.address).await?);
        }
        Ok(())
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        // A request that may not be sent twice must not be lost with a connection. The server may have closed an idle
        // one, or be about to.
        let too_old = !may_be_repeated(&of.question.bytes) && self.used.elapsed() > IDLE;
        self.stream.take_if(|stream| too_old || stream.has_ended());
        let reused = self.stream.is_some();
        let outcome = self.once(of).await;
        if outcome.is_err() {
            self.stream = None;
        }
        // A server may close an idle connection at any time (RFC 9112, section 9.3.1): that is no failure of this
        // request. Repeated sends are counted (`resends`), as the server may have taken the first copy before it
        // closed.
        let stale =
            reused && of.record.first_byte.is_none() && matches!(&outcome, Err(fault) if fault.detail == CLOSED);
        if stale && may_be_repeated(&of.question.bytes) {
            let outcome = self.once(of).await;
            if outcome.is_err() {
                self.stream = None;
            }
            return outcome;
        }
        outcome
    }

    fn abandon(&mut self) {
        self.stream = None;
    }
}

fn may_be_repeated(question: &[u8]) -> bool {
    question.starts_with(b"GET ") || question.starts_with(b"HEAD ")
}

async fn read(stream: &mut Stream, buffer: &mut [u8], filled: &mut usize) -> Result<(), ExchangeError> {
    match stream.read(&mut buffer[*filled..]).await {
        Ok(0) => Err(ExchangeError::failed(CLOSED)),
        Ok(n) => {
            *filled += n;
            Ok(())
        }
        Err(e) => Err(ExchangeError::broken(&e)),
    }
}

pub(crate) fn head(bytes: &[u8], of_head_request: bool) -> Result<Option<Head>, ExchangeError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let length = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ExchangeError::failed("the answer is not HTTP")),
    };
    let status = answer.code.unwrap_or(0);
    let mut keep = answer.version == Some(1);
    let mut retry_after = None;
    let mut framing = Framing::Close;
    for header in answer.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") && framing == Framing::Close {
            let length = std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok());
            framing = Framing::Length(
                length.ok_or_else(|| ExchangeError::failed("the answer's Content-Length is no number"))?,
            );
        // It overrides `Content-Length`, in either order (RFC 9112, section 6.3).
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") && ends_with(header.value, b"chunked") {
            framing = Framing::Chunked(Chunk::Size(0, 0));
        } else if header.name.eq_ignore_ascii_case("connection") {
            keep = if keep { !ends_with(header.value, b"close") } else { ends_with(header.value, b"keep-alive") };
        } else if status >= 400 && header.name.eq_ignore_ascii_case("retry-after") {
            retry_after = std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok());
        }
    }
    // These have no body, whatever their headers say (RFC 9112, section 6.3).
    if of_head_request || status < 200 || status == 204 || status == 304 {
        framing = Framing::Length(0);
    }
    Ok(Some(Head { length, status, framing, keep, retry_after }))
}

fn ends_with(value: &[u8], word: &[u8]) -> bool {
    let value = value.trim_ascii_end();
    value.len() >= word.len() && value[value.len() - word.len()..].eq_ignore_ascii_case(word)
}
