//! Traces over OTLP: a collector of the test's own receives the spans of a query, an ingest, a search and a webhook.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::source::{Source, json};
use common::{PATIENCE, Server, agent, meridian};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The receiving end: takes `POST /v1/traces`.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    fn start() -> Collector {
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

    /// The spans of a trace, once those of these names are there.
    fn trace(&self, id: &str, names: &[&str]) -> Trace {
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
}

/// Takes one export; `None` once the connection has ended.
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message of protobuf: its fields by number, in order.
struct Message(Vec<(u64, Content)>);

/// What a field holds, by its wire type.
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

/// A `KeyValue`: its value is a text or a whole number.
fn attribute(entry: Message) -> (String, String) {
    let any = entry.message(2);
    (entry.text(1), any.number(3).map_or_else(|| any.text(1), |n| n.to_string()))
}

/// A span, by the field numbers of `trace.proto`.
#[derive(Debug, Clone)]
struct Span {
    trace_id: Vec<u8>,
    span_id: Vec<u8>,
    trace_state: String,
    parent_span_id: Vec<u8>,
    name: String,
    start_time_unix_nano: u64,
    end_time_unix_nano: u64,
    attributes: BTreeMap<String, String>,
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
struct Trace(Vec<Span>);

impl Trace {
    #[track_caller]
    fn span(&self, name: &str) -> &Span {
        self.0.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"))
    }

    /// The first is a part of the second.
    #[track_caller]
    fn is_part(&self, part: &str, whole: &str) {
        let (part, whole) = (self.span(part), self.span(whole));
        assert_eq!(hex(&part.parent_span_id), hex(&whole.span_id), "{} is not a part of {}", part.name, whole.name);
        assert!(
            part.start_time_unix_nano >= whole.start_time_unix_nano
                && part.end_time_unix_nano >= part.start_time_unix_nano
        );
    }

    fn attributes(&self, name: &str) -> &BTreeMap<String, String> {
        &self.span(name).attributes
    }
}

const CALLER: &str = "00f067aa0ba902b7";

/// A trace of the caller's: its id, and the header.
fn caller(n: u8) -> (String, String) {
    let id = format!("4bf92f3577b34da6a3ce929d0e0e47{n:02x}");
    let header = format!("00-{id}-{CALLER}-01");
    (id, header)
}

/// A source of one result, which is also a webhook's receiver.
fn source() -> Source {
    Source::start(|_| json(r#"{"items":[{"id":"a","title":"flood a"}]}"#))
}

fn server(folder: &std::path::Path, collector: &Collector, source: &Source) -> Server {
    let providers = folder.join("providers");
    std::fs::create_dir(&providers).unwrap();
    let text = format!(
        "name = \"good\"\n[takes]\nkeywords = \"all\"\nneeds = [\"keywords\"]\n[request]\nurl = \"http://{}/good\"\n\
         [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntitle = \"title\"\n\
         [limits]\nallow_private = true\nretries = 0\n",
        source.address
    );
    std::fs::write(providers.join("good.toml"), text).unwrap();
    let config = folder.join("meridian.toml");
    // No share of its own, so that only what the callers record is there; webhooks have no caller.
    let text = format!(
        "[traces]\nendpoint = \"http://{}\"\nsample = 0\n[search]\nproviders = {:?}\n",
        collector.address,
        providers.to_str().unwrap()
    );
    std::fs::write(&config, text).unwrap();
    Server::start_with(&["--data", folder.join("data").to_str().unwrap(), "--config", config.to_str().unwrap()])
}

fn post(server: &Server, path: &str, kind: &str, traceparent: &str, body: &str) -> (u16, String) {
    let request = agent().post(format!("{}{path}", server.url)).header("content-type", kind);
    let mut answer = request.header("traceparent", traceparent).header("tracestate", "vendor=1").send(body).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

#[test]
fn a_query_an_ingest_and_a_search_are_parts_of_their_callers_traces() {
    let (folder, collector, source) = (tempfile::tempdir().unwrap(), Collector::start(), source());
    let server = server(folder.path(), &collector, &source);
    meridian(&["create", "ships", "--schema", "name:String,*geom:Point:srid=4326", "--url", &server.url]).ended(0);

    let (id, header) = caller(1);
    let feature =
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"name":"hidden-name"}}"#;
    assert_eq!(post(&server, "/collections/ships/items", "application/geo+json", &header, feature).0, 201);
    let root = "POST /collections/{c}/items";
    let ingest = collector.trace(&id, &[root, "access", "body", "admission", "parse", "commit", "sync", "apply"]);
    for stage in ["access", "body", "admission", "parse", "commit"] {
        ingest.is_part(stage, root);
    }
    ingest.is_part("sync", "commit");
    ingest.is_part("apply", "commit");
    assert_eq!(
        (hex(&ingest.span(root).parent_span_id), ingest.span(root).trace_state.as_str()),
        (CALLER.to_owned(), "vendor=1")
    );

    let (id, header) = caller(2);
    let url = format!("{}/collections/ships/items?filter=name%3D%27hidden-name%27", server.url);
    let answer = agent().get(url).header("traceparent", &header).call().unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["traceparent"].to_str().unwrap()), (200, header.as_str()));
    let root = "GET /collections/{c}/items";
    let query = collector.trace(&id, &[root, "access", "admission", "plan", "scan", "encode"]);
    for stage in ["access", "admission", "plan", "scan", "encode"] {
        query.is_part(stage, root);
    }
    let attributes = query.attributes(root);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/collections/{c}/items"),
        ("http.response.status_code", "200"),
        ("meridian.tenant", "default"),
        ("events_matched", "1"),
    ] {
        assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}: {attributes:?}");
    }

    let (id, header) = caller(3);
    let (status, _) =
        post(&server, "/searches", "application/json", &header, r#"{"keywords":"flood","providers":["good"]}"#);
    assert!(status == 201 || status == 202, "{status}");
    let root = "POST /searches";
    let search = collector.trace(&id, &[root, "search", "leg", "ask", "good", "map", "filter", "deliver"]);
    search.is_part("search", root);
    search.is_part("leg", "search");
    for stage in ["ask", "map", "enrich", "filter", "classify", "deduplicate", "deliver"] {
        search.is_part(stage, "leg");
    }
    search.is_part("good", "ask");
    assert_eq!(search.attributes("leg").get("meridian.provider").map(String::as_str), Some("good"));
    // The source is asked as a part of the call's span.
    let call = hex(&search.span("good").span_id);
    let asked = source.calls();
    assert!(
        asked[0].contains(&format!("traceparent: 00-{id}-{call}-01")) && asked[0].contains("tracestate: vendor=1"),
        "{asked:?}"
    );

    let spans = collector.spans.lock().unwrap().clone();
    assert!(!format!("{spans:?}").contains("hidden-name"), "what clients look for and write is in no span");
    let metrics = server.get("/metrics").1;
    let exported = metrics.lines().find_map(|line| line.strip_prefix("meridian_trace_spans_exported_total ")).unwrap();
    assert!(exported.parse::<usize>().unwrap() >= 20, "{exported}");
    assert!(
        metrics.contains("\nmeridian_trace_spans_dropped_total 0\n")
            && metrics.contains("\nmeridian_trace_spans_failed_total 0\n")
    );
}

