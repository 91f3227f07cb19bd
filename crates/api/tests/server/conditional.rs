//! Conditional requests: reads of unchanged data, and writes based on a known version.

use crate::support::{Response, Server, point};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

const JSON: (&str, &str) = ("content-type", "application/geo+json");

fn filled() -> Server {
    let server = Server::start();
    server.create("c", "n:Integer,note:String,dtg:Date,*geom:Point:srid=4326");
    given(&server, "g");
    let events: Vec<_> =
        (0..50).map(|n| point("", f64::from(n), 5.0, json!({ "n": n, "dtg": "2024-01-01T00:00:00Z" }))).collect();
    server.load("c", &events);
    server
}

/// Creates a collection with client-supplied ids, and one event.
fn given(server: &Server, name: &str) {
    let schema = json!({ "type": "object", "properties": {
        "id": { "type": "string", "x-ogc-role": "id" },
        "n": { "type": "integer" },
        "geometry": { "format": "geometry-point", "x-ogc-role": "primary-geometry" },
    }});
    let body = schema.to_string();
    let made = server.ask(
        "PUT",
        &format!("/collections/{name}"),
        &[("content-type", "application/schema+json")],
        body.as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    server.load(name, &[event("a", 1)]);
}

fn event(id: &str, n: usize) -> serde_json::Value {
    point(id, 1.0, 2.0, json!({ "n": n }))
}

fn tag_of(server: &Server, path: &str) -> String {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let tag = answer.header("etag").to_owned();
    assert!(tag.ends_with('"'), "{path}: {tag:?}");
    tag
}

/// Changes the settings and fields of a collection.
fn change(server: &Server, path: &str, body: &Value, more: &[(&str, &str)]) -> Response {
    let headers = [&[("content-type", "application/json")], more].concat();
    server.ask("PATCH", path, &headers, body.to_string().as_bytes())
}

fn unless(server: &Server, path: &str, tag: &str) -> Response {
    server.ask("GET", path, &[("if-none-match", tag)], b"")
}

#[test]
fn what_the_client_has_is_not_sent_again_until_a_write() {
    let server = filled();
    let id = server.json("/collections/c/items?limit=1")["features"][0]["id"].as_str().unwrap().to_owned();
    let one = format!("/collections/c/items/{id}");
    let of_snapshot = [
        "/collections/c/items?limit=5",
        "/collections/c/items?f=csv",
        "/collections/c/items?f=ndjson",
        "/collections/c/aggregate?function=count,avg(n)",
        "/collections/c/aggregate?function=count&f=csv",
        "/collections/c/density?width=4&height=4",
        "/collections/c/tiles/WebMercatorQuad/0/0/0",
        "/collections/c",
    ];
    let all = of_snapshot.iter().copied().chain([
        &*one,
        "/collections",
        "/collections/c/schema",
        "/openapi.json",
        "/conformance",
    ]);
    let tags: Vec<(String, String)> = all.map(|path| (path.to_owned(), tag_of(&server, path))).collect();
    for (path, tag) in &tags {
        for listed in [tag.clone(), format!("\"other\", {tag}"), "*".to_owned()] {
            let answer = unless(&server, path, &listed);
            assert_eq!(
                (answer.status, answer.body.len(), answer.header("etag")),
                (304, 0, tag.as_str()),
                "{path} {listed}"
            );
            assert!(!answer.header("vary").is_empty(), "{path}");
        }
        for other in ["\"other\"", "W/\"other\"", "nonsense"] {
            assert_eq!(unless(&server, path, other).status, 200, "{path} {other}");
        }
        let head = server.ask("HEAD", path, &[("if-none-match", tag)], b"");
        assert_eq!(head.status, 304, "{path}");
        // A state other than the requested one.
        server.ask("GET", path, &[("if-match", "\"other\"")], b"").problem(412);
    }
    // Another format at the same URL is a different representation.
    let (_, tag) = tags.iter().find(|(path, _)| path.ends_with("aggregate?function=count,avg(n)")).unwrap();
    let csv = server.ask(
        "GET",
        "/collections/c/aggregate?function=count,avg(n)",
        &[("if-none-match", tag), ("accept", "text/csv")],
        b"",
    );
    assert_eq!(csv.status, 200);

    server.load("c", &[point("", 5.0, 5.0, json!({ "n": 1, "dtg": "2024-01-01T00:00:00Z" }))]);
    for (path, tag) in &tags {
        let stays = *path == one || path.ends_with("schema") || path.starts_with("/openapi") || path == "/conformance";
        assert_eq!(unless(&server, path, tag).status, if stays { 304 } else { 200 }, "{path}");
    }
    // A new property is shown in every event.
    let change = json!({ "properties": { "extra": { "type": "string" } } }).to_string();
    let changed = server.ask("PATCH", "/collections/c", &[("content-type", "application/json")], change.as_bytes());
    assert_eq!(changed.status, 200, "{}", changed.text());
    let (_, tag) = tags.iter().find(|(path, _)| *path == one).unwrap();
    assert_eq!(unless(&server, &one, tag).status, 200);
}

#[test]
fn another_collection_of_the_name_has_nothing_of_the_former_one() {
    let server = filled();
    let first = server.json("/collections/c/items?limit=20");
    let next = first["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next").unwrap()["href"].clone();
    let next = next.as_str().unwrap().strip_prefix("http://localhost").unwrap().to_owned();
    let paths = ["/collections/g/items/a", "/collections/g/items", "/collections/g/aggregate?function=count"];
    let tags = paths.map(|path| tag_of(&server, path));
    let definition = tag_of(&server, "/collections/g");
    for name in ["c", "g"] {
        assert_eq!(server.ask("DELETE", &format!("/collections/{name}"), &[], b"").status, 204);
    }
    // As many writes as before, so that the snapshots have the same numbers.
    server.create("c", "n:Integer,note:String,dtg:Date,*geom:Point:srid=4326");
    given(&server, "g");
    let events: Vec<_> =
        (0..50).map(|n| point("", f64::from(n), 5.0, json!({ "n": -n, "dtg": "2024-01-01T00:00:00Z" }))).collect();
    server.load("c", &events);
    server.get(&next).problem(410);
    for (path, tag) in paths.iter().zip(&tags) {
        assert_eq!(unless(&server, path, tag).status, 200, "{path}");
    }
    let body = event("a", 2).to_string();
    server.ask("PUT", paths[0], &[JSON, ("if-match", &tags[0])], body.as_bytes()).problem(412);
    change(&server, "/collections/g", &json!({ "properties": {} }), &[("if-match", &definition)]).problem(412);
}

#[test]
fn the_next_pages_of_a_snapshot_stay_what_they_are() {
    let server = filled();
    let first = server.json("/collections/c/items?limit=20");
    let next = first["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next").unwrap()["href"].clone();
    let next = next.as_str().unwrap().split_once("/collections").unwrap().1.to_owned();
    let next = format!("/collections{next}");
    let tag = tag_of(&server, &next);
    assert!(tag.starts_with("W/"), "the time of the response is in it: {tag}");
    assert_eq!(unless(&server, &next, &tag).status, 304);
}

#[test]
fn a_compressed_response_has_a_tag_of_its_own_that_conditions_know() {
    let server = filled();
    let plain = tag_of(&server, "/openapi.json");
    let coded = server.ask("GET", "/openapi.json", &[("accept-encoding", "gzip")], b"");
    let tag = coded.header("etag").to_owned();
    assert_eq!(tag, plain.trim_end_matches('"').to_owned() + "-gzip\"");
    let own = tag_of(&server, "/collections/g/items/a");
    for (path, plain, coded) in [("/openapi.json", &plain, &tag), ("/collections/g/items/a", &own, &own)] {
        for coding in ["gzip", "identity", "br"] {
            let ask =
                |more: &[(&str, &str)]| server.ask("GET", path, &[&[("accept-encoding", coding)], more].concat(), b"");
            // That of the response that a cache would have received instead.
            let whole = ask(&[]).header("etag").to_owned();
            for named in [&**coded, plain, &format!("{coded}, {plain}"), &format!("W/{plain}"), "*"] {
                let again = ask(&[("if-none-match", named)]);
                assert_eq!((again.status, again.header("etag")), (304, &*whole), "{path} {coding} {named}");
            }
        }
    }
}

#[test]
fn a_write_is_done_on_the_version_that_the_client_has_seen() {
    let server = filled();
    let path = "/collections/g/items/a";
    let put = |n: usize, more: &[(&str, &str)]| {
        server.ask("PUT", path, &[&[JSON], more].concat(), event("a", n).to_string().as_bytes())
    };
    let patch = |n: usize, more: &[(&str, &str)]| {
        server.ask("PATCH", path, &[&[JSON], more].concat(), json!({ "properties": { "n": n } }).to_string().as_bytes())
    };
    let n = || server.json(path)["properties"]["n"].clone();
    let first = tag_of(&server, path);
    assert!(!first.starts_with("W/"), "{first}");
    assert_eq!(put(2, &[("if-match", &first)]).status, 204);
    let second = tag_of(&server, path);
    assert_ne!(first, second);
    for stale in [&*first, "\"other\"", &format!("W/{second}")] {
        put(9, &[("if-match", stale)]).problem(412);
        patch(9, &[("if-match", stale)]).problem(412);
        server.ask("DELETE", path, &[("if-match", stale)], b"").problem(412);
    }
    put(9, &[("if-none-match", "*")]).problem(412);
    put(9, &[("if-match", "unquoted")]).problem(400);
    assert_eq!(n(), 2);
    assert_eq!(patch(3, &[("if-match", &format!("\"other\", {second}"))]).status, 204);
    assert_eq!(patch(4, &[("if-match", "*")]).status, 204);
    assert_eq!(put(5, &[("if-none-match", &second)]).status, 204, "it is no longer that version");
    assert_eq!(n(), 5);
    let last = tag_of(&server, path);
    assert_eq!(server.ask("DELETE", path, &[("if-match", &last)], b"").status, 204);
    server.get(path).problem(404);

    // The event does not exist now.
    for method in ["PUT", "PATCH", "DELETE"] {
        let body = if method == "DELETE" { String::new() } else { event("a", 9).to_string() };
        let headers: &[(&str, &str)] =
            if method == "DELETE" { &[("if-match", "*")] } else { &[JSON, ("if-match", "*")] };
        server.ask(method, path, headers, body.as_bytes()).problem(412);
    }
    assert_eq!(put(6, &[("if-none-match", "*")]).status, 201);
    put(7, &[("if-none-match", "*")]).problem(412);
    assert_eq!(n(), 6);
    // An event that was deleted and written again is another version.
    put(8, &[("if-match", &last)]).problem(412);
}

#[test]
fn an_event_with_a_made_id_is_deleted_as_it_was_seen() {
    let server = filled();
    let id = server.json("/collections/c/items?limit=1")["features"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/collections/c/items/{id}");
    let tag = tag_of(&server, &path);
    server.ask("DELETE", &path, &[("if-match", "\"other\"")], b"").problem(412);
    assert_eq!(server.ask("DELETE", &path, &[("if-match", &tag)], b"").status, 204);
    server.ask("DELETE", &path, &[("if-match", &tag)], b"").problem(412);
    assert_eq!(server.json("/collections/c")["itemCount"], 49);
}

#[test]
fn of_writes_on_one_version_one_is_done() {
    let server = filled();
    let path = "/collections/g/items/a";
    for round in 0..8 {
        let tag = tag_of(&server, path);
        let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for writer in 0..6 {
                let (server, tag, done, refused) = (&server, &tag, &done, &refused);
                scope.spawn(move || {
                    let n = 100 * round + writer;
                    let answer = match writer % 2 {
                        0 => server.ask("PUT", path, &[JSON, ("if-match", tag)], event("a", n).to_string().as_bytes()),
                        _ => {
                            let change = json!({ "properties": { "n": n } }).to_string();
                            server.ask("PATCH", path, &[JSON, ("if-match", tag)], change.as_bytes())
                        }
                    };
                    match answer.status {
                        204 => done.fetch_add(1, Ordering::Relaxed),
                        412 => refused.fetch_add(1, Ordering::Relaxed),
                        other => panic!("{other}: {}", answer.text()),
                    };
                });
            }
        });
        assert_eq!((done.into_inner(), refused.into_inner()), (1, 5), "round {round}");
    }
    // Deletions too, concurrently with a write.
    let tag = tag_of(&server, path);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (server, tag, done) = (&server, &tag, &done);
            scope.spawn(move || {
                let answer = match writer {
                    0 => server.ask("PUT", path, &[JSON, ("if-match", tag)], event("a", 1).to_string().as_bytes()),
                    _ => server.ask("DELETE", path, &[("if-match", tag)], b""),
                };
                assert!([204, 412].contains(&answer.status), "{}", answer.text());
                done.fetch_add(usize::from(answer.status == 204), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(done.into_inner(), 1);
}

#[test]
fn a_change_is_made_on_the_definition_that_the_client_has_seen() {
    let server = filled();
    let path = "/collections/c";
    let (limited, unlimited) = (json!({ "retention_bytes": 1u64 << 40 }), json!({ "retention_bytes": null }));
    let extended = json!({ "properties": { "extra": { "type": "string" } } });
    let first = tag_of(&server, path);
    // Events change the description, and not the definition.
    server.load("c", &[point("", 5.0, 5.0, json!({ "n": 1, "dtg": "2024-01-01T00:00:00Z" }))]);
    assert_ne!(tag_of(&server, path), first);
    let made = change(&server, path, &limited, &[("if-match", &first)]);
    assert_eq!(made.status, 200, "{}", made.text());
    // The response has the tag of the new definition.
    let second = made.header("etag").to_owned();
    for stale in [&*first, "\"other\"", &format!("W/{second}")] {
        change(&server, path, &unlimited, &[("if-match", stale)]).problem(412);
        change(&server, path, &extended, &[("if-match", stale)]).problem(412);
    }
    assert_eq!(change(&server, path, &unlimited, &[("if-match", "unquoted")]).problem(400)["field"], "if-match");
    assert_eq!(server.json(path)["retention_bytes"], 1u64 << 40);
    assert_eq!(server.json("/collections/c/schema")["properties"].get("extra"), None);
    assert_eq!(change(&server, path, &extended, &[("if-match", &format!("\"other\", {second}"))]).status, 200);
    // A new field is another definition too.
    change(&server, path, &unlimited, &[("if-match", &second)]).problem(412);
    assert_eq!(change(&server, path, &unlimited, &[("if-match", "*")]).status, 200);
    assert_eq!(server.json(path).get("retention_bytes"), None);
    change(&server, "/collections/absent", &unlimited, &[("if-match", "*")]).problem(404);
}

#[test]
fn of_changes_of_one_definition_one_is_made() {
    let server = filled();
    server.create_of("p", "n:Integer,dtg:Date", 3);
    for path in ["/collections/c", "/collections/p"] {
        for round in 0..4 {
            let (tag, done) = (tag_of(&server, path), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for writer in 0..4 {
                    let (server, tag, done) = (&server, &tag, &done);
                    scope.spawn(move || {
                        let name = format!("f{round}x{writer}");
                        let body = match writer % 2 {
                            0 => json!({ "properties": { name: { "type": "integer" } } }),
                            _ => json!({ "retention_bytes": (1u64 << 40) + 10 * round + writer }),
                        };
                        let answer = change(server, path, &body, &[("if-match", tag)]);
                        assert!([200, 412].contains(&answer.status), "{}", answer.text());
                        done.fetch_add(usize::from(answer.status == 200), Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(done.into_inner(), 1, "{path} round {round}");
        }
    }
}

#[test]
fn a_condition_that_a_write_does_not_take_is_refused_and_nothing_is_done() {
    let server = filled();
    let body = json!({ "type": "FeatureCollection", "features": [event("b", 1)] }).to_string();
    for condition in [("if-match", "\"x\""), ("if-none-match", "*")] {
        server.ask("POST", "/collections/g/items", &[JSON, condition], body.as_bytes()).problem(501);
        server.ask("DELETE", "/collections/g/items?filter=n%3D1", &[condition], b"").problem(501);
        if condition.0 != "if-match" {
            server.ask("DELETE", "/collections/g", &[condition], b"").problem(501);
            change(&server, "/collections/g", &json!({}), &[condition]).problem(501);
        }
    }
    // A new name is not part of the definition.
    change(&server, "/collections/g", &json!({ "id": "h" }), &[("if-match", "*")]).problem(501);
    assert_eq!(server.json("/collections/g")["itemCount"], 1);
}

#[test]
fn a_condition_on_a_date_is_ignored_where_nothing_has_a_date() {
    let server = filled();
    let (path, body) = ("/collections/g/items/a", event("a", 2).to_string());
    for name in ["if-modified-since", "if-unmodified-since"] {
        let date = (name, "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(server.ask("GET", path, &[date], b"").status, 200, "{name}");
        let written = server.ask("PUT", path, &[JSON, date], body.as_bytes());
        assert_eq!(written.status, 204, "{name}: {}", written.text());
        let tagged = [JSON, date, ("if-match", "\"other\"")];
        server.ask("PUT", path, &tagged, body.as_bytes()).problem(412);
        let changed = change(&server, "/collections/g", &json!({ "retention_bytes": null }), &[date]);
        assert_eq!(changed.status, 200, "{name}: {}", changed.text());
    }
}

#[test]
fn a_part_does_not_replace_the_whole() {
    let server = filled();
    for (path, media_type, body) in [
        ("/collections/g/items/a", JSON.1, event("a", 9).to_string()),
        ("/collections/new", "text/plain", "n:Integer".to_owned()),
    ] {
        let headers = [("content-type", media_type), ("content-range", "bytes 0-9/10")];
        let refused = server.ask("PUT", path, &headers, body.as_bytes());
        assert_eq!(refused.problem(400)["field"], "Content-Range", "{path}");
    }
    assert_eq!(server.json("/collections/g/items/a")["properties"]["n"], 1);
    server.get("/collections/new").problem(404);
}
