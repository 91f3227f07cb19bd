//! Quotas of tenants: what is refused beyond one, and what never is.

use crate::events::Socket;
use crate::support::{Response, Server, point, read_chunk, read_head, read_response, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};
use std::time::{Duration, Instant};

pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A server with the tenant `default`, which has no quotas, and `harbour`, which has.
pub struct Shared {
    pub server: Server,
    /// The token of an operator.
    pub operator: String,
    /// The token of an administrator of `harbour`.
    pub harbour: String,
}

impl Shared {
    pub fn start(quotas: Value) -> Shared {
        let server = Server::with(ServerConfig::default());
        server.create("ships", "name:String,*geom:Point");
        let made = server.ask("POST", "/tenants", &[JSON], br#"{"name":"harbour"}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        let token = |by: Option<&str>, asked: Value| {
            let bearer = by.map(|token| format!("Bearer {token}"));
            let mut headers = vec![JSON];
            headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
            let answer = server.ask("POST", "/tokens", &headers, asked.to_string().as_bytes());
            answer.json()["token"].as_str().unwrap().to_owned()
        };
        let operator = token(None, json!({"role": "operator"}));
        let harbour = token(Some(&operator), json!({"role": "admin", "tenant": "harbour"}));
        let shared = Shared { server, operator, harbour };
        let headers = [("content-type", "text/plain")];
        let made = shared.ask(&shared.harbour, "PUT", "/collections/ships", &headers, b"name:String,*geom:Point");
        assert_eq!(made.status, 201, "{}", made.text());
        shared.limit(quotas);
        shared
    }

    pub fn ask(&self, by: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let bearer = format!("Bearer {by}");
        self.server.ask(method, path, &[headers, &[("authorization", &*bearer)]].concat(), body)
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask(&self.harbour, "GET", path, &[], b"")
    }

    /// Posts `events` events and returns the response.
    pub fn post(&self, by: &str, events: usize) -> Response {
        let features: Vec<Value> = (0..events).map(|n| point("", n as f64 % 90.0, 1.0, json!({"name": "a"}))).collect();
        let body = json!({"type": "FeatureCollection", "features": features}).to_string();
        self.ask(by, "POST", "/collections/ships/items", &[("content-type", "application/geo+json")], body.as_bytes())
    }

