//! Access tokens: short-lived keys that some sources issue for a name and a password.

use super::Fault;
use crate::declaration::SourceDeclaration;
use crate::declaration::path::Path;
use crate::declaration::template::Template;
use crate::declaration::token::Token;
use crate::fetch::{self, Http, Redirects};
use reqwest::Url;
use serde_json::Value;
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
    pub async fn get(
        &self,
        declared: &SourceDeclaration,
        http: &Http,
        time: Duration,
    ) -> Result<Option<String>, Fault> {
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
    async fn ask(
        &self,
        declared: &SourceDeclaration,
        http: &Http,
        time: Duration,
    ) -> Result<(String, Duration), Fault> {
        let wrong = |why: String| Fault::Error(format!("no access token could be had: {why}"));
        let url = Url::parse(&self.url).map_err(|e| wrong(e.to_string()))?;
        if !declared.allow_private {
            fetch::may_call(&url).map_err(wrong)?;
        }
        let from_environment = |name: &str, _: &str| std::env::var(name.strip_prefix("env.")?).ok();
        let filled = |template: &Template| {
            template
                .fill(&from_environment)
                .ok_or_else(|| wrong("its credentials are not in the environment".to_owned()))
        };
        let form = Url::parse_with_params("http://form/", &self.body).map_err(|e| wrong(e.to_string()))?;
        let request = http
            .client(declared.allow_private, Redirects::SameAddress)
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
