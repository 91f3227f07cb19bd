//! Tokens and tenants from the command line, on served folders and others.

use crate::common::{self, Server, command, meridian, meridian_with_input, token};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

fn asked(server: &Server, token: &str, path: &str) -> u16 {
    let request = common::agent().get(format!("{}{path}", server.url));
    request.header("authorization", format!("Bearer {token}")).call().unwrap().status().as_u16()
}

fn with_token(token: &str, args: &[&str]) -> (i32, String) {
    let out = command(args).env("MERIDIAN_TOKEN", token).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn the_owner_of_a_folder_gets_in_whether_or_not_it_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let operator = token(folder.path(), &["--role", "operator"]);
    assert!(operator.starts_with("mrd_"), "{operator}");
    let server = Server::start(folder.path());
    assert_eq!(server.get("/collections").0, 401);
    assert_eq!(asked(&server, &operator, "/collections"), 200);

    // Only the owner can open the socket.
    let socket = folder.path().join("control.sock");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let reader = token(folder.path(), &["--role", "reader", "--collections", "ships*", "--expires", "90d"]);
    assert_eq!((asked(&server, &reader, "/collections"), asked(&server, &reader, "/tokens")), (200, 403));
    let listed = meridian(&["token", "list", "--data", &data]).ended(0);
    let id = reader.split('_').nth(1).unwrap();
    assert!(
        listed.out.contains(id) && listed.out.contains("ships*") && !listed.out.contains(&reader),
        "{}",
        listed.out
    );
    let curl = Command::new("curl")
        .args(["-sS", "--unix-socket", &socket.display().to_string(), "http://localhost/tokens"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&curl.stdout).contains(id), "{curl:?}");
    meridian(&["token", "revoke", id, "--data", &data]).ended(0);
    assert_eq!(asked(&server, &reader, "/collections"), 401);
    meridian(&["token", "revoke", id, "--data", &data]).ended(1).says(&["there is no token"]);
    assert_eq!(server.stop("TERM"), Some(0));
    assert!(!socket.exists());

    // A killed server leaves the socket behind, and the next start replaces it.
    let server = Server::start(folder.path());
    server.kill();
    assert!(socket.exists());
    let server = Server::start(folder.path());
    assert_eq!(asked(&server, &token(folder.path(), &["--role", "admin"]), "/collections"), 200);
}