    pub fn limit(&self, quotas: Value) {
        let body = json!({"quotas": quotas}).to_string();
        let answer = self.ask(&self.operator, "PATCH", "/tenants/harbour", &[JSON], body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Sends requests until one is refused. No server handles a hundred in the time that a quota of one per second
    /// requires.
    fn until_refused(&self, path: &str) -> Response {
        let mut answers = (0..100).map(|_| self.get(path));
        answers.find(|answer| answer.status != 200).expect("no request was refused")
    }
}

pub fn refused(answer: &Response, quota: &str, limit: u64) {
    let problem = answer.problem(429);
    assert_eq!(problem["type"], "urn:meridian:problem:quota-exceeded");
    assert_eq!((&problem["quota"], &problem["limit"]), (&json!(quota), &json!(limit)));
    assert!(answer.header("ratelimit").starts_with(&format!("\"{quota}\";r=0")), "{:?}", answer.headers);
    assert!(answer.header("ratelimit-policy").starts_with(&format!("\"{quota}\";q={limit}")), "{:?}", answer.headers);
}

#[test]
fn requests_over_the_rate_are_refused_to_their_tenant_alone() {
    let shared = Shared::start(json!({"requests_per_second": 1}));
    let answer = shared.until_refused("/collections/ships/items");
    refused(&answer, "requests_per_second", 1);
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    assert_eq!(answer.json()["retry_after_seconds"], wait);
    assert!(answer.header("ratelimit").ends_with(&format!(";t={wait}")), "{:?}", answer.headers);
    // The quota covers every kind of request: pages, tiles, searches, streams, places and lists for admins.
    let lists = ["/tokens", "/users", "/audit"];
    let paths = ["/", "/collections", "/collections/ships/tiles", "/collections/ships/stream", "/providers", "/map"];
    for path in paths.into_iter().chain(lists) {
        refused(&shared.until_refused(path), "requests_per_second", 1);
    }
    for _ in 0..20 {
        assert_eq!(shared.ask(&shared.operator, "GET", "/collections/ships/items", &[], b"").status, 200);
        assert_eq!(shared.get("/healthz").status, 200, "monitors are not counted");
        let revoked = shared.ask(&shared.harbour, "DELETE", "/tokens/0123456789abcdef", &[], b"");
        assert_eq!(revoked.status, 404, "an admin can always revoke");
    }
    let metrics = shared.ask(&shared.operator, "GET", "/metrics", &[], b"").text();
    let count = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim().parse::<f64>().unwrap()
    };
    assert!(count("meridian_quota_refused_total{quota=\"requests_per_second\"}") >= 7.0);
    assert!(count("meridian_tenant_refused_total{tenant=\"harbour\"}") >= 7.0);
    assert_eq!(count("meridian_tenant_refused_total{tenant=\"default\"}"), 0.0);
    assert!(count("meridian_tenant_processor_seconds_total{tenant=\"default\"}") > 0.0);
    shared.limit(json!({"requests_per_second": null}));
    (0..20).for_each(|_| assert_eq!(shared.get("/collections/ships/items").status, 200));
}

#[test]
fn a_large_batch_is_written_whole_and_paid_for_by_waiting() {
    let shared = Shared::start(json!({"events_per_second": 10}));
    assert_eq!(shared.post(&shared.harbour, 5_000).status, 201);
    let answer = shared.post(&shared.harbour, 1);
    refused(&answer, "events_per_second", 10);
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((300..=640).contains(&wait), "{wait}");
    assert_eq!(shared.get("/collections/ships/items?limit=1").json()["numberMatched"], 5_000, "it still reads");
    let deleted = shared.ask(&shared.harbour, "DELETE", "/collections/ships/items?bbox=0,0,9.5,2", &[], b"");
    assert_eq!((deleted.status, shared.post(&shared.operator, 1).status), (200, 201), "{}", deleted.text());
    // The body is not asked for if its events will be refused anyway.
    let mut stream = shared.server.connect();
    let bearer = format!("Bearer {}", shared.harbour);
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/geo+json"),
        ("content-length", "1000"),
        ("expect", "100-continue"),
    ];
    send(&mut stream, "POST", "/collections/ships/items", &headers, b"");
    assert_eq!(read_head(&mut BufReader::new(stream)).unwrap().0, 429);
}

