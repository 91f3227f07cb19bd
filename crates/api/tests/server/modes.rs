//! Mode `latest`, deletion by filter and schema growth, as seen by clients.

use crate::support::{Server, point};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// Creates a collection of ships that report their positions.
fn ships(server: &Server, mode: &str) {
    let schema = json!({
        "type": "object",
        "x-meridian-mode": mode,
        "properties": {
            "id": {"type": "string", "x-ogc-role": "id"},
            "geometry": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "at": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
            "ship": {"type": "string", "x-meridian-object": true},
            "knots": {"type": "number"}
        },
        "required": ["id", "at"]
    });
    let headers = [("content-type", "application/schema+json")];
    let made = server.ask("PUT", "/collections/ships", &headers, schema.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
}

fn report(id: &str, ship: &str, hour: u32, knots: f64) -> Value {
    let at = format!("2026-01-31T{hour:02}:00:00Z");
    point(id, f64::from(hour), 2.0, json!({"ship": ship, "at": at, "knots": knots}))
}

fn ids(server: &Server, path: &str) -> Vec<String> {
    let found = server.json(path);
    let features = found["features"].as_array().unwrap();
    let mut ids: Vec<String> = features.iter().map(|f| f["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn a_latest_collection_shows_where_each_object_is() {
    let server = Server::start();
    ships(&server, "latest");
    server.load("ships", &[report("a1", "a", 1, 5.0), report("b1", "b", 3, 7.0)]);
    server.load("ships", &[report("a2", "a", 4, 9.0), report("b0", "b", 2, 30.0)]);
    let document = server.json("/collections/ships");
    assert_eq!((&document["mode"], &document["itemCount"]), (&json!("latest"), &json!(2)));
    assert_eq!(ids(&server, "/collections/ships/items"), ["a2", "b1"]);
    assert_eq!(ids(&server, "/collections/ships/items?bbox=0,0,1.5,9"), [""; 0]);
    assert_eq!(ids(&server, "/collections/ships/items?history=true"), ["a1", "a2", "b0", "b1"]);
    assert_eq!(ids(&server, "/collections/ships/items?history=true&bbox=0,0,1.5,9"), ["a1"]);
    server.get("/collections/ships/items?history=maybe").problem(400);
    let most = |extra: &str| {
        let answer = server.json(&format!("/collections/ships/aggregate?function=count,max(knots){extra}"));
        (answer["groups"][0]["count"].as_u64().unwrap(), answer["groups"][0]["max(knots)"].as_f64().unwrap())
    };
    assert_eq!((most(""), most("&history=true")), ((2, 9.0), (4, 30.0)));
    // Every event keeps its URL, and a track includes the history.
    assert_eq!(server.json("/collections/ships/items/b0")["properties"]["knots"].as_f64(), Some(30.0));
    assert_eq!(server.json("/collections/ships/items?track=b")["properties"]["events"], 2);
    assert_eq!(server.json("/collections/ships/tracks")["tracks"][0]["count"], 2);
    // When the newest event is deleted, the previous one becomes the newest.
    assert_eq!(server.ask("DELETE", "/collections/ships/items/a2", &[], b"").status, 204);
    assert_eq!(ids(&server, "/collections/ships/items"), ["a1", "b1"]);
    let answer = server.ask("DELETE", "/collections/ships/items?filter=knots%3E6", &[], b"");
    assert_eq!(answer.json()["deleted"], 1, "of what is shown, not of what is kept");
    assert_eq!(ids(&server, "/collections/ships/items"), ["a1", "b0"]);
    server.ask("DELETE", "/collections/ships/items?history=true", &[], b"").problem(400);
    let answer = server.ask("DELETE", "/collections/ships/items?history=true&ship=b", &[], b"");
    assert_eq!(answer.json()["deleted"], 1);
    assert_eq!(ids(&server, "/collections/ships/items"), ["a1"]);
}

#[test]
fn pages_of_a_latest_collection_read_one_snapshot() {
    let server = Server::start();
    ships(&server, "latest");
    let all: Vec<Value> = (0..30).map(|i| report(&format!("x{i}"), &format!("s{i}"), 5, 1.0)).collect();
    server.load("ships", &all);
    let (mut found, mut next) = (Vec::new(), "/collections/ships/items?limit=7".to_owned());
    for page in 0..5 {
        let answer = server.json(&next);
        found.extend(answer["features"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap().to_owned()));
        // All of them move on while the pages are read.
        let moved: Vec<Value> =
            (0..30).map(|i| report(&format!("y{page}-{i}"), &format!("s{i}"), 6 + page, 1.0)).collect();
        server.load("ships", &moved);
        let links = answer["links"].as_array().unwrap();
        match links.iter().find(|l| l["rel"] == "next") {
            Some(link) => next = link["href"].as_str().unwrap().strip_prefix("http://localhost").unwrap().to_owned(),
            None => break,
        }
    }
    found.sort();
    let mut expected: Vec<String> = (0..30).map(|i| format!("x{i}")).collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// Two clients patch one event: a patch based on an old version would undo the other client's.
#[test]
fn patches_are_not_lost() {
    let server = Server::start();
    ships(&server, "history");
    server.load("ships", &[report("a", "a", 1, 0.0)]);
    let item = "/collections/ships/items/a";
    let patch = |change: Value| {
        let headers = [("content-type", "application/merge-patch+json")];
        server.ask("PATCH", item, &headers, json!({ "properties": change }).to_string().as_bytes()).status
    };
    std::thread::scope(|scope| {
        let knots = scope.spawn(|| {
            for n in 1..=40 {
                while patch(json!({ "knots": n })) == 409 {}
                let found = server.json(item)["properties"]["knots"].as_f64();
                assert_eq!(found, Some(f64::from(n)), "another client's patch brought an old value back");
            }
        });
        for n in 1..=40 {
            let ship = format!("ship {n}");
            while patch(json!({ "ship": ship })) == 409 {}
            assert_eq!(server.json(item)["properties"]["ship"], ship.as_str());
        }
        knots.join().unwrap();
    });
    assert_eq!(server.json(item)["properties"]["knots"].as_f64(), Some(40.0));
    assert_eq!(patch(json!({"knots": null})), 204);
}

/// A deletion in several steps, concurrent with a writer: matching events go once, later ones stay, the rest is
/// untouched.
#[test]
fn a_large_deletion_is_exact_beside_writers() {
    let server = Server::start();
    server.create("n", "n:Integer,kind:String");
    let rows = |range: std::ops::Range<u32>, kind: &str| {
        range.fold("n,kind\n".to_owned(), |mut text, n| {
            text.push_str(&format!("{n},{kind}\n"));
            text
        })
    };
    let post = |body: String| assert_eq!(server.post("/collections/n/items", "text/csv", body).status, 201);
    for step in 0..4 {
        post(rows(step * 40_000..(step + 1) * 40_000, "old"));
    }
    post(rows(0..1000, "kept"));
    let done = AtomicBool::new(false);
    let (deleted, came) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut came = 0u64;
            while !done.load(Ordering::SeqCst) {
                post(rows(0..100, "old"));
                came += 100;
            }
            came
        });
        let answer = server.ask("DELETE", "/collections/n/items?kind=old", &[], b"");
        done.store(true, Ordering::SeqCst);
        assert_eq!(answer.status, 200, "{}", answer.text());
        (answer.json()["deleted"].as_u64().unwrap(), writer.join().unwrap())
    });
    assert!((160_000..=160_000 + came).contains(&deleted), "{deleted} with {came} more on their way");
    let count = |kind: &str| server.json(&format!("/collections/n/aggregate?function=count&kind={kind}"));
    assert_eq!(count("old")["groups"][0]["count"].as_u64().unwrap_or(0), 160_000 + came - deleted);
    assert_eq!(count("kept")["groups"][0]["count"], 1000);
    assert_eq!(server.json("/collections/n")["itemCount"].as_u64(), Some(161_000 + came - deleted));
    // Again: only events that came meanwhile.
    let again = server.ask("DELETE", "/collections/n/items?kind=old", &[], b"");
    assert_eq!(again.json()["deleted"].as_u64(), Some(160_000 + came - deleted));
}

