//! Signing in at OpenID Connect issuers: two mock issuers in this process, and a browser simulated by the test.

use crate::jwt::{self, now};
use crate::mock_issuer::{Behaviour, CLIENT, Issuer, SECRET};
use crate::support::{Response, Server, ask_over, read_head};
use meridian_admission::identity::jwt::{IssuerSettings, KeySource, SignInSettings};
use meridian_api::ServerConfig;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

struct World {
    issuer: Arc<Issuer>,
    /// Another trusted issuer.
    other: Arc<Issuer>,
    server: Server,
    _folder: tempfile::TempDir,
}

impl World {
    fn start() -> World {
        let issuer = Issuer::start("company");
        let world = World::at(&issuer.url.clone(), issuer);
        // Once the discovery documents have been read.
        for path in ["/login/company", "/login/other"] {
            while world.server.get(path).status != 303 {
                std::thread::yield_now();
            }
        }
        world
    }

    /// Starts a server where people sign in at an issuer with this URL.
    fn at(url: &str, issuer: Arc<Issuer>) -> World {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let mut config: ServerConfig = jwt::config(KeySource::Discovered);
        let settings = &mut config.issuers[0];
        (settings.name, settings.issuer) = ("company".to_owned(), url.to_owned());
        settings.sign_in = Some(SignInSettings {
            client_id: CLIENT.to_owned(),
            client_secret: Some(secret),
            title: "The <Company>".to_owned(),
            scopes: vec!["groups".to_owned()],
            session: Duration::from_secs(3600),
        });
        let other = Issuer::start("other");
        let second = IssuerSettings { name: "other".to_owned(), issuer: other.url.clone(), ..settings.clone() };
        config.issuers.push(second);
        World { issuer, other, server: Server::with(config), _folder: folder }
    }

    /// Returns a token of the issuer for an operator.
    fn operator(&self) -> String {
        self.issuer.key.sign(&json!({
            "iss": self.issuer.url, "sub": "root", "aud": "meridian", "exp": now() + 3600, "groups": "operations",
        }))
    }

    /// Begins a sign-in in a browser. Returns its cookie and the issuer's response.
    fn begin(&self, next: &str) -> (String, HashMap<&'static str, String>) {
        self.begin_at(&self.issuer, next)
    }