#[test]
fn what_no_caller_records_is_not_sent_and_a_collector_that_is_away_stops_nobody() {
    let (folder, collector, source) = (tempfile::tempdir().unwrap(), Collector::start(), source());
    let server = server(folder.path(), &collector, &source);
    for _ in 0..20 {
        assert_eq!(server.get("/collections").0, 200);
    }
    let (id, header) = caller(4);
    agent()
        .get(format!("{}/collections", server.url))
        .header("traceparent", header.replace("-01", "-00"))
        .call()
        .unwrap();
    let (recorded, header) = caller(5);
    agent().get(format!("{}/collections", server.url)).header("traceparent", &header).call().unwrap();
    collector.trace(&recorded, &["GET /collections"]);
    let others = collector.spans.lock().unwrap().iter().filter(|span| hex(&span.trace_id) != recorded).count();
    assert_eq!(others, 0, "{id} is not recorded by its caller");
    assert_eq!(server.stop("TERM"), Some(0));

    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = tempfile::tempdir().unwrap();
    let config = other.path().join("meridian.toml");
    std::fs::write(&config, format!("[traces]\nendpoint = \"http://{away}\"\nsample = 1\nqueue_max = 1\n")).unwrap();
    let server = Server::start_with(&["--ephemeral", "--config", config.to_str().unwrap()]);
    for _ in 0..200 {
        assert_eq!(server.get("/collections").0, 200);
    }
    let metrics = server.get("/metrics").1;
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("meridian_trace_spans_dropped_total ")).unwrap();
    assert!(dropped.parse::<usize>().unwrap() > 0, "{dropped}");
    assert_eq!(server.stop("TERM"), Some(0));
}
