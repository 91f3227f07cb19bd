//! Content of a body besides its events is stored or refused, never silently dropped.

use crate::support::{Response, Server, point};
use serde_json::{Value, json};

const SPEC: &str = "n:Integer,x:Double,*geom:Geometry:srid=4326";
const EPSG_4326: &str = "<http://www.opengis.net/def/crs/EPSG/0/4326>";
const EPSG_3857: &str = "<http://www.opengis.net/def/crs/EPSG/0/3857>";

/// Starts a server with a collection `named` with client-supplied ids, and a collection `made` with generated ids.
fn server() -> Server {
    let server = Server::start();
    server.create("made", SPEC);
    server.create("named", &format!("{SPEC};meridian.id='given'"));
    server
}

fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let headers: Vec<_> = [("content-type", "application/geo+json")].iter().chain(headers).copied().collect();
    server.ask(method, path, &headers, body.to_string().as_bytes())
}

fn at(server: &Server, path: &str) -> Value {
    server.json(path)["geometry"]["coordinates"].clone()
}

#[test]
fn the_system_of_a_body_is_honoured_by_every_write() {
    let server = server();
    let crs = |uri| [("content-crs", uri)];
    let (items, item) = ("/collections/named/items", "/collections/named/items/a");
    let posted = send(&server, "POST", items, &crs(EPSG_4326), &point("a", 10.0, 20.0, json!({"n": 1})));
    assert_eq!(posted.status, 201, "{}", posted.text());
    assert_eq!(at(&server, item), json!([20, 10]));
    assert_eq!(send(&server, "PUT", item, &crs(EPSG_4326), &point("a", 11.0, 21.0, json!({"n": 1}))).status, 204);
    assert_eq!(at(&server, item), json!([21, 11]));
    let moved = json!({"geometry": {"type": "Point", "coordinates": [12, 22]}});
    assert_eq!(send(&server, "PATCH", item, &crs(EPSG_4326), &moved).status, 204);
    assert_eq!(at(&server, item), json!([22, 12]));
    // A patch without a geometry keeps the existing one, whatever system its header names.
    assert_eq!(send(&server, "PATCH", item, &crs(EPSG_4326), &json!({"properties": {"n": 2}})).status, 204);
    assert_eq!(at(&server, item), json!([22, 12]));
    // What is read in a system is written back in that system.
    let uri = EPSG_4326.trim_matches(['<', '>']);
    let mut read = server.json(&format!("{item}?crs={uri}"));
    read.as_object_mut().unwrap().remove("links");
    assert_eq!(send(&server, "PUT", item, &crs(EPSG_4326), &read).status, 204);
    assert_eq!(at(&server, item), json!([22, 12]));
    // Map metres.
    let metres = point("m", 20_037_508.342_789_244, 0.0, json!({}));
    assert_eq!(send(&server, "POST", items, &crs(EPSG_3857), &metres).status, 201);
    let there = at(&server, "/collections/named/items/m");
    assert!((there[0].as_f64().unwrap() - 180.0).abs() < 1e-9 && there[1].as_f64().unwrap().abs() < 1e-9, "{there}");
    let lines = format!("{}\n", point("l", 30.0, 40.0, json!({})));
    let headers = [("content-type", "application/x-ndjson"), ("content-crs", EPSG_4326)];
    assert_eq!(server.ask("POST", items, &headers, lines.as_bytes()).status, 201);
    assert_eq!(at(&server, "/collections/named/items/l"), json!([40, 30]));
}

