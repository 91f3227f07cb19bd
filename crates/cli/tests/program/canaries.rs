//! Two tenants on one server: texts planted in one are searched for in everything the other can reach.
//!
//! Every route of the table is called as the other tenant, with every kind of id in every path. The response must
//! equal, byte for byte, that for an id that does not exist. `canaries_asked.rs` has ids in parameters, headers and
//! bodies, and in attempts to sign in.

use crate::common::collector::{Collector, hex};
use crate::common::{self, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A word in every planted text, and a word of the same length that replaces it in names that do not exist.
pub const CANARY: &str = "canary";
pub const ABSENT: &str = "absent";

pub const JSON: &str = "application/json";

/// A response, without the parts that differ from one to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    pub head: BTreeSet<String>,
    pub body: String,
}

impl Response {
    pub fn status(&self) -> u16 {
        let line = self.head.iter().find_map(|line| line.strip_prefix("HTTP/1.1 ")).unwrap();
        line[..3].parse().unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| Some(line.split_once(": ")?).filter(|(n, _)| *n == name).map(|(_, v)| v))
    }

    /// Returns the same with one text replaced by another.
    pub fn with(&self, text: &str, other: &str) -> Response {
        let head = self.head.iter().map(|line| line.replace(text, other)).collect();
        Response { head, body: self.body.replace(text, other) }
    }
}

/// Sends a request, and reads until the server closes the connection.
pub fn ask(server: &Server, token: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    request += &format!("Authorization: Bearer {token}\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap_or_else(|e| panic!("{method} {target}: {e}"));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {target}: {text:?}"));
    let differs = ["date:", "server-timing:", "x-request-id:", "traceresponse:", "retry-after:"];
    let head = head.lines().filter(|line| !differs.iter().any(|name| line.to_ascii_lowercase().starts_with(name)));
    // A time to retry is given in turns.
    let body = match body.split_once("\"retry_after_seconds\":") {
        Some((before, after)) => before.to_owned() + after.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => body.to_owned(),
    };
    Response { head: head.map(str::to_owned).collect(), body }
}

/// A planted id, by its kind, and a nonexistent one of the same shape.
pub struct Id {
    pub kind: &'static str,
    pub planted: String,
    pub absent: String,
}

impl Id {
    pub fn new(kind: &'static str, planted: impl Into<String>) -> Id {
        let planted = planted.into();
        let absent = if planted.contains(CANARY) {
            planted.replace(CANARY, ABSENT)
        } else {
            // Made ids: a different digit in every place.
            let other = |c: char| match c {
                '0'..='8' | 'a'..='e' => char::from_u32(c as u32 + 1).unwrap(),
                '9' | 'f' => '0',
                c => c,
            };
            planted.chars().map(other).collect()
        };
        assert!(absent != planted && absent.len() == planted.len(), "{planted}");
        Id { kind, planted, absent }
    }
}

/// Returns the rows of the route table listed in `docs/routes.md`: method and path.
fn rows() -> Vec<(String, String)> {
    let listed = std::fs::read_to_string(common::root().join("docs/routes.md")).unwrap();
    let row = |line: &str| {
        let (method, path) = line.strip_prefix("| `")?.split_once('`')?.0.split_once(' ')?;
        Some((method.to_owned(), path.to_owned()))
    };
    let mut rows: Vec<_> = listed.lines().filter_map(row).collect();
    assert!(rows.len() > 50, "{}", rows.len());
    // A tenant may create a collection of any name. Created names exist from then on, so those come last.
    rows.sort_by_key(|(method, _)| method == "PUT");
    rows
}

