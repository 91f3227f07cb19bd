//! The cookies that hold a browser's secrets: of its session, and of a sign-in attempt at an issuer (RFC 6265).
//!
//! Scripts cannot read them, and pages of other sites do not send them with resources they load or forms they submit
//! (`SameSite=Lax`). Over TLS their names begin with `__Host-`: a browser accepts such a cookie only from this host,
//! over TLS, for the whole host. No other host of the domain can therefore plant one.

use crate::protocol::fields;
use axum::http::{HeaderMap, header};

/// A cookie.
pub struct Cookie {
    /// Its names with and without TLS.
    names: (&'static str, &'static str),
    /// The last attribute, which sets how long the browser keeps it.
    age: &'static str,
}

/// The session cookie, which the browser drops when it closes.
pub static SESSION: Cookie = Cookie { names: ("__Host-meridian-session", "meridian-session"), age: "" };
/// The cookie of a sign-in attempt at an issuer, kept for ten minutes.
#[cfg(feature = "openid")]
pub static ATTEMPT: Cookie = Cookie { names: ("__Host-meridian-sign-in", "meridian-sign-in"), age: "; Max-Age=600" };

impl Cookie {
    fn name(&self, secure: bool) -> &'static str {
        if secure { self.names.0 } else { self.names.1 }
    }

    /// Returns the text presented by a request.
    pub fn read<'h>(&self, secure: bool, headers: &'h HeaderMap) -> Option<&'h str> {
        if !fields::has(headers, &header::COOKIE) {
            return None;
        }
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(other, _)| *other == self.name(secure)).map(|(_, text)| text)
    }

    /// Returns the value of `Set-Cookie` with a new text.
    pub fn set(&self, secure: bool, text: &str) -> String {
        self.line(secure, text, self.age)
    }

    /// Returns the value of `Set-Cookie` that deletes the cookie.
    pub fn unset(&self, secure: bool) -> String {
        self.line(secure, "", "; Max-Age=0")
    }

    fn line(&self, secure: bool, text: &str, age: &str) -> String {
        let over_tls = if secure { "; Secure" } else { "" };
        format!("{}={text}; Path=/; HttpOnly; SameSite=Lax{over_tls}{age}", self.name(secure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_cookie_has_its_attributes_and_is_found_among_others() {
        assert_eq!(SESSION.set(false, "x"), "meridian-session=x; Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(SESSION.set(true, "x"), "__Host-meridian-session=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert!(
            SESSION.unset(true).starts_with("__Host-meridian-session=; ")
                && SESSION.unset(true).ends_with("Secure; Max-Age=0")
        );
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; theme"));
        headers.append(header::COOKIE, HeaderValue::from_static("meridian-session=one;__Host-meridian-session=two"));
        assert_eq!((SESSION.read(false, &headers), SESSION.read(true, &headers)), (Some("one"), Some("two")));
        headers.clear();
        assert_eq!(SESSION.read(false, &headers), None);
        // Over TLS, a cookie that another host of the domain could have planted is ignored.
        headers.append(header::COOKIE, HeaderValue::from_static("meridian-session=one"));
        assert_eq!(SESSION.read(true, &headers), None);
    }
}
