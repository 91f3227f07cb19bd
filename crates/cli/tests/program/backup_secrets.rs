//! Secrets in backups, and backups of one tenant, with the real program.

use crate::common::{self, Server, as_holder, meridian, token};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const PASSWORD: &str = "correct horse battery";
const WEBHOOK: &str = "canary of a webhook";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns all files below a folder, except its socket.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    below.filter(|path| path.is_file()).collect()
}

/// Returns the file below a folder that contains a text, in its content or its name.
fn found(folder: &Path, what: &str) -> Option<PathBuf> {
    files(folder).into_iter().find(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(what.len()).any(|part| part == what.as_bytes()) || text(path).contains(what)
    })
}

/// Returns the JSON of the records of one kind in a data folder.
fn records(data: &Path, kind: &str) -> Vec<Value> {
    let of_kind = files(&data.join("access")).into_iter().filter(|path| text(path).contains(kind));
    let json = of_kind.map(|path| {
        let content = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        // The checksum before the JSON may contain a brace too.
        serde_json::from_str(&content[content.find("{\"").unwrap()..]).unwrap()
    });
    json.collect()
}

fn status(server: &Server, token: &str, path: &str) -> u16 {
    let request = common::agent().get(format!("{}{path}", server.url));
    request.header("authorization", format!("Bearer {token}")).call().unwrap().status().as_u16()
}

fn sign_in(server: &Server, name: &str) -> u16 {
    let request = common::agent().post(format!("{}/login", server.url)).content_type("application/json");
    request.send(json!({ "name": name, "password": PASSWORD }).to_string()).unwrap().status().as_u16()
}

/// Posts a JSON document with a token, and returns the response.
fn ask(server: &Server, token: &str, path: &str, document: &Value) -> (u16, Value) {
    let request = common::agent().post(format!("{}{path}", server.url)).content_type("application/json");
    let mut answer = request.header("authorization", format!("Bearer {token}")).send(document.to_string()).unwrap();
    (answer.status().as_u16(), serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap_or_default())
}

