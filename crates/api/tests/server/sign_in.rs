//! Signing in and out, and what slows down guessing. Sessions are in `sessions.rs`.

use crate::kinds::{CANARY, Shared, ask};
use crate::support::{Response, Server, ask_over};
use meridian_api::ServerConfig;
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");
pub const PASSWORD: &str = "correct horse battery";

/// A user in a browser: its cookie, and the token in its pages.
pub struct Browser {
    pub cookie: String,
    pub csrf: String,
}

impl Browser {
    /// Signs in, which must succeed.
    pub fn of(server: &Server, name: &str, password: &str) -> Browser {
        let answer = sign_in(server, name, password);
        assert_eq!(answer.status, 200, "{}", answer.text());
        Browser::from(&answer)
    }

    pub fn from(answer: &Response) -> Browser {
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        Browser { cookie, csrf: answer.json()["csrf_token"].as_str().unwrap_or_default().to_owned() }
    }

    pub fn get(&self, server: &Server, path: &str) -> Response {
        server.ask("GET", path, &[("cookie", &self.cookie)], b"")
    }

    /// Sends a request like the pages do.
    pub fn ask(&self, server: &Server, method: &str, path: &str, body: Value) -> Response {
        let headers = [("cookie", &*self.cookie), ("x-csrf-token", &*self.csrf), JSON, OWN_PAGE];
        server.ask(method, path, &headers, body.to_string().as_bytes())
    }
}

pub fn sign_in(server: &Server, name: &str, password: &str) -> Response {
    let body = json!({ "name": name, "password": password }).to_string();
    server.ask("POST", "/login", &[JSON], body.as_bytes())
}

fn form(server: &Server, path: &str, headers: &[(&str, &str)], fields: &str) -> Response {
    server.ask("POST", path, &[&[FORM], headers].concat(), fields.as_bytes())
}

/// Creates a user, which must succeed.
pub fn user(server: &Server, by: Option<&str>, mut asked: Value) {
    asked["password"] = json!(PASSWORD);
    let made = ask(server, by, "POST", "/users", asked.to_string().as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
}

impl Shared {
    pub fn user(&self, asked: Value) {
        user(&self.server, Some(&self.operator), asked);
    }

    pub fn patch(&self, by: &str, path: &str, body: Value) -> Response {
        ask(&self.server, Some(by), "PATCH", path, body.to_string().as_bytes())
    }
}

#[test]
fn a_user_signs_in_reads_and_signs_out() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "reader", "collections": "ships*" }));
    assert_eq!(server.json("/session"), json!({ "sign_in": true }));
    let answer = sign_in(server, "Anna", PASSWORD);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    let cookie = answer.header("set-cookie");
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax", "{cookie}");
    let secret = pair.strip_prefix("meridian-session=mrs_").unwrap().split_once('_').unwrap().1;
    assert_eq!(secret.len(), 64, "256 bits in hexadecimal");
    assert!(!answer.text().contains(secret));
    let browser = Browser::from(&answer);
    let session = browser.get(server, "/session").json();
    assert_eq!(
        (&session["user"], &session["tenant"], &session["role"], &session["collections"]),
        (&json!("anna"), &json!("default"), &json!("reader"), &json!("ships*"))
    );
    assert_eq!(session["csrf_token"], browser.csrf.as_str());
    assert_eq!(browser.get(server, "/collections/ships").status, 200);
    let hidden = browser.get(server, "/collections/vault/items");
    assert!(hidden.status == 404 && !hidden.text().contains(CANARY));
    browser.ask(server, "DELETE", "/collections/ships", json!(null)).problem(403);
    // A second sign-in in the same browser ends the first session.
    let body = json!({ "name": "anna", "password": PASSWORD }).to_string();
    let again = server.ask("POST", "/login", &[JSON, ("cookie", &browser.cookie)], body.as_bytes());
    let again = Browser::from(&again);
    browser.get(server, "/collections/ships").problem(401);
    assert_eq!(again.get(server, "/collections/ships").status, 200);

    let headers = [("cookie", &*again.cookie), ("x-csrf-token", &*again.csrf)];
    let gone = server.ask("POST", "/logout", &headers, b"");
    assert_eq!(gone.status, 204, "{}", gone.text());
    assert!(
        gone.header("set-cookie").starts_with("meridian-session=; ") && gone.header("set-cookie").contains("Max-Age=0")
    );
    again.get(server, "/collections/ships").problem(401);
    assert_eq!(again.get(server, "/session").json(), json!({ "sign_in": true }));
    assert_eq!(server.ask("POST", "/logout", &headers, b"").status, 204, "it has ended already");
}

