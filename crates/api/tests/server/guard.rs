//! What a page in the user's browser may not do, and what honest clients may.

use crate::house::{event, house, lines, raw, with};
use crate::owner::is_gateway;
use crate::support::Server;
use meridian_api::ServerConfig;
use serde_json::{Value, json};

#[track_caller]
fn untouched(server: &Server) {
    let names: Vec<String> = server.json("/collections")["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["c"]);
    assert_eq!(server.json("/collections/c")["itemCount"], 1);
    assert_eq!(server.json("/saved-searches")["numberReturned"], 0);
}

/// Returns every route as method and path, with values for the variables.
fn routes(server: &Server) -> Vec<(String, String)> {
    let description = server.json("/openapi.json");
    let mut routes = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let mut target = path.clone();
        for (name, value) in [
            ("{c}", "c"),
            ("{t}", "t"),
            ("{name}", "u1"),
            ("{issuer}", "i"),
            ("{id}", "e1"),
            ("{placeId}", "p"),
            ("{tileMatrixSetId}", "WebMercatorQuad"),
            ("{tileMatrix}", "0"),
            ("{tileRow}", "0"),
            ("{tileCol}", "0"),
            ("{latitude}", "1"),
            ("{longitude}", "2"),
            ("{radiusKm}", "3"),
            ("{file}", "map.js"),
        ] {
            target = target.replace(name, value);
        }
        assert!(!target.contains('{'), "{target}");
        routes.extend(item.as_object().unwrap().keys().map(|method| (method.to_uppercase(), target.clone())));
    }
    assert!(routes.len() > 50);
    routes
}

#[test]
fn every_route_is_closed_to_other_hosts_and_other_origins() {
    let server = house();
    for (method, target) in &routes(&server) {
        let ask = |fields: &[&str]| with(&server, method, target, fields);
        ask(&["Host: evil.example"]).problem(421);
        ask(&[&format!("Host: evil.example:{}", server.address.port())]).problem(421);
        ask(&["Host: evil.example", "Upgrade: websocket", "Connection: upgrade"]).problem(421);
        ask(&[]).problem(400);
        ask(&["Host: localhost", "Host: localhost"]).problem(400);
        let absolute = format!("http://evil.example{target}");
        with(&server, method, &absolute, &["Host: localhost"]).problem(421);
        raw(&server, format!("{method} {target} HTTP/1.0\r\nHost: evil.example\r\n\r\n")).problem(421);

        let foreign: [&[&str]; 4] = [
            &["Host: localhost", "Origin: http://evil.example"],
            &["Host: localhost", "Origin: null"],
            &["Host: localhost", "Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"],
            &["Host: localhost", "Sec-Fetch-Site: cross-site"],
        ];
        for fields in foreign {
            if method != "GET" {
                ask(fields).problem(403);
            }
            ask(&[fields, &["Upgrade: websocket", "Connection: upgrade"]].concat()).problem(403);
        }
        if method == "GET" {
            continue;
        }
        // An older browser that does not state where a form comes from.
        for kind in ["", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"] {
            // No form can send PUT, so a schema may be plain text.
            if (method.as_str(), target.as_str(), kind.ends_with("plain")) == ("PUT", "/collections/c", true) {
                continue;
            }
            let body = "{\"name\":\"x\",\"question\":{\"keywords\":\"flood\"}}";
            let kind = if kind.is_empty() { String::new() } else { format!("{kind}\r\n") };
            let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{kind}");
            // These accept the form of their own page, which states its origin.
            let forms = ["/login", "/logout", "/password"].contains(&target.as_str()) && kind.contains("urlencoded");
            let status = if forms { 403 } else { 415 };
            raw(&server, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).problem(status);
            let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
            raw(&server, chunked).problem(status);
        }
    }
    untouched(&server);
}

#[test]
fn every_route_says_what_it_allows() {
    let server = house();
    let all = routes(&server);
    for (method, target) in &all {
        let answer = with(&server, "OPTIONS", target, &["Host: localhost"]);
        assert_eq!((answer.status, answer.body.len()), (204, 0), "{target}");
        let allowed: Vec<&str> = answer.header("allow").split(", ").collect();
        assert!(allowed.contains(&method.as_str()) && allowed.contains(&"OPTIONS"), "{target}: {allowed:?}");
        assert_eq!(allowed.contains(&"GET"), allowed.contains(&"HEAD"), "{target}: {allowed:?}");
        // A browser that sends the preflight for a page of another origin reads this response as a refusal.
        let preflight = ["Host: localhost", "Origin: http://evil.example", "Access-Control-Request-Method: DELETE"];
        let answer = with(&server, "OPTIONS", target, &preflight);
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control-")), "{:?}", answer.headers);
        for other in ["POST", "PUT", "PATCH", "DELETE", "TRACE"] {
            if !allowed.contains(&other) {
                let refused = with(&server, other, target, &["Host: localhost"]);
                refused.problem(405);
                assert!(refused.header("allow").split(',').any(|one| one.trim() == method), "{other} {target}");
            }
        }
    }
    let whole = with(&server, "OPTIONS", "*", &["Host: localhost"]);
    assert_eq!((whole.status, whole.header("allow").contains("PATCH")), (204, true));
    server.ask("OPTIONS", "/nowhere", &[], b"").problem(404);
    with(&server, "CONNECT", "evil.example:443", &["Host: evil.example"]).problem(421);
    untouched(&server);
}

