//! Access tokens: short-lived keys that some sources issue for a name and a password.

use super::fetch::{self, Http};
use super::guard;
use super::path::Path;
use super::template::Template;
use super::{Declared, Fault};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

/// Max bytes of a token response.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Margin before expiry within which a token is no longer used.
const MARGIN: Duration = Duration::from_secs(30);
/// Lifetime of a token if its source gives none.
const LIFE_DEFAULT: Duration = Duration::from_secs(3_600);
/// Max lifetime of a token, whatever its source states.
const LIFE_MAX: Duration = Duration::from_secs(86_400);

/// `[token]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    url: String,
    user: String,
    password: String,
    #[serde(default = "granted")]
    body: BTreeMap<String, String>,
}

fn granted() -> BTreeMap<String, String> {
    BTreeMap::from([("grant_type".to_owned(), "client_credentials".to_owned())])
}

/// OAuth 2.0 with the client's own credentials (RFC 6749, section 4.4). A form is posted with the name and the
/// password in the header; `access_token` and `expires_in` are returned.
#[derive(Debug, Clone)]
pub struct Token {
    url: String,
    user: Template,
    password: Template,
    body: Vec<(String, String)>,
}

impl Token {
    /// Parses the settings. `secret` parses a template that names credentials; `fixed` inserts the values of `[set]`.
    pub fn new(
        file: &TokenFile,
        secret: &dyn Fn(&str, &str) -> Result<Template, String>,
        fixed: &dyn Fn(&str) -> String,
    ) -> Result<Token, String> {
        let url = fixed(&file.url);
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("token.url = {url:?}: expected an address with http:// or https://"));
        }
        let body = file.body.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Token {
            url,
            user: secret("token.user", &file.user)?,
            password: secret("token.password", &file.password)?,
            body,
        })
    }
}

/// Access token of a source, shared by all searches.
#[derive(Default)]
pub struct Tokens {
    held: Mutex<Option<(String, Instant)>>,
}

impl fmt::Debug for Tokens {
    /// Omits the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// Returns the token, requested if absent or expired; `None` if the source requires none. Concurrent callers wait
    /// for the same request.
    pub async fn get(&self, declared: &Declared, http: &Http, time: Duration) -> Result<Option<String>, Fault> {
        let Some(token) = &declared.token else { return Ok(None) };
        // Held during the request, so that many searches of one source cause one token request.
        let mut held = self.held.lock().await;
        if let Some((text, until)) = &*held
            && Instant::now() < *until
        {
            return Ok(Some(text.clone()));
        }
        let (text, life) = token.ask(declared, http, time).await?;
        *held = Some((text.clone(), Instant::now() + life.saturating_sub(MARGIN)));
        Ok(Some(text))
    }

    /// Discards the token after the source rejected it.
    pub async fn forget(&self) {
        *self.held.lock().await = None;
    }
}

impl Token {
    async fn ask(&self, declared: &Declared, http: &Http, time: Duration) -> Result<(String, Duration), Fault> {
        let wrong = |why: String| Fault::Error(format!("no access token could be had: {why}"));
        let url = Url::parse(&self.url).map_err(|e| wrong(e.to_string()))?;
        if !declared.allow_private {
            guard::may_call(&url).map_err(wrong)?;
        }
        let from_environment = |name: &str, _: &str| std::env::var(name.strip_prefix("env.")?).ok();
        let filled = |template: &Template| {
            template
                .fill(&from_environment)
                .ok_or_else(|| wrong("its credentials are not in the environment".to_owned()))
        };
        let form = Url::parse_with_params("http://form/", &self.body).map_err(|e| wrong(e.to_string()))?;
        let request = http
            .client(declared.allow_private)
            .map_err(wrong)?
            .post(url)
            .basic_auth(filled(&self.user)?, Some(filled(&self.password)?))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.query().unwrap_or_default().to_owned());
        let raw =
            fetch::call(request, time, ANSWER_BYTES_MAX, &http.budget).await.map_err(|failure| match failure {
                failure if failure.late => Fault::Timeout(failure.why),
                failure if failure.refused => Fault::Refused(failure.why),
                failure => wrong(failure.why),
            })?;
        let answer: Value =
            serde_json::from_slice(&raw.bytes).map_err(|e| wrong(format!("the response is not JSON: {e}")))?;
        let member = |name: &str| Path::parse(name).ok()?.text(&answer);
        let text = member("access_token").ok_or_else(|| wrong("the answer has no access_token".to_owned()))?;
        let life = member("expires_in").and_then(|s| s.parse().ok()).map_or(LIFE_DEFAULT, Duration::from_secs);
        // A source may state any number; adding it to the clock must not overflow.
        Ok((text, life.min(LIFE_MAX)))
    }
}
