//! Hostile requests: deeply nested, huge, with extreme numbers, with tricks in their paths, or with credentials of
//! others.

use crate::kinds::{Shared, ask};
use crate::support::{Response, Server, point, read_response};
use serde_json::{Value, json};
use std::io::{BufReader, Write};

const GEOJSON: &str = "application/geo+json";

/// Starts a server with a collection of texts, numbers and arbitrary shapes.
fn server() -> Server {
    let server = Server::start();
    server.create("c", "name:String,n:Long,x:Double,*geom:Geometry:srid=4326");
    server
}

/// Checks that the server still responds, and holds `events` events.
#[track_caller]
fn well(server: &Server, events: u64) {
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(server.json("/collections/c")["itemCount"], events);
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn filtered(server: &Server, filter: &str, language: &str) -> Response {
    server.get(&format!("/collections/c/items?filter-lang={language}&filter={}", encoded(filter)))
}

#[test]
fn nested_bodies_and_filters_are_refused_at_any_depth() {
    let server = server();
    for depth in [200, 5_000, 1_000_000] {
        let nest = |open: &str, inner: &str, close: &str| open.repeat(depth) + inner + &close.repeat(depth);
        let feature = |geometry: &str, properties: &str| {
            format!(r#"{{"type":"Feature","geometry":{geometry},"properties":{properties}}}"#)
        };
        let polygon = format!(r#"{{"type":"Polygon","coordinates":{}}}"#, nest("[", "1,2", "]"));
        let collection = nest(r#"{"type":"GeometryCollection","geometries":["#, "", "]}");
        for body in [
            feature(&polygon, "{}"),
            feature(&collection, "{}"),
            feature("null", &format!(r#"{{"name":{}}}"#, nest("[", "", "]"))),
            feature("null", &format!(r#"{{"name":{}}}"#, nest(r#"{"a":"#, "1", "}"))),
            nest(r#"{"type":"FeatureCollection","features":["#, "", "]}"),
            nest("[", "", "]"),
            "[".repeat(depth),
        ] {
            for kind in [GEOJSON, "application/x-ndjson", "application/geo+json-seq"] {
                server.post("/collections/c/items", kind, &body).problem(400);
            }
        }
        let deep = nest(r#"{"a":"#, "1", "}");
        for (method, path, kind) in [
            ("POST", "/searches", "application/json"),
            ("POST", "/saved-searches", "application/json"),
            ("PUT", "/collections/deep", "application/schema+json"),
            ("PATCH", "/collections/c", "application/merge-patch+json"),
        ] {
            let refused = server.ask(method, path, &[("content-type", kind)], deep.as_bytes());
            assert!(matches!(refused.status, 400 | 413 | 422), "{method} {path}: {}", refused.text());
        }
    }
    // A target has at most 64 KiB, and a bracket takes three bytes.
    for depth in [200, 2_000, 10_000] {
        for text in [
            "(".repeat(depth) + "n=1" + &")".repeat(depth),
            "NOT ".repeat(depth) + "n=1",
            "-".repeat(depth) + "1=n",
            "n=1 AND (".repeat(depth) + "n=1" + &")".repeat(depth),
        ] {
            if encoded(&text).len() < 64_000 {
                filtered(&server, &text, "cql2-text").problem(400);
            }
        }
        let json = r#"{"op":"not","args":["#.repeat(depth / 5) + "true" + &"]}".repeat(depth / 5);
        if encoded(&json).len() < 64_000 {
            let refused = filtered(&server, &json, "cql2-json");
            assert!(depth / 5 < 100 || refused.status == 400, "{depth}: {}", refused.text());
        }
    }
    well(&server, 0);
}

/// Returns the vertices of a closed ring around a circle.
fn circle(lon: f64, lat: f64, radius: f64, vertices: usize) -> Vec<[f64; 2]> {
    let at = |n: usize| std::f64::consts::TAU * n as f64 / vertices as f64;
    // Seven digits, because a feature has at most 16 MiB.
    let short = |x: f64| (x * 1e7).round() / 1e7;
    let mut ring: Vec<[f64; 2]> =
        (0..vertices).map(|n| [short(lon + radius * at(n).cos()), short(lat + radius * at(n).sin())]).collect();
    ring.push(ring[0]);
    ring
}

fn polygon(rings: &[Vec<[f64; 2]>]) -> String {
    json!({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": rings}, "properties": {}}).to_string()
}

#[test]
fn polygons_of_a_million_vertices_are_stored_or_refused_within_their_deadline() {
    let server = server();
    let post = |body: &str| {
        let headers = [("content-type", GEOJSON), ("meridian-timeout", "20000")];
        server.ask("POST", "/collections/c/items", &headers, body.as_bytes())
    };
    let stored = post(&polygon(&[circle(10.0, 10.0, 5.0, 600_000)]));
    assert_eq!(stored.status, 201, "{}", stored.text());
    post(&polygon(&[circle(10.0, 10.0, 5.0, 1_000_000)])).problem(400);
    // A zigzag in which each edge lies in the box of every other.
    let mut zigzag: Vec<[f64; 2]> = (0..20_000)
        .map(|n| {
            let along = f64::from(n) * 1e-4;
            if n % 2 == 0 { [along, along] } else { [50.0 + along, 49.0 + along] }
        })
        .collect();
    zigzag.push(zigzag[0]);
    let refused = post(&polygon(&[zigzag]));
    assert!(matches!(refused.status, 400 | 504), "{}", refused.text());
    // An outline with so many holes that testing each against all others and the outline would take hours.
    let mut rings = vec![circle(0.0, 0.0, 50.0, 200_000)];
    for n in 0..20_000 {
        let (lon, lat) = (f64::from(n % 200) * 0.3 - 30.0, f64::from(n / 200) * 0.3 - 15.0);
        rings.push(circle(lon, lat, 0.1, 4));
    }
    let refused = post(&polygon(&rings));
    assert!(matches!(refused.status, 201 | 400 | 504), "{}", refused.text());
    assert_eq!(server.get("/readyz").status, 200);
    // One in a filter, with as many vertices as fit in a target.
    let ring: Vec<String> = circle(10.0, 10.0, 5.0, 1_500).iter().map(|[x, y]| format!("{x:.3} {y:.3}")).collect();
    let found = filtered(&server, &format!("S_INTERSECTS(geom,POLYGON(({})))", ring.join(",")), "cql2-text");
    assert!(matches!(found.status, 200 | 400 | 504), "{}", found.text());
}

#[test]
fn patterns_cost_no_more_than_a_look_at_the_text() {
    let server = server();
    let text = "a".repeat(1 << 20);
    let features: Vec<Value> = (0..8).map(|_| point("", 1.0, 2.0, json!({ "name": text }))).collect();
    server.load("c", &features);
    let like = |pattern: &str| filtered(&server, &format!("name LIKE '{pattern}'"), "cql2-text");
    for pattern in ["%a".repeat(5_000) + "%b", "%".repeat(20_000) + "b", format!("%{}b%", "_".repeat(127))] {
        let found = like(&pattern);
        assert_eq!(found.status, 200, "{}", found.text());
        assert_eq!(found.json()["numberReturned"], 0);
    }
    let problem = like(&format!("%{}b%", "_".repeat(10_000))).problem(400);
    assert!(problem["detail"].as_str().unwrap().contains("128"), "{problem}");
    let many = vec!["CASEI(name) LIKE CASEI('%B%A%')"; 500].join(" OR ");
    let answer = filtered(&server, &many, "cql2-text");
    assert!(matches!(answer.status, 200 | 504), "{}", answer.text());
    well(&server, 8);
}

#[test]
fn numbers_at_their_edges_are_kept_exactly_or_refused() {
    let server = server();
    let post = |n: &str, x: &str| {
        let body = format!(r#"{{"type":"Feature","geometry":null,"properties":{{"n":{n},"x":{x}}}}}"#);
        server.post("/collections/c/items", GEOJSON, body)
    };
    let (min, max) = (i64::MIN.to_string(), i64::MAX.to_string());
    for (n, x) in
        [(&*min, "-1.7976931348623157e308"), (&*max, "5e-324"), (&*max, "1.7976931348623157e308"), ("-0", "-0.0")]
    {
        assert_eq!(post(n, x).status, 201, "{n} {x}");
    }
    for n in ["9223372036854775808", "-9223372036854775809", "1e400", "1.5", "0x10", "01", "١"] {
        post(n, "0").problem(400);
    }
    for x in ["1e309", "-1e309", "NaN", "Infinity", "1e", "0.", "\"1\"", "1e99999999999999999999"] {
        post("0", x).problem(400);
    }
    // Sums of the largest integers are exact.
    let sums = server.json("/collections/c/aggregate?function=sum(n),min(n),max(n),count").to_string();
    assert!(sums.contains(&(i128::from(i64::MAX) * 2 + i128::from(i64::MIN)).to_string()), "{sums}");
    for filter in ["n>9223372036854775808", "n<-9223372036854775809", "n=9223372036854775807", "x<1e309", "x=5e-324"] {
        let answer = filtered(&server, filter, "cql2-text");
        assert!(matches!(answer.status, 200 | 400), "{filter}: {}", answer.text());
    }
    for query in [
        "items?limit=18446744073709551616",
        "items?limit=-9223372036854775808",
        "items?bbox=nan,nan,nan,nan",
        "items?bbox=-1e308,-1e308,1e308,1e308",
        "items?bbox=1,2,3,inf",
        "items?near=1,2&radius=1e309",
        "items?near=nan,2",
        "items?near=1,2&nearest=18446744073709551616",
        "items?datetime=999999999-01-01T00:00:00Z/..",
        "items?timeout=18446744073709551616",
        "density?bbox=-180,-90,180,90&width=4294967296&height=4294967296",
        "density?bbox=-180,-90,180,90&width=100000&height=100000",
        "aggregate?function=count&window=P99999999999Y",
        "tiles/WebMercatorQuad/255/0/0",
        "tiles/WebMercatorQuad/4294967296/0/0",
        "tiles/WebMercatorQuad/1/18446744073709551616/0",
        "stream?after=18446744073709551615",
    ] {
        let answer = server.get(&format!("/collections/c/{query}"));
        assert!(answer.status < 500, "{query}: {} {}", answer.status, answer.text());
    }
    for near in ["1e308/1e308", "-0/-0/5e-324", "90/180/50", "nan/nan", "1/2/1e309"] {
        let answer = server.get(&format!("/api/v0/places/near/{near}"));
        assert!(matches!(answer.status, 200 | 400), "{near}: {}", answer.text());
    }
    well(&server, 4);
}

/// Sends a request with a verbatim target.
fn raw(server: &Server, method: &str, target: &str) -> Response {
    let mut stream = server.connect();
    let (typed, body) = if method == "PUT" { ("Content-Type: text/plain\r\n", "n:String") } else { ("", "") };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{typed}");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    read_response(&mut BufReader::new(stream)).unwrap()
}

#[test]
fn paths_lead_nowhere_but_to_routes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::over(meridian_store::Options::at(&data), meridian_api::ServerConfig::default());
    server.create("c", "name:String,*geom:Point:srid=4326");
    let files = |dir: &std::path::Path| {
        let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (outside, tenant) = (files(folder.path()), files(&data.join("tenants/default")));
    let tricks = [
        "..",
        ".",
        "%2e%2e",
        "%2E%2e%2Fc",
        "..%2f..%2f..%2fetc%2fpasswd",
        "..%5c..%5cwindows",
        "%00",
        "c%00",
        "c%0d%0aX-Injected:%201",
        "%c0%ae%c0%ae",
        "%c0%af",
        "%e0%80%af",
        "%ff",
        "%",
        "%2",
        "%zz",
        "c%2fitems",
        "c%2f..%2fc",
        "%252e%252e",
        "~",
        "c%20",
        "%e2%80%ae",
        "CON",
    ];
    for trick in tricks.iter().map(|trick| (*trick).to_owned()).chain(["a".repeat(300), "%41".repeat(3_000)]) {
        for target in [
            format!("/collections/{trick}"),
            format!("/collections/{trick}/items"),
            format!("/collections/c/items/{trick}"),
            format!("/assets/{trick}"),
            format!("/searches/{trick}"),
            format!("/saved-searches/{trick}"),
            format!("/tileMatrixSets/{trick}"),
            format!("/api/v0/places/{trick}"),
        ] {
            let answer = raw(&server, "GET", &target);
            // Dots do not ascend: a segment is a name, and none leads outside.
            assert!(matches!(answer.status, 400 | 404), "GET {target}: {} {}", answer.status, answer.text());
            assert_eq!(answer.header("x-injected"), "", "{target}");
        }
        for method in ["PUT", "DELETE"] {
            let answer = raw(&server, method, &format!("/collections/{trick}"));
            assert!(matches!(answer.status, 400 | 404), "{method} {trick}: {}", answer.text());
        }
    }
    for target in [
        "//collections",
        "/collections//c",
        "/collections/c/",
        "/./collections",
        "/collections/../tokens",
        "/a/../../b",
    ] {
        let answer = raw(&server, "GET", target);
        assert!(matches!(answer.status, 400 | 404), "{target}: {}", answer.text());
    }
    assert_eq!(files(folder.path()), outside);
    assert_eq!(files(&data.join("tenants/default")), tenant);
    assert_eq!(server.get("/collections/c").status, 200);
}

/// Clients resolve such a segment before they send it, to a path that has no route: they reach nothing else by it.
#[test]
fn events_whose_id_is_a_dot_or_two_are_found_and_endanger_nothing() {
    let server = Server::start();
    server.create("dots", "n:Integer,*geom:Point:srid=4326;meridian.id='given'");
    server.load("dots", &[point(".", 1.0, 2.0, json!({"n": 1})), point("..", 3.0, 4.0, json!({"n": 2}))]);
    for (id, resolved) in [(".", "/collections/dots/items/"), ("..", "/collections/dots/")] {
        assert_eq!(server.json(&format!("/collections/dots/items?id={id}"))["features"][0]["id"], id);
        // A client that sends the path as it is.
        assert_eq!(raw(&server, "GET", &format!("/collections/dots/items/{id}")).json()["id"], id);
        for method in ["GET", "PUT", "DELETE"] {
            assert_eq!(raw(&server, method, resolved).status, 404, "{method} {resolved}");
        }
    }
    assert_eq!(server.json("/collections/dots")["itemCount"], 2);
    let path = format!("/collections/dots/items?filter={}", encoded("id = '..'"));
    let removed = server.ask("DELETE", &path, &[], b"");
    assert_eq!((removed.status, &removed.json()["deleted"]), (200, &json!(1)));
}

#[test]
fn credentials_that_are_forged_expired_revoked_or_of_another_server_get_one_answer() {
    let shared = Shared::start();
    let other = Shared::start();
    let made = |expires: &str| {
        let asked = json!({ "role": "admin", "expires": expires }).to_string();
        ask(&shared.server, Some(&shared.operator), "POST", "/tokens", asked.as_bytes()).json()
    };
    let short = made("PT0.2S");
    let short = short["token"].as_str().unwrap();
    // It expires while in use: some request is refused, and so is every later one.
    let begun = std::time::Instant::now();
    while shared.ask(short, "GET", "/collections").status == 200 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it does not expire");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (id, secret) = (shared.operator.split('_').nth(1).unwrap(), shared.operator.rsplit('_').next().unwrap());
    let zeros = "0".repeat(64);
    let forged = [
        format!("mrd_{id}_{zeros}"),
        format!("mrd_0000000000000000_{secret}"),
        format!("mrd_{id}_{}", secret.to_uppercase()),
        format!("mrd_{id}_{secret}0"),
        format!("mrd_{id}_{}", &secret[..63]),
        format!("mrd_{id}_"),
        format!("MRD_{id}_{secret}"),
        shared.reader.clone() + &shared.operator,
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.".to_owned(),
        "null".to_owned(),
    ];
    let expected = shared.ask(short, "GET", "/collections");
    let told = expected.problem(401);
    for token in forged.iter().map(String::as_str).chain([&*other.operator, &*other.reader]) {
        for method in ["GET", "PUT", "DELETE"] {
            let refused = shared.ask(token, method, "/collections/vault");
            assert_eq!(refused.problem(401), told, "{method} {token}");
            assert_eq!(refused.header("www-authenticate"), expected.header("www-authenticate"));
        }
    }
    // Two credentials count as none.
    let bearer = format!("Bearer {}", shared.operator);
    let two = [("authorization", &*bearer), ("authorization", "Bearer null")];
    shared.server.ask("GET", "/collections", &two, b"").problem(401);
    assert_eq!(shared.ask(&shared.operator, "GET", "/collections/vault").status, 200);
}
