//! Access control: every route of the table, for callers of every kind.

use crate::support::{Response, Server, point, read_chunk, read_head, read_response, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};

const JSON: (&str, &str) = ("content-type", "application/json");
/// A text that no response may contain for callers without the right to it.
pub const CANARY: &str = "canary-7f3a9c";

/// A row of the route table as listed in the docs; a unit test compares that list with the table.
struct Row {
    method: String,
    path: String,
    needs: String,
}

fn rows() -> Vec<Row> {
    let listed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/routes.md")).unwrap();
    let rows: Vec<Row> = listed
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let (method, path) = cells.next()?.trim_end_matches('`').split_once(' ')?;
            Some(Row { method: method.to_owned(), path: path.to_owned(), needs: cells.next()?.to_owned() })
        })
        .collect();
    assert!(rows.len() > 50, "{}", rows.len());
    rows
}

impl Row {
    /// Its path with this collection's name, and other segments that match nothing.
    fn path(&self, collection: &str) -> String {
        let segment = |segment: &str| match segment {
            "{c}" => collection.to_owned(),
            "{latitude}" | "{longitude}" | "{radiusKm}" => "1".to_owned(),
            other if other.starts_with('{') => "0123456789abcdef".to_owned(),
            other => other.to_owned(),
        };
        self.path.split('/').map(segment).collect::<Vec<_>>().join("/")
    }
}

/// A server with tokens of every kind, two tenants, and a collection hidden from most callers.
pub struct Shared {
    pub server: Server,
    pub operator: String,
    pub reader: String,
    pub writer: String,
    pub admin: String,
    pub foreign: String,
    pub revoked: String,
    pub forged: String,
}

