//! What the server reports about itself.

use crate::owner::is_gateway;
use crate::support::{Server, point};
use serde_json::{Value, json};

fn hrefs(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            if let (Some(Value::String(href)), Some(Value::String(rel))) = (members.get("href"), members.get("rel"))
                && members.get("templated") != Some(&json!(true))
            {
                found.push((href.clone(), rel.clone()));
            }
            members.values().for_each(|v| hrefs(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| hrefs(v, found)),
        _ => {}
    }
}

#[test]
fn every_link_from_the_landing_page_on_resolves() {
    let server = Server::start();
    server.create("quakes", "mag:Double,dtg:Date,*geom:Point:srid=4326");
    server.load("quakes", &[point("", 1.0, 2.0, json!({"mag": 5.5, "dtg": "2026-01-31T12:00:00Z"}))]);
    server.create("a b".replace(' ', "-").as_str(), "n:Integer");
    let base = "http://localhost";
    let mut todo = vec![format!("{base}/")];
    let mut done: Vec<String> = Vec::new();
    while let Some(url) = todo.pop() {
        if done.contains(&url) {
            continue;
        }
        let path = url.strip_prefix(base).unwrap_or_else(|| panic!("{url} leaves the server"));
        let answer = server.get(path);
        // The pages of `web/` are built separately; this test does not depend on their presence.
        if path != "/map" && path != "/search" {
            assert_eq!(answer.status, 200, "{url}: {}", answer.text());
        }
        if answer.header("content-type").contains("json")
            && !answer.header("content-type").contains("seq")
            && !path.contains("ndjson")
        {
            let mut found = Vec::new();
            hrefs(&answer.json(), &mut found);
            todo.extend(found.into_iter().map(|(href, _)| href));
        }
        done.push(url);
    }
    for expected in [
        "/conformance",
        "/api",
        "/openapi.json",
        "/collections/quakes/items?f=parquet",
        "/collections/quakes/items?f=flatgeobuf",
        "/collections/quakes/items?f=gpkg",
        "/collections/quakes/queryables",
        "/collections/quakes/tiles/WebMercatorQuad",
        "/tileMatrixSets/WebMercatorQuad",
    ] {
        assert!(done.contains(&format!("{base}{expected}")), "{expected} was not linked: {done:#?}");
    }
}