    fn begin_at(&self, issuer: &Issuer, next: &str) -> (String, HashMap<&'static str, String>) {
        let answer = self.server.get(&format!("/login/{}?next={next}", issuer.name));
        assert_eq!(answer.status, 303, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        let (cookie, attributes) = answer.header("set-cookie").split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        (cookie.to_owned(), issuer.authorize(answer.header("location")))
    }

    /// Returns to the server in a browser, from a distinct address.
    fn back(&self, n: u8, cookie: &str, query: &HashMap<&'static str, String>) -> Response {
        self.back_to("company", n, cookie, query)
    }

    fn back_to(&self, issuer: &str, n: u8, cookie: &str, query: &HashMap<&'static str, String>) -> Response {
        let stream = self.server.connect_from(Ipv4Addr::new(127, 0, 1, n), 64 << 10);
        let headers = [("cookie", cookie), ("sec-fetch-site", "cross-site")];
        ask_over(stream, "GET", &callback(issuer, query), &headers, b"")
    }

    /// Checks that no one is signed in, and that a page states the reason.
    fn refused(&self, answer: &Response, status: u16, why: &str) {
        let text = answer.text();
        assert_eq!(answer.status, status, "{why}: {text}");
        assert!(text.contains("role=\"alert\"") && text.contains(why), "{why}: {text}");
        assert!(answer.header("content-type").starts_with("text/html") && !text.contains("<Company>"));
        let set = answer.headers.get("set-cookie").map(String::as_str).unwrap_or_default();
        assert!(!set.contains("meridian-session"), "{set}");
    }
}

/// Returns the path with which a browser comes back.
fn callback(issuer: &str, query: &HashMap<&'static str, String>) -> String {
    let encoded = |(name, value): (&&str, &String)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
    let query: Vec<_> = query.iter().map(encoded).collect();
    format!("/login/{issuer}/callback?session_state=7&{}", query.join("&"))
}

#[test]
fn someone_signs_in_at_an_issuer() {
    let world = World::start();
    let (server, operator) = (&world.server, world.operator());
    assert_eq!(jwt::ask(server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    let page = server.get("/login").text();
    assert!(page.contains("<a href=\"/login/company?next=%2F\">Sign in with The &lt;Company&gt;</a>"), "{page}");
    assert!(!page.contains("password"), "nobody has one");
    server.get("/login/elsewhere").problem(404);
    let (cookie, query) = world.begin("%2Fmap%3Fa%3Db%26c");
    let answer = world.back(1, &cookie, &query);
    assert_eq!((answer.status, answer.header("location")), (303, "/map?a=b&c"), "{}", answer.text());
    let (session, attributes) = answer.header("set-cookie").split_once("; ").unwrap();
    assert!(session.starts_with("meridian-session=mrs_") && attributes == "Path=/; HttpOnly; SameSite=Lax");
    let asked = |path: &str| server.ask("GET", path, &[("cookie", session)], b"");
    let who = asked("/session").json();
    assert_eq!(
        (&who["user"], &who["tenant"], &who["role"], &who["collections"]),
        (&json!("jwt:company:mary"), &json!("harbour"), &json!("writer"), &json!("ships*"))
    );
    assert_eq!(asked("/collections").status, 200);
    asked("/collections/vault").problem(404);
    assert!(asked("/login").text().contains("jwt:company:mary") && !asked("/login").text().contains("password"));
    let csrf = who["csrf_token"].as_str().unwrap();
    let headers = [("cookie", session), ("x-csrf-token", csrf), ("content-type", "application/json")];
    server.ask("POST", "/password", &headers, br#"{"password":"a","new":"correct horse battery"}"#).problem(403);
    let acts = jwt::ask(server, &operator, "GET", "/audit", "").text();
    assert!(acts.contains("signIn") && acts.contains("jwt:company:mary"), "{acts}");

    // A code is valid once: the server does not use it again without the cookie, and otherwise the issuer refuses it.
    world.refused(&world.back(2, "a=b", &query), 401, "began no sign-in");
    world.refused(&world.back(2, &cookie, &query), 401, "refused to say who you are");
    assert_eq!(asked("/collections").status, 200);

    // The session ends with its tenant, and when its user signs out.
    let suspend = |yes| format!("{{\"suspended\":{yes}}}");
    assert_eq!(jwt::ask(server, &operator, "PATCH", "/tenants/harbour", &suspend(true)).status, 200);
    asked("/collections").problem(401);
    let (cookie, query) = world.begin("%2F%2Fevil.example");
    world.refused(&world.back(3, &cookie, &query), 401, "suspended");
    assert_eq!(jwt::ask(server, &operator, "PATCH", "/tenants/harbour", &suspend(false)).status, 200);
    let (cookie, query) = world.begin("%2F%2Fevil.example");
    let answer = world.back(3, &cookie, &query);
    assert_eq!((answer.status, answer.header("location")), (303, "/"));
    let before = answer.header("set-cookie").split(';').next().unwrap();
    // A browser that signs in again gets a new session instead of its previous one, which someone may have planted.
    let (cookie, query) = world.begin("%2F");
    let answer = world.back(3, &format!("{cookie}; {before}"), &query);
    let session = answer.header("set-cookie").split(';').next().unwrap();
    assert!(answer.status == 303 && session != before);
    server.ask("GET", "/collections", &[("cookie", before)], b"").problem(401);
    let page = server.ask("GET", "/collections?f=html", &[("cookie", session)], b"").text();
    assert!(page.contains(">jwt:company:mary</b>") && page.contains(">Account</a>"), "{page}");
    let csrf = server.ask("GET", "/session", &[("cookie", session)], b"").json()["csrf_token"].clone();
    let headers = [("cookie", session), ("x-csrf-token", csrf.as_str().unwrap())];
    assert_eq!(server.ask("POST", "/logout", &headers, b"").status, 204);
    server.ask("GET", "/collections", &[("cookie", session)], b"").problem(401);
}

#[test]
fn what_is_not_the_answer_to_an_attempt_signs_nobody_in() {
    let world = World::start();
    let operator = world.operator();
    assert_eq!(jwt::ask(&world.server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    // The parameters that come back through the browser.
    let changed: [(&str, Option<&str>, &str); 8] = [
        ("state", Some("0"), "last sign-in"),
        ("state", None, "last sign-in"),
        ("iss", Some("http://evil.example"), "Another issuer"),
        ("iss", None, "Another issuer"),
        ("code", None, "did not sign you in"),
        ("error", Some("access_denied"), "did not sign you in (access_denied)"),
        ("error", Some("<b>call 555</b>"), "did not sign you in: sign"),
        ("code", Some("guessed"), "refused to say"),
    ];
    for (n, (name, to, why)) in (10..).zip(changed) {
        let (cookie, mut query) = world.begin("%2F");
        match to {
            Some(to) => drop(query.insert(name, to.to_owned())),
            None => drop(query.remove(name)),
        }
        world.refused(&world.back(n, &cookie, &query), 401, why);
    }
    // The attempt of another browser, as a link sent to a victim.
    let ((own, _), (_, sent)) = (world.begin("%2F"), world.begin("%2F"));
    world.refused(&world.back(30, &own, &sent), 401, "last sign-in");
    world.refused(&world.back(30, "meridian-sign-in=mra_x.%2F", &sent), 401, "began no sign-in");
    // A response of one issuer, passed on as that of another (mix-up).
    let (cookie, query) = world.begin_at(&world.other, "%2F");
    world.refused(&world.back(31, &cookie, &query), 401, "last sign-in");
    let token = json!({ "iss": world.issuer.url });
    *world.other.claims.lock() = token;
    let (cookie, query) = world.begin_at(&world.other, "%2F");
    world.refused(&world.back_to("other", 31, &cookie, &query), 401, "cannot be trusted");
    // The claims of the ID token.
    let several = json!(["other", CLIENT]);
    let tokens = [
        (json!({ "nonce": "0".repeat(64) }), "cannot be trusted"),
        (json!({ "nonce": null }), "cannot be trusted"),
        (json!({ "iss": "http://evil.example" }), "cannot be trusted"),
        (json!({ "aud": "meridian" }), "cannot be trusted"),
        (json!({ "aud": several }), "cannot be trusted"),
        (json!({ "azp": "other" }), "cannot be trusted"),
        (json!({ "exp": now() - 31 }), "cannot be trusted"),
        (json!({ "exp": null }), "cannot be trusted"),
        (json!({ "iat": null }), "cannot be trusted"),
        (json!({ "iat": "now" }), "cannot be trusted"),
        (json!({ "iat": now() + 120 }), "cannot be trusted"),
        (json!({ "forged": true }), "cannot be trusted"),
        (json!({ "groups": ["strangers"] }), "no access here"),
    ];
    for (n, (claims, why)) in (40..).zip(tokens) {
        *world.issuer.claims.lock() = claims;
        let (cookie, query) = world.begin("%2F");
        world.refused(&world.back(n, &cookie, &query), 401, why);
    }
    *world.issuer.claims.lock() = json!({ "aud": several, "azp": CLIENT });
    let (cookie, query) = world.begin("%2F");
    assert_eq!(world.back(60, &cookie, &query).status, 303);
    // An ID token is not a request credential: its audience is the page's client.
    let token = world.issuer.key.sign(
        &json!({ "iss": world.issuer.url, "sub": "mary", "aud": CLIENT, "exp": now() + 300, "groups": "operations" }),
    );
    jwt::ask(&world.server, &token, "GET", "/collections", "").problem(401);
}

#[test]
fn attempts_at_an_issuer_are_slowed_down() {
    let world = World::start();
    let (cookie, mut query) = world.begin("%2F");
    query.insert("code", "guessed".to_owned());
    for _ in 0..5 {
        world.refused(&world.back(1, &cookie, &query), 401, "refused to say");
    }
    let refused = world.back(1, &cookie, &query);
    world.refused(&refused, 429, "Too many attempts");
    assert!(!refused.header("retry-after").is_empty());
    world.refused(&world.back(2, &cookie, &query), 401, "refused to say");
}

#[test]
fn attempts_that_do_not_fail_slow_nobody_down() {
    let world = World::start();
    let operator = world.operator();
    assert_eq!(jwt::ask(&world.server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    // Colleagues behind one address sign in while the issuer is slow.
    *world.issuer.mood.lock() = Behaviour::Hangs;
    let mut waiting = Vec::new();
    for n in 1..=8 {
        let (cookie, query) = world.begin("%2F");
        let mut stream = world.server.connect_from(Ipv4Addr::new(127, 0, 1, 1), 64 << 10);
        let path = callback("company", &query);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\r\n").unwrap();
        waiting.push(stream);
        while world.issuer.hanging.lock().len() < n {
            std::thread::yield_now();
        }
    }
    *world.issuer.mood.lock() = Behaviour::Answers;
    for _ in 0..8 {
        let (cookie, query) = world.begin("%2F");
        let answer = world.back(1, &cookie, &query);
        assert_eq!(answer.status, 303, "{}", answer.text());
    }
}

#[test]
fn a_head_of_the_callback_signs_nobody_in_and_leaves_the_attempt() {
    let world = World::start();
    let operator = world.operator();
    assert_eq!(jwt::ask(&world.server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    let (cookie, query) = world.begin("%2F");
    let mut stream = world.server.connect();
    let path = callback("company", &query);
    write!(stream, "HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncookie: {cookie}\r\n\r\n").unwrap();
    let (status, headers) = read_head(&mut BufReader::new(stream)).unwrap();
    assert_eq!((status, headers["allow"].as_str(), headers.get("set-cookie")), (405, "GET", None));
    assert_eq!(world.back(1, &cookie, &query).status, 303);
}

#[test]
fn a_discovery_document_with_a_malformed_endpoint_is_not_taken() {
    let issuer = Issuer::start("company");
    *issuer.document.lock() = json!({ "authorization_endpoint": "http://127.0.0.1:port/authorize" });
    let world = World::at(&issuer.url.clone(), issuer);
    // An accepted document would not be requested again for an hour.
    let begun = Instant::now();
    while world.issuer.discovered.load(Ordering::Relaxed) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it was taken, or never asked for");
        std::thread::sleep(Duration::from_millis(10));
    }
    world.refused(&world.server.get("/login/company"), 503, "The &lt;Company&gt; does not answer");
}

#[test]
fn an_issuer_that_does_not_answer_is_named_on_the_page() {
    // A port on which nothing listens.
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let world = World::at(&url, Issuer::start("company"));
    world.refused(&world.server.get("/login/company"), 503, "The &lt;Company&gt; does not answer");
    let world = World::start();
    for (mood, status, why) in [
        (Behaviour::Babbles, 401, "cannot be read"),
        (Behaviour::Floods, 503, "does not answer"),
        (Behaviour::Redirects, 401, "refused to say"),
        (Behaviour::Hangs, 503, "does not answer"),
    ] {
        *world.issuer.mood.lock() = mood;
        let (cookie, query) = world.begin("%2F");
        let answer = world.back(1, &cookie, &query);
        world.refused(&answer, status, why);
        assert!(!answer.text().contains("canary"), "what the issuer said is shown");
    }
}

#[test]
fn exchanges_with_an_issuer_that_hangs_take_no_places_of_another() {
    let world = World::start();
    *world.issuer.mood.lock() = Behaviour::Hangs;
    let mut waiting = Vec::new();
    for n in 1..=16 {
        let (cookie, query) = world.begin("%2F");
        let mut stream = world.server.connect_from(Ipv4Addr::new(127, 0, 1, n), 64 << 10);
        let path = callback("company", &query);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\r\n").unwrap();
        waiting.push(stream);
        while world.issuer.hanging.lock().len() < usize::from(n) {
            std::thread::yield_now();
        }
    }
    let (cookie, query) = world.begin("%2F");
    world.refused(&world.back(17, &cookie, &query), 503, "Too many users sign in at once");
    let operator = world.operator();
    assert_eq!(jwt::ask(&world.server, &operator, "POST", "/tenants", r#"{"name":"harbour"}"#).status, 201);
    let (cookie, query) = world.begin_at(&world.other, "%2F");
    assert_eq!(world.back_to("other", 18, &cookie, &query).status, 303);
}