#[test]
fn nothing_tells_which_of_name_and_password_was_wrong() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "reader" }));
    shared.user(json!({ "name": "ben", "role": "reader" }));
    assert_eq!(shared.patch(&shared.operator, "/users/ben", json!({ "disabled": true })).status, 200);
    let long = "x".repeat(2000);
    let of = |name: &str, password: &str| {
        let answer = sign_in(server, name, password);
        assert!(answer.header("set-cookie").is_empty());
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"meridian\"");
        answer.problem(401)
    };
    let wrong = of("anna", "correct horse batterz");
    for (name, password) in [("nobody", PASSWORD), ("ben", PASSWORD), ("a b", PASSWORD), ("anna", &*long)] {
        assert_eq!(of(name, password), wrong, "{name}");
    }
}

#[test]
fn the_form_works_without_scripts_and_leads_nowhere_else() {
    let shared = Shared::start();
    let server = &shared.server;
    assert!(server.get("/login").text().contains("no users yet"));
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let page = server.get("/login?next=/map%23c%3Dships");
    assert!(page.header("content-type").starts_with("text/html") && page.header("cache-control") == "no-store");
    assert!(page.header("content-security-policy").contains("form-action 'self'"));
    assert!(page.text().contains("name=\"next\" value=\"/map#c=ships\"") && !page.text().contains("<script>"));
    let fields = |password: &str, next: &str| format!("name=anna&password={password}&next={next}");
    let right = fields("correct+horse+battery", "%2Fmap%23c%3Dships");
    // Only a page of this server sends it.
    for headers in
        [&[][..], &[("origin", "http://evil.example")], &[("sec-fetch-site", "cross-site")], &[("origin", "null")]]
    {
        form(server, "/login", headers, &right).problem(403);
    }
    for kind in ["text/plain", "multipart/form-data; boundary=x"] {
        server.ask("POST", "/login", &[("content-type", kind), OWN_PAGE], right.as_bytes()).problem(415);
    }
    let done = form(server, "/login", &[OWN_PAGE], &right);
    assert_eq!((done.status, done.header("location")), (303, "/map#c=ships"));
    let cookie = done.header("set-cookie").split(';').next().unwrap();
    for evil in ["//evil.example", "/%5Cevil.example", "http%3A%2F%2Fevil.example", "%2F%09%2Fevil.example"] {
        let to = form(server, "/login", &[("origin", "http://localhost")], &fields("correct+horse+battery", evil));
        assert_eq!((to.status, to.header("location")), (303, "/"), "{evil}");
        assert!(!server.get(&format!("/login?next={evil}")).text().contains("evil"), "{evil}");
    }
    let wrong = form(server, "/login", &[OWN_PAGE], &fields("wrong", "%2Fmap"));
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("content-type").starts_with("text/html"));
    assert!(!wrong.header("www-authenticate").contains("Basic"), "no dialogue over the page");
    let text = wrong.text();
    assert!(text.contains("The name or the password is wrong.") && text.contains("value=\"/map\""), "{text}");
    form(server, "/login", &[OWN_PAGE], "name=anna").problem(400);
    form(server, "/login", &[OWN_PAGE], &"x".repeat(20 << 10)).problem(413);
    // A form for signing out carries the session's token in a field.
    let with_cookie = [OWN_PAGE, ("cookie", cookie)];
    let page = server.ask("GET", "/login", &[("cookie", cookie)], b"").text();
    let token = page.split("name=\"csrf_token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    form(server, "/logout", &with_cookie, "csrf_token=x").problem(403);
    form(server, "/logout", &[("cookie", cookie)], &format!("csrf_token={token}")).problem(403);
    let out = form(server, "/logout", &with_cookie, &format!("csrf_token={token}"));
    assert_eq!((out.status, out.header("location")), (303, "/login"));
    server.ask("GET", "/collections", &[("cookie", cookie)], b"").problem(401);
}

