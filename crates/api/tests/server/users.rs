//! Administration of users.

use crate::kinds::{Shared, ask};
use crate::sign_in::{Browser, PASSWORD};
use serde_json::{Value, json};

#[test]
fn users_are_managed_by_the_rules_of_tokens() {
    let shared = Shared::start();
    let server = &shared.server;
    let post = |by: &str, mut asked: Value| {
        asked["password"] = json!(PASSWORD);
        ask(server, Some(by), "POST", "/users", asked.to_string().as_bytes())
    };
    for (by, asked) in [
        (&shared.admin, json!({ "name": "a", "role": "operator" })),
        (&shared.admin, json!({ "name": "a", "role": "reader" })),
        (&shared.admin, json!({ "name": "a", "role": "reader", "collections": "ships*", "tenant": "other" })),
        (&shared.writer, json!({ "name": "a", "role": "reader", "collections": "ships" })),
    ] {
        post(by, asked).problem(403);
    }
    for (wrong, field) in [
        (json!({ "name": "a", "role": "king" }), "role"),
        (json!({ "name": "A b", "role": "reader" }), "name"),
        (json!({ "name": "", "role": "reader" }), "name"),
        (json!({ "name": "a", "role": "reader", "collections": "a b" }), "collections"),
        (json!({ "name": "a", "role": "reader", "tenant": "nobody" }), "tenant"),
        (json!({ "name": "a", "role": "operator", "tenant": "other" }), "tenant"),
        (json!({ "name": "a", "role": "operator", "collections": "ships*" }), "collections"),
    ] {
        assert_eq!(post(&shared.operator, wrong).problem(400)["field"], field);
    }
    for short in ["", "eleven char"] {
        let asked = json!({ "name": "a", "role": "reader", "password": short }).to_string();
        let problem = ask(server, Some(&shared.operator), "POST", "/users", asked.as_bytes()).problem(400);
        assert_eq!(problem["field"], "password");
    }
    // A caller whose token ends in an hour cannot grant anything that lasts.
    let asked = json!({ "role": "admin", "expires": "PT1H" }).to_string();
    let made = ask(server, Some(&shared.operator), "POST", "/tokens", asked.as_bytes()).json();
    let short = made["token"].as_str().unwrap();
    assert!(
        post(short, json!({ "name": "a", "role": "reader" })).problem(403)["detail"]
            .as_str()
            .unwrap()
            .contains("outlast")
    );

    // The same name in two tenants denotes two users, and neither admin learns of the other's.
    let made = post(&shared.admin, json!({ "name": "anna", "role": "writer", "collections": "ships*" }));
    assert_eq!((made.status, made.header("location").ends_with("/users/anna")), (201, true), "{}", made.text());
    let taken = post(&shared.admin, json!({ "name": "anna", "role": "writer", "collections": "ships*" })).problem(409);
    assert_eq!(taken["detail"], "there is a user \"anna\" already");
    assert_eq!(post(&shared.foreign, json!({ "name": "anna", "role": "reader" })).status, 201);
    let listed = shared.ask(&shared.foreign, "GET", "/users").json();
    assert_eq!(listed["users"].as_array().unwrap().len(), 1);
    assert_eq!((&listed["users"][0]["login"], &listed["users"][0]["tenant"]), (&json!("other/anna"), &json!("other")));
    let all = shared.ask(&shared.operator, "GET", "/users").text();
    assert!(all.contains("\"anna\"") && all.contains("other/anna"));
    assert!(!all.contains("argon2") && !all.contains(PASSWORD), "{all}");
    let (ours, theirs) = (Browser::of(server, "anna", PASSWORD), Browser::of(server, "other/anna", PASSWORD));
    assert_eq!(ours.get(server, "/collections/ships").status, 200);
    theirs.get(server, "/collections/ships").problem(404);

    // An admin sees and changes only what it could grant.
    post(&shared.operator, json!({ "name": "wide", "role": "admin" }));
    post(&shared.operator, json!({ "name": "root", "role": "operator" }));
    let patch = |by: &str, name: &str, body: Value| shared.patch(by, &format!("/users/{name}"), body);
    for (name, body, status) in [
        ("wide", json!({ "password": "another horse battery" }), 404),
        ("wide", json!({ "role": "reader", "collections": "ships" }), 404),
        ("wide", json!({ "disabled": true }), 404),
        ("wide", json!({ "disabled": false }), 404),
        ("anna", json!({ "collections": "*" }), 403),
        ("anna", json!({ "role": "operator" }), 403),
        ("anna", json!({ "king": true }), 400),
        ("anna", json!({ "role": "reader", "collections": "ships-2" }), 200),
        ("root", json!({ "disabled": true }), 404),
        ("nobody", json!({ "disabled": true }), 404),
    ] {
        let answer = patch(&shared.admin, name, body.clone());
        assert_eq!(answer.status, status, "{name} {body}: {}", answer.text());
    }
    shared.ask(&shared.admin, "DELETE", "/users/wide").problem(404);
    let seen = shared.ask(&shared.admin, "GET", "/users").text();
    assert!(seen.contains("\"anna\"") && !seen.contains("\"wide\"") && !seen.contains("\"root\""), "{seen}");
    patch(&shared.writer, "anna", json!({ "disabled": true })).problem(403);
    let absent = patch(&shared.foreign, "wide", json!({ "disabled": true })).problem(404);
    assert_eq!(absent["detail"], "there is no user \"wide\" in the tenant \"other\"");
    patch(&shared.operator, "root", json!({ "role": "admin" })).problem(400);
    assert_eq!(
        patch(&shared.operator, "root", json!({ "collections": "ships*" })).problem(400)["field"],
        "collections"
    );
    let bearer = format!("Bearer {}", shared.operator);
    let within = [("authorization", &*bearer), ("meridian-tenant", "other")];
    assert_eq!(server.ask("DELETE", "/users/anna", &within, b"").status, 204);
    theirs.get(server, "/collections").problem(401);
    shared.ask(&shared.foreign, "DELETE", "/users/wide").problem(404);
    assert_eq!(shared.ask(&shared.admin, "DELETE", "/users/anna").status, 204);
    shared.ask(&shared.admin, "DELETE", "/users/anna").problem(404);
}

