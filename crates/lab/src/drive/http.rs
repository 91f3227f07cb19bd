//! HTTP/1.1, the hot path: one connection, one request at a time, no allocation for an answer that is like the last.

use super::address::Address;
use super::body::{Chunk, Framing};
use super::clock::Clock;
use super::scan::Scan;
use crate::generate::Question;
use crate::record::{Outcome, Record};
use std::borrow::Cow;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Why an exchange did not come to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What the record says.
    pub outcome: Outcome,
    /// Why: one of few sentences.
    pub detail: Cow<'static, str>,
}

impl Fault {
    /// The transport or the protocol failed.
    pub fn failed(detail: impl Into<Cow<'static, str>>) -> Fault {
        Fault { outcome: Outcome::Failed, detail: detail.into() }
    }
}

/// Bytes of an answer that are taken at once; heads must fit.
const BUFFER: usize = 16 << 10;

/// Header lines of an answer.
const HEADERS: usize = 64;

/// A connection, opened when it is first needed and again when it was lost.
#[derive(Debug)]
pub struct Http {
    address: Address,
    stream: Option<TcpStream>,
    buffer: Box<[u8]>,
    filled: usize,
}

/// What the head of an answer says.
#[derive(Debug)]
struct Head {
    length: usize,
    status: u16,
    framing: Framing,
    keep: bool,
}

impl Http {
    /// A connection to be.
    pub fn new(address: Address) -> Http {
        Http { address, stream: None, buffer: vec![0; BUFFER].into(), filled: 0 }
    }

    /// Forgets the connection: the answer that is on its way is nobody's.
    pub fn abandon(&mut self) {
        self.stream = None;
    }

    /// Sends a question and reads its answer. Times go into the record as they happen, so that one that is given up keeps them.
    pub async fn exchange(
        &mut self,
        question: &Question,
        record: &mut Record,
        scan: &mut Scan,
        clock: &Clock,
    ) -> Result<(), Fault> {
        let reused = self.stream.is_some();
        let outcome = self.once(question, record, scan, clock).await;
        if outcome.is_err() {
            self.stream = None;
        }
        // A server may close an idle connection at any time (RFC 9112, section 9.3.1): that is no failure of this request.
        let stale = reused && record.first_byte.is_none() && matches!(&outcome, Err(fault) if fault.detail == CLOSED);
        if stale && (question.bytes.starts_with(b"GET ") || question.bytes.starts_with(b"HEAD ")) {
            let outcome = self.once(question, record, scan, clock).await;
            if outcome.is_err() {
                self.stream = None;
            }
            return outcome;
        }
        outcome
    }

    async fn once(
        &mut self,
        question: &Question,
        record: &mut Record,
        scan: &mut Scan,
        clock: &Clock,
    ) -> Result<(), Fault> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address.socket).await.map_err(|e| not_connected(&e))?;
            // Without it the kernel holds a second small write back until the first is acknowledged.
            stream.set_nodelay(true).map_err(|e| not_connected(&e))?;
            self.stream = Some(stream);
        }
        let Some(stream) = &mut self.stream else { return Err(Fault::failed(CLOSED)) };
        self.filled = 0;
        record.sent = Some(clock.now());
        stream.write_all(&question.bytes).await.map_err(|e| broken(&e))?;
        let head = loop {
            if self.filled > 0
                && let Some(head) = head(&self.buffer[..self.filled], question.bytes.starts_with(b"HEAD "))?
            {
                if head.status >= 200 {
                    break head;
                }
                // An interim answer (100, 103): the real one follows, maybe at once.
                self.buffer.copy_within(head.length..self.filled, 0);
                self.filled -= head.length;
                continue;
            }
            if self.filled == self.buffer.len() {
                return Err(Fault::failed("the head of the answer is larger than 16 KiB"));
            }
            read(stream, &mut self.buffer, &mut self.filled).await?;
            record.first_byte.get_or_insert_with(|| clock.now());
        };
        record.status = head.status;
        let mut framing = head.framing;
        let mut now = clock.now();
        let mut at = head.length;
        loop {
            if at < self.filled {
                let fed = framing
                    .feed(&self.buffer[at..self.filled], |bytes| scan.take(bytes, now))
                    .map_err(Fault::failed)?;
                at += fed.used;
            }
            if framing.is_whole() {
                break;
            }
            (at, self.filled) = (0, 0);
            match read(stream, &mut self.buffer, &mut self.filled).await {
                Ok(()) => now = clock.now(),
                Err(fault) if fault.detail == CLOSED && framing == Framing::Close => break,
                Err(fault) if fault.detail == CLOSED => return Err(Fault::failed("the answer broke off")),
                Err(fault) => return Err(fault),
            }
        }
        let keep = head.keep && framing != Framing::Close && at == self.filled;
        if !keep {
            self.stream = None;
        }
        Ok(())
    }
}

const CLOSED: &str = "the connection was closed";

async fn read(stream: &mut TcpStream, buffer: &mut [u8], filled: &mut usize) -> Result<(), Fault> {
    match stream.read(&mut buffer[*filled..]).await {
        Ok(0) => Err(Fault::failed(CLOSED)),
        Ok(n) => {
            *filled += n;
            Ok(())
        }
        Err(e) => Err(broken(&e)),
    }
}

fn head(bytes: &[u8], of_head_request: bool) -> Result<Option<Head>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let length = match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Fault::failed("the answer is not HTTP")),
    };
    let status = answer.code.unwrap_or(0);
    let mut keep = answer.version == Some(1);
    let mut framing = Framing::Close;
    for header in answer.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") && framing == Framing::Close {
            let length = std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse().ok());
            framing = Framing::Length(length.ok_or_else(|| Fault::failed("the answer's Content-Length is no number"))?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") && ends_with(header.value, b"chunked") {
            framing = Framing::Chunked(Chunk::Size(0, 0));
        } else if header.name.eq_ignore_ascii_case("connection") {
            keep = if keep { !ends_with(header.value, b"close") } else { ends_with(header.value, b"keep-alive") };
        }
    }
    if of_head_request || status < 200 || status == 204 || status == 304 {
        framing = Framing::Length(0);
    }
    Ok(Some(Head { length, status, framing, keep }))
}

fn ends_with(value: &[u8], word: &[u8]) -> bool {
    let value = value.trim_ascii_end();
    value.len() >= word.len() && value[value.len() - word.len()..].eq_ignore_ascii_case(word)
}

/// A port or a descriptor that this machine has not left is the lab's limit; all else is the target's.
pub(super) fn not_connected(error: &std::io::Error) -> Fault {
    // EMFILE, ENFILE, EADDRNOTAVAIL of Linux.
    let own = match error.raw_os_error() {
        Some(24 | 23) => Some("no descriptor was left for a connection"),
        Some(99) => Some("no local port was left for a connection"),
        _ => None,
    };
    if let Some(detail) = own {
        return Fault { outcome: Outcome::NotSent, detail: detail.into() };
    }
    Fault::failed(match error.kind() {
        ErrorKind::ConnectionRefused => "the connection was refused",
        ErrorKind::TimedOut => "connecting timed out",
        ErrorKind::ConnectionReset => "the connection was reset",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "the host cannot be reached",
        _ => "connecting failed",
    })
}

fn broken(error: &std::io::Error) -> Fault {
    Fault::failed(match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => CLOSED,
        _ => "the connection failed",
    })
}