#[test]
fn honest_clients_come_in() {
    let config = ServerConfig {
        hosts: vec!["events.example.org".parse().unwrap()],
        origins: vec!["https://tools.example.org".parse().unwrap()],
        public_url: Some("https://maps.example.org/meridian".to_owned()),
        ..ServerConfig::default()
    };
    let server = Server::with(config);
    server.create("c", "n:Integer");
    let own = server.address;
    let body = r#"{"type":"Feature","geometry":null,"properties":{"n":1}}"#;
    let post = |fields: &[&str]| {
        let head = format!("POST /collections/c/items HTTP/1.1\r\nConnection: close\r\n{}", lines(fields));
        let head = format!("{head}Content-Type: application/geo+json; charset=utf-8\r\nContent-Length: {}", body.len());
        raw(&server, format!("{head}\r\n\r\n{body}"))
    };
    let own_host = format!("Host: {own}");
    let own_origin = format!("Origin: http://{own}");
    // While there is no token, clients without one are served only under names of this machine.
    let cases: [&[&str]; 7] = [
        &[&own_host],
        &["Host: LOCALHOST:80"],
        &["Host: [::1]"],
        &[&own_host, &own_origin],
        &[&own_host, &own_origin, "Sec-Fetch-Site: same-origin"],
        &[&own_host, "Origin: https://maps.example.org"],
        &[&own_host, "Origin: https://tools.example.org", "Sec-Fetch-Site: cross-site"],
    ];
    for fields in cases {
        let answer = post(fields);
        assert_eq!(answer.status, 201, "{fields:?}: {}", answer.text());
    }
    assert_eq!(server.json("/collections/c")["itemCount"], cases.len());
    for host in ["Host: events.example.org", "Host: maps.example.org"] {
        post(&[host]).problem(401);
        assert_eq!(with(&server, "GET", "/", &[host]).status, 200);
    }
    let near = with(&server, "GET", &format!("http://{own}/api/v0/places/near/1/2"), &[&own_host]);
    assert_eq!(near.json()["totalPlaces"], 0);
    // A link from another site is followed: reading changes nothing, and that site cannot see the response.
    let linked = with(&server, "GET", "/map", &[&own_host, "Sec-Fetch-Site: cross-site"]);
    assert_eq!(linked.status, 200);
}

#[test]
fn a_server_on_every_address_takes_addresses_but_no_names() {
    let server = Server::on("0.0.0.0:0", ServerConfig::default());
    for host in ["192.0.2.7:7117", "[2001:db8::7]", "127.0.0.1", "localhost"] {
        assert_eq!(with(&server, "GET", "/healthz", &[&format!("Host: {host}")]).status, 200, "{host}");
    }
    with(&server, "GET", "/healthz", &["Host: evil.example"]).problem(421);
}

#[test]
fn what_is_not_taken_says_what_is() {
    let server = house();
    let refused = server.post("/collections/c/items", "text/plain", "{}");
    let detail = refused.problem(415)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("application/geo+json") && detail.contains("text/csv"), "{detail}");
    assert!(refused.header("accept").contains("application/x-ndjson"));
    // A large body is also read until its client can see the reason.
    server.ask("POST", "/collections/c/items", &[], &vec![b' '; 4 << 20]).problem(415);
    server.post("/collections/c/items", "application/vnd.apache.parquet", "PAR1").problem(415);
    server.ask("PUT", "/collections/d", &[], b"n:Integer").problem(415);
    server.ask("PUT", "/collections/c/items/e1", &[("content-type", "text/plain")], b"{}").problem(415);
    let json = [("content-type", "application/json")];
    // A route without a body ignores one that no form can send.
    assert_ne!(server.ask("POST", "/collections/c/files", &json, b"{}").status, 415);
    untouched(&server);
}