fn create(server: &Server, by: Option<&str>, asked: Value) -> Value {
    let answer = ask(server, by, "POST", "/tokens", asked.to_string().as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

pub fn token(server: &Server, by: Option<&str>, asked: Value) -> String {
    create(server, by, asked)["token"].as_str().unwrap().to_owned()
}

pub fn ask(server: &Server, by: Option<&str>, method: &str, path: &str, body: &[u8]) -> Response {
    let bearer = by.map(|token| format!("Bearer {token}"));
    let mut headers = vec![JSON];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    server.ask(method, path, &headers, body)
}

impl Shared {
    pub fn start() -> Shared {
        Shared::over(meridian_store::Options::ephemeral())
    }

    pub fn over(options: meridian_store::Options) -> Shared {
        Shared::with(options, ServerConfig::default())
    }

    pub fn with(options: meridian_store::Options, config: ServerConfig) -> Shared {
        let server = Server::over(options, config);
        for name in ["ships", "ships-2", "vault"] {
            server.create(name, "name:String,*geom:Point:srid=4326");
        }
        server.load("vault", &[point("", 1.0, 2.0, json!({ "name": CANARY }))]);
        let created = server.ask("POST", "/tenants", &[JSON], br#"{"name":"other"}"#);
        assert_eq!(created.status, 201, "{}", created.text());
        // The first token closes the server: every later request needs one.
        let operator = token(&server, None, json!({ "role": "operator" }));
        let of = |role: &str, collections: &str| {
            token(&server, Some(&operator), json!({ "role": role, "collections": collections }))
        };
        let (reader, writer, admin) = (of("reader", "ships*"), of("writer", "ships*"), of("admin", "ships*"));
        let foreign = token(&server, Some(&operator), json!({ "role": "admin", "tenant": "other" }));
        let made = create(&server, Some(&operator), json!({ "role": "operator" }));
        let (id, revoked) = (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned());
        assert_eq!(ask(&server, Some(&operator), "DELETE", &format!("/tokens/{id}"), b"").status, 204);
        let last = if operator.ends_with('0') { '1' } else { '0' };
        let forged = format!("{}{last}", &operator[..operator.len() - 1]);
        Shared { server, operator, reader, writer, admin, foreign, revoked, forged }
    }

    pub fn ask(&self, by: &str, method: &str, path: &str) -> Response {
        ask(&self.server, Some(by).filter(|by| !by.is_empty()), method, path, b"")
    }
}

/// Returns whether a role includes an access, in the table's words.
fn includes(role: &str, needs: &str) -> bool {
    let rank = |role: &str| ["reader", "writer", "admin", "operator"].iter().position(|r| *r == role).unwrap();
    let needed = match needs {
        "open" | "write search" => "reader",
        needs if needs.ends_with(" server") => "operator",
        needs if needs.ends_with(" tokens") || needs.ends_with(" audit") || needs.starts_with("manage ") => "admin",
        needs if needs.starts_with("write ") => "writer",
        _ => "reader",
    };
    rank(role) >= rank(needed)
}

#[test]
fn every_route_serves_those_who_have_its_access_and_nobody_else() {
    let shared = Shared::start();
    let callers = [("reader", &shared.reader), ("writer", &shared.writer), ("admin", &shared.admin)];
    // A password belongs to its user, whatever others may do; `sign_in.rs` tests its changes.
    for row in rows().iter().filter(|row| row.path != "/password") {
        // A nonexistent collection, so that a caller with the right to remove it removes nothing.
        let path = row.path("ships-absent");
        let what = format!("{} {path}", row.method);
        for (who, token) in [("nobody", ""), ("forged", &*shared.forged), ("revoked", &*shared.revoked)] {
            let answer = shared.ask(token, &row.method, &path);
            if row.needs == "open" {
                // The response is the same for every caller: a monitor with an expired token finds the server up.
                assert!(![401, 403].contains(&answer.status), "{what} {who}: {}", answer.status);
            } else {
                answer.problem(401);
                assert!(answer.header("www-authenticate").starts_with("Bearer"), "{what} {who}");
            }
        }
        for (role, token) in callers {
            // `places` is outside their pattern, so it does not exist for these callers.
            let hidden = row.path.contains("/places");
            let answer = shared.ask(token, &row.method, &path);
            match (hidden, includes(role, &row.needs)) {
                (true, _) => drop(answer.problem(404)),
                (false, true) => assert!(![401, 403].contains(&answer.status), "{what} {role}: {}", answer.text()),
                (false, false) => drop(answer.problem(403)),
            }
            assert!(!answer.text().contains(CANARY), "{what} {role}");
        }
    }
}

#[test]
fn what_a_caller_may_not_see_answers_as_what_is_absent() {
    let shared = Shared::start();
    // It must appear nowhere. Checked first, because later requests put the callers' own attempts into the audit log.
    for row in rows().iter().filter(|row| row.method == "GET" && !row.path.contains('{')) {
        for token in ["", &shared.reader, &shared.writer, &shared.foreign] {
            let text = shared.ask(token, "GET", &row.path).text();
            assert!(!text.contains("vault"), "GET {}: {text}", row.path);
            assert!(!text.contains(CANARY), "GET {}", row.path);
        }
    }
    for row in rows().iter().filter(|row| row.path.contains("{c}")) {
        for (who, token) in [("reader", &shared.reader), ("admin", &shared.admin), ("foreign", &shared.foreign)] {
            if who == "foreign" && row.method == "PUT" {
                // An admin may create collections of its own tenant under any name.
                continue;
            }
            let hidden = shared.ask(token, &row.method, &row.path("vault"));
            let absent = shared.ask(token, &row.method, &row.path("absent"));
            let what = format!("{} {} {who}", row.method, row.path);
            assert_eq!(hidden.status, absent.status, "{what}: {}", hidden.text());
            assert_eq!(hidden.text().replace("vault", "absent"), absent.text(), "{what}");
            let names = |answer: &Response| answer.headers.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&hidden), names(&absent), "{what}");
            assert!(hidden.status >= 400, "{what}");
        }
    }
    let listed = shared.ask(&shared.reader, "GET", "/collections").json();
    let names: Vec<&str> =
        listed["collections"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["ships", "ships-2"]);
}

#[test]
fn while_there_is_no_token_only_programs_on_this_machine_are_served() {
    let config = ServerConfig { hosts: vec!["events.example.org".parse().unwrap()], ..ServerConfig::default() };
    let server = Server::with(config);
    assert_eq!(server.get("/collections").status, 200);
    for header in [
        ("x-forwarded-for", "192.0.2.1"),
        ("forwarded", "for=192.0.2.1"),
        ("via", "1.1 proxy"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let refused = server.ask("GET", "/collections", &[header], b"");
        assert!(refused.problem(401)["detail"].as_str().unwrap().contains("meridian token create"), "{header:?}");
        assert_eq!(server.ask("GET", "/healthz", &[header], b"").status, 200, "{header:?}");
    }
    let mut stream = server.connect();
    let head = "GET /collections HTTP/1.1\r\nHost: events.example.org\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_response(&mut BufReader::new(stream)).unwrap();
    answer.problem(401);
    let token = token(&server, None, json!({ "role": "reader" }));
    let mut stream = server.connect();
    let head = head.replace("Connection:", &format!("Authorization: Bearer {token}\r\nConnection:"));
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_response(&mut BufReader::new(stream)).unwrap().status, 200);
}

#[test]
fn a_token_gives_what_its_maker_has_and_ends_when_it_is_revoked() {
    let shared = Shared::start();
    let server = &shared.server;
    for (by, asked) in [
        (&shared.admin, json!({ "role": "operator" })),
        (&shared.admin, json!({ "role": "reader" })),
        (&shared.admin, json!({ "role": "reader", "collections": "ships*", "tenant": "other" })),
        (&shared.writer, json!({ "role": "reader", "collections": "ships" })),
    ] {
        ask(server, Some(by), "POST", "/tokens", asked.to_string().as_bytes()).problem(403);
    }
    for wrong in [
        json!({ "role": "king" }),
        json!({ "role": "reader", "collections": "a b" }),
        json!({ "role": "reader", "expires": "yesterday" }),
        json!({ "role": "reader", "expires": "2020-01-01T00:00:00Z" }),
        json!({ "role": "reader", "tenant": "nobody" }),
        json!({ "role": "operator", "tenant": "other" }),
        json!({ "role": "operator", "collections": "ships*" }),
        json!({ "roles": "reader" }),
    ] {
        ask(server, Some(&shared.operator), "POST", "/tokens", wrong.to_string().as_bytes()).problem(400);
    }
    let made =
        create(server, Some(&shared.admin), json!({ "role": "reader", "collections": "ships", "expires": "P1D" }));
    let (id, text) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let basic = format!("Basic {}", data_encoding::BASE64.encode(format!("gdal:{text}").as_bytes()));
    let with_basic = || server.ask("GET", "/collections/ships", &[("authorization", &basic)], b"");
    assert_eq!(with_basic().status, 200);
    assert_eq!(shared.ask(text, "GET", "/collections/ships-2").status, 404);
    // Neither its secret nor its digest can be read again.
    let secret = text.rsplit('_').next().unwrap();
    let listed = shared.ask(&shared.admin, "GET", "/tokens");
    assert!(listed.text().contains(id) && !listed.text().contains(secret) && !listed.text().contains("digest"));
    // An admin sees and revokes only the tokens of its tenant.
    assert!(!shared.ask(&shared.foreign, "GET", "/tokens").text().contains(id));
    shared.ask(&shared.foreign, "DELETE", &format!("/tokens/{id}")).problem(404);
    assert_eq!(with_basic().status, 200);
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    with_basic().problem(401);
    shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).problem(404);
}

