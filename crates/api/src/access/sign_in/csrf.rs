//! The token that a page sends with every request that may change something. It proves that the page could read a
//! response of this server. A page of another origin can make the browser send the cookie, but cannot read the token.

use crate::protocol::problem::{Kind, Problem, Result};
use axum::http::{HeaderMap, HeaderName};
use meridian_admission::identity::{derived, equal};

static HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

/// Returns the token of a session. It is derived from the session's secret, and therefore bound to it and not stored.
pub fn token(session: &str) -> String {
    derived(session, "csrf").unwrap_or_default()
}

/// Returns the token presented by a request.
pub fn shown(headers: &HeaderMap) -> Option<&str> {
    headers.get(&HEADER)?.to_str().ok()
}

/// Checks the token sent with a session.
///
/// # Errors
/// 403
pub fn check(session: &str, shown: Option<&str>) -> Result<()> {
    let expected = token(session);
    match shown {
        Some(shown) if !expected.is_empty() && equal(shown, &expected) => Ok(()),
        found => {
            let what = if found.is_some() { "is not that of the session" } else { "is missing" };
            let detail = format!("the header X-CSRF-Token {what}: GET /session has it");
            Err(Problem::new(Kind::CsrfToken, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_belongs_to_one_session() {
        let session = |digit: &str| format!("mrs_{}_{}", "0".repeat(16), digit.repeat(64));
        let (one, two) = (session("1"), session("2"));
        assert!(check(&one, Some(&token(&one))).is_ok());
        assert!(!token(&one).contains(&"1".repeat(64)) && token(&one) != token(&two));
        for wrong in [None, Some(""), Some("x"), Some(&*token(&two)), Some(&*one)] {
            assert_eq!(check(&one, wrong).unwrap_err().kind(), Kind::CsrfToken, "{wrong:?}");
        }
        // An invalid session has no token, not even an empty one.
        assert!(check("", Some("")).is_err());
    }
}
