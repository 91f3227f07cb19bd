//! A real server on its own port, and a small client that sees every byte.
//!
//! With `MERIDIAN_TEST_GATEWAY=1` the server is a gateway: its collections belong to an owner in this process, reached
//! over a socket. The tests are the same.

use super::owner::{Owner, backend};
use meridian_api::{AppState, Listeners, ServerConfig, Tls, serve};
use meridian_observe::Tracer;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Max wait for a byte: a test that hangs should report where.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server over a store in memory, or over any other.
pub struct Server {
    pub address: SocketAddr,
    /// The address of Arrow Flight.
    pub flight: SocketAddr,
    pub store: Arc<Store>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    /// Stopped after the server.
    pub owner: Option<Owner>,
}

/// A complete response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// Returns the default number of partitions of a test's collections: `MERIDIAN_TEST_PARTITIONS`, or 1.
pub fn partitions() -> u16 {
    let named = std::env::var("MERIDIAN_TEST_PARTITIONS").ok();
    named.map_or(1, |text| text.parse().expect("MERIDIAN_TEST_PARTITIONS: a number"))
}

fn partitioned(config: ServerConfig) -> ServerConfig {
    ServerConfig { partitions: partitions(), ..config }
}

impl Server {
    pub fn start() -> Server {
        Server::with(ServerConfig::default())
    }

    pub fn with(config: ServerConfig) -> Server {
        Server::over(Options::ephemeral(), config)
    }

    pub fn over(options: Options, config: ServerConfig) -> Server {
        Server::upon(Seams::real(), options, config)
    }

    /// Starts a server over a store in memory, on a given address.
    pub fn on(listen: &'static str, config: ServerConfig) -> Server {
        Server::at(listen, Seams::real(), Options::ephemeral(), config, None)
    }

    pub fn upon(seams: Seams, options: Options, config: ServerConfig) -> Server {
        Server::at("127.0.0.1:0", seams, options, config, None)
    }

    /// Starts a TLS server over a store in memory.
    pub fn within(tls: Tls, config: ServerConfig) -> Server {
        Server::at("127.0.0.1:0", Seams::real(), Options::ephemeral(), config, Some(tls))
    }

    fn at(listen: &'static str, seams: Seams, options: Options, config: ServerConfig, tls: Option<Tls>) -> Server {
        let store = Arc::new(Store::open(options, seams.clone()).unwrap());
        let (backend, owner) = backend(&store, &seams);
        let state = AppState::new(backend, &seams, partitioned(config)).unwrap();
        Server::of(listen, store, state, tls, owner)
    }

    /// Starts a server over a store in memory whose requests are traced.
    pub fn traced(tracer: Tracer) -> Server {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let (backend, owner) = backend(&store, &seams);
        let state = AppState::with(backend, &seams, partitioned(ServerConfig::default()), tracer, None).unwrap();
        Server::of("127.0.0.1:0", store, state, None, owner)
    }