#[test]
fn an_admin_sees_and_revokes_tokens_that_it_could_give() {
    let shared = Shared::start();
    let list = |by: &str| shared.ask(by, "GET", "/tokens").json()["tokens"].as_array().unwrap().clone();
    let all = list(&shared.operator);
    let seen = list(&shared.admin);
    assert!(seen.iter().all(|token| token["collections"] == "ships*" && token["role"] != "operator"), "{seen:?}");
    assert_eq!(seen.len(), 3, "{seen:?}");
    for token in all.iter().filter(|token| !seen.contains(token)) {
        let path = format!("/tokens/{}", token["id"].as_str().unwrap());
        let (hidden, absent) = (
            shared.ask(&shared.admin, "DELETE", &path),
            shared.ask(&shared.admin, "DELETE", "/tokens/0123456789abcdef"),
        );
        assert_eq!((hidden.status, absent.status), (404, 404), "{token}");
    }
    assert_eq!(list(&shared.operator).len(), all.len());
    let reader = seen.iter().find(|token| token["role"] == "reader").unwrap();
    let path = format!("/tokens/{}", reader["id"].as_str().unwrap());
    assert_eq!(shared.ask(&shared.admin, "DELETE", &path).status, 204);
}

/// Sends one caller's requests one at a time, each creating a user of another name.
fn make_many(shared: &Shared, by: &str, names: std::ops::Range<u32>) {
    std::thread::scope(|scope| {
        for n in names {
            scope.spawn(move || {
                let asked = json!({ "name": format!("user{n}"), "role": "reader", "password": PASSWORD }).to_string();
                ask(&shared.server, Some(by), "POST", "/users", asked.as_bytes());
            });
        }
    });
}

#[test]
fn a_change_of_a_user_is_not_made_by_rights_of_before() {
    let shared = Shared::start();
    let chosen = json!({ "password": "chosen by an admin" });
    // The first change waits for password work of others, and meanwhile the user gets more rights than its caller has.
    // Retried if this machine was too slow for that.
    let overtaken = (0..5).any(|n| {
        let path = format!("/users/bob{n}");
        shared.user(json!({ "name": format!("bob{n}"), "role": "reader", "collections": "ships" }));
        std::thread::scope(|scope| {
            scope.spawn(|| make_many(&shared, &shared.foreign, 20 * n..20 * (n + 1)));
            let change = scope.spawn(|| shared.patch(&shared.admin, &path, chosen.clone()).status);
            let promoted = shared.patch(&shared.operator, &path, json!({ "role": "admin", "collections": "*" }));
            assert!([200, 409].contains(&promoted.status), "{}", promoted.text());
            [404, 409].contains(&change.join().unwrap())
        })
    });
    assert!(overtaken, "no change was refused");
}

#[test]
fn work_on_passwords_of_one_tenant_leaves_turns_to_others() {
    let shared = Shared::start();
    shared.user(json!({ "name": "anna", "role": "reader" }));
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| make_many(&shared, &shared.foreign, 0..60));
        let mut signed_in = 0;
        while !flood.is_finished() || signed_in == 0 {
            let answer = crate::sign_in::sign_in(&shared.server, "anna", PASSWORD);
            assert_eq!(answer.status, 200, "{}", answer.text());
            signed_in += 1;
        }
    });
    // An invalid request is refused without waiting for a turn.
    let asked = json!({ "name": "-", "role": "reader", "password": PASSWORD }).to_string();
    ask(&shared.server, Some(&shared.foreign), "POST", "/users", asked.as_bytes()).problem(400);
}