#[test]
fn the_landing_page_has_the_relations_of_the_standard() {
    let server = Server::start();
    let landing = server.json("/");
    let mut found = Vec::new();
    hrefs(&landing, &mut found);
    for rel in ["self", "alternate", "service-desc", "service-doc", "conformance", "data"] {
        assert!(found.iter().any(|(_, r)| r == rel), "{rel}: {landing}");
    }
    let conformance = server.json("/conformance");
    let classes: Vec<&str> =
        conformance["conformsTo"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    for class in ["core", "geojson", "html", "oas30"] {
        assert!(classes.contains(&format!("http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/{class}").as_str()));
    }
    assert_eq!(server.get("/api").header("content-type"), "application/vnd.oai.openapi+json;version=3.0");
    assert_eq!(server.json("/api")["openapi"], "3.0.3");
    assert_eq!(server.json("/openapi.json")["openapi"], "3.1.0");
}

#[test]
fn a_collection_tells_its_extent_schema_and_queryables() {
    let server = Server::start();
    server.create("quakes", "mag:Double,dtg:Date,*geom:Point:srid=4326");
    let empty = server.json("/collections/quakes");
    assert_eq!((&empty["extent"], &empty["itemCount"]), (&Value::Null, &json!(0)));
    server.load(
        "quakes",
        &[
            point("", 1.0, 2.0, json!({"mag": 5.5, "dtg": "2026-01-31T12:00:00Z"})),
            point("", -3.0, 4.0, json!({"mag": 4.5, "dtg": "2026-02-01T12:00:00Z"})),
        ],
    );
    let quakes = server.json("/collections/quakes");
    assert_eq!(quakes["extent"]["spatial"]["bbox"], json!([[-3.0, 2.0, 1.0, 4.0]]));
    assert_eq!(quakes["extent"]["temporal"]["interval"], json!([["2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z"]]));
    assert_eq!((&quakes["itemCount"], &quakes["itemType"]), (&json!(2), &json!("feature")));
    assert_eq!(quakes["storageCrs"], quakes["crs"][0]);
    assert_eq!(server.json("/collections")["collections"][0]["id"], "quakes");
    let schema = server.json("/collections/quakes/schema");
    assert_eq!(schema["properties"]["dtg"]["x-ogc-role"], "primary-instant");
    assert_eq!(schema["properties"]["geom"]["x-ogc-role"], "primary-geometry");
    let queryables = server.json("/collections/quakes/queryables");
    assert_eq!(queryables["properties"]["mag"]["type"], "number");
    assert_eq!(server.get("/collections/quakes/schema").header("content-type"), "application/schema+json");
    // A schema document creates the same collection again.
    let again = server.ask(
        "PUT",
        "/collections/copy",
        &[("content-type", "application/schema+json")],
        schema.to_string().as_bytes(),
    );
    assert_eq!(again.status, 201, "{}", again.text());
    assert_eq!(server.json("/collections/copy/schema")["properties"], schema["properties"]);
}

#[test]
fn collections_are_made_changed_and_removed() {
    let server = Server::start();
    let put = |name: &str, spec: &str| {
        server.ask("PUT", &format!("/collections/{name}"), &[("content-type", "text/plain")], spec.as_bytes())
    };
    assert_eq!(put("a", "n:Integer,at:Date,*geom:Point").status, 201);
    assert_eq!(put("a", "n:Integer,at:Date,*geom:Point").status, 200);
    // Nothing was written yet, so the owning process may replace its schema.
    let spec = "n:String,at:Date,*geom:Point";
    if is_gateway() {
        put("a", spec).problem(409);
        assert_eq!(server.ask("DELETE", "/collections/a", &[], b"").status, 204);
        assert_eq!(put("a", spec).status, 201);
    } else {
        let retyped = put("a?retention_bytes=1000000", spec);
        assert_eq!((retyped.status, &retyped.json()["retention_bytes"]), (200, &json!(1_000_000)));
        let schema = server.json("/collections/a/schema");
        assert_eq!(schema["properties"]["n"]["type"], "string");
        assert_eq!(put("a?partitions=2", "n:Integer,at:Date").problem(409)["field"], "partitions");
    }
    server.load("a", &[point("", 1.0, 2.0, json!({ "n": "one", "at": "2999-01-01T00:00:00Z" }))]);
    let kept = |why: &str| {
        let detail = put("a", "n:Integer,at:Date,*geom:Point").problem(409)["detail"].clone();
        let why = if is_gateway() { "another process holds it" } else { why };
        assert!(detail.as_str().unwrap().contains(why), "{detail}");
    };
    kept("it has events");
    assert_eq!(server.ask("DELETE", "/collections/a/items?filter=TRUE", &[], b"").status, 200);
    kept("the events that it had");
    put("b", "n:Intger").problem(400);
    put("-x", "n:Integer").problem(400);
    let made = put("c?durability=ephemeral&retention=P30D&retention_bytes=5000000", "n:Integer,at:Date");
    assert_eq!((made.status, made.header("location")), (201, "http://localhost/collections/c"));
    assert_eq!((&made.json()["retention"], &made.json()["durability"]), (&json!("P30D"), &json!("ephemeral")));
    put("d?durability=some", "n:Integer").problem(400);
    assert_eq!(made.json()["retention_bytes"], json!(5_000_000));
    put("d?retention=-P1D", "n:Integer,at:Date").problem(400);
    put("d?retention_bytes=1.5", "n:Integer,at:Date").problem(400);
    assert_eq!(put("d?retention=P1D", "n:Integer").problem(400)["field"], "retention");

    let patch = |body: Value| {
        server.ask("PATCH", "/collections/a", &[("content-type", "application/json")], body.to_string().as_bytes())
    };
    let changed = patch(
        json!({"retention": "P7D", "retention_bytes": 1_000_000_000, "properties": {"note": {"type": "string"}}}),
    );
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(
        (&changed.json()["retention"], &changed.json()["retention_bytes"]),
        (&json!("P7D"), &json!(1_000_000_000))
    );
    assert_eq!(server.json("/collections/a/schema")["properties"]["note"]["type"], "string");
    assert_eq!(patch(json!({"retention": null})).json().get("retention"), None);
    assert_eq!(patch(json!({"properties": {"n": {"type": "integer"}}})).problem(400)["field"], "n");
    // A change is applied completely or not at all.
    assert_eq!(
        patch(json!({"properties": {"more": {"type": "string"}}, "retention": "soon"})).problem(400)["field"],
        "retention"
    );
    assert_eq!(server.json("/collections/a/schema")["properties"].get("more"), None);
    assert_eq!(patch(json!({"retention": 5})).problem(400)["field"], "retention");
    assert_eq!(patch(json!({"name": "b"})).problem(400)["field"], "name");

    assert_eq!(server.ask("DELETE", "/collections/a", &[], b"").status, 204);
    server.get("/collections/a").problem(404);
    server.ask("DELETE", "/collections/a", &[], b"").problem(404);
    server.ask("POST", "/collections", &[], b"").problem(405);
}

#[test]
fn pages_escape_what_clients_wrote() {
    let server = Server::start();
    server.create("notes", "text:String,*geom:Point");
    server.load("notes", &[point("", 1.0, 2.0, json!({"text": "<script>alert('x')</script>"}))]);
    for path in [
        "/?f=html",
        "/conformance?f=html",
        "/api?f=html",
        "/collections?f=html",
        "/collections/notes?f=html",
        "/collections/notes/items?f=html",
        "/collections/notes/schema?f=html",
        "/tileMatrixSets?f=html",
        "/tileMatrixSets/WebMercatorQuad?f=html",
        "/collections/notes/tiles?f=html",
        "/collections/notes/tiles/WebMercatorQuad?f=html",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.header("content-type").starts_with("text/html"), "{path}");
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
        assert!(answer.text().starts_with("<!doctype html>"), "{path}");
        assert!(!answer.text().contains("<script>"), "{path}");
    }
    let page = server.ask("GET", "/collections/notes/items", &[("accept", "text/html,*/*;q=0.8")], b"");
    assert!(page.text().contains("&lt;script&gt;"), "{}", page.text());
    // A browser saves what the page links to under a name that tells what it is.
    for (format, file) in [("csv", "notes.csv"), ("parquet", "notes.parquet"), ("flatgeobuf", "notes.fgb")] {
        let link = format!("f={format}\" download=\"{file}\">{format}</a>");
        assert!(page.text().contains(&link), "{link} in {}", page.text());
    }
    assert!(page.text().contains("f=json\">json</a>"), "{}", page.text());
}