#[test]
fn a_browser_is_led_to_the_form_and_programs_are_not() {
    let shared = Shared::start();
    let server = &shared.server;
    let page = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let navigates = ("sec-fetch-mode", "navigate");
    let path = "/collections/ships/items?f=html&limit=3";
    // Without users, a browser asks for a token as before.
    assert!(server.ask("GET", path, &[page, navigates], b"").header("www-authenticate").contains("Basic"));
    shared.user(json!({ "name": "anna", "role": "reader" }));
    for headers in [&[page][..], &[page, navigates]] {
        let led = server.ask("GET", path, headers, b"");
        assert_eq!(led.status, 303, "{}", led.text());
        assert_eq!(led.header("location"), "/login?next=/collections/ships/items%3Ff%3Dhtml%26limit%3D3");
        assert_eq!(led.header("cache-control"), "no-store");
    }
    let login = server.get(server.ask("GET", path, &[page], b"").header("location")).text();
    assert!(login.contains("value=\"/collections/ships/items?f=html&amp;limit=3\""), "{login}");
    for headers in
        [&[][..], &[("accept", "application/geo+json")], &[("accept", "*/*")], &[page, ("authorization", "Bearer x")]]
    {
        let refused = server.ask("GET", path, headers, b"");
        // With a credential, the cause is not a missing sign-in. Clients that accept pages get the refusal as one.
        match headers.contains(&page) {
            true => assert_eq!((refused.status, refused.header("content-type")), (401, "text/html; charset=utf-8")),
            false => drop(refused.problem(401)),
        }
        assert!(refused.header("www-authenticate").contains("Basic"), "{headers:?}");
    }
    server.ask("DELETE", path, &[page], b"").problem(401);
    // A script gets the refusal without a dialogue.
    for headers in [&[("sec-fetch-mode", "cors"), page][..], &[("x-csrf-token", "")]] {
        let refused = server.ask("GET", path, headers, b"");
        refused.problem(401);
        assert!(!refused.header("www-authenticate").contains("Basic"), "{headers:?}");
    }
}

#[test]
fn guessing_is_slowed_down_and_keeps_no_user_from_its_own_address() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "reader" }));
    shared.user(json!({ "name": "ben", "role": "reader" }));
    let from = |address: [u8; 4], name: &str, password: &str| {
        let body = json!({ "name": name, "password": password }).to_string();
        ask_over(server.connect_from(address, 1 << 16), "POST", "/login", &[JSON], body.as_bytes())
    };
    let (home, guesser, elsewhere) = ([127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4]);
    assert_eq!(from(home, "anna", PASSWORD).status, 200);
    // Many guesses, so that the wait is a minute, which even a slow machine does not outlast.
    let mut refused = None;
    for n in 0..5 {
        from(guesser, "anna", &format!("guess number {n}")).problem(401);
    }
    for address in 0..60 {
        let answer = from([127, 0, 1, address], "anna", "guess");
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("guesses from many addresses are held too");
    assert!(refused.problem(429)["type"].as_str().unwrap().ends_with(":too-many-attempts"));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
    // From an address where the user has signed in before, it still can.
    assert_eq!(from(home, "anna", PASSWORD).status, 200);
    // Others at that address who guess other names do not lock it out either.
    assert!((0..60).any(|n| from(home, &format!("nobody{n}"), "guess").status == 429));
    assert_eq!(from(home, "anna", PASSWORD).status, 200);
    // And others can sign in from elsewhere.
    assert_eq!(from(elsewhere, "ben", PASSWORD).status, 200);
}

