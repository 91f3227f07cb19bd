//! Writing events.

use crate::support::{Server, point};
use serde_json::{Value, json};

const SPEC: &str = "mag:Double,note:String,dtg:Date,*geom:Point:srid=4326";

fn quake(lon: f64, mag: f64) -> Value {
    point("", lon, 2.0, json!({"mag": mag, "note": "n", "dtg": "2026-01-31T12:00:00Z"}))
}

/// Creates a collection `named` with client-supplied ids.
fn with_ids(server: &Server) {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "x-ogc-role": "id"},
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "n": {"type": "integer"},
            "note": {"type": "string"}
        },
        "required": ["id"]
    });
    let made = server.ask(
        "PUT",
        "/collections/named",
        &[("content-type", "application/schema+json")],
        schema.to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
}

#[test]
fn every_media_type_is_taken() {
    let server = Server::start();
    server.create("q", SPEC);
    let feature = quake(1.0, 5.0).to_string();
    let csv = "mag,note,dtg,lon,lat\n5.0,n,2026-01-31T12:00:00Z,1,2\n6.0,m,2026-01-31T13:00:00Z,3,4\n";
    for (media_type, body, count) in [
        ("application/geo+json", feature.clone(), 1),
        (
            "application/geo+json; charset=utf-8",
            json!({"type": "FeatureCollection", "features": [quake(1.0, 1.0), quake(2.0, 2.0)]}).to_string(),
            2,
        ),
        ("application/json", feature.clone(), 1),
        ("application/x-ndjson", format!("{feature}\n{feature}\n"), 2),
        ("application/geo+json-seq", format!("\u{1e}{feature}\n\u{1e}{feature}\n"), 2),
        ("text/csv", csv.to_owned(), 2),
    ] {
        let answer = server.post("/collections/q/items", media_type, &body);
        assert_eq!(answer.status, 201, "{media_type}: {}", answer.text());
        let told = answer.json();
        assert_eq!((&told["written"], &told["replaced"], &told["duplicates"]), (&json!(count), &json!(0), &json!(0)));
        assert_eq!(told["position"].as_str(), Some(answer.header("meridian-position")));
    }
    assert_eq!(server.json("/collections/q")["itemCount"], 10);
    // What is read as Arrow can be written as Arrow.
    let arrow = server.get("/collections/q/items?f=arrow");
    assert_eq!((arrow.status, arrow.header("content-type")), (200, "application/vnd.apache.arrow.stream"));
    // Its ids were generated, and are generated again.
    let headers = [("content-type", "application/vnd.apache.arrow.stream"), ("prefer", "handling=lenient")];
    let again = server.ask("POST", "/collections/q/items", &headers, &arrow.body);
    assert_eq!((again.status, again.json()["written"].as_u64()), (201, Some(10)), "{}", again.text());
    server.post("/collections/q/items", "image/png", &feature).problem(415);
    server.post("/collections/q/items", "text/plain", &feature).problem(415);
    server.ask("POST", "/collections/q/items", &[], feature.as_bytes()).problem(415);
}

#[test]
fn one_feature_gives_its_location() {
    let server = Server::start();
    server.create("q", SPEC);
    let answer = server.post("/collections/q/items", "application/geo+json", quake(1.0, 5.5).to_string());
    let location = answer.header("location").strip_prefix("http://localhost").unwrap().to_owned();
    let event = server.json(&location);
    assert_eq!(event["properties"]["mag"], 5.5);
    assert!(location.ends_with(event["id"].as_str().unwrap()), "{location}");
    let two = json!({"type": "FeatureCollection", "features": [quake(1.0, 1.0)]});
    assert_eq!(server.post("/collections/q/items", "application/geo+json", two.to_string()).header("location"), "");
}