#[test]
fn tenants_share_a_server_and_nothing_else() {
    let shared = Shared::start();
    let server = &shared.server;
    let put = |by: &str, name: &str| {
        let bearer = format!("Bearer {by}");
        let headers = [("content-type", "text/plain"), ("authorization", bearer.as_str())];
        server.ask("PUT", &format!("/collections/{name}"), &headers, b"name:String,*geom:Point:srid=4326").status
    };
    // The same name in two tenants denotes two collections.
    assert_eq!(put(&shared.foreign, "vault"), 201);
    let empty = shared.ask(&shared.foreign, "GET", "/collections/vault/items").json();
    assert_eq!(empty["numberReturned"], 0, "{empty}");
    let operator = format!("Bearer {}", shared.operator);
    let of_tenant = |tenant: &str| {
        server.ask("GET", "/collections/vault/items", &[("authorization", &operator), ("meridian-tenant", tenant)], b"")
    };
    assert_eq!(of_tenant("other").json()["numberReturned"], 0);
    assert_eq!(of_tenant("default").json()["numberReturned"], 1);
    of_tenant("nobody").problem(404);
    let foreign = format!("Bearer {}", shared.foreign);
    let named = |tenant: &str| {
        server.ask("GET", "/collections", &[("authorization", &foreign), ("meridian-tenant", tenant)], b"").status
    };
    assert_eq!((named("other"), named("default"), named("nobody")), (200, 403, 403));
    // A monitor with an expired token still learns that the server is up, whichever tenant it names.
    let ended = [("authorization", "Bearer mrd_0"), ("meridian-tenant", "other")];
    let of = |path: &str| server.ask("GET", path, &ended, b"").status;
    assert_eq!((of("/healthz"), of("/collections")), (200, 401));
    // A page token of one tenant is useless in another.
    let pages = |by: &str, token: &str| shared.ask(by, "GET", &format!("/collections/vault/items?limit=1{token}"));
    let body = json!({ "type": "FeatureCollection", "features": [
        point("", 1.0, 1.0, json!({})), point("", 1.0, 1.0, json!({})) ] });
    for by in [&shared.operator, &shared.foreign] {
        let bearer = format!("Bearer {by}");
        let headers = [("content-type", "application/geo+json"), ("authorization", bearer.as_str())];
        let written = server.ask("POST", "/collections/vault/items", &headers, body.to_string().as_bytes());
        assert_eq!(written.status, 201, "{}", written.text());
    }
    let next = pages(&shared.operator, "").json();
    let links = next["links"].as_array().unwrap();
    let href = links.iter().find(|link| link["rel"] == "next").unwrap()["href"].as_str().unwrap();
    let token = href.split(['?', '&']).find(|pair| pair.starts_with("token=")).unwrap();
    assert_eq!(pages(&shared.operator, &format!("&{token}")).status, 200);
    pages(&shared.foreign, &format!("&{token}")).problem(400);

    // A suspended tenant is refused; its data stays until it is removed.
    let change =
        |body: Value| ask(server, Some(&shared.operator), "PATCH", "/tenants/other", body.to_string().as_bytes());
    ask(server, Some(&shared.operator), "DELETE", "/tenants/other", b"").problem(409);
    assert_eq!(change(json!({ "suspended": true })).status, 200);
    shared.ask(&shared.foreign, "GET", "/collections").problem(401);
    assert_eq!(change(json!({ "suspended": false })).status, 200);
    assert_eq!(shared.ask(&shared.foreign, "GET", "/collections").status, 200);
    assert_eq!(change(json!({ "suspended": true })).status, 200);
    assert_eq!(ask(server, Some(&shared.operator), "DELETE", "/tenants/other", b"").status, 204);
    shared.ask(&shared.foreign, "GET", "/collections").problem(401);
    ask(server, Some(&shared.operator), "DELETE", "/tenants/default", b"").problem(409);
    assert_eq!(shared.ask(&shared.operator, "GET", "/collections/vault/items").json()["numberReturned"], 3);
}