#[test]
fn over_tls_the_cookie_is_bound_to_this_host_and_attempts_to_their_client() {
    let config = ServerConfig { proxies: vec!["127.0.0.1".parse().unwrap()], ..ServerConfig::default() };
    let server = Server::with(config);
    user(&server, None, json!({ "name": "anna", "role": "operator" }));
    let through = |client: &str, name: &str, password: &str| {
        let body = json!({ "name": name, "password": password }).to_string();
        let forwarded = format!("for={client};proto=https");
        server.ask("POST", "/login", &[JSON, ("forwarded", &forwarded)], body.as_bytes())
    };
    let answer = through("192.0.2.1", "anna", PASSWORD);
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("__Host-meridian-session=mrs_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let secure = [("cookie", pair), ("forwarded", "for=192.0.2.1;proto=https")];
    assert_eq!(server.ask("GET", "/tokens", &secure, b"").status, 200);
    // The same secret is ignored under the name that any host of the domain could set.
    let plain = pair.replace("__Host-", "");
    server.ask("GET", "/tokens", &[("cookie", &plain), secure[1]], b"").problem(401);
    // Each must wait longer than the previous one, until this machine is too fast for the wait.
    assert!((0..60).any(|n| through("192.0.2.2", &format!("nobody{n}"), "guess").status == 429));
    assert_eq!(through("192.0.2.3", "anna", PASSWORD).status, 200);
}

#[test]
fn a_user_chooses_another_password() {
    let shared = Shared::start();
    let server = &shared.server;
    shared.user(json!({ "name": "anna", "role": "reader" }));
    let (here, elsewhere) = (Browser::of(server, "anna", PASSWORD), Browser::of(server, "anna", PASSWORD));
    let new = "another horse battery";
    let asked = |now: &str, new: &str| json!({ "password": now, "new": new });
    // Neither the cookie alone, nor a token, nor a browser left signed in is enough.
    let body = asked(PASSWORD, new).to_string();
    server.ask("POST", "/password", &[("cookie", &here.cookie), JSON], body.as_bytes()).problem(403);
    ask(server, Some(&shared.operator), "POST", "/password", body.as_bytes()).problem(403);
    here.ask(server, "POST", "/password", asked("wrong", new)).problem(401);
    assert_eq!(here.ask(server, "POST", "/password", asked(PASSWORD, "short")).problem(400)["field"], "new");
    let changed = here.ask(server, "POST", "/password", asked(PASSWORD, new));
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(Browser::from(&changed).get(server, "/collections").status, 200);
    for before in [&here, &elsewhere] {
        before.get(server, "/collections").problem(401);
    }
    sign_in(server, "anna", PASSWORD).problem(401);
    // With the page's form.
    let browser = Browser::of(server, "anna", new);
    let headers = [OWN_PAGE, ("cookie", &*browser.cookie)];
    let fields = |token: &str, now: &str| {
        format!("csrf_token={token}&password={}&new=third+horse+battery", now.replace(' ', "+"))
    };
    form(server, "/password", &headers, &fields("x", new)).problem(403);
    let wrong = form(server, "/password", &headers, &fields(&browser.csrf, "wrong"));
    assert!(wrong.status == 401 && wrong.text().contains("password is wrong."), "{}", wrong.text());
    let changed = form(server, "/password", &headers, &fields(&browser.csrf, new));
    assert_eq!((changed.status, changed.header("location")), (303, "/"), "{}", changed.text());
    assert_eq!(sign_in(server, "anna", "third horse battery").status, 200);
}
