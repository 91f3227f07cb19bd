//! Bad input gets a clear refusal that names the fault, and nothing is half-written.

use crate::support::Server;
use serde_json::{Value, json};
use std::io::Write;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "id": {"type": "string", "x-ogc-role": "id"},
        "geometry": {"format": "geometry-any", "x-ogc-role": "primary-geometry"},
        "start": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-start"},
        "end": {"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-end"},
        "mag": {"type": "number"},
        "n": {"type": "integer"}
    },
    "required": ["id"]
}"#;

fn server() -> Server {
    let server = Server::start();
    let made = server.ask("PUT", "/collections/e", &[("content-type", "application/schema+json")], SCHEMA.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    server
}

fn feature(geometry: Value, properties: Value) -> Value {
    json!({"type": "Feature", "id": "a", "geometry": geometry, "properties": properties})
}

/// Posts a body that must be refused with 400, and checks that nothing was written.
#[track_caller]
fn refused(server: &Server, media_type: &str, body: impl AsRef<[u8]>, field: Option<&str>, words: &[&str]) {
    let problem = server.post("/collections/e/items", media_type, body).problem(400);
    if let Some(field) = field {
        assert_eq!(problem["field"], field, "{problem}");
    }
    let detail = problem["detail"].as_str().unwrap().to_lowercase();
    for word in words {
        assert!(detail.contains(&word.to_lowercase()), "{word}: {problem}");
    }
    assert_eq!(server.json("/collections/e")["itemCount"], 0);
}

#[track_caller]
fn refused_geometry(server: &Server, geometry: Value, words: &[&str]) {
    refused(server, "application/geo+json", feature(geometry, json!({})).to_string(), Some("geometry"), words);
}

#[track_caller]
fn refused_properties(server: &Server, properties: Value, field: &str, words: &[&str]) {
    let geometry = json!({"type": "Point", "coordinates": [1, 2]});
    refused(server, "application/geo+json", feature(geometry, properties).to_string(), Some(field), words);
}

#[test]
fn a_coordinate_out_of_range() {
    refused_geometry(&server(), json!({"type": "Point", "coordinates": [200, 2]}), &["200", "-180..180"]);
}

#[test]
fn swapped_coordinates() {
    refused_geometry(&server(), json!({"type": "Point", "coordinates": [40, 120]}), &["swapped"]);
}

#[test]
fn coordinates_that_are_no_numbers() {
    let server = server();
    for bad in ["NaN", "Infinity", "-Infinity", "1e999", "null", "\"1\""] {
        let body = format!(
            r#"{{"type":"Feature","id":"a","geometry":{{"type":"Point","coordinates":[{bad},2]}},"properties":{{}}}}"#
        );
        refused(&server, "application/geo+json", body, None, &[]);
    }
}

#[test]
fn a_ring_that_is_not_closed() {
    let ring = json!([[[0, 0], [0, 1], [1, 1], [1, 0]]]);
    refused_geometry(&server(), json!({"type": "Polygon", "coordinates": ring}), &["clos"]);
}

#[test]
fn a_ring_that_crosses_itself() {
    let ring = json!([[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]);
    refused_geometry(&server(), json!({"type": "Polygon", "coordinates": ring}), &["not valid"]);
}

#[test]
fn a_time_without_a_zone() {
    refused_properties(&server(), json!({"start": "2026-01-31T12:00:00"}), "start", &["no time zone"]);
}

#[test]
fn a_time_in_the_far_past_or_future() {
    let server = server();
    for far in ["-000001-01-01T00:00:00Z", "12026-01-31T12:00:00Z", "9999-12-31T23:59:59-01:00"] {
        refused_properties(&server, json!({"start": far}), "start", &[]);
    }
}

#[test]
fn an_end_before_the_start() {
    let times = json!({"start": "2026-01-31T12:00:00Z", "end": "2026-01-31T11:00:00Z"});
    refused_properties(&server(), times, "end", &["before it starts"]);
}

#[test]
fn a_wrong_type() {
    let server = server();
    refused_properties(&server, json!({"mag": "big"}), "mag", &["number"]);
    refused_properties(&server, json!({"n": 1.5}), "n", &["integer"]);
}

#[test]
fn an_unknown_field() {
    refused_properties(&server(), json!({"magnitude": 5}), "magnitude", &[]);
}

#[test]
fn a_missing_id() {
    let body = json!({"type": "Feature", "geometry": null, "properties": {}}).to_string();
    refused(&server(), "application/geo+json", body, Some("id"), &[]);
}

#[test]
fn an_id_twice_in_a_batch() {
    let line = feature(Value::Null, json!({})).to_string();
    refused(&server(), "application/x-ndjson", format!("{line}\n{line}\n"), None, &["\"a\""]);
}

#[test]
fn a_truncated_gzip() {
    // The head of a gzip member, and part of a stored block that claims to be longer.
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 100, 0, 155, 255, b'{', b'"'];
    refused(&server(), "application/x-ndjson", gzip, None, &[]);
}

#[test]
fn a_csv_row_that_is_cut_short() {
    let server = server();
    refused(&server, "text/csv", "id,mag,n,wkt\na,1,2,POINT(1 2)\nb,1\n", None, &["line 3"]);
    refused(&server, "text/csv", "id,mag\na,\"1", None, &["line 2"]);
}

#[test]
fn an_empty_body() {
    let server = server();
    for media_type in [
        "application/geo+json",
        "application/x-ndjson",
        "text/csv",
        "application/vnd.apache.arrow.stream",
        "application/geo+json-seq",
    ] {
        refused(&server, media_type, "", None, &[]);
    }
}

#[test]
fn bytes_that_are_not_utf8() {
    let server = server();
    refused(&server, "application/x-ndjson", b"{\"type\":\"Feature\",\"id\":\"\xff\"}", None, &["utf-8"]);
    refused(&server, "text/csv", b"id,mag\n\xff,1\n", None, &["utf-8"]);
    server.get("/collections/e/items?n=%ff").problem(400);
}

#[test]
fn an_unknown_query_parameter() {
    let server = server();
    for path in [
        "/",
        "/conformance",
        "/api",
        "/collections",
        "/collections/e",
        "/collections/e/schema",
        "/collections/e/items",
        "/collections/e/aggregate",
        "/collections/e/density",
        "/collections/e/tiles/WebMercatorQuad/0/0/0",
        "/tileMatrixSets",
    ] {
        let problem = server.get(&format!("{path}?lmit=5")).problem(400);
        assert_eq!(
            (&problem["field"], &problem["type"]),
            (&json!("lmit"), &json!("urn:meridian:problem:unknown-parameter")),
            "{path}"
        );
    }
    let known = server.get("/collections/e/items?lmit=5").problem(400)["known"].clone();
    for name in ["limit", "bbox", "datetime", "filter", "mag"] {
        assert!(known.as_array().unwrap().contains(&json!(name)), "{name}: {known}");
    }
}

#[test]
fn a_malformed_filter_with_its_position() {
    let server = server();
    let problem = server.get("/collections/e/items?filter=mag%20%3E%20%3E%205").problem(400);
    assert_eq!(problem["field"], "filter");
    assert!(problem["detail"].as_str().unwrap().contains('7'), "{problem}");
    for bad in ["mag%20%3E%20'x'", "depth%3E5", "mag", "(mag%3E5", "mag%3E5%20AND"] {
        assert_eq!(server.get(&format!("/collections/e/items?filter={bad}")).problem(400)["field"], "filter", "{bad}");
    }
    for (bad, field) in [
        ("filter=mag%3E5&filter-lang=sql", "filter-lang"),
        ("filter-lang=cql2-text", "filter-lang"),
        ("filter=%7B&filter-lang=cql2-json", "filter"),
        ("filter=mag%3E5&filter-crs=EPSG:1", "filter-crs"),
    ] {
        assert_eq!(server.get(&format!("/collections/e/items?{bad}")).problem(400)["field"], field, "{bad}");
    }
}

#[test]
fn a_box_of_five_numbers() {
    assert_eq!(server().get("/collections/e/items?bbox=1,2,3,4,5").problem(400)["field"], "bbox");
}

#[test]
fn limits_that_are_none() {
    let server = server();
    for bad in ["0", "-1", "x", ""] {
        assert_eq!(server.get(&format!("/collections/e/items?limit={bad}")).problem(400)["field"], "limit", "{bad}");
    }
    assert_eq!(server.get("/collections/e/items?limit=10001").status, 200);
}

#[test]
fn a_sort_names_the_limit_that_it_needs() {
    let server = server();
    let refused = server.get("/collections/e/items?f=csv&sortby=mag").problem(400);
    let detail = refused["detail"].as_str().unwrap();
    let limit: usize = detail.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let sorted = |limit: usize| server.get(&format!("/collections/e/items?f=csv&sortby=mag&limit={limit}"));
    assert_eq!(sorted(limit).status, 200, "{detail}");
    assert_eq!(sorted(limit + 1).problem(400)["field"], "limit", "{detail}");
}

#[test]
fn other_parameters_that_cannot_be_read() {
    let server = server();
    for (query, field) in [
        ("bbox=a,b,c,d", "bbox"),
        ("bbox-crs=EPSG:4326", "bbox-crs"),
        ("crs=EPSG:9999", "crs"),
        ("datetime=yesterday", "datetime"),
        ("datetime=2026-01-31T12:00:00", "datetime"),
        ("datetime=2026-02-01T00:00:00Z/2026-01-01T00:00:00Z", "datetime"),
        ("near=1", "near"),
        ("near=1,91", "near"),
        ("radius=5", "radius"),
        ("near=1,1&radius=-5", "radius"),
        ("nearest=3", "nearest"),
        ("near=1,1&sortby=mag", "sortby"),
        ("sortby=depth", "sortby"),
        ("f=csv&sortby=mag", "sortby"),
        ("properties=depth", "properties"),
        ("consistency=strong", "consistency"),
        ("timeout=0", "timeout"),
        ("timeout=1s", "timeout"),
        ("explain=yes", "explain"),
        ("f=xml", "f"),
        ("n=one", "n"),
        ("limit=5&limit=6", "limit"),
    ] {
        assert_eq!(server.get(&format!("/collections/e/items?{query}")).problem(400)["field"], field, "{query}");
    }
    assert_eq!(
        server.ask("GET", "/collections/e/items", &[("meridian-timeout", "soon")], b"").problem(400)["field"],
        "Meridian-Timeout"
    );
    server.ask("GET", "/collections/e/items", &[("accept", "image/png")], b"").problem(406);
}

#[test]
fn what_does_not_exist() {
    let server = server();
    for path in [
        "/collections/none",
        "/collections/none/items",
        "/collections/none/schema",
        "/collections/none/aggregate",
        "/collections/none/tiles",
        "/collections/e/items/none",
        "/nowhere",
        "/assets/none.js",
        "/api/v0/places/none",
    ] {
        server.get(path).problem(404);
    }
    server.post("/collections/none/items", "application/json", "{}").problem(404);
    server.ask("PUT", "/collections/e/items", &[], b"").problem(405);
}

#[test]
fn a_document_under_a_coding_is_refused_and_events_are_decoded() {
    let server = server();
    let merge = "application/merge-patch+json";
    for (method, path, media_type) in [
        ("POST", "/tokens", "application/json"),
        ("POST", "/tenants", "application/json"),
        ("POST", "/login", "application/json"),
        ("POST", "/searches", "application/json"),
        ("POST", "/saved-searches", "application/json"),
        ("POST", "/backup", "application/json"),
        ("PUT", "/collections/new", "text/plain"),
        ("PATCH", "/collections/e", merge),
        ("PATCH", "/collections/e/items/a", merge),
    ] {
        let headers = [("content-type", media_type), ("content-encoding", "gzip")];
        let refused = server.ask(method, path, &headers, b"{}");
        refused.problem(415);
        assert_eq!(refused.header("accept-encoding"), "identity", "{method} {path}");
    }
    let event = feature(json!({"type": "Point", "coordinates": [1, 2]}), json!({"n": 1})).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(event.as_bytes()).unwrap();
    let headers = [("content-type", "application/geo+json"), ("content-encoding", "gzip")];
    let written = server.ask("POST", "/collections/e/items", &headers, &gzip.finish().unwrap());
    assert_eq!(written.status, 201, "{}", written.text());
}

#[test]
fn repeated_members_are_refused_by_name() {
    let server = server();
    let (merge, twice) = ("application/merge-patch+json", r#"{"limit":1,"limit":2}"#);
    for (method, path, media_type, body) in [
        ("POST", "/searches", "application/json", twice.to_owned()),
        ("POST", "/saved-searches", "application/json", format!(r#"{{"question":{twice}}}"#)),
        ("PUT", "/collections/new", "application/schema+json", twice.to_owned()),
        ("PATCH", "/collections/e", merge, twice.to_owned()),
        ("PATCH", "/collections/e/items/a", merge, format!(r#"{{"properties":{twice}}}"#)),
    ] {
        let problem = server.ask(method, path, &[("content-type", media_type)], body.as_bytes()).problem(400);
        assert!(problem["detail"].as_str().unwrap().contains("\"limit\" is repeated"), "{method} {path}: {problem}");
    }
    let filter = r#"{"op":"=","args":[{"property":"n"},1],"op":"<>"}"#;
    let filter: String = filter.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let problem = server.get(&format!("/collections/e/items?filter-lang=cql2-json&filter={filter}")).problem(400);
    assert!(problem["detail"].as_str().unwrap().contains("\"op\" is repeated"), "{problem}");
}
