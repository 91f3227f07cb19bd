//! A server with callers of every kind: tokens of each role, another tenant, and a collection that most do not see.

use crate::support::{Response, Server, point};
use meridian_api::ServerConfig;
use serde_json::{Value, json};

pub const JSON: (&str, &str) = ("content-type", "application/json");
/// A text that no response may contain for callers without the right to it.
pub const CANARY: &str = "canary-7f3a9c";

/// A server with tokens of every kind, two tenants, and a collection hidden from most callers.
pub struct Shared {
    pub server: Server,
    pub operator: String,
    pub reader: String,
    pub writer: String,
    pub admin: String,
    pub foreign: String,
    pub revoked: String,
    pub forged: String,
}

pub fn create(server: &Server, by: Option<&str>, asked: Value) -> Value {
    let answer = ask(server, by, "POST", "/tokens", asked.to_string().as_bytes());
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

pub fn token(server: &Server, by: Option<&str>, asked: Value) -> String {
    create(server, by, asked)["token"].as_str().unwrap().to_owned()
}

pub fn ask(server: &Server, by: Option<&str>, method: &str, path: &str, body: &[u8]) -> Response {
    let bearer = by.map(|token| format!("Bearer {token}"));
    let mut headers = vec![JSON];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    server.ask(method, path, &headers, body)
}

impl Shared {
    pub fn start() -> Shared {
        Shared::over(meridian_store::Options::ephemeral())
    }

    pub fn over(options: meridian_store::Options) -> Shared {
        Shared::with(options, ServerConfig::default())
    }

    pub fn with(options: meridian_store::Options, config: ServerConfig) -> Shared {
        let server = Server::over(options, config);
        for name in ["ships", "ships-2", "vault"] {
            server.create(name, "name:String,*geom:Point:srid=4326");
        }
        server.load("vault", &[point("", 1.0, 2.0, json!({ "name": CANARY }))]);
        let created = server.ask("POST", "/tenants", &[JSON], br#"{"name":"other"}"#);
        assert_eq!(created.status, 201, "{}", created.text());
        // The first token closes the server: every later request needs one.
        let operator = token(&server, None, json!({ "role": "operator" }));
        let of = |role: &str, collections: &str| {
            token(&server, Some(&operator), json!({ "role": role, "collections": collections }))
        };
        let (reader, writer, admin) = (of("reader", "ships*"), of("writer", "ships*"), of("admin", "ships*"));
        let foreign = token(&server, Some(&operator), json!({ "role": "admin", "tenant": "other" }));
        let made = create(&server, Some(&operator), json!({ "role": "operator" }));
        let (id, revoked) = (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned());
        assert_eq!(ask(&server, Some(&operator), "DELETE", &format!("/tokens/{id}"), b"").status, 204);
        let last = if operator.ends_with('0') { '1' } else { '0' };
        let forged = format!("{}{last}", &operator[..operator.len() - 1]);
        Shared { server, operator, reader, writer, admin, foreign, revoked, forged }
    }

    pub fn ask(&self, by: &str, method: &str, path: &str) -> Response {
        ask(&self.server, Some(by).filter(|by| !by.is_empty()), method, path, b"")
    }
}
