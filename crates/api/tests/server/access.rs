//! Access control: every route of the table, for callers of every kind.

use crate::kinds::{CANARY, Shared, ask, token};
use crate::support::{Response, Server, point, read_chunk, read_head, read_response, send};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::io::{BufReader, Write as _};

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

/// The routes that serve everybody. A new one is public only if it is added here.
const OPEN: [&str; 22] = [
    "GET /",
    "GET /conformance",
    "GET /api",
    "GET /openapi.json",
    "GET /tileMatrixSets",
    "GET /tileMatrixSets/{tileMatrixSetId}",
    "GET /login",
    "POST /login",
    "GET /login/{issuer}",
    "GET /login/{issuer}/callback",
    "POST /logout",
    "POST /password",
    "GET /session",
    "GET /healthz",
    "GET /readyz",
    "GET /version",
    "GET /map",
    "GET /search",
    "GET /base-map.pmtiles",
    "GET /assets/{file}",
    "GET /favicon.svg",
    "GET /favicon.ico",
];

#[test]
fn without_a_credential_public_routes_and_opened_collections_alone_are_served() {
    let shared = Shared::start();
    let rows = rows();
    let (open, closed): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.needs == "open");
    assert_eq!(open.iter().map(|row| format!("{} {}", row.method, row.path)).collect::<Vec<_>>(), OPEN);
    // The body of a stream never ends, so its position is none.
    let asked = |row: &Row, collection: &str| {
        let query = if row.path.ends_with("/stream") { "?after=x" } else { "" };
        shared.ask("", &row.method, &format!("{}{query}", row.path(collection)))
    };
    for row in &closed {
        for collection in ["ships", "vault"] {
            asked(row, collection).problem(401);
        }
    }
    let opened = br#"{"anonymous":"ships"}"#;
    assert_eq!(ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/default", opened).status, 200);
    for row in &closed {
        let what = format!("{} {}", row.method, row.path);
        let own = asked(row, "ships");
        match &*row.needs {
            // A list of files makes the server write.
            "read collection" if row.method == "POST" => drop(own.problem(401)),
            "read collection" | "read collections" => {
                assert!(![401, 403].contains(&own.status), "{what}: {}", own.text());
            }
            // The collection `places` is not open, so it does not exist.
            "read places" | "write places" => drop(own.problem(404)),
            _ => drop(own.problem(401)),
        }
        if row.path.contains("{c}") {
            let (hidden, absent) = (asked(row, "vault"), asked(row, "absent"));
            hidden.problem(404);
            assert_eq!(hidden.text().replace("vault", "absent"), absent.text(), "{what}");
        }
    }
    for row in rows.iter().filter(|row| row.method == "GET" && !row.path.contains('{')) {
        let text = shared.ask("", "GET", &row.path).text();
        assert!(["ships-2", "vault", CANARY].iter().all(|hidden| !text.contains(hidden)), "{}: {text}", row.path);
    }
    let listed = shared.ask("", "GET", "/collections").json();
    assert_eq!(listed["collections"].as_array().unwrap().len(), 1, "{listed}");
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