/// Returns a body that the route accepts, so that the request reaches what its path names.
pub fn body(method: &str, path: &str) -> (&'static str, String) {
    let feature = json!({"type": "Feature", "geometry": null, "properties": {}});
    match (method, path) {
        ("POST" | "PUT", path) if path.contains("/items") => ("application/geo+json", feature.to_string()),
        ("PATCH", path) if path.contains("/items") => {
            ("application/merge-patch+json", r#"{"properties":{}}"#.to_owned())
        }
        ("PUT", _) => ("application/schema+json", r#"{"type":"object","properties":{}}"#.to_owned()),
        ("POST", "/tokens") => (JSON, r#"{"role":"reader"}"#.to_owned()),
        ("POST", "/api/v0/places") => (JSON, json!({"name": "a", "latitude": 1, "longitude": 2}).to_string()),
        ("POST", path) if path.contains("searches") => (JSON, r#"{"keywords":"nothing at all"}"#.to_owned()),
        _ => (JSON, "{}".to_owned()),
    }
}

/// A server with a tenant `harbour`, full of canaries, and a tenant `other`.
pub struct World {
    pub server: Server,
    /// Receives the traces of all requests.
    collector: Collector,
    pub operator: String,
    pub owner: String,
    pub foreign: [String; 2],
    pub ids: Vec<Id>,
    /// A page token of the owner.
    pub page: String,
    _folder: tempfile::TempDir,
}

fn made(answer: &Response) -> Value {
    assert!(matches!(answer.status(), 200..=202), "{answer:?}");
    answer.json()
}

impl World {
    pub fn plant() -> World {
        let folder = tempfile::tempdir().unwrap();
        let collector = Collector::start();
        let config = folder.path().join("meridian.toml");
        let text = format!("[traces]\nendpoint = \"http://{}\"\nsample = 1\nqueue_max = 1000000\n", collector.address);
        // A stream that should have been refused ends.
        let text = text + "[streams]\nlifetime = \"1s\"\n";
        std::fs::write(&config, text).unwrap();
        let data = folder.path().join("data");
        let args = ["--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
        let server = Server::start_with(&args);
        let token = |by: &str, body: Value| {
            let made = made(&ask(&server, by, "POST", "/tokens", &[("Content-Type", JSON)], &body.to_string()));
            (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
        };
        let (operator, _) = token("", json!({"role": "operator"}));
        for name in ["harbour", "other"] {
            let body = json!({ "name": name }).to_string();
            made(&ask(&server, &operator, "POST", "/tenants", &[("Content-Type", JSON)], &body));
        }
        let of = |tenant: &str, role: &str| token(&operator, json!({"role": role, "tenant": tenant}));
        let (owner, owners) = of("harbour", "admin");
        let foreign = ["admin", "reader"].map(|role| of("other", role).0);
        let by_owner = |method: &str, target: &str, kind: &str, body: Value| {
            let headers = [("Content-Type", kind), ("Idempotency-Key", "canary-key")];
            ask(&server, &owner, method, target, &headers, &body.to_string())
        };
        let schema = json!({
            "type": "object", "title": "canary title", "description": "canary description",
            "properties": {
                "id": {"type": "string", "x-ogc-role": "id"},
                "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
                "canary_field": {"type": "string", "title": "canary heading"},
            },
        });
        made(&by_owner("PUT", "/collections/canary-collection", "application/schema+json", schema));
        let feature = |id: &str| {
            json!({"type": "Feature", "id": id, "geometry": {"type": "Point", "coordinates": [1, 2]},
                "properties": {"canary_field": "canary value"}})
        };
        let features =
            json!({"type": "FeatureCollection", "features": [feature("canary-event"), feature("canary-two")]});
        made(&by_owner("POST", "/collections/canary-collection/items", "application/geo+json", features));
        let place = json!({"name": "canary place", "latitude": 1, "longitude": 2});
        assert_eq!(by_owner("POST", "/api/v0/places", JSON, place).status(), 303);
        let places = ask(&server, &owner, "GET", "/api/v0/places", &[], "").json();
        let place = places["places"][0]["id"].as_str().unwrap_or_else(|| panic!("{places}")).to_owned();
        let saved = json!({"name": "canary name", "question": {"keywords": "canaryword", "author": "canary author"},
            "webhook": {"url": "https://canary.example.org/canary-hook", "secret": "canary secret"}});
        let saved = made(&by_owner("POST", "/saved-searches", JSON, saved))["id"].as_str().unwrap().to_owned();
        let search = made(&by_owner("POST", "/searches", JSON, json!({"keywords": "canary"})));
        let packets = search["packets"].as_str().unwrap_or_else(|| panic!("{search}"));
        let search = packets.rsplit('/').nth(1).unwrap().to_owned();
        let page = ask(&server, &owner, "GET", "/collections/canary-collection/items?limit=1", &[], "").json();
        let links = page["links"].as_array().unwrap();
        let next = links.iter().find(|link| link["rel"] == "next").unwrap()["href"].as_str().unwrap();
        let page = next.split(['?', '&']).find(|pair| pair.starts_with("token=")).unwrap().to_owned();
        let ids = vec![
            Id::new("collection", "canary-collection"),
            Id::new("event", "canary-event"),
            Id::new("place", place),
            Id::new("saved search", saved),
            Id::new("search", search),
            Id::new("token", owners),
            Id { kind: "tenant", planted: "harbour".to_owned(), absent: "harbrou".to_owned() },
        ];
        World { server, collector, operator, owner, foreign, ids, page, _folder: folder }
    }

    fn ask(&self, token: &str, method: &str, path: &str, target: &str) -> Response {
        let (kind, body) = body(method, path);
        let body = if matches!(method, "GET" | "DELETE") { String::new() } else { body };
        ask(&self.server, token, method, target, &[("Content-Type", kind)], &body)
    }
}

/// Returns the path of a row with one text in every variable segment, except for numbers, which are not names.
pub fn target(path: &str, id: &str) -> String {
    let segment = |segment: &str| match segment {
        "{latitude}" | "{longitude}" | "{radiusKm}" | "{tileMatrix}" | "{tileRow}" | "{tileCol}" => "1".to_owned(),
        "{tileMatrixSetId}" => "WebMercatorQuad".to_owned(),
        segment if segment.starts_with('{') => id.to_owned(),
        segment => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[test]
fn a_foreign_tenant_finds_nothing_of_another_by_any_id_on_any_route() {
    let world = World::plant();
    // The log up to here is from the owner's requests: readers of the log must not see their contents.
    let log = world.server.log();
    for secret in
        ["canary value", "canary-event", "canaryword", "canary secret", "canary-hook", &world.owner, &world.page]
    {
        assert!(!log.contains(secret), "{secret} is logged: {log}");
    }
    let mut asked = 0;
    let mut rows = rows();
    // First, since the audit log later names what the callers themselves asked for.
    rows.sort_by_key(|(_, path)| path != "/audit");
    for (method, path) in rows {
        for token in &world.foreign {
            for id in &world.ids {
                let what = format!("{method} {path} with the id of a {}", id.kind);
                let there = world.ask(token, &method, &path, &target(&path, &id.planted));
                if path.contains('{') {
                    let absent = world.ask(token, &method, &path, &target(&path, &id.absent));
                    assert_eq!(there.with(&id.planted, &id.absent), absent, "{what}");
                    // For a second variable segment below a collection, the planted collection comes before it.
                    if let Some(rest) = path.strip_prefix("/collections/{c}/") {
                        let under = |name: &str, id: &str| format!("/collections/{name}/{}", target(rest, id));
                        let there = world.ask(token, &method, &path, &under("canary-collection", &id.planted));
                        let absent = world.ask(token, &method, &path, &under("absent-collection", &id.absent));
                        let there = there.with("canary-collection", "absent-collection");
                        assert_eq!(there.with(&id.planted, &id.absent), absent, "{what}");
                    }
                }
                let told = there.with(&id.planted, "");
                let shown = told.head.iter().chain([&told.body]).find(|text| text.contains(CANARY));
                assert_eq!(shown, None, "{what}");
                asked += 1;
                if !path.contains('{') {
                    break;
                }
            }
        }
    }
    assert!(asked > 300, "{asked}");
    // Nothing was changed either, and all of it still belongs to the owner.
    let own = |target: &str| ask(&world.server, &world.owner, "GET", target, &[], "");
    let of = |kind: &str| &world.ids.iter().find(|id| id.kind == kind).unwrap().planted;
    assert_eq!(own("/collections/canary-collection/items").json()["numberReturned"], 2);
    assert_eq!(own("/collections/canary-collection/items/canary-event").status(), 200);
    assert_eq!(own(&format!("/api/v0/places/{}", of("place"))).status(), 200);
    assert_eq!(own(&format!("/saved-searches/{}", of("saved search"))).status(), 200);
    assert_eq!(own(&format!("/searches/{}", of("search"))).status(), 200);
    // Spans are sent in the order in which they end: once this one has arrived, all earlier ones have.
    ask(&world.server, &world.owner, "GET", "/conformance", &[("traceparent", &header(LAST))], "");
    world.collector.wait_for("of the last request", |span| hex(&span.trace_id) == LAST);
    let spans = world.collector.spans.lock().unwrap().clone();
    assert!(spans.len() > 1_000, "{}", spans.len());
    let shown = spans.iter().find(|span| format!("{span:?}").contains(CANARY));
    assert!(shown.is_none(), "{shown:?}");
}

/// The trace of the last request.
const LAST: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn header(trace: &str) -> String {
    format!("00-{trace}-00f067aa0ba902b7-01")
}

#[test]
fn page_tokens_keys_and_names_of_tenants_give_nothing_away() {
    let world = World::plant();
    let [admin, reader] = &world.foreign;
    // The same name in another tenant is another collection: neither a page token nor an idempotency key is valid
    // across.
    let schema = r#"{"type":"object","properties":{"id":{"type":"string","x-ogc-role":"id"}}}"#;
    let typed = [("Content-Type", "application/schema+json")];
    for name in ["canary-collection", "absent-collection"] {
        let path = format!("/collections/{name}");
        assert_eq!(ask(&world.server, admin, "PUT", &path, &typed, schema).status(), 201);
    }
    let items = |name: &str, query: &str| {
        let answer = ask(&world.server, reader, "GET", &format!("/collections/{name}/items?{query}"), &[], "");
        answer.with(name, "NAME")
    };
    let with_token = items("canary-collection", &format!("limit=1&{}", world.page));
    assert_eq!(with_token.status(), 400);
    assert_eq!(with_token, items("absent-collection", &format!("limit=1&{}", world.page)));
    let write = |name: &str| {
        let headers = [("Content-Type", "application/geo+json"), ("Idempotency-Key", "canary-key")];
        let body = r#"{"type":"Feature","id":"mine","geometry":null,"properties":{}}"#;
        ask(&world.server, admin, "POST", &format!("/collections/{name}/items"), &headers, body).with(name, "NAME")
    };
    let (there, absent) = (write("canary-collection"), write("absent-collection"));
    assert_eq!((there.status(), there.json()["written"].as_u64()), (201, Some(1)), "{there:?}");
    assert_eq!(there, absent);
    // The name of a tenant, where only operators may name one.
    for (method, path) in rows().iter().filter(|(method, _)| method == "GET") {
        let named = |tenant: &str| {
            let headers = [("Meridian-Tenant", tenant)];
            ask(&world.server, reader, method, &target(path, "canary-event"), &headers, "").with(tenant, "TENANT")
        };
        assert_eq!(named("harbour"), named("harbrou"), "{method} {path}");
    }
    // A search of the other tenant reads only its own collections, and learns no words of others.
    let question = r#"{"keywords":"canary","timeout":5000}"#;
    let started = ask(&world.server, reader, "POST", "/searches", &[("Content-Type", JSON)], question);
    let packets = made(&started)["packets"].as_str().unwrap().to_owned();
    let path = packets.find("/searches").map(|at| packets[at..].to_owned()).unwrap();
    let read = ask(&world.server, reader, "GET", &path, &[("Accept", "text/event-stream")], "");
    assert!(read.body.contains("complete") && !read.body.contains("canary value"), "{read:?}");
}

#[test]
fn metrics_are_for_operators_and_count_without_content() {
    let world = World::plant();
    for token in world.foreign.iter().chain([&world.owner]) {
        assert_eq!(ask(&world.server, token, "GET", "/metrics", &[], "").status(), 403);
    }
    let metrics = ask(&world.server, &world.operator, "GET", "/metrics", &[], "");
    assert_eq!(metrics.status(), 200);
    // Operators may see names of collections, but not their contents.
    let found = metrics.body.lines().find(|line| line.replace("canary-collection", "").contains(CANARY));
    assert_eq!(found, None);
    // And a caller's own responses contain no credential.
    let own = ask(&world.server, &world.owner, "GET", "/tokens", &[], "");
    assert!(!own.body.contains(world.owner.rsplit('_').next().unwrap()));
    assert_eq!(own.header("cache-control").filter(|value| value.contains("public")), None);
}
