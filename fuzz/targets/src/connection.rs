//! A client connection: whatever the client sends, the server responds or closes it, and never fails itself.

use crate::runtime::{finish, runtime};
use crate::world;
use meridian_api::fuzzed::Server;
use meridian_api::{AppState, ServerConfig};
use meridian_backend::Embedded;
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{Settings, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::timeout;

/// The server's address, as named by clients.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7117);
/// Preface of an HTTP/2 connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Max time that a client waits for more data, and in total.
const WAITS: (Duration, Duration) = (Duration::from_millis(25), Duration::from_secs(2));
/// Max time for a server to end a connection that its client has ended.
const ENDS: Duration = Duration::from_secs(60);

/// A server over a small collection, open to programs on its machine.
fn server() -> Server {
    let _entered = runtime().enter();
    let store = Arc::new(world::open(&MemoryDisk::new()).unwrap());
    let collection = store.create("default", "c", world::schema(), Settings::default()).unwrap();
    collection.write(Write::new(world::events(0, 20))).unwrap();
    let state = AppState::new(Embedded::new(store), &Seams::real(), ServerConfig::default()).unwrap();
    Server::new(state, ADDRESS).unwrap()
}

/// The bytes of a client, over HTTP/1.1, or over HTTP/2 if they begin with its preface.
pub fn connection(bytes: &[u8]) {
    let server = server();
    let (client, stream) = duplex(64 << 10);
    let is_http2 = bytes.starts_with(PREFACE);
    let answer = finish(async {
        let talk = async {
            let mut answer = Vec::new();
            let (mut from, mut to) = tokio::io::split(client);
            let send = async { drop(to.write_all(bytes).await) };
            let receive = async { while let Ok(Ok(1..)) = timeout(WAITS.0, from.read_buf(&mut answer)).await {} };
            let _ = timeout(WAITS.1, async { tokio::join!(send, receive) }).await;
            // Ends the stream for the server.
            drop((from, to));
            answer
        };
        let serve = timeout(ENDS, server.serve(stream, ADDRESS.ip(), is_http2));
        let (answer, served) = tokio::join!(talk, serve);
        assert!(served.is_ok(), "the connection goes on without its client");
        answer
    });
    if !is_http2 {
        let fails = |bytes: &[u8]| bytes.windows(12).any(|part| part == b"HTTP/1.1 500" || part == b"HTTP/1.0 500");
        assert!(!fails(&answer) || fails(bytes), "{}", String::from_utf8_lossy(&answer));
        // A client of version 1.0 is answered in it.
        let begins = [&b"HTTP/1.1 "[..], b"HTTP/1.0 "].iter().any(|version| answer.starts_with(version));
        assert!(answer.is_empty() || begins, "{}", String::from_utf8_lossy(&answer));
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of an HTTP/2 request, field by field, uncompressed.
fn head(stream: u32, fields: &[(&str, &str)], ends: bool) -> Vec<u8> {
    let field = |(name, value): &(&str, &str)| {
        let texts = [name, value].map(|text| [&[text.len() as u8][..], text.as_bytes()].concat());
        [&[0][..], &texts.concat()].concat()
    };
    let block: Vec<u8> = fields.iter().flat_map(field).collect();
    frame(1, 4 | u8::from(ends), stream, &block)
}

/// Inputs for [`connection`].
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let request = |line: &str, fields: &str, body: &str| {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        format!("{line} HTTP/1.1\r\nhost: 127.0.0.1:7117\r\n{fields}{length}\r\n{body}").into_bytes()
    };
    let get = |target: &str, fields: &str| request(&format!("GET {target}"), fields, "");
    let json = "content-type: application/json\r\n";
    let form = "content-type: application/x-www-form-urlencoded\r\nsec-fetch-site: same-origin\r\n";
    let event = r#"{"type":"Feature","id":"a","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"at":"2024-01-01T00:00:00Z","n":5}}"#;
    let socket = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut listening = get("/collections/c/subscribe", socket);
    // A text, a ping and a close from the client, masked with zeros.
    for (code, payload) in [(1_u8, &b"hello"[..]), (9, b"?"), (8, &[3, 232])] {
        listening.extend_from_slice(&[0x80 | code, 0x80 | payload.len() as u8, 0, 0, 0, 0]);
        listening.extend_from_slice(payload);
    }
    let items = "/collections/c/items?limit=3&filter=n%20%3E%205&sortby=-n&bbox=-180,-90,180,90&datetime=2023-11-14T00:00:00Z/..";
    let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "127.0.0.1:7117")];
    let h2 = |path: &'static str, more: &[(&'static str, &'static str)]| {
        let fields = [&pseudo[..], &[(":path", path)], more].concat();
        [PREFACE, &frame(4, 0, 0, &[]), &head(1, &fields, true)].concat()
    };
    vec![
        ("items", get(items, "accept-encoding: gzip, zstd;q=0.5\r\naccept: application/geo+json\r\n")),
        ("twice", [get("/", ""), get("/collections", "accept: text/html\r\n")].concat()),
        ("conditions", get("/openapi.json", "if-none-match: W/\"3f\", *\r\nrange: bytes=0-9\r\nif-range: \"3f\"\r\n")),
        ("priority", get("/collections/c/items", "priority: u=6, i\r\nmeridian-timeout: 500\r\nx-request-id: a-1\r\n")),
        (
            "traced",
            get(
                "/collections/c",
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=b\r\n",
            ),
        ),
        (
            "write",
            request(
                "POST /collections/c/items",
                "content-type: application/geo+json\r\nprefer: handling=lenient\r\nidempotency-key: k\r\n",
                event,
            ),
        ),
        (
            "chunks",
            request(
                "POST /collections/c/items",
                "content-type: application/geo+json\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n",
                "",
            )
            .into_iter()
            .chain(*b"4;a=b\r\n{\"ty\r\n0\r\nx: y\r\n\r\n")
            .collect(),
        ),
        ("create", request("PUT /collections/d", json, r#"{"schema":"n:Integer,*geom:Point:srid=4326","title":"d"}"#)),
        ("delete", request("DELETE /collections/c/items/id-3", "if-match: \"1\"\r\n", "")),
        (
            "stream",
            get(
                "/collections/c/subscribe?filter=n%3E5",
                "accept: text/event-stream\r\nlast-event-id: 0000000000001\r\n",
            ),
        ),
        ("socket", listening),
        (
            "preflight",
            request(
                "OPTIONS /collections/c/items",
                "origin: https://app.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type\r\n",
                "",
            ),
        ),
        ("sign-in", request("POST /session", form, "login=anna&password=correct%20horse&next=%2Fmap&csrf_token=0")),
        (
            "search",
            request(
                "POST /searches",
                json,
                r#"{"keywords":"flood OR fire","place":{"lon":1,"lat":2,"radius_m":5000},"limit":3,"deadline_ms":50}"#,
            ),
        ),
        ("aggregate", get("/collections/c/aggregate?function=count,max(n)&window=P1D&zone=Europe/Berlin", "")),
        ("tile", get("/collections/c/tiles/WebMercatorQuad/1/0/1?f=mvt", "")),
        (
            "track",
            get(
                "/collections/c/tracks/ship%201?simplify=5",
                "content-crs: <http://www.opengis.net/def/crs/EPSG/0/4326>\r\n",
            ),
        ),
        ("absolute", request("GET http://127.0.0.1:7117/ready", "", "")),
        ("metrics", get("/metrics", "authorization: Basic YTpi\r\nforwarded: for=192.0.2.1\r\n")),
        ("h2-items", h2("/collections/c/items?limit=3", &[("accept-encoding", "br"), ("priority", "u=7")])),
        (
            "h2-post",
            [
                h2("/", &[]),
                head(
                    3,
                    &[
                        (":method", "POST"),
                        (":scheme", "https"),
                        (":authority", "127.0.0.1:7117"),
                        (":path", "/collections/c/items"),
                        ("content-type", "application/geo+json"),
                    ],
                    false,
                ),
                frame(0, 1, 3, event.as_bytes()),
            ]
            .concat(),
        ),
        (
            "h2-flow",
            [
                h2("/collections", &[]),
                frame(6, 0, 0, &[0; 8]),
                frame(8, 0, 0, &[0, 0, 1, 0]),
                frame(3, 0, 1, &[0, 0, 0, 8]),
            ]
            .concat(),
        ),
    ]
}