#[test]
fn a_system_that_is_not_served_or_not_meant_is_refused_by_name() {
    let server = server();
    let items = "/collections/named/items";
    let event = point("a", 10.0, 20.0, json!({}));
    let unknown = "<http://www.opengis.net/def/crs/EPSG/0/25832>";
    for (method, path) in [("POST", items), ("PUT", "/collections/named/items/a")] {
        let problem = send(&server, method, path, &[("content-crs", unknown)], &event).problem(400);
        assert_eq!(problem["field"], "Content-Crs");
        assert!(problem["detail"].as_str().unwrap().contains("25832"), "{problem}");
    }
    // The columns of a table are named longitude and latitude; no header changes their meaning.
    let headers = [("content-type", "text/csv"), ("content-crs", EPSG_4326)];
    let problem = server.ask("POST", items, &headers, b"id,lon,lat\na,1,2\n").problem(400);
    assert_eq!(problem["field"], "Content-Crs");
    // The error names the latitude, which comes first.
    let problem = send(&server, "POST", items, &[("content-crs", EPSG_4326)], &point("a", 100.0, 20.0, json!({})));
    assert!(problem.problem(400)["detail"].as_str().unwrap().contains("latitude 100"));
    let mut contradicts = event.clone();
    contradicts["crs"] = json!({"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}});
    send(&server, "POST", items, &[("content-crs", EPSG_4326)], &contradicts).problem(400);
    assert_eq!(server.json("/collections/named")["itemCount"], 0);
}

#[test]
fn a_deletion_follows_the_system_of_its_filter() {
    let server = server();
    let events: Vec<Value> = [("a", 10.0, 20.0), ("b", 20.0, 10.0)].map(|(id, x, y)| point(id, x, y, json!({}))).into();
    server.load("named", &events);
    let uri = EPSG_4326.trim_matches(['<', '>']);
    let filter = "S_INTERSECTS(geom,POINT(20%2010))";
    let path = format!("/collections/named/items?filter-crs={uri}&filter={filter}");
    assert_eq!(server.ask("DELETE", &path, &[], b"").json()["deleted"], 1);
    server.get("/collections/named/items/a").problem(404);
    let path = format!("/collections/named/items?bbox-crs={uri}&bbox=9,19,11,21");
    assert_eq!(server.ask("DELETE", &path, &[], b"").json()["deleted"], 1);
    server.get("/collections/named/items/b").problem(404);
}

#[test]
fn an_id_or_a_height_that_cannot_be_kept_is_refused_or_left_out_as_asked() {
    let server = server();
    let problem =
        send(&server, "POST", "/collections/made/items", &[], &point("mine", 1.0, 2.0, json!({}))).problem(422);
    assert_eq!((&problem["field"], &problem["feature"]), (&json!("id"), &json!(1)));
    assert!(problem["detail"].as_str().unwrap().contains("x-ogc-role"), "{problem}");
    let mut high = point("a", 1.0, 2.0, json!({}));
    high["geometry"]["coordinates"] = json!([1, 2, 300]);
    let problem = send(&server, "POST", "/collections/named/items", &[], &high).problem(422);
    assert!(problem["detail"].as_str().unwrap().contains("height"), "{problem}");
    send(&server, "PUT", "/collections/named/items/a", &[], &high).problem(422);
    server.load("named", &[point("a", 5.0, 6.0, json!({}))]);
    send(&server, "PATCH", "/collections/named/items/a", &[], &json!({"geometry": high["geometry"]})).problem(422);
    // An additional mistake is reported first by the reader.
    let mut wrong = high.clone();
    wrong["properties"] = json!({"n": "many"});
    wrong["geometry"]["coordinates"] = json!([1, 2]);
    let both = json!({"type": "FeatureCollection", "features": [high, wrong]});
    send(&server, "POST", "/collections/made/items", &[], &both).problem(400);
    assert_eq!(server.json("/collections/made")["itemCount"], 0);

    let lenient = [("prefer", "return=minimal, handling=lenient")];
    let answer = send(&server, "POST", "/collections/made/items", &lenient, &high);
    assert_eq!((answer.status, answer.header("preference-applied")), (201, "handling=lenient"), "{}", answer.text());
    assert_eq!(answer.json()["left_out"], json!({"heights": 1, "ids": 1}));
    let put = send(&server, "PUT", "/collections/named/items/a", &lenient, &high);
    assert_eq!((put.status, put.header("preference-applied")), (204, "handling=lenient"));
    assert_eq!(at(&server, "/collections/named/items/a"), json!([1, 2]));
    let plain = send(&server, "POST", "/collections/made/items", &[], &point("", 1.0, 2.0, json!({})));
    assert!(plain.json().get("left_out").is_none() && plain.header("preference-applied").is_empty());
}

/// Generates doubles of every exponent from 64-bit random numbers.
fn doubles(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from_bits(state)
    };
    std::iter::repeat_with(&mut next).filter(|x| x.is_finite() && x.abs() < 1e300).take(count).collect()
}

#[test]
fn a_patch_moves_no_number_that_it_does_not_name() {
    let server = server();
    let numbers = doubles(600);
    let within = |x: f64, edge: f64| (x * 1e-3).rem_euclid(2.0 * edge) - edge;
    let events: Vec<Value> = (0..200)
        .map(|i| {
            let [x, a, b] = [numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2]];
            point(&format!("e{i}"), within(a, 180.0), within(b, 90.0), json!({"x": x}))
        })
        .collect();
    server.load("named", &events);
    let raw = |id: &str, f: &str| server.get(&format!("/collections/named/items{id}{f}")).text();
    for (i, event) in events.iter().enumerate() {
        let item = format!("/e{i}");
        let before = raw(&item, "");
        let read: Value = serde_json::from_str(&before).unwrap();
        assert_eq!(read["properties"]["x"].as_f64(), event["properties"]["x"].as_f64(), "{before}");
        assert_eq!(read["geometry"]["coordinates"][0].as_f64(), event["geometry"]["coordinates"][0].as_f64());
        let path = format!("/collections/named/items{item}");
        assert_eq!(send(&server, "PATCH", &path, &[], &json!({"properties": {"n": 7}})).status, 204);
        assert_eq!(raw(&item, ""), before.replace("\"n\":null", "\"n\":7"));
        // A CQL2 JSON literal is the same number.
        let filter = json!({"op": "=", "args": [{"property": "x"}, event["properties"]["x"]]}).to_string();
        let filter: String = filter.bytes().map(|b| format!("%{b:02X}")).collect();
        let found = server.json(&format!("/collections/named/items?filter-lang=cql2-json&filter={filter}"));
        assert_eq!(found["features"].as_array().unwrap().len(), 1, "{event}");
    }
    // Every text format preserves them in both directions.
    for (format, media_type) in [
        ("json&limit=10000", "application/geo+json"),
        ("ndjson", "application/x-ndjson"),
        ("geojsonseq", "application/geo+json-seq"),
        ("csv", "text/csv"),
    ] {
        let before = raw("", "?f=csv");
        let taken = raw("", &format!("?f={format}"));
        assert_eq!(server.ask("DELETE", "/collections/named/items?filter=TRUE", &[], b"").json()["deleted"], 200);
        let written = server.post("/collections/named/items", media_type, &taken);
        assert_eq!(written.status, 201, "{format}: {}", written.text());
        let sorted = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(raw("", "?f=csv")), sorted(before), "{format}");
    }
}

