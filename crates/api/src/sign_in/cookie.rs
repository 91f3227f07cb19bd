//! The cookie that holds the secret of a session (RFC 6265).
//!
//! Scripts cannot read it, and pages of other sites do not send it with what they load or submit (`SameSite=Lax`). Over TLS its
//! name begins with `__Host-`: a browser takes such a cookie only from this host, over TLS, for the whole host. So no
//! other host of the domain can plant one.

use axum::http::{HeaderMap, header};

/// Its name over TLS, and without.
const NAMES: (&str, &str) = ("__Host-meridian-session", "meridian-session");

fn name(secure: bool) -> &'static str {
    if secure { NAMES.0 } else { NAMES.1 }
}

/// The session's text that a request shows.
pub fn read(secure: bool, headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(other, _)| *other == name(secure)).map(|(_, text)| text).next()
}

/// The value of `Set-Cookie` for a new session. The browser forgets it when it closes.
pub fn set(secure: bool, text: &str) -> String {
    line(secure, text, "")
}

/// The value of `Set-Cookie` that makes the browser forget it.
pub fn unset(secure: bool) -> String {
    line(secure, "", "; Max-Age=0")
}

fn line(secure: bool, text: &str, age: &str) -> String {
    let over_tls = if secure { "; Secure" } else { "" };
    format!("{}={text}; Path=/; HttpOnly; SameSite=Lax{over_tls}{age}", name(secure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_cookie_has_its_attributes_and_is_found_among_others() {
        assert_eq!(set(false, "x"), "meridian-session=x; Path=/; HttpOnly; SameSite=Lax");
        assert_eq!(set(true, "x"), "__Host-meridian-session=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert!(unset(true).starts_with("__Host-meridian-session=; ") && unset(true).ends_with("Secure; Max-Age=0"));
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; theme"));
        headers.append(header::COOKIE, HeaderValue::from_static("meridian-session=one;__Host-meridian-session=two"));
        assert_eq!((read(false, &headers), read(true, &headers)), (Some("one"), Some("two")));
        headers.clear();
        assert_eq!(read(false, &headers), None);
        // Over TLS a cookie that a host of the same domain could have planted does not count.
        headers.append(header::COOKIE, HeaderValue::from_static("meridian-session=one"));
        assert_eq!(read(true, &headers), None);
    }
}