#[test]
fn what_a_tenant_stores_is_bounded_and_it_can_make_room() {
    let shared = Shared::start(json!({"stored_bytes": 1_000}));
    assert_eq!(shared.post(&shared.harbour, 100).status, 201);
    let answer = shared.post(&shared.harbour, 1);
    refused(&answer, "stored_bytes", 1_000);
    assert_eq!(answer.header("retry-after"), "", "time makes no room");
    // The list of tenants counts like the quota, including events in memory.
    let tenants = shared.ask(&shared.operator, "GET", "/tenants", &[], b"").json();
    let harbour = tenants["tenants"].as_array().unwrap().iter().find(|tenant| tenant["name"] == "harbour").unwrap();
    assert!(harbour["bytes"].as_u64().unwrap() > 1_000, "{harbour}");
    let place = json!({"id": "1", "name": "a", "latitude": 1.0, "longitude": 1.0}).to_string();
    refused(&shared.ask(&shared.harbour, "POST", "/api/v0/places", &[JSON], place.as_bytes()), "stored_bytes", 1_000);
    assert_eq!(shared.get("/collections/ships/items").status, 200);
    assert_eq!(shared.ask(&shared.harbour, "DELETE", "/collections/ships", &[], b"").status, 204);
    let headers = [("content-type", "text/plain")];
    let made = shared.ask(&shared.harbour, "PUT", "/collections/ships", &headers, b"name:String,*geom:Point");
    assert_eq!(made.status, 201);
    // Counted again within about a second.
    let begun = Instant::now();
    while shared.post(&shared.harbour, 1).status != 201 {
        assert!(begun.elapsed() < Duration::from_secs(30), "no room was made");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_compressed_batch_counts_at_once_at_the_size_of_its_events() {
    let shared = Shared::start(json!({"stored_bytes": 1_000_000}));
    let name = "a".repeat(1_000);
    let features: Vec<Value> = (0..2_000).map(|n| point("", f64::from(n % 90), 1.0, json!({"name": name}))).collect();
    let body = json!({"type": "FeatureCollection", "features": features}).to_string();
    let body = zstd::encode_all(body.as_bytes(), 1).unwrap();
    assert!(body.len() < 100_000, "{}", body.len());
    let headers = [("content-type", "application/geo+json"), ("content-encoding", "zstd")];
    let written = shared.ask(&shared.harbour, "POST", "/collections/ships/items", &headers, &body);
    assert_eq!(written.status, 201, "{}", written.text());
    refused(&shared.post(&shared.harbour, 1), "stored_bytes", 1_000_000);
}

#[test]
fn heads_that_were_admitted_are_checked_again_with_their_bodies() {
    let shared = Shared::start(json!({"stored_bytes": 1_000}));
    let body = json!({"type": "FeatureCollection", "features":
        (0..100).map(|n| point("", f64::from(n), 1.0, json!({"name": "a"}))).collect::<Vec<_>>()})
    .to_string();
    let (bearer, length) = (format!("Bearer {}", shared.harbour), body.len().to_string());
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/geo+json"),
        ("content-length", length.as_str()),
    ];
    let begun: Vec<_> = (0..5)
        .map(|_| {
            let mut stream = shared.server.connect();
            send(&mut stream, "POST", "/collections/ships/items", &headers, b"");
            stream
        })
        .collect();
    // All heads have arrived before the first body does.
    std::thread::sleep(Duration::from_millis(300));
    let finish = |mut stream: std::net::TcpStream| {
        stream.write_all(body.as_bytes()).unwrap();
        read_response(&mut BufReader::new(stream)).unwrap().status
    };
    assert_eq!(begun.into_iter().map(finish).collect::<Vec<_>>(), [201, 429, 429, 429, 429]);
    let question = json!({"keywords": "a", "keep": {"collection": "found"}}).to_string();
    refused(&shared.ask(&shared.harbour, "POST", "/searches", &[JSON], question.as_bytes()), "stored_bytes", 1_000);
}

#[test]
fn what_questions_read_and_answers_send_is_charged_after_the_fact() {
    for quota in ["scanned_bytes_per_second", "result_bytes_per_second"] {
        let shared = Shared::start(json!({}));
        assert_eq!(shared.post(&shared.harbour, 2_000).status, 201);
        shared.limit(json!({quota: 1}));
        let all = shared.get("/collections/ships/items?f=ndjson&filter=name%20LIKE%20'%25a%25'");
        assert_eq!((all.status, all.text().lines().count()), (200, 2_000), "what began comes to its end");
        let answer = shared.get("/collections/ships/items");
        refused(&answer, quota, 1);
        assert!(answer.header("retry-after").parse::<u64>().unwrap() > 1_000, "{:?}", answer.headers);
        assert_eq!(shared.post(&shared.harbour, 1).status, 201, "writing is another matter");
    }
}

#[test]
fn what_a_websocket_sends_is_charged_to_the_tenant_of_its_caller() {
    const EVENTS: usize = 100;
    let shared = Shared::start(json!({}));
    assert_eq!(shared.post(&shared.harbour, EVENTS).status, 201);
    shared.limit(json!({"result_bytes_per_second": 1}));
    let mut socket = Socket::by(&shared.server, &shared.harbour, "/collections/ships/stream?after=0");
    let mut sent = 0;
    // The first message is a position.
    for _ in 0..=EVENTS {
        sent += socket.text().unwrap().expect("it goes on").len() as u64;
    }
    let used = || {
        let load = shared.ask(&shared.operator, "GET", "/admin/load", &[], b"").json();
        let harbour = load["tenants"].as_array().unwrap().iter().find(|tenant| tenant["name"] == "harbour").unwrap();
        harbour["quotas"][0]["used"].as_u64().unwrap()
    };
    // The client may have the last bytes before the server has counted them. A second pays for one byte.
    let begun = Instant::now();
    while used() < sent / 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} of {sent} bytes are charged", used());
    }
    refused(&shared.get("/collections/ships/items"), "result_bytes_per_second", 1);
}

