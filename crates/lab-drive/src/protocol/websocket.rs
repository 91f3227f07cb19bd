//! WebSocket (RFC 6455), as a listening client: each request opens a stream, whose messages are packets.
//!
//! Hand-written to support many streams: each costs one small buffer, so ten thousand fit. A general library's buffers
//! alone would take a gigabyte. Extensions are not offered.

use super::address::Address;
use super::fault::ExchangeError;
use super::scan::BODY_MAX;
use super::stream::Stream;
use crate::generate::Question;
use crate::protocol::{Client, Exchange};
use crate::scenario::ResultUnit;
use meridian_lab_results::record::Record;
use std::io::Cursor;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;

/// A stream, opened by a request.
#[derive(Debug)]
pub struct WebSocket {
    address: Address,
    buffer: Vec<u8>,
    message: Vec<u8>,
}

/// Buffer for one read; it grows if a message is larger.
const BUFFER: usize = 2 << 10;

/// The example of RFC 6455, section 1.3: the key keeps caches from responding, and there is none here.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A frame from a server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    last: bool,
    code: u8,
    pub(crate) payload: std::ops::Range<usize>,
}

const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The mask of every sent frame.
const MASK: Option<[u8; 4]> = Some([0; 4]);
/// Error for a frame that no standard defines.
const ODD: &str = "a frame of an unknown kind came";

impl WebSocket {
    /// Creates an unopened stream.
    pub fn new(address: Address) -> WebSocket {
        WebSocket { address, buffer: Vec::new(), message: Vec::new() }
    }

    async fn read(&mut self, stream: &mut Stream) -> Result<(), ExchangeError> {
        if self.buffer.len() == self.buffer.capacity() {
            self.buffer.reserve(BUFFER);
        }
        match stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(ExchangeError::failed("the stream broke off")),
            Ok(_) => Ok(()),
            Err(e) => Err(ExchangeError::broken(&e)),
        }
    }

    /// Returns the end of the response's head, once it has arrived; writes the status.
    fn upgraded(&self, record: &mut Record) -> Result<Option<usize>, ExchangeError> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut answer = httparse::Response::new(&mut headers);
        let end = match answer.parse(&self.buffer) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) if self.buffer.len() < 16 << 10 => return Ok(None),
            _ => return Err(ExchangeError::failed("the answer is not HTTP")),
        };
        record.status = answer.code.unwrap_or(0);
        let accepts = |header: &httparse::Header<'_>| {
            header.name.eq_ignore_ascii_case("sec-websocket-accept")
                && header.value.trim_ascii() == derive_accept_key(KEY.as_bytes()).as_bytes()
        };
        if record.status == 101 && !answer.headers.iter().any(accepts) {
            return Err(ExchangeError::failed("the answer agrees to something else than a WebSocket"));
        }
        Ok(Some(end))
    }
}

impl Client for WebSocket {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        // A stream begins with its request, so only the connection can be tested.
        Stream::open(&self.address).await.map(drop)
    }

    /// Opens a stream and reads it. Stops when it ends, when a search reports its completion, or (if a result is a
    /// body) after the first message.
    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        let Exchange { question, unit, record, scan, clock } = of;
        self.buffer.clear();
        self.message.clear();
        let mut stream = Stream::open(&self.address).await?;
        record.sent = Some(clock.now());
        stream.send(&upgrade(question)).await?;
        loop {
            self.read(&mut stream).await?;
            record.first_byte.get_or_insert_with(|| clock.now());
            if let Some(end) = self.upgraded(record)? {
                self.buffer.drain(..end);
                break;
            }
        }
        if record.status != 101 {
            // The response is a refusal, shown by the status.
            return Ok(());
        }
        if !question.body().is_empty() {
            stream.send(&frame_of(1, question.body(), MASK)).await?;
        }
        loop {
            let mut used = 0;
            while let Some(frame) = next_frame(&self.buffer[used..]).map_err(ExchangeError::failed)? {
                let payload = used + frame.payload.start..used + frame.payload.end;
                used = payload.end;
                let payload = &self.buffer[payload];
                match frame.code {
                    CLOSE => return Ok(()),
                    PING => stream.send(&frame_of(PONG, payload, MASK)).await?,
                    PONG => {}
                    CONTINUATION..=BINARY => {
                        if self.message.len() + payload.len() > BODY_MAX {
                            return Err(ExchangeError::failed("a message is larger than 64 MiB"));
                        }
                        // The usual message is one frame, and is read in place.
                        if frame.last && self.message.is_empty() {
                            scan.message(payload, clock.now());
                        } else {
                            self.message.extend_from_slice(payload);
                            if frame.last {
                                scan.message(&self.message, clock.now());
                                self.message.clear();
                            }
                        }
                        if frame.last && (scan.state.is_some() || **unit == ResultUnit::Body) {
                            // The other side's reaction to the close does not matter.
                            let _ = stream.send(&frame_of(CLOSE, &1000_u16.to_be_bytes(), MASK)).await;
                            return Ok(());
                        }
                    }
                    _ => return Err(ExchangeError::failed(ODD)),
                }
            }
            self.buffer.drain(..used);
            self.read(&mut stream).await?;
        }
    }

    fn abandon(&mut self) {
        // Its stream ended with the exchange.
    }
}