#[test]
fn the_same_key_writes_once() {
    let server = Server::start();
    server.create("q", SPEC);
    let send = || {
        let headers = [("content-type", "application/geo+json"), ("idempotency-key", "load-1")];
        server.ask("POST", "/collections/q/items", &headers, quake(1.0, 5.0).to_string().as_bytes())
    };
    let (first, second) = (send(), send());
    assert_eq!((first.json()["written"].as_u64(), second.status), (Some(1), 201));
    assert_eq!((second.json()["written"].as_u64(), second.json()["duplicates"].as_u64()), (Some(0), Some(1)));
    assert_eq!(first.json()["position"], second.json()["position"]);
    assert_eq!(first.header("location"), second.header("location"));
    assert_eq!(server.json("/collections/q")["itemCount"], 1);
    for wrong in ["k".repeat(2000).as_str(), "load\t1"] {
        let headers = [("content-type", "application/geo+json"), ("idempotency-key", wrong)];
        let refused = server.ask("POST", "/collections/q/items", &headers, quake(1.0, 5.0).to_string().as_bytes());
        assert_eq!(refused.problem(400)["field"], "Idempotency-Key");
    }
}

#[test]
fn a_bad_batch_is_refused_whole_with_every_line() {
    let server = Server::start();
    server.create("q", SPEC);
    let mut lines: Vec<String> = (0..300).map(|i| quake(f64::from(i) / 10.0, 1.0).to_string()).collect();
    for bad in [3, 7, 250] {
        lines[bad] = quake(200.0, 1.0).to_string();
    }
    lines[8] = "{".to_owned();
    let problem = server.post("/collections/q/items", "application/x-ndjson", lines.join("\n")).problem(400);
    let at: Vec<u64> = problem["errors"].as_array().unwrap().iter().map(|e| e["line"].as_u64().unwrap()).collect();
    assert_eq!(at, [4, 8, 9, 251], "{problem}");
    assert_eq!((&problem["line"], &problem["field"]), (&json!(4), &json!("geom")), "{problem}");
    assert_eq!(server.json("/collections/q")["itemCount"], 0);
    let many = vec![quake(200.0, 1.0).to_string(); 150].join("\n");
    let problem = server.post("/collections/q/items", "application/x-ndjson", many).problem(400);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 100);
}

#[test]
fn a_mistake_in_geojson_has_the_number_of_its_feature_and_its_line() {
    let server = Server::start();
    server.create("q", SPEC);
    let (good, bad) = (quake(1.0, 1.0).to_string(), quake(200.0, 1.0).to_string());
    let document = format!("{{\"type\":\"FeatureCollection\",\n\"features\":[\n{good},\n\n{bad}\n]}}");
    let sequence = format!("\u{1e}{good}\n\n\n\u{1e}{bad}\n");
    for (media_type, body, feature, line) in [
        ("application/geo+json", document.clone(), 2, Some(5)),
        ("application/geo+json-seq", sequence, 2, Some(4)),
        ("application/geo+json", document.replace('\n', ""), 2, None),
        ("application/geo+json", bad.clone(), 1, None),
    ] {
        let problem = server.post("/collections/q/items", media_type, body).problem(400);
        for at in [&problem, &problem["errors"][0]] {
            assert_eq!((at["feature"].as_u64(), at["line"].as_u64()), (Some(feature), line), "{problem}");
        }
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("feature {feature}: geom: ")), "{problem}");
        // The member is there if the sentence names the line.
        let named = line.map(|line| format!("(on line {line})"));
        assert!(named.map_or(!detail.contains("(on line"), |named| detail.ends_with(&named)), "{problem}");
    }
}

