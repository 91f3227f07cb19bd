//! `PATCH /collections/{c}` with a new `id`: renames a collection, and who may do that.

use crate::audit::{acts, named};
use crate::kinds::{Shared, ask};
use crate::owner::{gateway, is_gateway};
use crate::support::{Response, Server, point};
use meridian_api::{AppState, ServerConfig};
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use serde_json::{Value, json};
use std::sync::Arc;

const SPEC: &str = "name:String,*geom:Point:srid=4326";

fn patch(server: &Server, name: &str, document: &Value) -> Response {
    ask(server, None, "PATCH", &format!("/collections/{name}"), document.to_string().as_bytes())
}

/// Returns the response about an absent collection, without the request's own id.
fn absence(server: &Server, name: &str) -> (u16, String) {
    let answer = server.get(&format!("/collections/{name}/items"));
    let problem = answer.json();
    (answer.status, problem["detail"].to_string().replace(name, "NAME"))
}

#[test]
fn a_renamed_collection_is_found_under_its_new_name_alone() {
    // A gateway's collections keep their names.
    if is_gateway() {
        return;
    }
    let server = Server::start();
    for name in ["ships", "taken"] {
        server.create(name, SPEC);
    }
    let points: Vec<Value> = (0..5).map(|n| point("", f64::from(n), 2.0, json!({ "name": format!("n{n}") }))).collect();
    server.load("ships", &points);
    // Its own name is no change.
    let same = patch(&server, "ships", &json!({ "id": "ships", "properties": { "flag": { "type": "string" } } }));
    assert_eq!((same.status, same.header("location")), (200, ""), "{}", same.text());
    let before = server.json("/collections/ships/items?limit=10")["features"].clone();
    assert_eq!(before.as_array().map(Vec::len), Some(5));
    let next = server.json("/collections/ships/items?limit=2")["links"].clone();
    let next = next.as_array().unwrap().iter().find(|link| link["rel"] == "next").unwrap()["href"].clone();
    let next = next.as_str().unwrap().split_once("/collections/ships/").unwrap().1.to_owned();
    // A value that is not a valid name, not alone, or already taken changes nothing.
    for wrong in [json!(5), json!(""), json!("../x"), json!("con"), json!("Taken"), json!(null)] {
        let problem = patch(&server, "ships", &json!({ "id": wrong })).problem(400);
        assert_eq!(problem["field"], "id", "{problem}");
    }
    let both = patch(&server, "ships", &json!({ "id": "vessels", "retention": "P1000D" })).problem(400);
    assert!(both["detail"].as_str().unwrap().contains("comes alone"), "{both}");
    let taken = patch(&server, "ships", &json!({ "id": "taken" })).problem(409);
    assert!(taken["detail"].as_str().unwrap().contains("taken"), "{taken}");
    patch(&server, "absent", &json!({ "id": "vessels" })).problem(404);
    assert_eq!(server.json("/collections/ships/items?limit=10")["features"], before);

    let renamed = patch(&server, "ships", &json!({ "id": "vessels" }));
    assert_eq!(renamed.status, 200, "{}", renamed.text());
    assert!(renamed.header("location").ends_with("/collections/vessels"), "{}", renamed.header("location"));
    let described = renamed.json();
    assert_eq!((&described["id"], &described["itemCount"]), (&json!("vessels"), &json!(5)));
    assert_eq!(server.json("/collections/vessels/schema")["properties"]["flag"]["type"], "string");
    assert_eq!(server.json("/collections/vessels/items?limit=10")["features"], before);
    assert_eq!(absence(&server, "ships"), absence(&server, "never-there"));
    assert_eq!(absence(&server, "ships").0, 404);
    let listed = server.json("/collections")["collections"].clone();
    let listed: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(listed, ["taken", "vessels"]);
    // A page token belongs to the old name.
    server.get(&format!("/collections/ships/{next}")).problem(404);
    server.load("vessels", &points);
    assert_eq!(server.json("/collections/vessels")["itemCount"], 10);
    server.create("ships", SPEC);
    assert_eq!(server.json("/collections/ships")["itemCount"], 0);
    assert_eq!(server.store.check(), []);
}

#[test]
fn a_rename_needs_the_right_to_manage_both_names() {
    if is_gateway() {
        return;
    }
    let shared = Shared::start();
    let rename = |by: &str, name: &str, new: &str| {
        let body = json!({ "id": new }).to_string();
        ask(&shared.server, Some(by), "PATCH", &format!("/collections/{name}"), body.as_bytes())
    };
    rename(&shared.writer, "ships", "ships-9").problem(403);
    rename(&shared.reader, "ships", "ships-9").problem(403);
    // The new name is not covered, and the old one must not be visible.
    let outside = rename(&shared.admin, "ships", "boats").problem(403);
    assert!(outside["detail"].as_str().unwrap().contains("boats"), "{outside}");
    rename(&shared.admin, "vault", "ships-9").problem(404);
    // The response does not reveal that a name is taken where it may not be seen.
    assert_eq!(
        rename(&shared.admin, "ships", "vault").problem(403)["detail"].to_string().replace("vault", "boats"),
        outside["detail"].to_string()
    );
    assert_eq!(shared.ask(&shared.admin, "GET", "/collections/ships").status, 200);

    assert_eq!(rename(&shared.admin, "ships", "ships-9").status, 200);
    assert_eq!(shared.ask(&shared.admin, "GET", "/collections/ships-9").status, 200);
    shared.ask(&shared.admin, "GET", "/collections/ships").problem(404);
    let all = acts(&shared, &shared.operator);
    let line = named(&all, "updateCollection").into_iter().find(|line| line["status"] == 200).unwrap();
    assert_eq!((&line["collection"], &line["change"]), (&json!("ships"), &json!("new name ships-9")));
}

#[test]
fn a_collection_of_a_gateway_keeps_its_name() {
    let seams = Seams::real();
    let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
    let (remote, owner) = gateway(&store, &seams);
    let state = AppState::new(remote, &seams, ServerConfig::default()).unwrap();
    let server = Server::of("127.0.0.1:0", store, state, None, Some(owner));
    server.create("ships", SPEC);
    let refused = patch(&server, "ships", &json!({ "id": "vessels" })).problem(501);
    assert!(refused["detail"].as_str().unwrap().contains("export it and load it"), "{refused}");
    assert_eq!(server.get("/collections/ships").status, 200);
}