/// Returns the request's head as one that requests a WebSocket: its path and headers, as a GET. The body is sent as
/// the first message.
fn upgrade(question: &Question) -> Vec<u8> {
    let head = question.get(question.path());
    let mut out = head.bytes.strip_suffix(b"\r\n").unwrap_or(&head.bytes).to_vec();
    out.extend_from_slice(
        format!(
            "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
        )
        .as_bytes(),
    );
    out
}

/// Returns the first frame of the received bytes, if it is complete.
pub(crate) fn next_frame(bytes: &[u8]) -> Result<Option<Frame>, &'static str> {
    let mut cursor = Cursor::new(bytes);
    let Some((header, length)) = FrameHeader::parse(&mut cursor).map_err(|_| ODD)? else { return Ok(None) };
    // RFC 6455, section 5.1: a server must not mask, and a client must close when it does.
    if header.mask.is_some() {
        return Err("the server masked a frame");
    }
    if header.rsv1 || header.rsv2 || header.rsv3 {
        return Err("the server used an extension that was not offered");
    }
    let length =
        usize::try_from(length).ok().filter(|length| *length <= BODY_MAX).ok_or("a frame is larger than 64 MiB")?;
    let start = usize::try_from(cursor.position()).map_err(|_| ODD)?;
    let payload = start..start + length;
    let whole = Frame { last: header.is_final, code: header.opcode.into(), payload };
    Ok((bytes.len() >= whole.payload.end).then_some(whole))
}

/// Builds a whole frame. A client's frame must be masked; the mask protects against proxies that misread, and zero is
/// valid.
pub(crate) fn frame_of(code: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let header = FrameHeader { opcode: code.into(), mask, ..FrameHeader::default() };
    let mut out = Vec::new();
    // Writing into a vector cannot fail.
    let _ = header.format(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_is_found_once_it_is_whole_and_says_what_was_sent(length in prop::sample::select(vec![0, 1, 125, 126, 127, 65_535, 65_536, 70_000_usize]), last: bool, cut in 0..100_usize) {
            let mut wire = vec![u8::from(last) << 7 | 1];
            match length {
                0..=125 => wire.push(length as u8),
                126..=65_535 => { wire.push(126); wire.extend_from_slice(&(length as u16).to_be_bytes()); }
                _ => { wire.push(127); wire.extend_from_slice(&(length as u64).to_be_bytes()); }
            }
            let start = wire.len();
            wire.resize(start + length, b'x');
            prop_assert_eq!(next_frame(&wire), Ok(Some(Frame { last, code: 1, payload: start..start + length })));
            let short = wire.len() - 1 - cut % wire.len();
            prop_assert_eq!(next_frame(&wire[..short]), Ok(None));
        }

        #[test]
        fn any_bytes_are_a_frame_or_a_mistake_or_too_few(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = next_frame(&bytes);
        }
    }
}