    pub fn of(
        listen: &'static str,
        store: Arc<Store>,
        state: AppState,
        tls: Option<Tls>,
        owner: Option<Owner>,
    ) -> Server {
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = meridian_api::runtime().worker_threads(2).build().unwrap();
            runtime.block_on(async move {
                let http = tokio::net::TcpListener::bind(listen).await.unwrap();
                let flight = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send((http.local_addr().unwrap(), flight.local_addr().unwrap())).unwrap();
                let listeners = Listeners { http, flight: Some(flight), control: None };
                serve(listeners, tls, state, async move { drop(stopped.await) }).await
            })
        });
        let (address, flight) = address.recv().unwrap();
        Server { address, flight, store, stop: Some(stop), thread: Some(thread), owner }
    }

    /// Asks the server to stop, and waits until it has.
    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
        drop(self.owner.take());
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((IpAddr::from([127, 0, 0, 1]), self.address.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Connects from an address of this machine, with a receive buffer of this size.
    pub fn connect_from(&self, from: impl Into<IpAddr>, buffer: u32) -> TcpStream {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(buffer).unwrap();
            socket.bind(SocketAddr::new(from.into(), 0)).unwrap();
            socket.connect(self.address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask("GET", path, &[], b"")
    }

    /// Sends a GET whose response may be interrupted.
    pub fn try_get(&self, path: &str) -> std::io::Result<Response> {
        let mut stream = self.connect();
        send(&mut stream, "GET", path, &[], b"");
        read_response(&mut BufReader::new(stream))
    }

    /// Sends a GET that must return 200 with JSON.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        ask_over(self.connect(), method, path, headers, body)
    }

    pub fn post(&self, path: &str, media_type: &str, body: impl AsRef<[u8]>) -> Response {
        self.ask("POST", path, &[("content-type", media_type)], body.as_ref())
    }

    /// Creates a collection from a SimpleFeatureType spec.
    pub fn create(&self, name: &str, spec: &str) {
        let answer =
            self.ask("PUT", &format!("/collections/{name}"), &[("content-type", "text/plain")], spec.as_bytes());
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// The same with `partitions` partitions, whatever the default: in a single one, events have one write order.
    pub fn create_of(&self, name: &str, spec: &str, partitions: u16) {
        let path = format!("/collections/{name}?partitions={partitions}");
        let answer = self.ask("PUT", &path, &[("content-type", "text/plain")], spec.as_bytes());
        assert_eq!(answer.status, 201, "{}", answer.text());
    }

    /// Posts a FeatureCollection that must be accepted.
    pub fn load(&self, name: &str, features: &[Value]) {
        let body = serde_json::json!({ "type": "FeatureCollection", "features": features }).to_string();
        let answer = self.post(&format!("/collections/{name}/items"), "application/geo+json", body);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Checks that this is a problem with this status, and returns its members.
    #[track_caller]
    pub fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        assert_eq!(body["status"], status);
        for member in ["type", "title", "detail"] {
            assert!(body[member].as_str().is_some_and(|t| !t.is_empty()), "{member}: {body}");
        }
        body
    }
}

/// Sends a request over a given connection.
pub fn ask_over(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Response {
    send(&mut stream, method, path, headers, body);
    read_response(&mut BufReader::new(stream)).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
}

/// Writes a request with `Connection: close`.
pub fn send(stream: &mut impl Write, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let sized = headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("content-length"));
    if !sized && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses early may stop reading; its response can still be read.
    let _ = stream.write_all(body);
}

/// Reads the head of a response.
pub fn read_head(reader: &mut impl BufRead) -> std::io::Result<(u16, BTreeMap<String, String>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .ok_or_else(|| std::io::Error::other(format!("no answer: {line:?}")))?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok((status, headers))
}

/// Reads one chunk of a chunked body; empty at its end.
pub fn read_chunk(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let size = usize::from_str_radix(line.trim_end(), 16)
        .map_err(|_| std::io::Error::other(format!("broken off: {line:?}")))?;
    let mut data = vec![0; size + 2];
    reader.read_exact(&mut data)?;
    data.truncate(size);
    Ok(data)
}

/// Reads a complete response; an interrupted transfer is an error.
pub fn read_response(reader: &mut impl BufRead) -> std::io::Result<Response> {
    let (status, headers) = read_head(reader)?;
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|v| v == "chunked") {
        loop {
            let chunk = read_chunk(reader)?;
            if chunk.is_empty() {
                break;
            }
            body.extend(chunk);
        }
    } else if let Some(length) = headers.get("content-length") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body)?;
    }
    Ok(Response { status, headers, body })
}

/// Builds a point feature.
pub fn point(id: &str, lon: f64, lat: f64, properties: Value) -> Value {
    let mut feature = serde_json::json!({
        "type": "Feature",
        "geometry": { "type": "Point", "coordinates": [lon, lat] },
        "properties": properties,
    });
    if !id.is_empty() {
        feature["id"] = id.into();
    }
    feature
}