#[test]
fn callers_without_a_token_read_what_an_operator_allows() {
    let shared = Shared::start();
    let allow = |body: &str| ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/default", body.as_bytes());
    shared.ask("", "GET", "/collections/ships").problem(401);
    assert_eq!(allow(r#"{"anonymous":"ships"}"#).status, 200);
    assert_eq!(shared.ask("", "GET", "/collections/ships").status, 200);
    shared.ask("", "GET", "/collections/ships-2").problem(404);
    let refused = shared.ask("", "DELETE", "/collections/ships");
    assert!(refused.problem(401)["detail"].as_str().unwrap().contains("a token is needed"), "{}", refused.text());
    // A wrong token is not treated like a missing one.
    shared.ask(&shared.forged, "GET", "/collections/ships").problem(401);
    assert_eq!(allow(r#"{"anonymous":null}"#).status, 200);
    shared.ask("", "GET", "/collections/ships").problem(401);
}

#[test]
fn the_landing_page_shows_its_caller_what_it_may_open() {
    let shared = Shared::start();
    let none = "There are none yet";
    for (by, shown, absent) in [
        ("", "callers with a credential", [none, "/metrics"]),
        (&shared.reader, "/collections/ships-2", [none, "/metrics"]),
        (&shared.foreign, none, ["ships", "/admin/load"]),
        (&shared.operator, "/admin/load", [none, "callers with a credential"]),
    ] {
        let page = shared.ask(by, "GET", "/?f=html").text();
        assert!(page.contains(shown) && !absent.iter().any(|text| page.contains(text)), "{page}");
    }
}

#[test]
fn tokens_and_tenants_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let options = || meridian_store::Options::at(folder.path());
    let operator = {
        let mut server = Server::over(options(), ServerConfig::default());
        let operator = token(&server, None, json!({ "role": "operator" }));
        let made = ask(&server, Some(&operator), "POST", "/tenants", br#"{"name":"other","weight":3}"#);
        assert_eq!(made.status, 201, "{}", made.text());
        server.stop();
        server.store.close().unwrap();
        operator
    };
    let server = Server::over(options(), ServerConfig::default());
    server.get("/collections").problem(401);
    let tenants = ask(&server, Some(&operator), "GET", "/tenants", b"").json();
    let shown: Vec<_> =
        tenants["tenants"].as_array().unwrap().iter().map(|t| (t["name"].clone(), t["weight"].clone())).collect();
    assert_eq!(shown, [(json!("default"), json!(1)), (json!("other"), json!(3))]);
}

#[test]
fn streams_end_when_their_token_is_revoked() {
    let shared = Shared::start();
    let made = create(&shared.server, Some(&shared.admin), json!({ "role": "reader", "collections": "ships" }));
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let mut stream = shared.server.connect();
    send(&mut stream, "GET", "/collections/ships/stream", &[("authorization", &bearer)], b"");
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).unwrap().0, 200);
    assert!(!read_chunk(&mut reader).unwrap().is_empty());
    let id = made["id"].as_str().unwrap();
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    // The stream breaks off, which no client mistakes for an end, long before the keep-alive would be due.
    while let Ok(chunk) = read_chunk(&mut reader) {
        assert!(!chunk.is_empty(), "the stream ended as if it were whole");
    }
}

#[test]
fn searches_and_their_results_stay_with_their_callers() {
    let shared = Shared::start();
    let server = &shared.server;
    let post = |by: &str, path: &str, body: Value| ask(server, Some(by), "POST", path, body.to_string().as_bytes());
    let question = json!({ "keywords": CANARY, "providers": ["meridian"] });
    let found = |by: &str| {
        let started = post(by, "/searches", question.clone());
        assert_eq!(started.status, 202, "{}", started.text());
        let id = started.json()["search"].as_str().unwrap().to_owned();
        (shared.ask(by, "GET", &format!("/searches/{id}/packets")).text(), id)
    };
    let (packets, id) = found(&shared.operator);
    assert!(packets.contains(CANARY), "{packets}");
    for by in [&shared.reader, &shared.writer, &shared.admin, &shared.foreign] {
        let answer = ask(server, Some(by), "GET", &format!("/searches/{id}"), b"");
        let absent = ask(server, Some(by), "GET", "/searches/00000000000000000000000000000000", b"");
        assert_eq!((answer.status, absent.status), (404, 404));
        assert_eq!(answer.text().replace(&id, "ID"), absent.text().replace("00000000000000000000000000000000", "ID"));
        shared.ask(by, "GET", &format!("/searches/{id}/packets")).problem(404);
        shared.ask(by, "DELETE", &format!("/searches/{id}")).problem(404);
        // The same query by another caller reads only what that caller may see.
        assert!(!found(by).0.contains(CANARY), "{by}");
    }
    // An admin of the tenant sees the searches of callers whose rights do not exceed its own.
    let (_, of_reader) = found(&shared.reader);
    assert_eq!(shared.ask(&shared.admin, "GET", &format!("/searches/{of_reader}")).status, 200);
    shared.ask(&shared.writer, "GET", &format!("/searches/{of_reader}")).problem(404);
    // Results are stored only where the caller may write.
    let kept =
        |collection: &str| json!({ "keywords": "x", "providers": ["meridian"], "keep": { "collection": collection } });
    post(&shared.reader, "/searches", kept("ships-kept")).problem(403);
    post(&shared.writer, "/searches", kept("ships-kept")).problem(403);
    post(&shared.writer, "/searches", kept("vault")).problem(403);
    assert_eq!(post(&shared.admin, "/searches", kept("ships-kept")).status, 202);

    // Saved searches receive only what their creators may read, and are visible to callers that may read as much.
    let saved = post(&shared.writer, "/saved-searches", json!({ "question": { "keywords": CANARY } }));
    assert_eq!(saved.status, 201, "{}", saved.text());
    let ours = saved.json()["id"].as_str().unwrap().to_owned();
    let all = post(&shared.operator, "/saved-searches", json!({ "question": { "keywords": CANARY } }));
    let theirs = all.json()["id"].as_str().unwrap().to_owned();
    post(&shared.reader, "/saved-searches", json!({ "question": { "keywords": "x" } })).problem(403);
    shared.ask(&shared.reader, "GET", &format!("/saved-searches/{theirs}")).problem(404);
    assert_eq!(shared.ask(&shared.reader, "GET", &format!("/saved-searches/{ours}")).status, 200);
    shared.ask(&shared.reader, "DELETE", &format!("/saved-searches/{ours}")).problem(403);
    assert!(!shared.ask(&shared.reader, "GET", "/saved-searches").text().contains(&theirs));
    let bearer = format!("Bearer {}", shared.operator);
    let headers = [("content-type", "application/geo+json"), ("authorization", bearer.as_str())];
    for name in ["vault", "ships"] {
        let feature = point("", 1.0, 2.0, json!({ "name": format!("{CANARY} of {name}") }));
        let body = json!({ "type": "FeatureCollection", "features": [feature] }).to_string();
        let written = server.ask("POST", &format!("/collections/{name}/items"), &headers, body.as_bytes());
        assert_eq!(written.status, 201, "{}", written.text());
    }
    let first_of = |by: &str, id: &str| {
        let mut stream = server.connect();
        let bearer = format!("Bearer {by}");
        send(&mut stream, "GET", &format!("/saved-searches/{id}/packets"), &[("authorization", &bearer)], b"");
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().0, 200);
        let mut text = String::new();
        while !text.contains(&format!("{CANARY} of ships")) {
            text.push_str(&String::from_utf8(read_chunk(&mut reader).unwrap()).unwrap());
        }
        text
    };
    // Both writes were matched in order, so the packets before the second would contain the first if it was received.
    assert!(!first_of(&shared.writer, &ours).contains("of vault"));
    assert!(first_of(&shared.operator, &theirs).contains("of vault"));
}

#[test]
fn a_credential_that_ends_while_its_body_arrives_does_nothing() {
    let shared = Shared::start();
    for (method, path, body) in [
        ("POST", "/tokens", r#"{"role":"admin"}"#),
        ("POST", "/users", r#"{"name":"late","role":"admin","password":"correct horse battery"}"#),
        ("PUT", "/collections/ships-late", r#"{"type":"object","properties":{}}"#),
        ("POST", "/collections/ships/items", r#"{"type":"Feature","geometry":null,"properties":{"name":"a"}}"#),
        ("POST", "/saved-searches", r#"{"keywords":"a"}"#),
    ] {
        let made = create(&shared.server, Some(&shared.operator), json!({ "role": "admin" }));
        let (id, bearer) = (made["id"].as_str().unwrap(), format!("Bearer {}", made["token"].as_str().unwrap()));
        let length = body.len().to_string();
        let headers = [("authorization", &*bearer), JSON, ("content-length", &*length)];
        let mut stream = shared.server.connect();
        send(&mut stream, method, path, &headers, &body.as_bytes()[..3]);
        // The head has arrived before the token is revoked.
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(shared.ask(&shared.operator, "DELETE", &format!("/tokens/{id}")).status, 204);
        stream.write_all(&body.as_bytes()[3..]).unwrap();
        read_response(&mut BufReader::new(stream)).unwrap().problem(401);
    }
    let names = shared.ask(&shared.operator, "GET", "/collections").text();
    assert!(!names.contains("ships-late"));
}

#[test]
fn no_token_outlives_the_one_that_made_it() {
    let shared = Shared::start();
    let asked = json!({ "role": "admin", "expires": "PT1H" });
    let short = token(&shared.server, Some(&shared.operator), asked);
    for expires in [json!(null), json!("PT2H")] {
        let body = json!({ "role": "reader", "expires": expires }).to_string();
        let problem = ask(&shared.server, Some(&short), "POST", "/tokens", body.as_bytes()).problem(400);
        assert_eq!(problem["field"], "expires");
    }
    token(&shared.server, Some(&short), json!({ "role": "reader", "expires": "PT30M" }));
}
