//! Finds the endpoints of an OpenID Connect issuer through its discovery document (OpenID Connect Discovery 1.0).

use super::keys::DOCUMENT_BYTES_MAX;
use serde::Deserialize;
use url::Url;

/// The members of the document that are used.
#[derive(Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// The sign-in URLs of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// For browsers.
    pub authorization: String,
    /// Where this server exchanges a code.
    pub token: String,
    /// Whether the issuer identifies itself in each response (RFC 9207).
    pub names_itself: bool,
}

/// Returns the URL of an issuer's discovery document.
pub fn url(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

/// Parses an issuer's document: the URL of its keys, and its endpoints.
pub(super) fn read(issuer: &str, document: &[u8]) -> Result<(String, Option<Endpoints>), String> {
    if document.len() > DOCUMENT_BYTES_MAX {
        return Err(format!("the discovery document has more than {DOCUMENT_BYTES_MAX} bytes"));
    }
    let document: Document =
        serde_json::from_slice(document).map_err(|e| format!("it is not a discovery document: {e}"))?;
    // Discovery, 4.3: another issuer's document must be rejected.
    if document.issuer != issuer {
        return Err(format!("the discovery document is that of another issuer: {:?}", document.issuer));
    }
    let names_itself = document.authorization_response_iss_parameter_supported;
    let endpoints = document.authorization_endpoint.zip(document.token_endpoint);
    let endpoints = endpoints.map(|(authorization, token)| Endpoints { authorization, token, names_itself });
    let of_signing_in = endpoints
        .iter()
        .flat_map(|found| [("authorization_endpoint", &found.authorization), ("token_endpoint", &found.token)]);
    for (name, url) in of_signing_in.chain([("jwks_uri", &document.jwks_uri)]) {
        // An issuer on another machine must not name servers on this one.
        if !is_trusted_url(url) || issuer.starts_with("https:") && !url.starts_with("https:") {
            return Err(format!("the discovery document names {url:?} as {name}: expected an https URL"));
        }
        // Checked now, not when someone signs in (RFC 6749, 3.1, for the fragment).
        let why = match Url::parse(url) {
            Ok(url) if url.fragment().is_none() => continue,
            Ok(_) => "it has a fragment".to_owned(),
            Err(e) => e.to_string(),
        };
        return Err(format!("the discovery document names {url:?} as {name}, which is no URL of an endpoint: {why}"));
    }
    Ok((document.jwks_uri, endpoints))
}

/// Returns whether a URL's content is authenticated as coming from its host: it uses TLS, or is on this machine.
pub fn is_trusted_url(url: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let rest = local.iter().find_map(|start| url.strip_prefix(start));
    // The part before an `@` is a user name, not the host.
    let port = rest.and_then(|rest| rest.split('/').next()).filter(|port| !port.contains('@'));
    url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty())
        || port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ISSUER: &str = "https://login.example.org/";

    #[test]
    fn a_document_is_that_of_its_issuer_and_names_https_urls() {
        assert_eq!(url(ISSUER), "https://login.example.org/.well-known/openid-configuration");
        let good = json!({
            "issuer": ISSUER, "jwks_uri": "https://login.example.org/keys", "response_types_supported": ["code"],
            "authorization_endpoint": "https://login.example.org/authorize", "token_endpoint": "https://login.example.org/token",
        });
        let read = |change: &str, to: Option<&str>| {
            let mut document = good.clone();
            match to {
                Some(to) => document[change] = json!(to),
                None => drop(document.as_object_mut().unwrap().remove(change)),
            }
            read(ISSUER, document.to_string().as_bytes())
        };
        let (keys, endpoints) = read("x", Some("y")).unwrap();
        assert_eq!(
            (&*keys, &*endpoints.unwrap().token),
            ("https://login.example.org/keys", "https://login.example.org/token")
        );
        assert_eq!(read("token_endpoint", None).unwrap().1, None);
        for (name, to) in [
            ("issuer", Some("https://evil.example.org/")),
            ("issuer", Some("https://login.example.org")),
            ("jwks_uri", None),
            ("jwks_uri", Some("http://login.example.org/keys")),
            ("token_endpoint", Some("http://127.0.0.1:80/token")),
            ("authorization_endpoint", Some("javascript:alert(1)")),
            ("authorization_endpoint", Some("https://login.example.org:port/authorize")),
            ("authorization_endpoint", Some("https://login.example.org/authorize#part")),
            ("token_endpoint", Some("https://login example.org/token")),
            ("token_endpoint", Some("https://[::1/token")),
            ("jwks_uri", Some("https://:0/keys")),
        ] {
            let why = read(name, to).unwrap_err();
            assert!(to.is_none_or(|to| why.contains(to)), "{name} {to:?}: {why}");
            assert!(name == "issuer" || why.contains(name), "{name} {to:?}: {why}");
        }
        for (url, trusted) in [
            ("http://127.0.0.1:80/token", true),
            ("http://localhost", true),
            ("http://127.0.0.1.example.org/token", false),
            ("http://localhost:80@evil.example/token", false),
            ("https://", false),
        ] {
            assert_eq!(is_trusted_url(url), trusted, "{url}");
        }
    }
}
