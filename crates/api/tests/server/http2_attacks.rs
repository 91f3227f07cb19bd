//! Attacks with HTTP/2 frames, byte by byte. Each test shows how the attack is refused, and that others are served.

use crate::support::Server;
use crate::tls::{Secured, Shown, secured};
use meridian_api::ServerConfig;
use std::io::{self, Read, Write};
use std::time::Duration;

// Frame types (RFC 9113, 6), their flags, and error codes (RFC 9113, 7).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PROTOCOL_ERROR: u32 = 1;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A client that can write arbitrary bytes.
struct Attacker {
    stream: Secured,
}

struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a field in HPACK without a table (RFC 7541, 6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        bytes.extend(integer(text.len()));
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// Encodes an integer with a seven-bit prefix (RFC 7541, 5.1).
fn integer(value: usize) -> Vec<u8> {
    if value < 127 {
        return vec![value as u8];
    }
    let (mut bytes, mut rest) = (vec![127], value - 127);
    while rest >= 128 {
        bytes.push((rest % 128 + 128) as u8);
        rest /= 128;
    }
    bytes.push(rest as u8);
    bytes
}

fn request(path: &str) -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)];
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

impl Attacker {
    fn new(server: &Server, shown: &Shown) -> Attacker {
        let stream = secured(server.connect(), shown.client(&[b"h2"], rustls::ALL_VERSIONS)).unwrap();
        let mut attacker = Attacker { stream };
        attacker.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        attacker.write(&frame(SETTINGS, 0, 0, &[])).unwrap();
        attacker
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Ok(Frame { kind: head[3], stream, payload })
    }

    /// Returns the reason of the first frame of this kind; `None` if the connection ends without one.
    fn reason(&mut self, kind: u8) -> Option<u32> {
        loop {
            let frame = self.read().ok()?;
            if frame.kind == kind {
                // After the last stream id in a GOAWAY, the whole payload in a RST_STREAM (RFC 9113, 6.4 and 6.8).
                let at = if kind == GOAWAY { 4 } else { 0 };
                return Some(u32::from_be_bytes(frame.payload[at..at + 4].try_into().unwrap()));
            }
        }
    }

    /// Writes these bytes and returns the reason of the resulting GOAWAY.
    fn flood(&mut self, bytes: &[u8]) -> Option<u32> {
        // The server may end the connection before it has read everything.
        let _ = self.write(bytes);
        self.reason(GOAWAY)
    }
}

fn house(config: ServerConfig) -> (Server, Shown) {
    let shown = Shown::new();
    (Server::within(shown.tls(), config), shown)
}

/// Checks that another client is served.
#[track_caller]
fn serves(server: &Server, shown: &Shown) {
    let mut other = Attacker::new(server, shown);
    other.write(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &request("/healthz"))).unwrap();
    while other.read().unwrap().kind != DATA {}
}

#[test]
fn rapid_reset_ends_the_connection() {
    let (server, shown) = house(ServerConfig::default());
    let mut attacker = Attacker::new(&server, &shown);
    let request = request("/collections");
    // Opened and reset in one small write, so that they are reset before they are accepted.
    let pieces = (0..60u32).map(|n| {
        let stream = 2 * n + 1;
        let opened = frame(HEADERS, END_STREAM | END_HEADERS, stream, &request);
        [opened, frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())].concat()
    });
    let all: Vec<u8> = pieces.flatten().collect();
    assert_eq!(attacker.flood(&all), Some(ENHANCE_YOUR_CALM));
    serves(&server, &shown);
}

#[test]
fn a_head_in_endless_continuations_ends_the_connection() {
    let (server, shown) = house(ServerConfig::default());
    let mut attacker = Attacker::new(&server, &shown);
    let first = frame(HEADERS, END_STREAM, 1, &request("/"));
    // Never the flag that ends the head. In one write, so that nothing is in transit when the server ends the
    // connection.
    let rest = (0..100).flat_map(|n| frame(CONTINUATION, 0, 1, &field(&format!("x-{n}"), "1")));
    let all: Vec<u8> = first.into_iter().chain(rest).collect();
    assert_eq!(attacker.flood(&all), Some(ENHANCE_YOUR_CALM));
    serves(&server, &shown);
}