#[test]
fn a_damaged_token_is_listed_and_can_be_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let [operator, reader] = ["operator", "reader"].map(|role| token(folder.path(), &["--role", role]));
    let [operator_id, id] = [&operator, &reader].map(|token| token.split('_').nth(1).unwrap());
    let files = |id: &str| ["access", "access-copy"].map(|dir| folder.path().join(dir).join(format!("token-{id}")));
    let damage = |id: &str| files(id).iter().for_each(|file| std::fs::write(file, "not what was written").unwrap());
    damage(id);
    let server = Server::start(folder.path());
    assert!(server.log().contains("a damaged token admits nobody") && server.log().contains(id), "{}", server.log());
    assert_eq!((asked(&server, &operator, "/collections"), asked(&server, &reader, "/collections")), (200, 401));
    let listed = meridian(&["token", "list", "--data", &data]).ended(0);
    assert!(listed.out.lines().any(|line| line.contains(id) && line.contains("damaged")), "{}", listed.out);
    assert!(listed.err.contains(id) && listed.err.contains("access/token-"), "{}", listed.err);
    meridian(&["token", "revoke", id, "--data", &data]).ended(0);
    assert!(files(id).iter().all(|file| !file.exists()));
    meridian(&["token", "revoke", id, "--data", &data]).ended(1).says(&["there is no token"]);
    assert_eq!(server.stop("TERM"), Some(0));

    // Damage to the only token leaves the server closed to all but the folder's owner.
    damage(operator_id);
    let server = Server::start(folder.path());
    assert_eq!((server.get("/collections").0, asked(&server, &operator, "/collections")), (401, 401));
    assert_eq!(asked(&server, &token(folder.path(), &["--role", "operator"]), "/collections"), 200);
    assert_eq!(server.stop("TERM"), Some(0));

    // A lost record with a damaged copy is no absent token.
    for held in ["access", "access-copy"] {
        for file in std::fs::read_dir(folder.path().join(held)).unwrap().map(|file| file.unwrap().path()) {
            if !file.ends_with(format!("token-{operator_id}")) {
                std::fs::remove_file(file).unwrap();
            }
        }
    }
    std::fs::remove_file(&files(operator_id)[0]).unwrap();
    let server = Server::start(folder.path());
    assert!(server.log().contains("it is missing, and its copy cannot be read"), "{}", server.log());
    assert_eq!(server.get("/collections").0, 401);
    assert_eq!(server.stop("TERM"), Some(0));

    // A pipe is no damage of a record: nobody knows what is behind it.
    let [record, _] = files(operator_id);
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    let start = meridian(&["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    assert!(start.code != 0 && start.err.contains("not a pipe"), "{}", start.err);
    assert!(start.err.contains(&record.display().to_string()), "{}", start.err);
}

#[test]
fn a_command_of_the_owner_waits_for_a_folder_that_has_no_socket_yet() {
    let folder = tempfile::tempdir().unwrap();
    token(folder.path(), &["--role", "operator"]);
    // As a starting or stopping server does.
    let options = meridian_store::Options::at(folder.path());
    let store = meridian_store::Store::open(options, meridian_store::seams::Seams::real()).unwrap();
    let list = ["token", "list", "--data", &folder.path().display().to_string()];
    let mut child = command(&list).stdout(Stdio::piped()).spawn().unwrap();
    // It keeps waiting. The sleep makes it likely that the wait has begun; the test is valid either way.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(child.try_wait().unwrap(), None);
    store.close().unwrap();
    drop(store);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_command_on_a_folder_needs_no_token_and_lets_nobody_else_in() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    meridian(&["create", "ships", "--schema", "name:String,*geom:Point:srid=4326", "--data", &data]).ended(0);
    token(folder.path(), &["--role", "operator"]);
    meridian(&["query", "ships", "--data", &data]).ended(0);
}

#[test]
fn commands_show_the_token_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let url = server.url.clone();
    let writer = token(folder.path(), &["--role", "writer", "--collections", "ships"]);
    let operator = token(folder.path(), &["--role", "operator"]);
    let (code, text) = with_token("", &["query", "ships", "--url", &url]);
    assert!(code == 3 && text.contains("401") && text.contains("Authorization"), "{code}: {text}");
    let create = ["create", "ships", "--schema", "name:String,*geom:Point:srid=4326", "--url", &url];
    let (code, text) = with_token(&writer, &create);
    assert!(code == 3 && text.contains("403"), "{code}: {text}");
    assert_eq!(with_token(&operator, &create).0, 0);
    let events = folder.path().join("events.csv");
    std::fs::write(&events, "name,lon,lat\na,1,2\nb,3,4\n").unwrap();
    let (code, text) = with_token(&writer, &["load", "ships", &events.display().to_string(), "--url", &url]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = with_token(&writer, &["query", "ships", "--url", &url]);
    assert!(code == 0 && text.contains('b'), "{text}");
    let (code, text) = with_token(&operator, &["token", "list", "--url", &url]);
    assert!(code == 0 && text.contains("writer"), "{text}");
    assert_eq!(with_token(&writer, &["token", "list", "--url", &url]).0, 3);
    let copy = folder.path().join("copy");
    let (code, text) = with_token(&writer, &["backup", &copy.display().to_string(), "--url", &url]);
    assert!(code == 3 && text.contains("403") && !copy.exists(), "{code}: {text}");
}

#[test]
fn what_lists_and_changes_makes_no_folder() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("mistyped");
    let data = folder.display().to_string();
    for args in [
        &["token", "list"][..],
        &["token", "revoke", "8f1d0c2a9be34f55"],
        &["user", "list"],
        &["tenant", "list"],
        &["tenant", "set", "default", "--weight", "2"],
        &["audit"],
    ] {
        meridian(&[args, &["--data", &data]].concat()).ended(2).says(&["there is no data folder", &data]);
        assert!(!folder.exists(), "{args:?}");
    }
    token(&folder, &["--role", "operator"]);
    assert!(folder.exists());
}

#[test]
fn an_expired_token_is_told_from_others_and_mistakes_are_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let on = |args: &[&str]| meridian(&[args, &["--data", &data]].concat());
    token(folder.path(), &["--role", "reader", "--expires", "1s"]);
    let begun = std::time::Instant::now();
    while !on(&["token", "list"]).ended(0).out.contains("(expired)") {
        assert!(begun.elapsed() < common::PATIENCE);
    }
    for (option, value, expected) in [
        ("--role", "king", "refused (400): role: \"king\" is not a role"),
        ("--expires", "0s", "longer than zero"),
        ("--collections", "ships*", "expected *"),
    ] {
        let role: &[&str] = if option == "--role" { &[] } else { &["--role", "operator"] };
        on(&[&["token", "create", option, value], role].concat()).ended(2).says(&[expected]);
    }
}

