//! Issuers in the settings: what their tokens give, and that no part of them is written anywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::{PATIENCE, Server, agent, meridian};
use data_encoding::BASE64URL_NOPAD as BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const SECRET: &str = "a secret of this test, in a file of mode 0600";

/// An HTTP server that takes everything and keeps what it was sent.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::<Mutex<Vec<u8>>>::default();
    let keeps = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_ok() {
                keeps.lock().unwrap().extend(body);
                let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        }
    });
    (url, received)
}

/// A token of a member of this group, for an hour.
fn token(group: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": "internal", "sub": "mary", "aud": "meridian", "exp": now + 3600, "groups": [group] });
    let head = BASE64.encode(json!({ "alg": "HS256" }).to_string().as_bytes());
    let message = format!("{head}.{}", BASE64.encode(claims.to_string().as_bytes()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    format!("{message}.{}", BASE64.encode(ring::hmac::sign(&key, message.as_bytes()).as_ref()))
}

/// Settings with an issuer, and more.
fn settings(folder: &Path, more: &str) -> String {
    let (secret, file) = (folder.join("secret"), folder.join("meridian.toml"));
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let text = format!(
        "{more}\n[[access.issuers]]\nname = \"internal\"\nissuer = \"internal\"\naudience = \"meridian\"\nsecret = {secret:?}\n\
         [[access.issuers.rules]]\nclaim = \"groups\"\nvalue = \"operations\"\nrole = \"operator\"\n"
    );
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn ask(server: &Server, token: &str, path: &str) -> (u16, String) {
    let request = agent().get(format!("{}{path}", server.url)).header("authorization", format!("Bearer {token}"));
    let mut response = request.call().unwrap();
    (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
}

#[test]
fn no_part_of_a_jwt_is_written_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, traces) = collector();
    let more = format!(
        "[traces]\nendpoint = {collector:?}\nsample = 1.0\n[log]\nformat = \"json\"\nslow = \"1ms\"\nslow_literals = true"
    );
    let config = settings(folder.path(), &more);
    let data = folder.path().join("data");
    let server = Server::start_logging("trace", &["--data", data.to_str().unwrap(), "--config", &config]);
    let (operator, stranger) = (token("operations"), token("strangers"));
    let forged = format!("{}AA", &operator[..operator.len() - 2]);
    assert_eq!(server.get("/collections").0, 401, "an issuer is a credential");
    let mut answers = String::new();
    for (token, status) in [(&operator, 200), (&stranger, 401), (&forged, 401)] {
        for path in ["/collections", "/collections?explain=true", "/audit", "/metrics"] {
            let (got, body) = ask(&server, token, path);
            assert!(got == status || status == 200 && path.contains("explain"), "{path}: {got} {body}");
            answers += &body;
        }
    }
    let act = agent().post(format!("{}/tenants", server.url)).header("authorization", format!("Bearer {operator}"));
    assert_eq!(act.content_type("application/json").send(r#"{"name":"harbour"}"#).unwrap().status().as_u16(), 201);
    answers += &ask(&server, &operator, "/audit").1;
    assert!(answers.contains("jwt:internal:mary"), "{answers}");
    let begun = Instant::now();
    while !String::from_utf8_lossy(&traces.lock().unwrap()).contains("/tenants") {
        assert!(begun.elapsed() < PATIENCE, "no trace of the act");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let log = server.log();
    assert!(log.contains("no rule is for it") && log.contains("its signature is wrong"), "{log}");
    let traces = String::from_utf8_lossy(&traces.lock().unwrap()).into_owned();
    // Signatures, and claims as they are in the token.
    let parts = [&operator, &stranger, &forged].map(|token| token.split('.').skip(1).collect::<Vec<_>>());
    for part in parts.iter().flatten().chain([&SECRET]) {
        for (place, text) in [("log", &log), ("answers", &answers), ("traces", &traces)] {
            assert!(!text.contains(&part[..20]), "{part} is in the {place}");
        }
    }
}

#[test]
fn keys_that_cannot_be_read_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(folder.path(), "");
    let serve = || meridian(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--config", &config]);
    std::fs::write(folder.path().join("secret"), "short").unwrap();
    serve().ended(2).says(&["access.issuers", "\"internal\"", "secret", "5 bytes", "32"]);
    std::fs::remove_file(folder.path().join("secret")).unwrap();
    serve().ended(2).says(&["access.issuers", "\"internal\"", "cannot be read"]);
}

#[test]
fn the_settings_that_are_shown_are_those_of_the_issuers() {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(folder.path(), "");
    let shown = meridian(&["serve", "--show-config", "--config", &config]).ended(0).out;
    let table: Value = serde_json::to_value(shown.parse::<toml::Table>().unwrap()).unwrap();
    assert_eq!(table["access"]["issuers"][0]["rules"][0]["role"], "operator");
    assert!(!shown.contains(SECRET));
}
