//! Issuers in the settings: the rights of their tokens, and that no part of the tokens is written anywhere.

use crate::common::{PATIENCE, Server, agent, meridian};
use data_encoding::BASE64URL_NOPAD as BASE64;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECRET: &str = "a secret of this test, in a file of mode 0600";

/// Starts an HTTP server on a free port, which maps a path and a body to a body.
fn serve(answer: impl Fn(&str, &[u8]) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
            let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
            reader.read_line(&mut first).unwrap();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_ok() {
                let body = answer(first.split(' ').nth(1).unwrap_or_default(), &body);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = writer.write_all(format!("{head}{body}").as_bytes());
            }
        }
    });
    url
}

/// Starts a collector of traces; returns its URL, and what it received.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let received = Arc::<Mutex<Vec<u8>>>::default();
    let keeps = received.clone();
    let url = serve(move |_, body| {
        keeps.lock().unwrap().extend(body);
        String::new()
    });
    (url, received)
}

/// Returns settings with the most verbose output.
fn talkative(traces: &str) -> String {
    format!(
        "[traces]\nendpoint = {traces:?}\nsample = 1.0\n[log]\nformat = \"json\"\nslow = \"1ms\"\nslow_literals = true"
    )
}

/// Waits until a span of this route has arrived.
fn await_span(traces: &Mutex<Vec<u8>>, route: &str) {
    let begun = Instant::now();
    while !String::from_utf8_lossy(&traces.lock().unwrap()).contains(route) {
        assert!(begun.elapsed() < PATIENCE, "no span of {route}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a token for a member of this group, valid for an hour.
fn token(group: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({ "iss": "internal", "sub": "mary", "aud": "meridian", "exp": now + 3600, "groups": [group] });
    let head = BASE64.encode(json!({ "alg": "HS256" }).to_string().as_bytes());
    let message = format!("{head}.{}", BASE64.encode(claims.to_string().as_bytes()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    format!("{message}.{}", BASE64.encode(ring::hmac::sign(&key, message.as_bytes()).as_ref()))
}

/// Returns settings with an issuer, and more.
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
    let config = settings(folder.path(), &talkative(&collector));
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
    await_span(&traces, "/tenants");
    let log = server.log();
    assert!(log.contains("NoRule") && log.contains("its signature is wrong"), "{log}");
    let traces = String::from_utf8_lossy(&traces.lock().unwrap()).into_owned();
    // Signatures, and claims as encoded in the token.
    let parts = [&operator, &stranger, &forged].map(|token| token.split('.').skip(1).collect::<Vec<_>>());
    for part in parts.iter().flatten().chain([&SECRET]) {
        for (place, text) in [("log", &log), ("answers", &answers), ("traces", &traces)] {
            assert!(!text.contains(&part[..20]), "{part} is in the {place}");
        }
    }
}

#[cfg(feature = "openid")]
#[test]
fn no_part_of_a_client_secret_or_an_id_token_is_written_anywhere() {
    use ring::signature::{Ed25519KeyPair, KeyPair};
    let folder = tempfile::tempdir().unwrap();
    let (collector, traces) = collector();
    let key = Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
    let x = BASE64.encode(key.public_key().as_ref());
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let (next, own) = (Arc::<Mutex<Value>>::default(), Arc::<Mutex<String>>::default());
    let (sends, claims, at) = (sent.clone(), next.clone(), own.clone());
    let issuer = serve(move |path, _| match path {
        "/keys" => json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] }).to_string(),
        "/token" => {
            let head = BASE64.encode(br#"{"alg":"EdDSA"}"#);
            let message = format!("{head}.{}", BASE64.encode(claims.lock().unwrap().to_string().as_bytes()));
            let token = format!("{message}.{}", BASE64.encode(key.sign(message.as_bytes()).as_ref()));
            sends.lock().unwrap().push(token.clone());
            json!({ "access_token": "canary-access-token-of-the-issuer", "token_type": "Bearer", "id_token": token })
                .to_string()
        }
        _ => {
            let url = at.lock().unwrap().clone();
            let [keys, token, authorize] = ["keys", "token", "authorize"].map(|path| format!("{url}/{path}"));
            json!({ "issuer": url, "jwks_uri": keys, "token_endpoint": token, "authorization_endpoint": authorize })
                .to_string()
        }
    });
    own.lock().unwrap().clone_from(&issuer);
    let (secret, file) = (folder.path().join("secret"), folder.path().join("meridian.toml"));
    std::fs::write(&secret, SECRET).unwrap();
    let text = format!(
        "{}\n[[access.issuers]]\nname = \"company\"\nissuer = {issuer:?}\nrefresh_min = \"1s\"\n\
         [access.issuers.sign_in]\nclient_id = \"pages\"\nclient_secret = {secret:?}\n[[access.issuers.rules]]\nrole = \"operator\"\n",
        talkative(&collector)
    );
    std::fs::write(&file, text).unwrap();
    let data = folder.path().join("data");
    let arguments = ["--data", data.to_str().unwrap(), "--config", file.to_str().unwrap()];
    let server = Server::start_logging("trace", &arguments);
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(PATIENCE))
        .build()
        .into();
    let ask = |path: &str, cookie: &str| {
        let request = agent.get(format!("{}{path}", server.url)).header("cookie", cookie);
        let mut response = request.call().unwrap();
        let header = |name: &str| {
            let mut all = response.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
            all.next_back().unwrap_or_default().to_owned()
        };
        let (location, cookie) = (header("location"), header("set-cookie"));
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        (response.status().as_u16(), location, cookie, response.body_mut().read_to_string().unwrap())
    };
    let (mut answers, mut secrets) =
        (String::new(), vec![SECRET.to_owned(), "canary-access-token-of-the-issuer".to_owned()]);
    for nonce_is_right in [true, false] {
        let begun = Instant::now();
        let (location, cookie) = loop {
            let (status, location, cookie, page) = ask("/login/company", "");
            if status == 303 {
                break (location, cookie);
            }
            assert!(begun.elapsed() < PATIENCE, "{page}");
            std::thread::sleep(Duration::from_millis(20));
        };
        let value =
            |name: &str| location.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)).unwrap().to_owned();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let nonce = if nonce_is_right { value("nonce=") } else { "wrong".to_owned() };
        *next.lock().unwrap() =
            json!({ "iss": issuer, "sub": "mary", "aud": "pages", "iat": now, "exp": now + 300, "nonce": nonce });
        let path = format!("/login/company/callback?code=canary-code-of-the-issuer&state={}", value("state="));
        let (status, _, session, page) = ask(&path, &cookie);
        assert_eq!(status, if nonce_is_right { 303 } else { 401 }, "{page}");
        answers += &page;
        for path in ["/session", "/audit", "/collections"] {
            answers += &ask(path, &session).3;
        }
        // The code is in the URL of one request, and useless after it.
        secrets.extend([cookie, session, value("state="), "canary-code-of-the-issuer".to_owned()]);
    }
    await_span(&traces, "/login/{issuer}/callback");
    let (log, traces) = (server.log(), String::from_utf8_lossy(&traces.lock().unwrap()).into_owned());
    assert!(log.contains("another attempt to sign in"), "{log}");
    assert!(answers.contains("jwt:company:mary"), "{answers}");
    secrets.extend(
        sent.lock().unwrap().iter().flat_map(|token| token.split('.').skip(1).map(str::to_owned).collect::<Vec<_>>()),
    );
    // The second attempt has no session.
    for secret in secrets
        .iter()
        .map(|secret| secret.split_once('=').map_or(&**secret, |(_, text)| text))
        .filter(|s| !s.is_empty())
    {
        for (place, text) in [("log", &log), ("answers", &answers), ("traces", &traces)] {
            assert!(!text.contains(&secret[..secret.len().min(24)]), "{secret} is in the {place}");
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