#[test]
fn a_head_that_unfolds_to_too_much_is_refused() {
    let (server, shown) = house(ServerConfig::default());
    // One large field is added to the table, and then referenced by a single byte many times (RFC 7541, 6.1).
    let head = |times| {
        let mut head = request("/");
        head.extend([0x40]);
        head.extend(field("x", &"a".repeat(3_900)).split_off(1));
        head.extend(vec![0x80 | 62; times]);
        frame(HEADERS, END_STREAM | END_HEADERS, 1, &head)
    };
    // Over the limit: the stream ends with a bare 431 from the library.
    let mut attacker = Attacker::new(&server, &shown);
    attacker.write(&head(30)).unwrap();
    let answer = std::iter::from_fn(|| attacker.read().ok()).find(|frame| frame.stream == 1).unwrap();
    assert_eq!(answer.kind, HEADERS);
    assert!(answer.payload.len() < 16, "no field but the status: {:?}", answer.payload);
    // A bomb of 31 MB: the connection ends.
    let mut attacker = Attacker::new(&server, &shown);
    assert_eq!(attacker.flood(&head(8_000)), Some(ENHANCE_YOUR_CALM));
    serves(&server, &shown);
}

#[test]
fn a_head_that_stops_midway_is_cut_off() {
    let (server, shown) = house(ServerConfig { head_timeout: Duration::from_millis(300), ..ServerConfig::default() });
    let mut attacker = Attacker::new(&server, &shown);
    attacker.write(&frame(HEADERS, END_STREAM, 1, &request("/"))).unwrap();
    // Asked to close, then dropped.
    while attacker.read().is_ok() {}
    // Not even a preface.
    let mut silent = secured(server.connect(), shown.client(&[b"h2"], rustls::ALL_VERSIONS)).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    serves(&server, &shown);
}