#[test]
fn tenants_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let on = |args: &[&str]| meridian(&[args, &["--data", &data]].concat());
    on(&["tenant", "create", "harbour", "--weight", "2"]).ended(0);
    on(&["tenant", "create", "harbour"]).ended(3).says(&["already"]);
    let admin = token(folder.path(), &["--role", "admin", "--tenant", "harbour"]);
    let server = Server::start(folder.path());
    assert_eq!(asked(&server, &admin, "/collections"), 200);
    on(&["tenant", "delete", "harbour"]).ended(3).says(&["suspend it first"]);
    on(&["tenant", "suspend", "harbour"]).ended(0);
    assert_eq!(asked(&server, &admin, "/collections"), 401);
    on(&["tenant", "resume", "harbour"]).ended(0);
    assert_eq!(asked(&server, &admin, "/collections"), 200);
    let listed = on(&["tenant", "list"]).ended(0);
    assert!(listed.out.contains("harbour") && listed.out.contains("default"), "{}", listed.out);
    assert_eq!(server.get("/collections").0, 401);
    on(&["tenant", "set", "default", "--anonymous", "*"]).ended(0);
    assert_eq!(server.get("/collections").0, 200);
    on(&["tenant", "set", "default", "--anonymous", "none"]).ended(0);
    assert_eq!(server.get("/collections").0, 401);
    on(&["tenant", "set", "harbour"]).ended(2).says(&["nothing to change", "--quota"]);
    on(&["tenant", "set", "harbour", "--quota", "requests_per_second=100", "--quota", "stored_bytes=10GiB"]).ended(0);
    let listed = on(&["tenant", "list"]).ended(0).out;
    assert!(listed.contains("requests_per_second=100 stored_bytes=10737418240"), "a script reads it whole: {listed}");
    let made = common::agent().put(format!("{}/collections/ships", server.url)).content_type("text/plain");
    let made = made.header("authorization", format!("Bearer {admin}")).send("name:String,*geom:Point:srid=4326");
    assert_eq!(made.unwrap().status(), 201);
    on(&["tenant", "suspend", "harbour"]).ended(0);
    on(&["tenant", "delete", "harbour"]).ended(0);
    assert!(!folder.path().join("tenants/harbour").exists());
    on(&["tenant", "delete", "harbour"]).ended(1);
}

#[test]
fn a_server_without_a_token_listens_on_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let serve = ["serve", "--listen", "0.0.0.0:0", "--data", &data];
    meridian(&serve).ended(2).says(&["no token exists", "meridian token create"]);
    token(folder.path(), &["--role", "operator"]);
    let mut child = command(&serve).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.contains("http://0.0.0.0:"), "{first}");
}

/// Returns the status of a sign-in.
fn sign_in(server: &Server, name: &str, password: &str) -> u16 {
    let request = common::agent().post(format!("{}/login", server.url)).content_type("application/json");
    request.send(format!(r#"{{"name":"{name}","password":"{password}"}}"#)).unwrap().status().as_u16()
}

#[test]
fn users_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let on = |args: &[&str], input: &str| meridian_with_input(&[args, &["--data", &data]].concat(), input.as_bytes());
    meridian(&["user", "create", "anna", "--role", "reader", "--data", &data])
        .ended(2)
        .says(&["standard input", "empty"]);
    on(&["user", "create", "anna", "--role", "reader"], "short\n").ended(2).says(&["12 characters"]);
    on(&["user", "create", "anna", "--role", "king"], "correct horse battery\n").ended(2).says(&["role"]);
    let made = on(&["user", "create", "anna", "--role", "reader"], "correct horse battery\nand more\n").ended(0);
    assert!(made.out.contains("anna: reader of tenant default") && !made.out.contains("horse"), "{}", made.out);
    on(&["user", "create", "anna", "--role", "reader"], "correct horse battery\n").ended(3).says(&["already"]);
    on(&["tenant", "create", "harbour"], "").ended(0);
    // Never on the command line, which others can read.
    meridian(&["user", "create", "ben", "--role", "reader", "--password", "correct horse battery"]).ended(2);

    let server = Server::start(folder.path());
    assert_eq!(server.get("/collections").0, 401, "a user is a credential");
    assert_eq!((sign_in(&server, "anna", "correct horse battery"), sign_in(&server, "anna", "wrong")), (200, 401));
    let file = folder.path().join("password.txt");
    std::fs::write(&file, "another horse battery\n").unwrap();
    let file = file.display().to_string();
    on(&["user", "create", "ben", "--role", "admin", "--tenant", "harbour", "--password-file", &file], "").ended(0);
    assert_eq!(sign_in(&server, "harbour/ben", "another horse battery"), 200);
    on(&["user", "passwd", "anna", "--password-file", &file], "").ended(0);
    assert_eq!(sign_in(&server, "anna", "another horse battery"), 200);
    on(&["user", "passwd", "ben", "--password-file", &file], "").ended(3).says(&["404"]);
    on(&["user", "passwd", "ben", "--tenant", "harbour", "--password-file", &file], "").ended(0);
    on(&["user", "passwd", "anna", "--password-file", "/nowhere"], "").ended(2).says(&["/nowhere"]);
    let listed = on(&["user", "list"], "").ended(0).out;
    assert!(listed.contains("harbour/ben") && listed.contains("anna") && !listed.contains("argon2"), "{listed}");
    on(&["user", "delete", "ben"], "").ended(1).says(&["no user"]);
    on(&["user", "delete", "ben", "--tenant", "harbour"], "").ended(0);
    assert_eq!(sign_in(&server, "harbour/ben", "another horse battery"), 401);
    on(&["user", "delete", "anna"], "").ended(0);
    assert_eq!(server.get("/collections").0, 200, "without users the server is open to this machine again");
}
