//! The parts of three protocols required to send a prepared question and find the end of its response.

use std::io::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A protocol of a peer.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http,
    /// Redis serialization protocol 2.
    Resp,
    /// PostgreSQL 3.0, extended query, one prepared statement.
    Pg,
}

/// A connection with its receive buffer.
pub struct Connection {
    protocol: Protocol,
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Parsed offset in the buffered response, so that a long one is parsed once.
    walked: usize,
    framing: Option<Framing>,
}

/// How the body of an HTTP response ends.
#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunks,
}

/// Encodes one question; `token` is sent over HTTP if there is one.
pub fn request(protocol: Protocol, template: &str, words: &[&str], address: &str, token: Option<&str>) -> Vec<u8> {
    let fill = |text: &str| {
        words.iter().enumerate().fold(text.to_owned(), |t, (i, word)| t.replace(&format!("{{{}}}", i + 1), word))
    };
    match protocol {
        Protocol::Http => {
            let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
            format!("GET {} HTTP/1.1\r\nHost: {address}\r\n{token}\r\n", fill(template)).into_bytes()
        }
        Protocol::Resp => {
            let parts: Vec<String> = template.split(' ').map(fill).collect();
            let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
            for part in parts {
                bytes.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
            }
            bytes
        }
        Protocol::Pg => {
            let mut bind = b"\0s\0\0\0".to_vec();
            bind.extend_from_slice(&(words.len() as u16).to_be_bytes());
            for word in words {
                bind.extend_from_slice(&(word.len() as u32).to_be_bytes());
                bind.extend_from_slice(word.as_bytes());
            }
            bind.extend_from_slice(&[0, 1, 0, 1]);
            [message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
        }
    }
}

/// Encodes a POST.
pub fn post(target: &str, address: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Frames a message of the PostgreSQL protocol.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, text.into())
}

impl Connection {
    /// Opens the conversation: no message for HTTP and Redis, start-up and one prepared statement for PostgreSQL.
    pub async fn open(
        protocol: Protocol,
        address: &str,
        database: &str,
        statement: &str,
    ) -> std::result::Result<Connection, String> {
        Connection::start(protocol, address, database, statement).await.map_err(|e| format!("{address}: {e}"))
    }

    async fn start(protocol: Protocol, address: &str, database: &str, statement: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let buffer = Vec::with_capacity(1 << 18);
        let mut connection = Connection { protocol, stream, buffer, walked: 0, framing: None };
        if protocol == Protocol::Pg {
            let mut start = 196_608u32.to_be_bytes().to_vec();
            start.extend_from_slice(format!("user\0postgres\0database\0{database}\0\0").as_bytes());
            let mut hello = (start.len() as u32 + 4).to_be_bytes().to_vec();
            hello.extend_from_slice(&start);
            connection.ask(&hello).await?;
            if !statement.is_empty() {
                let parse = [b"s\0".as_slice(), statement.as_bytes(), b"\0\0\0"].concat();
                connection.ask(&[message(b'P', &parse), message(b'S', b"")].concat()).await?;
            }
        }
        Ok(connection)
    }

