//! HTTP/2 over TLS: the same responses, limits and endings as over HTTP/1.1.

use crate::support::{Server, point};
use crate::tls::Shown;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Method, Request, Response, Version};
use meridian_api::ServerConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// Max wait for an expected event: a test that hangs should report where.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one connection.
pub struct Client {
    pub requests: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

/// Starts a server with a collection of one event, and returns its certificate.
pub fn house(config: ServerConfig) -> (Server, Shown) {
    let shown = Shown::new();
    let server = Server::within(shown.tls(), config);
    (server, shown)
}

pub fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, what).await.expect("it does not hang") })
}

impl Client {
    pub async fn connect(server: &Server, shown: &Shown, builder: &h2::client::Builder) -> Client {
        let config = shown.client(&[b"h2"], rustls::ALL_VERSIONS);
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        Client { requests, connection: tokio::spawn(connection) }
    }

    pub async fn new(server: &Server, shown: &Shown) -> Client {
        Client::connect(server, shown, &h2::client::Builder::new()).await
    }

    /// Sends a request with its body.
    pub async fn send(&mut self, request: Request<()>, body: &[u8]) -> Result<Response<RecvStream>, h2::Error> {
        let mut requests = self.requests.clone().ready().await?;
        let (response, mut stream) = requests.send_request(request, body.is_empty())?;
        let mut rest = Bytes::copy_from_slice(body);
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len());
            match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(Ok(room)) => stream.send_data(rest.split_to(room), rest.is_empty())?,
                // A refusal needs no more of the body.
                _ => break,
            }
        }
        response.await
    }

    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response<Vec<u8>> {
        let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        whole(self.send(request.body(()).unwrap(), body).await.unwrap()).await.unwrap()
    }

    pub async fn get(&mut self, path: &str) -> Response<Vec<u8>> {
        self.ask(Method::GET, path, &[], b"").await
    }
}

pub async fn whole(response: Response<RecvStream>) -> Result<Response<Vec<u8>>, h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(Response::from_parts(parts, body))
}

pub fn text(response: &Response<Vec<u8>>) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

const GEOJSON: [(&str, &str); 1] = [("content-type", "application/geo+json")];

pub fn events(count: u32) -> Vec<u8> {
    let features: Vec<Value> =
        (0..count).map(|n| point("", f64::from(n % 180), 1.0, json!({ "n": n, "note": "x".repeat(200) }))).collect();
    json!({ "type": "FeatureCollection", "features": features }).to_string().into_bytes()
}

pub async fn create(client: &mut Client) {
    let plain = [("content-type", "text/plain")];
    let made = client.ask(Method::PUT, "/collections/c", &plain, b"n:Integer,note:String,*geom:Point").await;
    assert_eq!(made.status(), 201, "{}", text(&made));
}

#[test]
fn requests_are_answered_as_over_http_1() {
    let (server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        // Larger than every window, in both directions.
        let body = events(5_000);
        assert!(body.len() > 1 << 20);
        let written = client.ask(Method::POST, "/collections/c/items", &GEOJSON, &body).await;
        assert_eq!(written.status(), 201, "{}", text(&written));
        let read = client.get("/collections/c/items?f=ndjson").await;
        assert_eq!((read.status().as_u16(), text(&read).lines().count()), (200, 5_000));
        let landing = client.get("/").await;
        let link = serde_json::from_slice::<Value>(landing.body()).unwrap()["links"][0]["href"].clone();
        assert_eq!((landing.version(), link), (Version::HTTP_2, json!("https://localhost/")));
        for name in ["date", "content-length", "x-request-id", "x-content-type-options"] {
            assert!(landing.headers().contains_key(name), "{name}: {:?}", landing.headers());
        }
        let head = client.ask(Method::HEAD, "/", &[], b"").await;
        assert_eq!(head.headers()["content-length"], landing.headers()["content-length"]);
        assert!(head.body().is_empty());
        assert_eq!(client.ask(Method::OPTIONS, "/", &[], b"").await.status(), 204);
        let near = client.get("/api/v0/places/near/1/2").await;
        assert_eq!(serde_json::from_slice::<Value>(near.body()).unwrap()["totalPlaces"], 0);
        assert_eq!(client.get("/nowhere").await.status(), 404);
    });
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let (server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let mut stream = client.clone_events().await;
        let all: Vec<_> = (0..50).map(|_| client.requests.clone()).map(asked).collect();
        for one in all {
            assert_eq!(one.await.unwrap(), 200);
        }
        let written = client.ask(Method::POST, "/collections/c/items", &GEOJSON, &events(1)).await;
        assert_eq!(written.status(), 201, "{}", text(&written));
        let mut seen = String::new();
        while !seen.contains("\"note\"") {
            let data = stream.data().await.unwrap().unwrap();
            stream.flow_control().release_capacity(data.len()).unwrap();
            seen.push_str(&String::from_utf8_lossy(&data));
        }
    });
}

