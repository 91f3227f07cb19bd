//! Targets: the servers under load, and their protocols.

use super::WaitIdle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A server, or several addresses of one service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// Its name in reports.
    pub name: String,
    /// Address: `http://127.0.0.1:7117`. The part after the port is a prefix of each request's path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Several addresses of one service instead; connections rotate over them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Environment variable that holds a token: every request carries it, and no result does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Timeout of a response; a population's patience takes precedence.
    pub timeout_s: f64,
    /// HTTP/2 (over TLS by ALPN, otherwise with prior knowledge).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub http2: bool,
    /// HTTP/2: max users that share a connection.
    #[serde(skip_serializing_if = "is_hundred")]
    pub streams: u32,
    /// A file of certificates (PEM) to trust besides the well-known authorities: authorities, or the target's own,
    /// self-signed.
    pub ca: Option<std::path::PathBuf>,
    /// TLS: accept any certificate. The target's identity is then unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// When it counts as idle; takes precedence over `phases.wait_idle`.
    pub wait_idle: Option<WaitIdle>,
}

fn is_hundred(n: &u32) -> bool {
    *n == 100
}

impl Default for Target {
    fn default() -> Self {
        Target {
            name: "target".to_owned(),
            url: String::new(),
            urls: Vec::new(),
            headers: BTreeMap::new(),
            token_env: None,
            timeout_s: 60.0,
            http2: false,
            streams: 100,
            ca: None,
            insecure: false,
            wait_idle: None,
        }
    }
}

impl Target {
    /// Creates a target of one address, with defaults for the rest.
    pub(crate) fn at(name: &str, url: &str) -> Target {
        Target { name: name.to_owned(), url: url.to_owned(), ..Target::default() }
    }

    /// Returns the value of `Authorization`, if a variable is named; an error if it holds no token.
    pub(crate) fn authorization(&self) -> Result<Option<String>, String> {
        let Some(variable) = &self.token_env else { return Ok(None) };
        let plain = |token: &String| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic() && b != b'{');
        match std::env::var(variable).ok().filter(plain) {
            Some(token) => Ok(Some(format!("Bearer {token}"))),
            None => Err(format!("target {}: token_env: the variable {variable} holds no token", self.name)),
        }
    }

    /// Returns every address.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.url.as_str()).filter(|url| !url.is_empty());
        single.into_iter().chain(self.urls.iter().map(String::as_str))
    }
}
