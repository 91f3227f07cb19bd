//! The table `[token]` of a declaration file: how a source issues short-lived keys for a name and a password.

use super::template::Template;
use serde::Deserialize;
use std::collections::BTreeMap;

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
    pub(crate) url: String,
    pub(crate) user: Template,
    pub(crate) password: Template,
    pub(crate) body: Vec<(String, String)>,
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