#[test]
fn groups_are_served_as_a_table() {
    let server = Server::start();
    server.create("q", "kind:String,x:Double,dtg:Date");
    let event = |kind: Value, x: f64, day: u32| {
        let properties = json!({"kind": kind, "x": x, "dtg": format!("2026-01-{day:02}T12:00:00Z")});
        json!({"type": "Feature", "geometry": null, "properties": properties})
    };
    let named = |kind: &str, x, day| event(json!(kind), x, day);
    server.load("q", &[named("a, \"b\"", 0.1, 1), named("a, \"b\"", 0.2, 1), event(Value::Null, 1.5, 2)]);
    let path = "/collections/q/aggregate?function=count,max(x)";
    let table = server.get(&format!("{path}&window=P1D&by=kind&f=csv"));
    assert!(table.status == 200 && table.header("vary").starts_with("Accept, "));
    assert!(table.header("content-type").starts_with("text/csv"), "{}", table.header("content-type"));
    assert_eq!(
        table.text(),
        "window,by,count,max(x)\r\n\
         2026-01-01T00:00:00Z/2026-01-02T00:00:00Z,\"a, \"\"b\"\"\",2,0.2\r\n\
         2026-01-02T00:00:00Z/2026-01-03T00:00:00Z,,1,1.5\r\n"
    );
    let accepted = server.ask("GET", path, &[("accept", "text/csv")], b"");
    assert_eq!(accepted.text(), "count,max(x)\r\n3,1.5\r\n");
    // The header line is present even without groups.
    let none = server.get(&format!("{path}&by=kind&f=csv&filter=x%3E9"));
    assert_eq!(none.text(), "by,count,max(x)\r\n");
    assert_eq!(server.get(path).header("content-type"), "application/json");
    server.get(&format!("{path}&f=html")).problem(400);
    server.get(&format!("{path}&f=csv&explain=true")).problem(400);
}

#[test]
fn a_collection_reads_what_it_writes_whatever_its_fields_are_called() {
    let server = Server::start();
    let names = ["id", "@id", "lon", "lng", "longitude", "x", "@lon"];
    let mut properties: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    properties.insert("geometry".into(), json!({"format": "geometry-point", "x-ogc-role": "primary-geometry"}));
    let schema = json!({"type": "object", "properties": properties}).to_string();
    let typed = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/c", &typed, schema.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let values: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!(format!("of {name}")))).collect();
    server.load("c", &[point("", 1.0, 2.0, json!(values))]);
    for (format, media_type) in [("csv", "text/csv"), ("arrow", "application/vnd.apache.arrow.stream")] {
        let written = server.get(&format!("/collections/c/items?f={format}&limit=1"));
        let lenient = [("content-type", media_type), ("prefer", "handling=lenient")];
        let read = server.ask("POST", "/collections/c/items", &lenient, &written.body);
        assert_eq!(read.status, 201, "{format}: {}", read.text());
        assert_eq!(read.json()["left_out"]["ids"], 1, "{format}");
    }
    let events = server.json("/collections/c/items");
    assert_eq!(events["numberReturned"], 3);
    for event in events["features"].as_array().unwrap() {
        assert_eq!((&event["geometry"]["coordinates"], &event["properties"]), (&json!([1, 2]), &json!(values)));
    }
}