impl Client {
    /// Opens a stream of events that stays open.
    async fn clone_events(&mut self) -> RecvStream {
        let request = Request::get("https://localhost/collections/c/stream").header("accept", "text/event-stream");
        let response = self.send(request.body(()).unwrap(), b"").await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response.into_body()
    }
}

fn asked(requests: SendRequest<Bytes>) -> JoinHandle<u16> {
    tokio::spawn(async move {
        let request = Request::get("https://localhost/collections").body(()).unwrap();
        let (response, _) = requests.ready().await.unwrap().send_request(request, true).unwrap();
        whole(response.await.unwrap()).await.unwrap().status().as_u16()
    })
}

#[test]
fn the_authority_is_checked_like_a_host_and_pages_of_others_write_nothing() {
    let (server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let ask = |method, authority: &str, fields: &[(&str, &str)]| {
            let mut request = Request::builder().method(method).uri(format!("https://{authority}/collections/c/items"));
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            request.body(()).unwrap()
        };
        let geojson = ("content-type", "application/geo+json");
        for (request, status) in [
            (ask(Method::GET, "localhost", &[]), 200),
            (ask(Method::GET, "localhost", &[("host", "localhost")]), 200),
            (ask(Method::GET, "evil.example", &[]), 421),
            (ask(Method::GET, "evil.example", &[("host", "localhost")]), 400),
            (ask(Method::GET, "localhost", &[("host", "evil.example")]), 400),
            (ask(Method::POST, "localhost", &[("origin", "https://evil.example"), geojson]), 403),
            (ask(Method::POST, "localhost", &[("sec-fetch-site", "cross-site"), geojson]), 403),
            (ask(Method::POST, "localhost", &[("content-type", "text/plain")]), 415),
            (ask(Method::POST, "localhost", &[]), 415),
        ] {
            let shown = format!("{request:?}");
            let response = client.send(request, b"{\"type\":\"Feature\"}").await.unwrap();
            assert_eq!(response.status(), status, "{shown}");
            if status != 200 {
                assert_eq!(response.headers()["content-type"], "application/problem+json", "{shown}");
            }
        }
        let fields: Vec<_> = (0..101).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(client.ask(Method::GET, "/", &fields, b"").await.status(), 431);
        assert_eq!(client.get("/collections/c/items").await.status(), 200);
    });
}

#[test]
fn a_refused_body_is_not_sent_and_the_connection_stays() {
    let (server, shown) = house(ServerConfig { body_bytes_max: 1 << 20, ..ServerConfig::default() });
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let body = vec![b' '; 8 << 20];
        for _ in 0..3 {
            let refused = client.ask(Method::POST, "/collections/c/items", &GEOJSON, &body).await;
            assert_eq!(refused.status(), 413, "{}", text(&refused));
            assert!(!refused.headers().contains_key("connection"));
        }
        assert_eq!(client.get("/collections/c").await.status(), 200);
    });
}

#[test]
fn a_refusal_lets_a_small_body_arrive() {
    let (server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        let mut arrived = false;
        // Retried if this machine was too slow for the server to wait.
        for _ in 0..5 {
            let request = Request::post("https://localhost/nowhere").header("content-length", 17).body(()).unwrap();
            let mut requests = client.requests.clone().ready().await.unwrap();
            let (response, mut stream) = requests.send_request(request, false).unwrap();
            // This response proves that the server has seen the head above too. It ignores further data on a stream
            // that it has reset.
            assert_eq!(client.get("/healthz").await.status(), 200);
            arrived |= stream.send_data(Bytes::from_static(b"{\"role\":\"reader\"}"), true).is_ok();
            assert_eq!(whole(response.await.unwrap()).await.unwrap().status(), 404);
        }
        assert!(arrived);
    });
}

