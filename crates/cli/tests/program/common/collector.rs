//! A collector of traces: decodes what a server sends over OTLP.

use super::PATIENCE;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The receiving end: accepts `POST /v1/traces`.
pub struct Collector {
    pub address: SocketAddr,
    pub spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let received = spans.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let received = received.clone();
                std::thread::spawn(move || while take(&stream, &received).is_some() {});
            }
        });
        Collector { address, spans }
    }

    /// Returns the spans of a trace, once those with these names have arrived.
    pub fn trace(&self, id: &str, names: &[&str]) -> Trace {
        let begun = Instant::now();
        loop {
            let spans = self.spans.lock().unwrap().clone();
            let of: Vec<Span> = spans.into_iter().filter(|span| hex(&span.trace_id) == id).collect();
            if names.iter().all(|name| of.iter().any(|span| span.name == *name)) {
                return Trace(of);
            }
            let have: Vec<&str> = of.iter().map(|span| span.name.as_str()).collect();
            assert!(begun.elapsed() < PATIENCE, "expected {names:?} in {have:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the first span for which this holds, once it has arrived.
    #[track_caller]
    pub fn wait_for(&self, what: &str, holds: impl Fn(&Span) -> bool) -> Span {
        let begun = Instant::now();
        loop {
            if let Some(span) = self.spans.lock().unwrap().iter().find(|span| holds(span)) {
                return span.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "no span {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Reads one export; `None` once the connection has ended.
fn take(mut stream: &TcpStream, received: &Mutex<Vec<Span>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head).ok().filter(|n| *n > 0)?;
    assert!(head.starts_with("POST /v1/traces "), "{head}");
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        assert!(!line.starts_with("content-type:") || line.contains("application/x-protobuf"), "{line}");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    for resource_spans in Message::read(&body).messages(1) {
        let resource: BTreeMap<_, _> = resource_spans.message(1).messages(1).map(attribute).collect();
        assert_eq!(resource["service.name"], "meridian");
        let spans = resource_spans.messages(2).flat_map(|scope| scope.messages(2).map(Span::of).collect::<Vec<_>>());
        received.lock().unwrap().extend(spans);
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(answer.as_bytes()).ok()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A protobuf message: its fields by number, in order.
struct Message(Vec<(u64, Content)>);

/// The value of a field, by its wire type.
enum Content {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    fn read(mut bytes: &[u8]) -> Message {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
            let (number, rest) = bytes.split_at(length);
            *bytes = rest;
            number.iter().rev().fold(0, |n, byte| n << 7 | u64::from(byte & 0x7f))
        }
        fn fixed(bytes: &mut &[u8], length: usize) -> Vec<u8> {
            let (field, rest) = bytes.split_at(length);
            *bytes = rest;
            field.to_vec()
        }
        let number = |bytes: Vec<u8>| Content::Number(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let content = match tag & 7 {
                0 => Content::Number(varint(&mut bytes)),
                1 => number(fixed(&mut bytes, 8)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Content::Bytes(fixed(&mut bytes, length))
                }
                5 => number(fixed(&mut bytes, 4)),
                other => panic!("wire type {other}"),
            };
            fields.push((tag >> 3, content));
        }
        Message(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(move |(number, content)| match content {
            Content::Bytes(bytes) if *number == field => Some(bytes.as_slice()),
            _ => None,
        })
    }

    fn messages(&self, field: u64) -> impl Iterator<Item = Message> {
        self.all(field).map(Message::read)
    }

    fn message(&self, field: u64) -> Message {
        self.messages(field).next().unwrap()
    }

    fn bytes(&self, field: u64) -> &[u8] {
        self.all(field).next().unwrap_or_default()
    }

    fn text(&self, field: u64) -> String {
        String::from_utf8(self.bytes(field).to_vec()).unwrap()
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.0.iter().find_map(|(number, content)| match content {
            Content::Number(n) if *number == field => Some(*n),
            _ => None,
        })
    }
}

/// Decodes a `KeyValue`, whose value is a text or a whole number.
fn attribute(entry: Message) -> (String, String) {
    let any = entry.message(2);
    (entry.text(1), any.number(3).map_or_else(|| any.text(1), |n| n.to_string()))
}

/// A span, by the field numbers of `trace.proto`.
#[derive(Debug, Clone)]
pub struct Span {
    pub trace_id: Vec<u8>,
    pub span_id: Vec<u8>,
    pub trace_state: String,
    pub parent_span_id: Vec<u8>,
    pub name: String,
    pub start_time_unix_nano: u64,
    pub end_time_unix_nano: u64,
    pub attributes: BTreeMap<String, String>,
}

impl Span {
    fn of(message: Message) -> Span {
        let kind = message.number(6).unwrap();
        let span = Span {
            trace_id: message.bytes(1).to_vec(),
            span_id: message.bytes(2).to_vec(),
            trace_state: message.text(3),
            parent_span_id: message.bytes(4).to_vec(),
            name: message.text(5),
            start_time_unix_nano: message.number(7).unwrap(),
            end_time_unix_nano: message.number(8).unwrap(),
            attributes: message.messages(9).map(attribute).collect(),
        };
        assert!(span.trace_id.len() == 16 && span.span_id.len() == 8 && (1..=3).contains(&kind), "{span:?}");
        span
    }
}

/// The spans of one trace.
pub struct Trace(pub Vec<Span>);

impl Trace {
    #[track_caller]
    pub fn span(&self, name: &str) -> &Span {
        self.0.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"))
    }

    /// Checks that the first is a child of the second.
    #[track_caller]
    pub fn is_part(&self, part: &str, whole: &str) {
        let (part, whole) = (self.span(part), self.span(whole));
        assert_eq!(hex(&part.parent_span_id), hex(&whole.span_id), "{} is not a part of {}", part.name, whole.name);
        assert!(
            part.start_time_unix_nano >= whole.start_time_unix_nano
                && part.end_time_unix_nano >= part.start_time_unix_nano
        );
    }

    pub fn attributes(&self, name: &str) -> &BTreeMap<String, String> {
        &self.span(name).attributes
    }
}