    /// Sends one question and reads its whole response; an error response is an error.
    pub async fn ask(&mut self, question: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(question).await?;
        self.buffer.clear();
        self.walked = 0;
        self.framing = None;
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(wrong("the server closed the connection"));
            }
            let end = match self.protocol {
                Protocol::Http => http_end(&self.buffer, &mut self.walked, &mut self.framing)?,
                Protocol::Resp => resp_end(&self.buffer, 0)?,
                Protocol::Pg => pg_end(&self.buffer, &mut self.walked)?,
            };
            if let Some(end) = end {
                return if end == self.buffer.len() { Ok(&self.buffer) } else { Err(wrong("bytes after the answer")) };
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// Returns the end of an HTTP/1.1 response, by Content-Length or chunked encoding, continuing at `at`.
fn http_end(bytes: &[u8], at: &mut usize, framing: &mut Option<Framing>) -> Result<Option<usize>> {
    let framing = match *framing {
        Some(framing) => framing,
        None => {
            let Some(head_end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
            *at = head_end + 4;
            *framing.insert(http_framing(&bytes[..head_end], &bytes[*at..])?)
        }
    };
    match framing {
        Framing::Length(length) => Ok((bytes.len() >= *at + length).then_some(*at + length)),
        Framing::Chunks => loop {
            let Some(line_end) = bytes.get(*at..).and_then(|b| find(b, b"\r\n")) else { return Ok(None) };
            let size =
                std::str::from_utf8(&bytes[*at..*at + line_end]).ok().and_then(|s| usize::from_str_radix(s, 16).ok());
            let size = size.ok_or_else(|| wrong("a chunk without a size"))?;
            let next = *at + line_end + 2 + size + 2;
            if next > bytes.len() {
                return Ok(None);
            }
            *at = next;
            if size == 0 {
                return Ok(Some(next));
            }
        },
    }
}

/// Returns the body framing of an HTTP head. A status other than success is an error that quotes the body so far.
fn http_framing(head: &[u8], body: &[u8]) -> Result<Framing> {
    let head = std::str::from_utf8(head).map_err(|_| wrong("a head that is not text"))?;
    if !head.starts_with("HTTP/1.1 2") {
        return Err(wrong(format!("{} {}", head.lines().next().unwrap_or_default(), String::from_utf8_lossy(body))));
    }
    if head.starts_with("HTTP/1.1 204") {
        return Ok(Framing::Length(0));
    }
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse().map_err(|_| wrong("a content length that is no number"))?;
            return Ok(Framing::Length(length));
        }
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Ok(Framing::Chunks);
        }
    }
    Err(wrong("neither a length nor chunks"))
}

/// Returns the end of the RESP value that starts at `at`.
fn resp_end(bytes: &[u8], at: usize) -> Result<Option<usize>> {
    let Some(line_end) = bytes.get(at..).and_then(|b| find(b, b"\r\n")) else { return Ok(None) };
    let line = &bytes[at..at + line_end];
    let next = at + line_end + 2;
    let number = || {
        std::str::from_utf8(&line[1..]).ok().and_then(|s| s.parse::<i64>().ok()).ok_or_else(|| wrong("not a number"))
    };
    match line.first() {
        Some(b'+' | b':') => Ok(Some(next)),
        Some(b'-') => Err(wrong(String::from_utf8_lossy(line).into_owned())),
        Some(b'$') => {
            let length = number()?;
            let end = if length < 0 { next } else { next + length as usize + 2 };
            // Tile38 in JSON mode reports errors this way.
            match bytes.get(next..end) {
                Some(text) if text.starts_with(br#"{"ok":false"#) => {
                    Err(wrong(String::from_utf8_lossy(text).into_owned()))
                }
                whole => Ok(whole.map(|_| end)),
            }
        }
        Some(b'*') => {
            let mut end = next;
            for _ in 0..number()?.max(0) {
                match resp_end(bytes, end)? {
                    Some(e) => end = e,
                    None => return Ok(None),
                }
            }
            Ok(Some(end))
        }
        _ => Err(wrong("not a Redis answer")),
    }
}

/// Returns the end of a PostgreSQL response, continuing at `at`: the message ReadyForQuery.
fn pg_end(bytes: &[u8], at: &mut usize) -> Result<Option<usize>> {
    while let Some(head) = bytes.get(*at..*at + 5) {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let end = *at + 1 + length;
        if end > bytes.len() {
            break;
        }
        match head[0] {
            b'E' => return Err(wrong(String::from_utf8_lossy(&bytes[*at + 5..end]).replace('\0', " "))),
            b'Z' => return Ok(Some(end)),
            _ => *at = end,
        }
    }
    Ok(None)
}