#[test]
fn a_stream_whose_client_takes_nothing_is_reset_and_the_others_go_on() {
    let (server, shown) = house(ServerConfig { write_stall: Duration::from_millis(300), ..ServerConfig::default() });
    run(async {
        let mut client =
            Client::connect(&server, &shown, h2::client::Builder::new().initial_window_size(16 << 10)).await;
        create(&mut client).await;
        assert_eq!(client.ask(Method::POST, "/collections/c/items", &GEOJSON, &events(2_000)).await.status(), 201);
        // Neither response is read for now: one fits in the window of its stream, the other does not.
        let request = |path: &str| Request::get(format!("https://localhost{path}")).body(()).unwrap();
        let large = client.send(request("/collections/c/items?f=ndjson"), b"").await.unwrap();
        let small = client.send(request("/collections/c"), b"").await.unwrap();
        let mut large = large.into_body();
        let error = loop {
            match large.data().await.expect("it is not whole") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        assert_eq!(whole(small).await.unwrap().status(), 200);
        // It is counted after the reset, by another task.
        let counted = async {
            while !text(&client.get("/metrics").await).contains("\nmeridian_readers_slow_total 1\n") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), counted).await.expect("the slow reader is counted");
    });
}

#[test]
fn an_evicted_stream_of_events_that_is_not_read_is_reset_and_its_connection_stays() {
    let config = ServerConfig { answer_bytes_total: 400 << 10, write_stall: 10 * PATIENCE, ..ServerConfig::default() };
    let (server, shown) = house(config);
    run(async {
        let mut client =
            Client::connect(&server, &shown, h2::client::Builder::new().initial_window_size(16 << 10)).await;
        create(&mut client).await;
        let event = |n: u32| point("", f64::from(n), 1.0, json!({ "n": n, "note": "x".repeat(95_000) }));
        let body = json!({ "type": "FeatureCollection", "features": (0..40).map(event).collect::<Vec<_>>() });
        let written = client.ask(Method::POST, "/collections/c/items", &GEOJSON, body.to_string().as_bytes()).await;
        assert_eq!(written.status(), 201, "{}", text(&written));
        let request = |path: &str| Request::get(format!("https://localhost{path}")).body(()).unwrap();
        // Its window is never given back.
        let mut stream = client.send(request("/collections/c/stream?after=0"), b"").await.unwrap().into_body();
        let reset = async {
            loop {
                if let Err(error) = stream.data().await.expect("it is not whole") {
                    return error;
                }
            }
        };
        let mut other = Client::new(&server, &shown).await;
        let demand = async {
            loop {
                // It may be refused or interrupted.
                if let Ok(large) = other.send(request("/collections/c/items?f=ndjson"), b"").await {
                    let _ = whole(large).await;
                }
            }
        };
        let error = tokio::select! {
            error = reset => error,
            () = demand => panic!("nobody demands memory"),
        };
        assert_eq!(error.reason(), Some(Reason::CANCEL));
        assert_eq!(client.get("/collections/c").await.status(), 200);
    });
}

#[test]
fn an_idle_connection_is_told_to_go_and_one_with_an_open_stream_is_not() {
    let (server, shown) = house(ServerConfig { head_timeout: Duration::from_secs(2), ..ServerConfig::default() });
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let mut busy = Client::new(&server, &shown).await;
        let mut stream = busy.clone_events().await;
        // It is a race whether the client has finished writing when the server closes.
        let _ = client.connection.await.unwrap();
        assert!(client.requests.ready().await.is_err(), "it takes no more requests");
        let mut other = Client::new(&server, &shown).await;
        assert_eq!(other.ask(Method::POST, "/collections/c/items", &GEOJSON, &events(1)).await.status(), 201);
        assert!(stream.data().await.unwrap().is_ok());
    });
}

#[test]
fn a_shutdown_tells_streams_and_lets_answers_finish() {
    let (mut server, shown) = house(ServerConfig::default());
    run(async {
        let mut client = Client::new(&server, &shown).await;
        create(&mut client).await;
        let mut stream = client.clone_events().await;
        let stopped = tokio::task::spawn_blocking(move || server.stop());
        let mut seen = String::new();
        while let Some(data) = stream.data().await {
            let data = data.expect("the stream ends in order");
            stream.flow_control().release_capacity(data.len()).unwrap();
            seen.push_str(&String::from_utf8_lossy(&data));
        }
        assert!(seen.contains("event: end"), "{seen}");
        drop(stream);
        // It is a race whether the client has finished writing when the server closes.
        let _ = client.connection.await.unwrap();
        stopped.await.unwrap();
    });
}