/// A saved search with a webhook.
fn save_search(server: &Server, token: &str, name: &str) -> String {
    let hook = json!({ "url": "https://hooks.example.org/x", "secret": WEBHOOK });
    let asked = json!({ "name": name, "question": { "keywords": "flood" }, "webhook": hook });
    let (status, made) = ask(server, token, "/saved-searches", &asked);
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

/// Starts a server with an operator's token and a user.
fn start(data: &Path) -> (Server, String) {
    let operator = token(data, &["--role", "operator"]);
    let create = ["user", "create", "anna", "--role", "writer", "--data", text(data)];
    common::meridian_with_input(&create, PASSWORD.as_bytes()).ended(0);
    (Server::start(data), operator)
}

#[test]
fn secrets_are_in_no_backup_in_clear_and_come_back_with_the_key_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (server, operator) = start(&at("data"));
    let create = ["create", "ships", "--schema", "name:String,*geom:Point", "--url", &server.url];
    as_holder(&operator, &create).ended(0);
    let search = save_search(&server, &operator, "floods");
    assert_eq!(sign_in(&server, "anna"), 200);
    let member = |kind: &str, name: &str| records(&at("data"), kind)[0][name].as_str().unwrap().to_owned();
    let session = member("session-", "id");
    let secrets =
        [member("token-", "digest"), member("user-", "password"), member("session-", "digest"), WEBHOOK.to_owned()];
    for secret in &secrets {
        assert!(found(&at("data"), secret).is_some(), "{secret} is sought in vain");
    }
    let (ours, theirs) = (at("ours.key"), at("theirs.key"));
    std::fs::write(&ours, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    std::fs::write(&theirs, "ab".repeat(32)).unwrap();

    let backup = |to: &str, options: &[&str]| {
        let run = as_holder(&operator, &[&["backup", text(&at(to)), "--url", &server.url], options].concat()).ended(0);
        for secret in secrets.iter().chain([&session]) {
            assert_eq!(found(&at(to), secret), None, "{to}: {secret}");
        }
        run.out
    };
    let left = backup("plain", &[]);
    assert!(left.contains("left out") && left.contains("tokens (1)") && left.contains("webhooks (1)"), "{left}");
    let sealed = backup("sealed", &["--key", text(&ours)]);
    assert!(sealed.contains("sealed with a key: 3"), "{sealed}");
    // The record of the act has the request, but not the key.
    let audit = as_holder(&operator, &["audit", "--url", &server.url]).ended(0).out;
    assert!(audit.contains("everything, without secrets") && audit.contains("everything, secrets sealed"), "{audit}");
    assert_eq!(found(&at("data"), "AAECAwQFBgc"), None, "the key is kept");

    // Over the route, with an invalid key.
    let (refused, problem) = ask(&server, &operator, "/backup", &json!({ "key": "short" }));
    assert!(refused == 400 && problem["detail"].as_str().unwrap().contains("32 random bytes"), "{refused} {problem}");
    server.kill();

    let restore = |from: &str, to: &str, options: &[&str]| {
        meridian(&[&["restore", text(&at(from)), "--data", text(&at(to))], options].concat())
    };
    // Without secrets all callers are refused, until the owner of the folder creates new ones.
    for (from, to) in [("plain", "from-plain"), ("sealed", "from-sealed")] {
        assert!(restore(from, to, &[]).ended(0).out.contains("secrets are not restored"));
        meridian(&["check", "--data", text(&at(to))]).ended(0);
        let server = Server::start(&at(to));
        assert_eq!(server.get("/collections").0, 401, "it is not open");
        assert_eq!((status(&server, &operator, "/collections"), sign_in(&server, "anna")), (401, 401));
        let again = token(&at(to), &["--role", "operator"]);
        assert_eq!(status(&server, &again, "/collections/ships"), 200);
        common::meridian_with_input(&["user", "passwd", "anna", "--data", text(&at(to))], PASSWORD.as_bytes()).ended(0);
        assert_eq!(sign_in(&server, "anna"), 200);
        assert_eq!(status(&server, &again, &format!("/saved-searches/{search}")), 200);
        assert_eq!(found(&at(to), WEBHOOK), None);
        server.kill();
    }
    restore("sealed", "back", &["--key", text(&ours)]).ended(0);
    meridian(&["check", "--data", text(&at("back"))]).ended(0);
    let back = Server::start(&at("back"));
    assert_eq!((status(&back, &operator, "/collections/ships"), sign_in(&back, "anna")), (200, 200));
    assert!(found(&at("back"), WEBHOOK).is_some());
    back.kill();

    // Wrong keys, and damage.
    restore("sealed", "wrong", &["--key", text(&theirs)]).ended(2).says(&["key", "not sealed with this key"]);
    assert!(!at("wrong").exists());
    restore("sealed", "wrong", &["--key", text(&at("absent.key"))]).ended(2).says(&["absent.key", "cannot be read"]);
    std::fs::write(&theirs, "0123").unwrap();
    restore("sealed", "wrong", &["--key", text(&theirs)]).ended(2).says(&["theirs.key", "32 random bytes"]);
    let harmed = files(&at("sealed")).into_iter().find(|path| text(path).contains("/sealed-")).unwrap();
    let whole = std::fs::read(&harmed).unwrap();
    let mut flipped = whole.clone();
    flipped[40] ^= 1;
    for (bytes, why) in [(&flipped[..], "checksum"), (&whole[..40], "bytes")] {
        std::fs::write(&harmed, bytes).unwrap();
        restore("sealed", "harmed", &["--key", text(&ours)]).ended(1).says(&[text(&harmed), why]);
    }
    std::fs::remove_file(at("sealed").join("BACKUP")).unwrap();
    restore("sealed", "cut", &["--key", text(&ours)]).ended(2).says(&["holds no backup"]);
}

/// Creates what belongs to a tenant: a token, a user, a collection with an event, and a saved search. Names begin with
/// the tenant's.
fn plant(server: &Server, operator: &str, tenant: &str) -> (String, String) {
    if tenant != "default" {
        let quotas = json!({ "name": tenant, "quotas": { "saved_searches": 7 } });
        assert_eq!(ask(server, operator, "/tenants", &quotas).0, 201);
    }
    let (status, made) = ask(server, operator, "/tokens", &json!({ "role": "admin", "tenant": tenant }));
    assert_eq!(status, 201, "{made}");
    let admin = made["token"].as_str().unwrap().to_owned();
    let user = json!({ "name": format!("{tenant}-user"), "role": "reader", "password": PASSWORD });
    assert_eq!(ask(server, &admin, "/users", &user).0, 201);
    let collection = format!("{tenant}-ships");
    let create = ["create", &collection, "--schema", "name:String,*geom:Point", "--url", &server.url];
    as_holder(&admin, &create).ended(0);
    let event = json!({ "type": "Feature", "geometry": { "type": "Point", "coordinates": [1, 2] },
        "properties": { "name": format!("{tenant}-event flood") } });
    let path = format!("/collections/{collection}/items");
    let request = common::agent().post(format!("{}{path}", server.url)).content_type("application/geo+json");
    let sent = request.header("authorization", format!("Bearer {admin}")).send(event.to_string()).unwrap();
    assert!(sent.status().is_success(), "{}", sent.status());
    let search = save_search(server, &admin, &format!("{tenant}-search"));
    (admin, search)
}

#[test]
fn a_backup_of_a_tenant_holds_nothing_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let tenants = ["default", "harbour", "canary"];
    let operator = token(&at("data"), &["--role", "operator"]);
    let server = Server::start(&at("data"));
    let planted = tenants.map(|tenant| plant(&server, &operator, tenant));
    let key = at("backup.key");
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    // Backups of a running server and, with the packets kept by a stop, of a folder.
    let of_server = ["--url".to_owned(), server.url.clone()];
    for (tenant, to) in [("default", "1"), ("harbour", "2")] {
        let to = at(to);
        let options = ["backup", text(&to), "--tenant", tenant, "--key", text(&key), &of_server[0], &of_server[1]];
        as_holder(&operator, &options).ended(0);
    }
    as_holder(&operator, &["backup", text(&at("none")), "--tenant", "nobody", "--url", &server.url])
        .ended(3)
        .says(&["no tenant", "nobody"]);
    // A tenant's admin is not an operator.
    as_holder(&planted[1].0, &["backup", text(&at("none")), "--tenant", "harbour", "--url", &server.url]).ended(3);
    let audit = as_holder(&operator, &["audit", "--url", &server.url]).ended(0).out;
    assert!(audit.contains("the tenant harbour, secrets sealed"), "{audit}");
    assert_eq!(server.stop("TERM"), Some(0));
    for (tenant, to) in [("default", "3"), ("harbour", "4")] {
        meridian(&["backup", text(&at(to)), "--tenant", tenant, "--data", text(&at("data"))]).ended(0);
    }
    let id = |token: &str| token.split('_').nth(1).unwrap().to_owned();
    for (n, own) in [("1", 0), ("2", 1), ("3", 0), ("4", 1)] {
        let of_others = (0..3).filter(|other| *other != own);
        let names = of_others
            .clone()
            .flat_map(|i| ["ships", "user", "event", "search"].map(|what| format!("{}-{what}", tenants[i])));
        let ids = of_others.flat_map(|i| [id(&planted[i].0), planted[i].1.clone()]);
        for canary in names.chain(ids).chain([id(&operator), "canary".to_owned()]) {
            assert_eq!(found(&at(n), &canary), None, "{n}: {canary}");
        }
        for own in [format!("{}-ships", tenants[own]), planted[own].1.clone()] {
            assert!(found(&at(n), &own).is_some(), "{n}: {own}");
        }
    }
    // The restored tenant has its name and its token.
    let to = at("back");
    meridian(&["restore", text(&at("2")), "--key", text(&key), "--data", text(&to)]).ended(0);
    meridian(&["check", "--data", text(&to)]).ended(0);
    let back = Server::start(&to);
    let (admin, search) = &planted[1];
    assert_eq!(status(&back, &planted[0].0, "/collections"), 401);
    assert_eq!(status(&back, &operator, "/collections"), 401);
    assert_eq!(status(&back, admin, "/collections/harbour-ships"), 200);
    assert_eq!(status(&back, admin, &format!("/saved-searches/{search}")), 200);
    assert_eq!(sign_in(&back, "harbour/harbour-user"), 200);
    let tenants = meridian(&["tenant", "list", "--data", text(&to)]).ended(0).out;
    assert!(
        tenants.contains("harbour") && tenants.contains("saved_searches=7") && !tenants.contains("canary"),
        "{tenants}"
    );
}
