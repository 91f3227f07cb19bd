//! Packets as received by a client of Server-Sent Events or of a WebSocket.

use crate::support::{Server, read_chunk, read_head, send};
use serde_json::Value;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

/// A stream of events, after its head.
pub struct Events {
    reader: BufReader<TcpStream>,
    text: String,
}

impl Events {
    /// Opens the packets at a path, from the first or after a given one.
    pub fn open(server: &Server, path: &str, last: Option<u64>) -> Events {
        Events::over(server.connect(), path, last)
    }

    /// The same over a given connection.
    pub fn over(mut stream: TcpStream, path: &str, last: Option<u64>) -> Events {
        let last = last.map(|seq| seq.to_string());
        let headers: Vec<(&str, &str)> = last.iter().map(|seq| ("last-event-id", seq.as_str())).collect();
        send(&mut stream, "GET", path, &headers, b"");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
        Events { reader, text: String::new() }
    }

    /// Returns the next packet; `None` at the end.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines = event.split_once('\n').map(|(id, data)| (id.to_owned(), data.to_owned()));
                self.text = rest.to_owned();
                // Other messages keep the connection alive, or set the reconnect delay.
                let Some((id, data)) = lines else { continue };
                let packet = data.strip_prefix("data: ").unwrap();
                assert!(packet.len() <= 10_240, "{}", packet.len());
                let packet: Value = serde_json::from_str(packet).unwrap();
                assert_eq!(format!("id: {}", packet["seq"]), id);
                return Some(packet);
            }
            let chunk = read_chunk(&mut self.reader).unwrap();
            if chunk.is_empty() {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    pub fn all(mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// A WebSocket (RFC 6455), after its head.
pub struct Socket(BufReader<TcpStream>);

impl Socket {
    /// Opens the packets at a path.
    pub fn open(server: &Server, path: &str) -> Socket {
        Socket::over(server.connect(), path)
    }

    /// The same over a given connection.
    pub fn over(stream: TcpStream, path: &str) -> Socket {
        Socket::with(stream, path, "")
    }

    /// The same by the holder of a token.
    pub fn by(server: &Server, token: &str, path: &str) -> Socket {
        Socket::with(server.connect(), path, &format!("authorization: Bearer {token}\r\n"))
    }

    fn with(mut stream: TcpStream, path: &str, more: &str) -> Socket {
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 101);
        Socket(reader)
    }

    /// Sends a close frame with status 1000 and an all-zero mask, and leaves the connection open.
    pub fn close(&mut self) {
        self.0.get_mut().write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]).unwrap();
    }

    /// Sends a text in one frame.
    pub fn say(&mut self, text: &[u8]) {
        self.frame(0x81, text);
    }

    /// Sends a text in `times` frames with this piece each.
    pub fn say_in_pieces(&mut self, piece: &[u8], times: usize) {
        for n in 0..times {
            let text = if n == 0 { 0x01 } else { 0x00 };
            self.frame(text | if n + 1 == times { 0x80 } else { 0 }, piece);
        }
    }

    /// Asks for a pong.
    pub fn ping(&mut self) {
        self.frame(0x89, b"");
    }

    /// Sends a frame with an all-zero mask; a server that has closed accepts none.
    fn frame(&mut self, head: u8, body: &[u8]) {
        let mut bytes = vec![head];
        match u16::try_from(body.len()) {
            Ok(short) if short < 126 => bytes.push(0x80 | short as u8),
            Ok(length) => {
                bytes.push(0x80 | 126);
                bytes.extend(length.to_be_bytes());
            }
            Err(_) => {
                bytes.push(0x80 | 127);
                bytes.extend((body.len() as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(body);
        let _ = self.0.get_mut().write_all(&bytes);
    }

    /// Returns whether a pong arrives before the end.
    pub fn answers(&mut self) -> bool {
        loop {
            let mut head = [0; 2];
            if self.0.read_exact(&mut head).is_err() || head[0] == 0x88 {
                return false;
            }
            let mut body = vec![0; usize::from(head[1])];
            self.0.read_exact(&mut body).unwrap();
            if head[0] == 0x8a {
                return true;
            }
        }
    }

    /// Returns the next packet; `None` when the server closes the socket.
    pub fn next(&mut self) -> Option<Value> {
        let text = self.text().unwrap();
        text.ok().map(|text| serde_json::from_slice(&text).unwrap())
    }

    /// Returns the next text, however it is fragmented, or the code and the reason of the close frame. An interrupted
    /// connection is an error.
    pub fn text(&mut self) -> io::Result<Result<Vec<u8>, (u16, String)>> {
        let (mut text, mut pings) = (Vec::new(), 0);
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head)?;
            let more = match head[1] {
                126 => 2,
                127 => 8,
                _ => 0,
            };
            let mut length = [0; 8];
            self.0.read_exact(&mut length[8 - more..])?;
            let length = if more == 0 { usize::from(head[1]) } else { u64::from_be_bytes(length) as usize };
            let mut body = vec![0; length];
            self.0.read_exact(&mut body)?;
            match head[0] {
                0x01 | 0x81 => assert!(text.is_empty(), "a message within another"),
                0x00 | 0x80 => assert!(!text.is_empty(), "a message without a beginning"),
                0x88 => {
                    let code = body.first_chunk().map_or(0, |code| u16::from_be_bytes(*code));
                    return Ok(Err((code, String::from_utf8(body.split_off(2.min(length))).unwrap())));
                }
                other => {
                    assert_eq!(other, 0x89, "a ping");
                    pings += 1;
                    assert!(pings < 8, "for two minutes nothing came but pings");
                    continue;
                }
            }
            text.append(&mut body);
            if head[0] & 0x80 != 0 {
                return Ok(Ok(text));
            }
        }
    }
}