#[test]
fn frames_that_are_too_large_or_make_no_sense_end_the_connection() {
    let (server, shown) = house(ServerConfig::default());
    let head = frame(HEADERS, END_HEADERS, 1, &request("/"));
    for (what, bytes) in [
        ("more than the 16 KiB that a frame may have", frame(DATA, 0, 1, &vec![0; 20_000])),
        ("half a setting", frame(SETTINGS, 0, 0, &[0; 5])),
        ("a head on the stream that is the connection itself", frame(HEADERS, END_HEADERS, 0, &request("/"))),
        ("an entry that the table does not have", frame(HEADERS, END_STREAM | END_HEADERS, 3, &[0x80 | 100])),
        ("the continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &[])),
    ] {
        let mut attacker = Attacker::new(&server, &shown);
        let reason = attacker.flood(&[head.clone(), bytes].concat());
        let told = matches!(reason, Some(PROTOCOL_ERROR | FRAME_SIZE_ERROR | COMPRESSION_ERROR));
        assert!(told, "{what}: {reason:?}");
    }
    serves(&server, &shown);
}

#[test]
fn more_streams_than_agreed_are_refused() {
    let (server, shown) = house(ServerConfig::default());
    let mut attacker = Attacker::new(&server, &shown);
    // Each has a body that never arrives.
    let mut head = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/tokens")]
        .iter()
        .flat_map(|(name, value)| field(name, value))
        .collect::<Vec<u8>>();
    head.extend(field("content-type", "application/json"));
    for n in 0..101 {
        attacker.write(&frame(HEADERS, END_HEADERS, 2 * n + 1, &head)).unwrap();
    }
    let refused = loop {
        let frame = attacker.read().unwrap();
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    assert_eq!((refused.stream, &refused.payload[..]), (201, &REFUSED_STREAM.to_be_bytes()[..]));
    serves(&server, &shown);
}

#[test]
fn responses_that_are_not_read_count_among_the_streams_of_their_connection() {
    let (server, shown) = house(ServerConfig::default());
    let mut attacker = Attacker::new(&server, &shown);
    // SETTINGS_INITIAL_WINDOW_SIZE: no byte of a body may be sent.
    attacker.write(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).unwrap();
    let ask = |n: u32| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &request("/nowhere"));
    attacker.write(&(0..100).flat_map(ask).collect::<Vec<u8>>()).unwrap();
    let mut answered = 0;
    while answered < 100 {
        let frame = attacker.read().unwrap();
        assert!(frame.kind != RST_STREAM && frame.kind != DATA, "frame {} of stream {}", frame.kind, frame.stream);
        answered += usize::from(frame.kind == HEADERS);
    }
    // All of them have ended but for their bodies.
    attacker.write(&ask(100)).unwrap();
    let refused = loop {
        let frame = attacker.read().unwrap();
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    assert_eq!((refused.stream, &refused.payload[..]), (201, &REFUSED_STREAM.to_be_bytes()[..]));
    serves(&server, &shown);
}

/// Opens streams whose responses are never read, each with a head of some 60 KiB, and then one more. Returns the streams
/// that were refused.
fn with_large_heads(attacker: &mut Attacker, streams: u32) -> Vec<u32> {
    // SETTINGS_INITIAL_WINDOW_SIZE: no byte of a body may be sent.
    attacker.write(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).unwrap();
    let parts = ["x-a", "x-b", "x-c", "x-d"].map(|name| field(name, &"x".repeat(15 << 10)));
    for stream in (0..streams).map(|n| 2 * n + 1) {
        attacker.write(&frame(HEADERS, END_STREAM, stream, &request("/nowhere"))).unwrap();
        for (part, flags) in parts.iter().zip([0, 0, 0, END_HEADERS]) {
            attacker.write(&frame(CONTINUATION, flags, stream, part)).unwrap();
        }
    }
    let last = 2 * streams + 1;
    attacker.write(&frame(HEADERS, END_STREAM | END_HEADERS, last, &request("/healthz"))).unwrap();
    let mut refused = Vec::new();
    loop {
        let frame = attacker.read().unwrap();
        match frame.kind {
            RST_STREAM => {
                assert_eq!(frame.payload, REFUSED_STREAM.to_be_bytes(), "stream {}", frame.stream);
                refused.push(frame.stream);
            }
            HEADERS if frame.stream == last => return refused,
            _ => {}
        }
    }
}

#[test]
fn streams_beyond_the_reserve_of_their_connection_take_memory_or_are_refused() {
    // 2 MiB for streams, which is room for the heads of some 30.
    let (server, shown) = house(ServerConfig { answer_bytes_total: 2 << 20, ..ServerConfig::default() });
    let mut attacker = Attacker::new(&server, &shown);
    let refused = with_large_heads(&mut attacker, 90);
    assert!(refused.len() > 40 && refused.iter().all(|stream| *stream > 40), "{refused:?}");
    serves(&server, &shown);
    // The memory comes back with the end of the connection.
    drop(attacker);
    while !with_large_heads(&mut Attacker::new(&server, &shown), 20).is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_request_with_fields_of_http_1_or_a_wrong_length_is_reset() {
    let (server, shown) = house(ServerConfig::default());
    let with = |fields: &[(&str, &str)]| {
        let more = fields.iter().flat_map(|(name, value)| field(name, value));
        request("/").into_iter().chain(more).collect::<Vec<u8>>()
    };
    for fields in [
        &[("transfer-encoding", "chunked")][..],
        &[("connection", "close")],
        &[("x-Upper", "1")],
        &[("content-length", "5")],
        &[(":path", "/other")],
        &[("x", "a\r\nx-smuggled: 1")],
    ] {
        let mut attacker = Attacker::new(&server, &shown);
        attacker.write(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &with(fields))).unwrap();
        let frame = loop {
            let frame = attacker.read().unwrap();
            if frame.kind == RST_STREAM || frame.kind == GOAWAY {
                break frame;
            }
            assert_ne!(frame.kind, HEADERS, "{fields:?} was answered");
        };
        let reason = u32::from_be_bytes(frame.payload[frame.payload.len() - 4..].try_into().unwrap());
        assert_eq!(reason, PROTOCOL_ERROR, "{fields:?}");
    }
    serves(&server, &shown);
}

#[test]
fn frames_that_ask_for_nothing_end_the_connection() {
    const PRIORITY: u8 = 2;
    const PING: u8 = 6;
    let (server, shown) = house(ServerConfig::default());
    for flood in [frame(SETTINGS, 0, 0, &[]), frame(PING, 0, 0, &[7; 8]), frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 16])] {
        let mut attacker = Attacker::new(&server, &shown);
        // A client that sends a request now and then is not spared.
        attacker.write(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &request("/healthz"))).unwrap();
        let (mut reason, mut written) = (None, 0);
        // In pieces that are read meanwhile, because a flood whose replies are not read ends for another reason.
        while reason.is_none() && written < 20_000 {
            written += 100;
            if attacker.write(&flood.repeat(100)).is_err() {
                break;
            }
            attacker.write(&frame(PING, 0, 0, &[9; 8])).ok();
            reason = loop {
                match attacker.read() {
                    Ok(frame) if frame.kind == GOAWAY => {
                        break Some(u32::from_be_bytes(frame.payload[4..8].try_into().unwrap()));
                    }
                    // The reply to the last frame: the whole piece has been processed.
                    Ok(frame) if frame.kind == PING && frame.payload == [9; 8] => break None,
                    Ok(_) => {}
                    Err(_) => break Some(0),
                }
            };
        }
        assert_eq!(reason, Some(ENHANCE_YOUR_CALM), "a frame of kind {}", flood[3]);
    }
    serves(&server, &shown);
}