#[test]
fn what_a_short_query_reads_is_charged_too() {
    // Few events: these queries run on the thread that read their request, and are charged when they are complete.
    for path in ["items?limit=10", "aggregate?function=count", "tiles/WebMercatorQuad/0/0/0?density=true"] {
        let shared = Shared::start(json!({}));
        assert_eq!(shared.post(&shared.harbour, 300).status, 201);
        shared.limit(json!({"scanned_bytes_per_second": 1}));
        let answer = shared.get(&format!("/collections/ships/{path}&filter=name%20LIKE%20'%25a%25'"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        refused(&shared.get("/collections/ships/items"), "scanned_bytes_per_second", 1);
    }
}

#[test]
fn a_query_that_must_read_too_much_is_refused_with_its_size() {
    let shared = Shared::start(json!({}));
    assert_eq!(shared.post(&shared.harbour, 3_000).status, 201);
    shared.limit(json!({"scanned_bytes_per_request": 50_000}));
    let tested = "/collections/ships/aggregate?function=count&filter=name%20LIKE%20'%25a%25'";
    for path in [tested, "/collections/ships/items?f=ndjson"] {
        let answer = shared.get(path);
        refused(&answer, "scanned_bytes_per_request", 50_000);
        let problem = answer.json();
        assert_eq!((&problem["events"], answer.header("retry-after")), (&json!(3_000), ""), "{problem}");
        assert!(problem["bytes"].as_u64().unwrap() > 50_000 && problem["detail"].as_str().unwrap().contains("bbox"));
    }
    // A page may be full after the first events. One that is not is ended by the quota before its head is sent.
    assert_eq!(shared.get("/collections/ships/items?limit=10").json()["numberReturned"], 10);
    let absent = shared.get("/collections/ships/items?limit=10&filter=name%20LIKE%20'%25absent%25'");
    refused(&absent, "scanned_bytes_per_request", 50_000);
    assert!(absent.json()["bytes"].as_u64().unwrap() > 50_000);
    // Queries answered by the index read nothing, and narrow queries read little.
    assert_eq!(shared.get("/collections/ships/aggregate?function=count").json()["groups"][0]["count"], 3_000);
    assert_eq!(shared.get("/collections/ships/items?f=ndjson&bbox=0,0,0.5,2").text().lines().count(), 34);
    assert_eq!(shared.ask(&shared.operator, "GET", tested, &[], b"").status, 200, "another tenant");
}

#[test]
fn requests_and_streams_at_a_time_end_with_their_clients() {
    // A request counts while its body is still to come.
    let unsent: &[(&str, &str)] =
        &[("content-type", "application/geo+json"), ("content-length", "1000"), ("expect", "100-continue")];
    for (quota, path, method, headers, status) in [
        ("concurrent_requests", "/collections/ships/items", "POST", unsent, 100),
        ("streams", "/collections/ships/stream", "GET", &[][..], 200),
    ] {
        let shared = Shared::start(json!({quota: 1}));
        let mut stream = shared.server.connect();
        let bearer = format!("Bearer {}", shared.harbour);
        send(&mut stream, method, path, &[headers, &[("authorization", &*bearer)]].concat(), b"");
        assert_eq!(read_head(&mut BufReader::new(&stream)).unwrap().0, status);
        refused(&shared.get(path), quota, 1);
        assert_eq!(shared.ask(&shared.operator, "GET", "/collections/ships/items", &[], b"").status, 200);
        drop(stream);
        let begun = Instant::now();
        let mut again = shared.server.connect();
        loop {
            send(&mut again, "GET", path, &[("authorization", &bearer)], b"");
            if read_head(&mut BufReader::new(&again)).unwrap().0 == 200 {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "the place never came free");
            std::thread::sleep(Duration::from_millis(20));
            again = shared.server.connect();
        }
    }
}

#[test]
fn an_open_stream_counts_as_a_stream_and_not_as_a_request() {
    let shared = Shared::start(json!({"concurrent_requests": 1, "streams": 1}));
    let bearer = format!("Bearer {}", shared.harbour);
    let mut stream = shared.server.connect();
    send(&mut stream, "GET", "/collections/ships/stream?after=0", &[("authorization", &*bearer)], b"");
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    assert_eq!(shared.get("/collections/ships/items").status, 200);
    refused(&shared.get("/collections/ships/stream"), "streams", 1);
    // What it sends is charged as before.
    shared.limit(json!({"result_bytes_per_second": 1}));
    assert_eq!(shared.post(&shared.harbour, 100).status, 201);
    let mut sent = 0;
    while sent < 10_000 {
        sent += read_chunk(&mut reader).unwrap().len();
    }
    let answer = shared.get("/collections/ships/items");
    refused(&answer, "result_bytes_per_second", 1);
    assert!(answer.header("retry-after").parse::<u64>().unwrap() > 5_000, "{:?}", answer.headers);
}

#[test]
fn an_operator_asks_in_each_tenant_for_itself() {
    let shared = Shared::start(json!({}));
    let question = br#"{"keywords":"a"}"#;
    let ask = |tenant: &str| {
        let answer = shared.ask(&shared.operator, "POST", "/searches", &[JSON, ("meridian-tenant", tenant)], question);
        assert_eq!((answer.status, &answer.json()["joined"]), (202, &json!(false)), "{tenant}: {}", answer.text());
        answer.json()["search"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (ask("default"), ask("harbour"));
    assert_ne!(ours, theirs);
    let status = |tenant: &str, id: &str| {
        let path = format!("/searches/{id}");
        shared.ask(&shared.operator, "GET", &path, &[("meridian-tenant", tenant)], b"").status
    };
    assert_eq!((status("harbour", &theirs), status("harbour", &ours), status("default", &ours)), (200, 404, 200));
    // The searches of a removed tenant are forgotten with it.
    let suspended = br#"{"suspended":true}"#;
    assert_eq!(shared.ask(&shared.operator, "PATCH", "/tenants/harbour", &[JSON], suspended).status, 200);
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/tenants/harbour", &[], b"").status, 204);
    assert_eq!(shared.ask(&shared.operator, "POST", "/tenants", &[JSON], br#"{"name":"harbour"}"#).status, 201);
    assert_eq!(status("harbour", &theirs), 404);
    let two = [("meridian-tenant", "default"), ("meridian-tenant", "harbour")];
    shared.ask(&shared.operator, "GET", "/collections", &two, b"").problem(400);
}

#[test]
fn quotas_are_checked_listed_and_lifted() {
    let shared = Shared::start(json!({"searches": 3, "stored_bytes": 1_u64 << 40}));
    for (wrong, named) in [
        (json!({"quotas": {"request_per_second": 1}}), "requests_per_second"),
        (json!({"quotas": {"events_per_second": 0}}), "events_per_second"),
        (json!({"quotas": {"events_per_second": -1}}), "events_per_second"),
        (json!({"quotas": 5}), "quotas"),
    ] {
        let body = wrong.to_string();
        let answer = shared.ask(&shared.operator, "PATCH", "/tenants/harbour", &[JSON], body.as_bytes());
        let problem = answer.problem(400);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(named) || wrong["quotas"].is_number(), "{detail}");
    }
    let harbour = || {
        let list = shared.ask(&shared.operator, "GET", "/tenants", &[], b"").json();
        list["tenants"].as_array().unwrap().iter().find(|tenant| tenant["name"] == "harbour").unwrap()["quotas"].clone()
    };
    assert_eq!(harbour(), json!({"searches": 3, "stored_bytes": 1_u64 << 40}));
    shared.limit(json!({"searches": null, "streams": 2}));
    assert_eq!(harbour(), json!({"streams": 2, "stored_bytes": 1_u64 << 40}), "what is not named stays");
    let metrics = shared.ask(&shared.operator, "GET", "/metrics", &[], b"").text();
    for line in
        ["meridian_quota_refused_total{quota=\"searches\"} 0", "meridian_tenant_refused_total{tenant=\"harbour\"} 0"]
    {
        assert!(metrics.lines().any(|there| there == line), "{line}");
    }
    // Only operators set them.
    let body = br#"{"quotas":{"streams":100}}"#;
    shared.ask(&shared.harbour, "PATCH", "/tenants/harbour", &[JSON], body).problem(403);
}
