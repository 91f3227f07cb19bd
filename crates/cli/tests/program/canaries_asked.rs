//! Ids of another tenant in parameters, headers and bodies: the response says no more than for an id that does not
//! exist.

use crate::canaries::{ABSENT, CANARY, Id, JSON, Response, World, ask, body, target};
use crate::common;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const GEOJSON: &str = "application/geo+json";

/// What the owner has planted, besides ids.
static CONTENTS: [&str; 11] = [
    "canary value",
    "canary title",
    "canary description",
    "canary heading",
    "canary_field",
    "canaryword",
    "canary author",
    "canary name",
    "canary place",
    "canary secret",
    "canary.example",
];

/// Bodies that name things: `ID` stands for an id. The last ones create collections of these names.
const BODIES: [(&str, &str, &str, &str); 14] = [
    ("POST", "/collections/mine/items", GEOJSON, r#"{"type":"Feature","id":"ID","geometry":null,"properties":{}}"#),
    ("PUT", "/collections/mine/items/ID", GEOJSON, r#"{"type":"Feature","geometry":null,"properties":{"name":"ID"}}"#),
    ("POST", "/api/v0/places", JSON, r#"{"id":"ID","name":"ID","latitude":1,"longitude":2}"#),
    ("POST", "/tokens", JSON, r#"{"role":"reader","collections":"ID"}"#),
    ("POST", "/tokens", JSON, r#"{"role":"reader","tenant":"ID"}"#),
    ("POST", "/users", JSON, r#"{"name":"a","role":"reader","password":"correct horse battery","tenant":"ID"}"#),
    ("PATCH", "/users/absent", JSON, r#"{"collections":"ID"}"#),
    ("POST", "/tenants", JSON, r#"{"name":"ID"}"#),
    ("PATCH", "/tenants/other", JSON, r#"{"anonymous":"ID"}"#),
    ("POST", "/backup", JSON, r#"{"tenant":"ID"}"#),
    ("POST", "/saved-searches", JSON, r#"{"name":"ID","question":{"keywords":"ID","author":"ID"}}"#),
    ("POST", "/saved-searches", JSON, r#"{"question":{"keywords":"a","providers":["ID"]}}"#),
    ("POST", "/searches", JSON, r#"{"keywords":"ID","providers":["ID"]}"#),
    ("POST", "/searches", JSON, r#"{"keywords":"ID","providers":["meridian"],"keep":{"collection":"ID"}}"#),
];

/// A parameter or header that a route takes.
struct Parameter {
    method: String,
    path: String,
    name: String,
    is_header: bool,
}

/// Returns those of the OpenAPI document, which has every route of the table.
fn parameters() -> Vec<Parameter> {
    let text = std::fs::read_to_string(common::root().join("docs/openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let resolved = |parameter: &Value| match parameter["$ref"].as_str() {
        Some(address) => document.pointer(address.trim_start_matches('#')).unwrap().clone(),
        None => parameter.clone(),
    };
    let mut parameters = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in ["get", "post", "delete", "put", "patch"] {
            let lists = [&operations["parameters"], &operations[method]["parameters"]];
            for parameter in lists.into_iter().filter_map(Value::as_array).flatten().map(&resolved) {
                let named = Parameter {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    name: parameter["name"].as_str().unwrap().to_owned(),
                    is_header: parameter["in"] == "header",
                };
                if operations.get(method).is_some() && parameter["in"] != "path" {
                    parameters.push(named);
                }
            }
        }
    }
    assert!(parameters.len() > 100, "{}", parameters.len());
    parameters
}

impl Parameter {
    /// Asks the caller's own resource, with this value.
    fn ask(&self, world: &World, id: &str) -> Response {
        let path = self.path.replace("{c}", "mine").replace("/items/{id}", "/items/own");
        let mut target = target(&path, "0123456789abcdef");
        let (kind, body) = body(&self.method, &self.path);
        let mut headers = vec![("Content-Type", kind)];
        match &*self.name {
            name if self.is_header => headers.push((name, id)),
            "filter" => target += &format!("?filter=name%20%3D%20%27{id}%27"),
            name => target += &format!("?{name}={id}"),
        }
        let body = if matches!(&*self.method, "GET" | "DELETE") { String::new() } else { body };
        ask(&world.server, &world.foreign[0], &self.method, &target, &headers, &body)
    }
}

/// Returns a response without what is made anew for each: ids, instants, lengths.
fn constant(response: &Response) -> (BTreeSet<String>, String) {
    let is_made = |word: &&str| word.len() >= 13 && word.contains(|c: char| c.is_ascii_digit());
    let masked = |text: &str| {
        let words = text.split(['"', ' ', '/', '?', '&', '=', ',']);
        words.map(|word| if is_made(&word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
    };
    let lines = response.head.iter().filter(|line| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("content-length:") && !line.starts_with("etag:")
    });
    (lines.map(|line| masked(line)).collect(), masked(&response.body))
}

/// Checks that the response to a foreign id says no more than that to an absent one.
#[track_caller]
fn same(there: &Response, absent: &Response, (id, what): (&Id, &str)) {
    let shown = CONTENTS.iter().find(|text| there.body.contains(*text) || there.head.iter().any(|l| l.contains(*text)));
    assert_eq!(shown, None, "{what}");
    assert_eq!(there.status(), absent.status(), "{what}: {there:?} {absent:?}");
    let is_change = !what.starts_with("GET ") && there.status() < 400;
    match there.status() {
        // Both were done, at different times.
        _ if is_change => {}
        // Neither was looked up; the refusal may repeat a part of the value.
        400 => {
            let (there, absent) = (there.json(), absent.json());
            assert_eq!((&there["type"], &there["field"]), (&absent["type"], &absent["field"]), "{what}");
        }
        _ => {
            let there = there.with(&id.planted, &id.absent).with(CANARY, ABSENT);
            assert_eq!(constant(&there), constant(&absent.with(CANARY, ABSENT)), "{what}");
        }
    }
}

/// Creates a user of the owner's tenant, and checks that an attempt to sign in tells neither it nor its tenant from
/// absent ones. The first five attempts of an address are not slowed down.
fn no_attempt_to_sign_in_tells_a_user(world: &World) {
    let post = |by: &str, path: &str, document: Value| {
        ask(&world.server, by, "POST", path, &[("Content-Type", JSON)], &document.to_string())
    };
    let password = "correct horse battery";
    let user = json!({"name": "canary-user", "role": "reader", "password": password, "tenant": "harbour"});
    let made = post(&world.operator, "/users", user);
    assert_eq!(made.status(), 201, "{made:?}");
    let attempt = |name: &str| {
        post(&world.foreign[0], "/login", json!({"name": name, "password": "wrong horse battery", "next": "/canary"}))
    };
    let there = attempt("harbour/canary-user");
    assert_eq!(there.status(), 401, "{there:?}");
    for absent in ["harbour/absent-user", "harbrou/canary-user", "canary-user"] {
        assert_eq!(attempt(absent), there, "{absent}");
    }
    assert!(!format!("{there:?}").contains(CANARY), "{there:?}");
}

#[test]
fn foreign_ids_in_parameters_headers_and_bodies_answer_as_absent_ones() {
    let mut world = World::plant();
    world.ids.push(Id::new("idempotency key", "canary-key"));
    let by_foreign = |method: &str, path: &str, kind: &str, key: &str, body: &str| {
        let headers = [("Content-Type", kind), ("Idempotency-Key", key)];
        ask(&world.server, &world.foreign[0], method, path, &headers, body)
    };
    let schema =
        r#"{"type":"object","properties":{"id":{"type":"string","x-ogc-role":"id"},"name":{"type":"string"}}}"#;
    let create = |name: &str| {
        let made = by_foreign("PUT", &format!("/collections/{name}"), "application/schema+json", name, schema);
        assert_eq!(made.status(), 201, "{made:?}");
    };
    create("mine");
    let event = r#"{"type":"Feature","id":"own","geometry":null,"properties":{"name":"mine"}}"#;
    assert_eq!(by_foreign("POST", "/collections/mine/items", GEOJSON, "own", event).status(), 201);

    let mut asked = 0;
    for parameter in parameters() {
        for id in &world.ids {
            let Parameter { method, path, name, .. } = &parameter;
            let what = format!("{method} {path} with the id of a {} as {name}", id.kind);
            same(&parameter.ask(&world, &id.planted), &parameter.ask(&world, &id.absent), (id, &what));
            asked += 1;
        }
    }
    assert!(asked > 1_000, "{asked}");
    no_attempt_to_sign_in_tells_a_user(&world);
    // A name that another tenant uses is free.
    for name in ["canary-collection", "absent-collection"] {
        create("spare");
        let renamed = by_foreign("PATCH", "/collections/spare", JSON, name, &format!(r#"{{"id":"{name}"}}"#));
        assert_eq!(renamed.status(), 200, "{renamed:?}");
    }
    for (method, path, kind, text) in BODIES {
        for id in &world.ids {
            let answer = |id: &str| by_foreign(method, &path.replace("ID", id), kind, id, &text.replace("ID", id));
            let what = format!("{method} {path} with the id of a {} in {text}", id.kind);
            same(&answer(&id.planted), &answer(&id.absent), (id, &what));
        }
    }

    // The owner has everything as it was, and no log or metric has any of it.
    let own = |target: &str| ask(&world.server, &world.owner, "GET", target, &[], "");
    assert_eq!(own("/collections/canary-collection/items").json()["numberReturned"], 2);
    let metrics = ask(&world.server, &world.operator, "GET", "/metrics", &[], "").body;
    for (what, text) in [("log", world.server.log()), ("metrics", metrics)] {
        let secrets = [&*world.owner, &*world.page];
        let shown = CONTENTS.iter().chain(&secrets).find(|secret| text.contains(**secret));
        assert_eq!(shown, None, "{what}");
    }
}