#[test]
fn a_schema_grows_by_optional_fields() {
    let folder = std::env::temp_dir().join(format!("meridian-grows-{}", std::process::id()));
    let options = || meridian_store::Options::at(&folder);
    let mut server = Server::over(options(), meridian_api::ServerConfig::default());
    server.create("c", "n:Integer,at:Date,*geom:Point");
    let old: Vec<Value> =
        (0..20).map(|n| point("", f64::from(n), 1.0, json!({"n": n, "at": "2026-01-01T00:00:00Z"}))).collect();
    server.load("c", &old);
    let collection = server.store.collection("default", "c").unwrap();
    collection.flush().unwrap();
    let patch = |server: &Server, body: Value| {
        let headers = [("content-type", "application/json")];
        server.ask("PATCH", "/collections/c", &headers, body.to_string().as_bytes())
    };
    let grown = patch(&server, json!({"properties": {"depth": {"type": "number"}, "note": {"type": "string"}}}));
    assert_eq!(grown.status, 200, "{}", grown.text());
    let new: Vec<Value> = (20..30)
        .map(|n| {
            let fields = json!({"n": n, "at": "2026-01-02T00:00:00Z", "depth": n, "note": format!("n{n}")});
            point("", f64::from(n), 1.0, fields)
        })
        .collect();
    server.load("c", &new);
    look(&server);
    collection.flush().unwrap();
    collection.maintain().unwrap();
    look(&server);
    drop(collection);
    server.stop();
    drop(server);
    let server = Server::over(options(), meridian_api::ServerConfig::default());
    look(&server);
    for (change, field) in [
        (json!({"properties": {"n": {"type": "string"}}}), "n"),
        (json!({"properties": {"geom": {"type": "string"}}}), "geom"),
        (json!({"properties": {"depth": {"type": "number"}}}), "depth"),
        (json!({"properties": {"ship": {"type": "string", "x-meridian-object": true}}}), "ship"),
        (json!({"required": ["note"]}), "required"),
        (json!({"x-meridian-mode": "latest"}), "x-meridian-mode"),
        (json!({"durability": "ephemeral"}), "durability"),
        (json!({"title": "other"}), "title"),
    ] {
        let problem = patch(&server, change.clone()).problem(400);
        assert_eq!(problem["field"], field, "{change}: {problem}");
    }
    drop(server);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Checks twenty events from before `depth` and `note` were added, and ten from after.
fn look(server: &Server) {
    let get = |path: &str| server.get(&format!("/collections/c/{path}"));
    let old = server.json("/collections/c/items?n=3")["features"][0]["properties"].clone();
    assert_eq!((&old["depth"], &old["note"], &old["n"]), (&Value::Null, &Value::Null, &json!(3)));
    assert_eq!(server.json("/collections/c/items?filter=depth%3E24&limit=100")["numberReturned"], 5);
    assert_eq!(server.json("/collections/c/items?filter=note%20IS%20NULL&limit=100")["numberReturned"], 20);
    let groups = server.json("/collections/c/aggregate?function=count,sum(depth),max(depth)");
    let group = &groups["groups"][0];
    assert_eq!(group["count"], 30);
    assert_eq!((group["sum(depth)"].as_f64(), group["max(depth)"].as_f64()), (Some(245.0), Some(29.0)), "{group}");
    let by = server.json("/collections/c/aggregate?function=count&by=note");
    assert_eq!(by["groups"].as_array().unwrap().len(), 11, "{by}");
    let csv = get("items?f=csv").text();
    assert!(csv.lines().next().unwrap().contains("depth"), "{csv}");
    assert_eq!(csv.lines().count(), 31);
    for format in ["arrow", "parquet", "ndjson"] {
        let answer = get(&format!("items?f={format}"));
        assert_eq!(answer.status, 200, "{format}");
        assert!(answer.body.windows(5).any(|w| w == b"depth"), "{format}");
    }
}