#[test]
fn operators_see_health_version_and_counters() {
    let server = Server::start();
    assert_eq!(server.json("/healthz")["status"], "ok");
    assert_eq!(server.json("/readyz")["status"], "ready");
    assert_eq!(server.json("/version")["name"], "meridian");
    server.get("/collections/none").problem(404);
    let metrics = server.get("/metrics");
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    let text = metrics.text();
    assert!(
        text.contains("http_route=\"/collections/{c}\",http_response_status_code=\"404\",le=\"+Inf\"} 1"),
        "{text}"
    );
    assert!(text.contains("# TYPE meridian_events gauge"), "{text}");
}

#[test]
fn operators_see_what_a_question_meets_and_what_a_write_costs() {
    let server = Server::start();
    server.create("quakes", "mag:Double,dtg:Date,*geom:Point");
    let quakes = server.store.collection("default", "quakes").unwrap();
    for mag in [5.5, 6.5] {
        server.load("quakes", &[point("", 1.0, 2.0, json!({"mag": mag, "dtg": "2026-01-31T12:00:00Z"}))]);
        quakes.flush().unwrap();
    }
    let (metrics, stats) = (Metrics::of(&server), quakes.stats());
    // Two flushes over one day; three runs of the first tier may stay.
    assert_eq!((metrics.value("meridian_depth"), metrics.value("meridian_depth_bound")), (2.0, 3.0));
    let parts = ["log", "flush", "merge", "rest_written", "sidecar"];
    let written: f64 = parts.iter().map(|part| metrics.value(&format!("meridian_{part}_bytes_total"))).sum();
    let taken = metrics.value("meridian_bytes_taken_total");
    assert!(written > 0.0 && taken > 0.0, "{written} bytes written, {taken} taken");
    assert_eq!(metrics.value("meridian_write_amplification"), written / taken);
    assert_eq!(metrics.value("meridian_install_seconds_total"), stats.install_us as f64 / 1e6);
    assert_eq!(metrics.value("meridian_install_seconds_max"), stats.install_us_max as f64 / 1e6);
}

/// The metrics.
struct Metrics(String);

impl Metrics {
    fn of(server: &Server) -> Metrics {
        Metrics(server.get("/metrics").text())
    }

    #[track_caller]
    fn value(&self, name: &str) -> f64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} is not in {}", self.0)).parse().unwrap()
    }
}

#[test]
fn requests_are_named_and_traced() {
    let server = Server::start();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = server.ask("GET", "/healthz", &[("x-request-id", "mine-1"), ("traceparent", trace)], b"");
    assert_eq!((answer.header("x-request-id"), answer.header("traceparent")), ("mine-1", trace));
    let (a, b) = (server.get("/healthz"), server.get("/healthz"));
    assert_eq!(a.header("x-request-id").len(), 16);
    assert_ne!(a.header("x-request-id"), b.header("x-request-id"));
}