#[test]
fn reading_places_makes_no_collection() {
    let server = Server::start();
    let base = "/api/v0/places";
    let none = json!({"totalPlaces": 0, "places": []});
    for path in ["", "?p=3", "/near/1/2", "/near/1/2/5?p=1", "/near/1%2E5/2"] {
        assert_eq!(server.json(&format!("{base}{path}")), none, "{path}");
    }
    server.get(&format!("{base}/random")).problem(400);
    server.get(&format!("{base}/nobody")).problem(404);
    server.get(&format!("{base}/near/91/2")).problem(400);
    for path in ["/nobody", "/deleteAllPlaces"] {
        assert_eq!(server.ask("DELETE", &format!("{base}{path}"), &[], b"").status, 303, "{path}");
    }
    assert_eq!(server.json("/collections")["collections"], json!([]));
    assert!(server.store.list("default").is_empty());
    let place = json!({"name": "a", "latitude": 1.0, "longitude": 2.0});
    assert_eq!(server.post(base, "application/json", place.to_string()).status, 303);
    assert_eq!(server.json(base)["totalPlaces"], 1);
}

#[test]
fn pages_name_the_origins_that_may_embed_them() {
    let html = [("accept", "text/html")];
    let portal = ServerConfig {
        frame_ancestors: vec!["https://portal.example.org".parse().unwrap(), "http://[::1]:8080".parse().unwrap()],
        ..ServerConfig::default()
    };
    for (config, expected) in [
        (ServerConfig::default(), "; frame-ancestors 'none'"),
        (portal, "; frame-ancestors https://portal.example.org http://[::1]:8080"),
    ] {
        let server = Server::with(config);
        server.create("c", "n:Integer,*geom:Point");
        for path in
            ["/map", "/search", "/", "/api", "/collections", "/collections/c", "/collections/c/items", "/conformance"]
        {
            let answer = server.ask("GET", path, &html, b"");
            assert_eq!((answer.status, answer.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
            let policy = answer.header("content-security-policy");
            assert!(policy.starts_with("default-src '") && policy.ends_with(expected), "{path}: {policy}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
        }
        let page = server.ask("GET", "/map", &html, b"");
        let again = server.ask("GET", "/map", &[("if-none-match", page.header("etag"))], b"");
        assert_eq!((again.status, again.header("content-security-policy").ends_with(expected)), (304, true));
        assert_eq!(server.get("/collections").header("x-content-type-options"), "nosniff");
    }
}

#[test]
fn negotiated_answers_vary() {
    let server = house();
    let description = server.json("/openapi.json");
    for (method, target) in routes(&server).into_iter().filter(|(method, _)| method == "GET") {
        let path = description["paths"].as_object().unwrap().iter().find_map(|(path, item)| {
            let kinds = item["get"]["responses"]["200"]["content"].as_object()?.len();
            let fits = path.split('/').count() == target.split('/').count()
                && path.split('/').zip(target.split('/')).all(|(a, b)| a == b || a.starts_with('{'));
            fits.then_some((path, kinds))
        });
        let Some((path, kinds)) = path else { continue };
        // These responses do not end.
        if path.ends_with("/packets") || path.ends_with("/stream") {
            continue;
        }
        let answer = with(&server, &method, &target, &["Host: localhost"]);
        assert_eq!(answer.header("vary").starts_with("Accept, "), kinds > 1, "{target}: {:?}", answer.headers);
    }
    for path in ["/", "/collections/c/items?f=csv", "/collections/c/items?f=nonsense", "/collections/c/items/e1"] {
        assert!(server.get(path).header("vary").starts_with("Accept, "), "{path}");
    }
    let refused = server.ask("GET", "/", &[("accept", "image/png")], b"");
    refused.problem(406);
    assert!(refused.header("vary").starts_with("Accept, "));
}

#[test]
fn absolute_paths_are_sent_to_programs_on_this_machine_only() {
    // A gateway has no data folder, so it returns object addresses.
    if is_gateway() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::over(meridian_store::Options::at(folder.path()), ServerConfig::default());
    server.create("c", "n:Integer,*geom:Point");
    server.load("c", &[event()]);
    let made = server.ask("POST", "/tokens", &[("content-type", "application/json")], br#"{"role":"reader"}"#).json();
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let files = |headers: &[(&str, &str)]| {
        let headers = [headers, &[("authorization", bearer.as_str())]].concat();
        let answer = server.ask("POST", "/collections/c/files", &headers, b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let first = |document: &Value| document["files"][0].as_str().unwrap().to_owned();
    let local = files(&[]);
    assert!(std::path::Path::new(&first(&local)).is_file() && local.get("relativeTo").is_none(), "{local}");
    for proxied in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"] {
        let remote = files(&[(proxied, "203.0.113.9")]);
        assert!(folder.path().join(first(&remote)).is_file() && first(&remote).starts_with("tenants"), "{remote}");
        assert!(!remote.to_string().contains(folder.path().to_str().unwrap()), "{remote}");
    }
}
