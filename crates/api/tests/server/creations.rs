//! Creations of a collection on the condition that there is none of its name, and removals on its tag.

use crate::support::{Response, Server};
use serde_json::json;

/// Creates a collection, unless its name is taken.
fn create_only(server: &Server, path: &str, spec: &str, condition: &str) -> Response {
    server.ask("PUT", path, &[("content-type", "text/plain"), ("if-none-match", condition)], spec.as_bytes())
}

#[test]
fn a_collection_is_created_only_where_none_is() {
    let server = Server::start();
    let (path, spec) = ("/collections/e", "n:Integer,at:Date");
    assert_eq!(create_only(&server, path, spec, "unquoted").problem(400)["field"], "if-none-match");
    assert!(["\"x\"", ""].iter().all(|tags| create_only(&server, path, spec, tags).status == 400));
    server.get(path).problem(404);
    assert_eq!(create_only(&server, path, spec, "*").status, 201);
    // Without the condition, each would change the empty collection, or be repeated in vain.
    for (query, spec) in [("", spec), ("?retention=P1D", spec), ("", "n:String,at:Date")] {
        create_only(&server, &format!("{path}{query}"), spec, "*").problem(412);
    }
    assert_eq!(server.json(path).get("retention"), None);
    assert_eq!(server.json("/collections/e/schema")["properties"]["n"]["type"], "integer");
    assert_eq!(server.ask("DELETE", path, &[], b"").status, 204);
    assert_eq!(create_only(&server, path, "n:String,at:Date", "*").status, 201);
}

#[test]
fn of_creations_at_once_one_is_done() {
    let server = Server::start();
    for round in 0..8 {
        let path = format!("/collections/e{round}");
        let (server, path) = (&server, path.as_str());
        let made: Vec<usize> = std::thread::scope(|scope| {
            let create = |writer: usize| {
                scope.spawn(move || {
                    let answer = create_only(server, path, &format!("f{writer}:Integer,at:Date"), "*");
                    assert!([201, 412].contains(&answer.status), "{}", answer.text());
                    (answer.status == 201).then_some(writer)
                })
            };
            let writers: Vec<_> = (0..6).map(create).collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(made.len(), 1, "{made:?} in round {round}");
        let schema = server.json(&format!("{path}/schema"));
        assert!(schema["properties"].get(format!("f{}", made[0])).is_some(), "{schema}");
    }
}

#[test]
fn a_collection_is_removed_by_its_tag_until_it_is_written_to() {
    let server = Server::start();
    let (path, spec) = ("/collections/e", "n:Integer,at:Date");
    let remove = |path: &str, tag: &str| server.ask("DELETE", path, &[("if-match", tag)], b"");
    let tag_of = |path: &str| server.get(path).header("etag").to_owned();
    assert_eq!(create_only(&server, "/collections/e?partitions=1", spec, "*").status, 201);
    let tag = tag_of(path);
    assert_eq!(remove(path, "unquoted").problem(400)["field"], "if-match");
    let refused = remove(path, "\"other\"").problem(412);
    assert!(refused["detail"].as_str().unwrap().contains("is another one, was changed or was written to"), "{refused}");
    remove(path, &format!("W/{tag}")).problem(412);
    assert_eq!(remove(path, &tag).status, 204);
    remove(path, &tag).problem(404);
    // Another one of the name is not the one that was seen.
    assert_eq!(create_only(&server, "/collections/e?partitions=1", spec, "*").status, 201);
    remove(path, &tag).problem(412);
    let before = tag_of(path);
    let properties = json!({ "n": 1, "at": "2026-01-01T00:00:00Z" });
    server.load("e", &[json!({ "type": "Feature", "geometry": null, "properties": properties })]);
    // A tag that was read since removes the event no more than the former one.
    for tag in [before, tag_of(path)] {
        remove(path, &tag).problem(412);
    }
    assert_eq!(server.json(path)["itemCount"], 1);
    assert_eq!(remove(path, "*").status, 204);
    server.create_of("p", spec, 2);
    for tag in ["\"other\"", &tag_of("/collections/p")] {
        assert_eq!(remove("/collections/p", tag).problem(501)["field"], "if-match");
    }
    assert_eq!(remove("/collections/p", "*").status, 204);
}
