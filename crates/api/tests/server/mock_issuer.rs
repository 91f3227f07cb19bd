//! A mock OpenID Connect issuer in this process.

use crate::jwt::{self, Key, now};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use meridian_admission::identity::jwt::DOCUMENT_BYTES_MAX;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The client id of the server at the issuer, and its secret.
pub const CLIENT: &str = "meridian-pages";
pub const SECRET: &str = "a secret: of the pages/at the issuer";

/// How an issuer responds to a code.
#[derive(Clone, Copy, PartialEq)]
pub enum Behaviour {
    Answers,
    /// Accepts the request, and sends no response.
    Hangs,
    /// Responds with a page.
    Babbles,
    /// Responds with more than is read.
    Floods,
    /// Redirects to another URL.
    Redirects,
}

/// A mock issuer, on a port of its own.
pub struct Issuer {
    pub name: &'static str,
    pub url: String,
    pub key: Key,
    /// Nonce, challenge and redirect URI of each code that was not exchanged yet.
    codes: Mutex<HashMap<String, [String; 3]>>,
    /// Claims that replace those of its ID tokens.
    pub claims: Mutex<Value>,
    pub mood: Mutex<Behaviour>,
    /// Connections that are kept open without a response.
    pub hanging: Mutex<Vec<TcpStream>>,
    /// Members that replace those of its discovery document.
    pub document: Mutex<Value>,
    /// Number of requests for that document.
    pub discovered: AtomicUsize,
}

impl Issuer {
    pub fn start(name: &'static str) -> Arc<Issuer> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = Arc::new(Issuer {
            name,
            url: format!("http://{}", listener.local_addr().unwrap()),
            key: Key::new("one", 1),
            codes: Mutex::default(),
            claims: Mutex::new(json!({})),
            mood: Mutex::new(Behaviour::Answers),
            hanging: Mutex::default(),
            document: Mutex::new(json!({})),
            discovered: AtomicUsize::new(0),
        });
        let serves = issuer.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| serves.answer(stream)));
        issuer
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut first, mut line, mut length, mut credential) = (String::new(), String::new(), 0, String::new());
        reader.read_line(&mut first).unwrap();
        while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
            let (name, value) = line.trim().split_once(": ").unwrap();
            match &*name.to_ascii_lowercase() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => credential = value.to_owned(),
                _ => {}
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let url = &self.url;
        let (status, answer) = match first.split(' ').nth(1).unwrap() {
            "/.well-known/openid-configuration" => {
                self.discovered.fetch_add(1, Ordering::Relaxed);
                let mut document = json!({
                    "issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"),
                    "authorization_endpoint": format!("{url}/authorize?tenant=7"),
                    "authorization_response_iss_parameter_supported": true,
                });
                document.as_object_mut().unwrap().extend(self.document.lock().as_object().unwrap().clone());
                (200, document.to_string())
            }
            "/keys" => (200, jwt::set(&[&self.key])),
            "/token" => match *self.mood.lock() {
                Behaviour::Answers => self.exchange(&credential, &pairs(std::str::from_utf8(&body).unwrap())),
                Behaviour::Hangs => return self.hanging.lock().push(stream),
                Behaviour::Babbles => (200, "<html>ID token canary</html>".to_owned()),
                Behaviour::Floods => (200, " ".repeat(DOCUMENT_BYTES_MAX + 1)),
                Behaviour::Redirects => (307, "canary".to_owned()),
            },
            other => panic!("{other}"),
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nlocation: /elsewhere\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            answer.len()
        );
        let _ = stream.write_all(format!("{head}{answer}").as_bytes());
    }

    /// Serves the token endpoint: a code is valid once, for the client that has the verifier to its challenge (RFC
    /// 7636, 4.6).
    fn exchange(&self, credential: &str, form: &HashMap<String, String>) -> (u16, String) {
        let refused = |why: &str| (400, json!({ "error": "invalid_grant", "error_description": why }).to_string());
        let encoded = |text: &str| text.replace(':', "%3A").replace('/', "%2F").replace(' ', "+");
        let expected = BASE64.encode(format!("{CLIENT}:{}", encoded(SECRET)).as_bytes());
        if credential != format!("Basic {expected}") {
            return (401, json!({ "error": "invalid_client" }).to_string());
        }
        let Some([nonce, challenge, back]) = self.codes.lock().remove(&form["code"]) else { return refused("code") };
        let verifier = ring::digest::digest(&ring::digest::SHA256, form["code_verifier"].as_bytes());
        if BASE64URL_NOPAD.encode(verifier.as_ref()) != challenge {
            return refused("verifier");
        }
        assert_eq!(form["grant_type"], "authorization_code");
        // RFC 6749, 4.1.3: the same as in the request for the code.
        if form["redirect_uri"] != back {
            return refused("redirect_uri");
        }
        let mut claims = json!({
            "iss": self.url, "sub": "mary", "aud": CLIENT, "exp": now() + 300, "iat": now(), "nonce": nonce,
            "groups": ["sailors"],
        });
        claims.as_object_mut().unwrap().extend(self.claims.lock().as_object().unwrap().clone());
        let key = if claims.get("forged").is_some() { &Key::new("one", 2) } else { &self.key };
        let token = key.sign(&claims);
        (200, json!({ "access_token": "x", "token_type": "Bearer", "expires_in": 300, "id_token": token }).to_string())
    }

    /// Visits the issuer's sign-in page. Returns the query with which the browser comes back.
    pub fn authorize(&self, url: &str) -> HashMap<&'static str, String> {
        let (page, query) = url.split_once('?').unwrap();
        assert_eq!(page, format!("{}/authorize", self.url));
        let asked = pairs(query);
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("scope", "openid groups"),
            ("code_challenge_method", "S256"),
            ("tenant", "7"),
        ] {
            assert_eq!(asked[name], value, "{url}");
        }
        let mut codes = self.codes.lock();
        let code = format!("code-{}", asked["state"]);
        assert!(asked["redirect_uri"].ends_with(&format!("/login/{}/callback", self.name)), "{url}");
        codes.insert(code.clone(), ["nonce", "code_challenge", "redirect_uri"].map(|name| asked[name].clone()));
        HashMap::from([("code", code), ("state", asked["state"].clone()), ("iss", self.url.clone())])
    }
}

fn pairs(query: &str) -> HashMap<String, String> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8().unwrap().into_owned();
    query.split('&').filter_map(|pair| pair.split_once('=')).map(|(n, v)| (decoded(n), decoded(v))).collect()
}