#[test]
fn a_given_id_stands_once() {
    let server = Server::start();
    with_ids(&server);
    server.load("named", &[point("a", 1.0, 1.0, json!({"n": 1})), point("b", 2.0, 2.0, json!({"n": 2}))]);
    let body = json!({"type": "FeatureCollection", "features": [point("c", 1.0, 1.0, json!({})), point("b", 1.0, 1.0, json!({}))]});
    let problem = server.post("/collections/named/items", "application/geo+json", body.to_string()).problem(409);
    assert_eq!(problem["ids"], json!(["b"]));
    assert_eq!(server.json("/collections/named")["itemCount"], 2);
    let twice = json!({"type": "FeatureCollection", "features": [point("x", 1.0, 1.0, json!({})), point("x", 1.0, 1.0, json!({}))]});
    server.post("/collections/named/items", "application/geo+json", twice.to_string()).problem(400);
    let without = json!({"type": "Feature", "geometry": null, "properties": {}});
    assert_eq!(
        server.post("/collections/named/items", "application/geo+json", without.to_string()).problem(400)["field"],
        "id"
    );
}

#[test]
fn one_event_is_replaced_changed_and_deleted() {
    let server = Server::start();
    with_ids(&server);
    let item = "/collections/named/items/k%2F1";
    let send = |method: &str, body: Value| {
        server.ask(method, item, &[("content-type", "application/geo+json")], body.to_string().as_bytes())
    };
    let mut event = point("k/1", 1.0, 1.0, json!({"n": 1, "note": "first"}));
    let created = send("PUT", event.clone());
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(created.header("location"), "http://localhost/collections/named/items/k%2F1");
    event.as_object_mut().unwrap().remove("id");
    event["properties"]["n"] = json!(2);
    assert_eq!(send("PUT", event.clone()).status, 204);
    assert_eq!(server.json(item)["properties"], json!({"n": 2, "note": "first"}));

    assert_eq!(
        send("PATCH", json!({"properties": {"n": 3}, "geometry": {"type": "Point", "coordinates": [5, 6]}})).status,
        204
    );
    assert_eq!(server.json(item)["geometry"]["coordinates"], json!([5, 6]));
    assert_eq!(server.json(item)["properties"], json!({"n": 3, "note": "first"}));
    assert_eq!(send("PATCH", json!({"properties": {"note": null}})).status, 204);
    assert_eq!(server.json(item)["properties"], json!({"n": 3, "note": null}));
    send("PATCH", json!({"properties": {"n": "three"}})).problem(400);
    send("PATCH", json!([])).problem(400);
    send("PUT", point("other", 1.0, 1.0, json!({}))).problem(400);
    assert_eq!(server.json("/collections/named")["itemCount"], 1);

    assert_eq!(server.ask("DELETE", item, &[], b"").status, 204);
    server.get(item).problem(404);
    server.ask("DELETE", item, &[], b"").problem(404);
    send("PATCH", json!({"properties": {"n": 3}})).problem(404);

    server.create("made", "n:Integer");
    server.load("made", &[json!({"type": "Feature", "geometry": null, "properties": {"n": 1}})]);
    let id = server.json("/collections/made/items")["features"][0]["id"].as_str().unwrap().to_owned();
    let kind = [("content-type", "application/geo+json")];
    server.ask("PUT", &format!("/collections/made/items/{id}"), &kind, b"{}").problem(409);
    assert_eq!(server.ask("DELETE", &format!("/collections/made/items/{id}"), &[], b"").status, 204);
}

#[test]
fn a_filter_deletes_what_matches() {
    let server = Server::start();
    server.create("q", SPEC);
    let all: Vec<Value> = (0..100).map(|i| quake(f64::from(i), f64::from(i % 10))).collect();
    server.load("q", &all);
    server.ask("DELETE", "/collections/q/items", &[], b"").problem(400);
    let answer = server.ask("DELETE", "/collections/q/items?filter=mag%3E%3D8", &[], b"");
    assert_eq!((answer.status, answer.json()["deleted"].as_u64()), (200, Some(20)), "{}", answer.text());
    let groups = server.json("/collections/q/aggregate?function=count,max(mag)");
    assert_eq!((&groups["groups"][0]["count"], groups["groups"][0]["max(mag)"].as_f64()), (&json!(80), Some(7.0)));
    let answer = server.ask("DELETE", "/collections/q/items?bbox=0,0,9,9", &[], b"");
    assert_eq!(answer.json()["deleted"], 8);
}