#[test]
fn tile_matrix_sets_and_tilesets_are_described() {
    let server = Server::start();
    server.create("quakes", "*geom:Point");
    server.load("quakes", &[point("", 1.0, 2.0, json!({}))]);
    let set = server.json("/tileMatrixSets/WebMercatorQuad");
    assert_eq!(set["tileMatrices"][3]["matrixWidth"], 8);
    let tileset = server.json("/collections/quakes/tiles/WebMercatorQuad");
    assert_eq!(tileset["tiles"][0], "http://localhost/collections/quakes/tiles/WebMercatorQuad/{z}/{y}/{x}");
    assert_eq!(tileset["vector_layers"][0]["id"], "quakes");
    let tile = server.get("/collections/quakes/tiles/WebMercatorQuad/0/0/0");
    assert_eq!((tile.status, tile.header("content-type")), (200, "application/vnd.mapbox-vector-tile"));
    assert!(tile.body.windows(6).any(|w| w == b"quakes"));
    assert_eq!(server.get("/collections/quakes/tiles/WebMercatorQuad/5/31/0").status, 204);
    for bad in ["WebMercatorQuad/0/0/1", "WebMercatorQuad/25/0/0", "WebMercatorQuad/x/0/0", "Other/0/0/0", "Other"] {
        server.get(&format!("/collections/quakes/tiles/{bad}")).problem(404);
    }
    server.get("/tileMatrixSets/Other").problem(404);
}

#[test]
fn a_field_of_format_date_takes_days_and_gives_days_back() {
    let server = Server::start();
    let schema = json!({
        "type": "object",
        "properties": {
            "geom": { "format": "geometry-point", "x-ogc-role": "primary-geometry" },
            "day": { "type": "string", "format": "date", "x-ogc-role": "primary-instant" },
            "due": { "type": "string", "format": "date" },
        },
    });
    let headers = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/tasks", &headers, schema.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    for document in ["schema", "queryables"] {
        let shown = server.json(&format!("/collections/tasks/{document}"));
        for field in ["day", "due"] {
            assert_eq!(shown["properties"][field]["format"], "date", "{shown}");
        }
    }
    server.load(
        "tasks",
        &[
            point("", 1.0, 2.0, json!({"day": "2026-01-31", "due": "2026-02-28"})),
            point("", 1.0, 2.0, json!({"day": "1969-12-31T00:00:00Z", "due": null})),
        ],
    );
    let csv = "lon,lat,day,due\n3,4,2026-02-01,2024-02-29\n";
    assert_eq!(server.post("/collections/tasks/items", "text/csv", csv).status, 201);
    for (day, why) in
        [("2026-01-31T10:00:00Z", "expected one such as"), ("2026-02-30", "is not a date"), ("1 May", "is not a date")]
    {
        let event = point("", 1.0, 2.0, json!({ "day": day })).to_string();
        let problem = server.post("/collections/tasks/items", "application/geo+json", event).problem(400);
        assert!(problem.to_string().contains(why), "{problem}");
    }
    let days = |query: &str| -> Vec<Value> {
        let found = server.json(&format!("/collections/tasks/items?sortby=day&{query}"));
        found["features"].as_array().unwrap().iter().map(|f| f["properties"]["day"].clone()).collect()
    };
    assert_eq!(days(""), ["1969-12-31", "2026-01-31", "2026-02-01"]);
    for query in [
        "day=2026-01-31",
        "datetime=2026-01-31",
        "filter=due%20=%20DATE('2026-02-28')",
        "filter=due%20%3E%20'2024-02-29'",
    ] {
        assert_eq!(days(query), ["2026-01-31"], "{query}");
    }
    // GDAL's notation for a day.
    assert_eq!(days("filter-lang=cql-text&filter=day%20%3C%20'2026-01-31T'"), ["1969-12-31"]);
    let table = server.get("/collections/tasks/items?f=csv&sortby=day&limit=10").text();
    assert!(table.contains(",2026-01-31,2026-02-28\r\n") && table.contains(",1969-12-31,\r\n"), "{table}");
    let copy = server.ask("PUT", "/collections/copy", &headers, schema.to_string().as_bytes());
    assert_eq!(copy.status, 201);
    let arrow = server.get("/collections/tasks/items?f=arrow");
    let options = [("content-type", "application/vnd.apache.arrow.stream"), ("prefer", "handling=lenient")];
    let copied = server.ask("POST", "/collections/copy/items", &options, &arrow.body);
    assert_eq!(copied.status, 201, "{}", copied.text());
    assert_eq!(server.json("/collections/copy/items?day=2026-01-31")["features"][0]["properties"]["due"], "2026-02-28");
}
