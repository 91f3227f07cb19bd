//! The codings that a request accepts (`Accept-Encoding`).

use super::Coding;
use crate::entry::guard::Guard;
use crate::protocol::fields;
use axum::http::{HeaderMap, HeaderValue, header};

/// A weight in thousandths (RFC 9110, 12.4.2).
type Weight = u16;

const FULL: Weight = 1000;

/// The codings that a request accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accepted {
    coding: Option<Coding>,
    refuses_plain: bool,
    shows_cookie: bool,
}

impl Accepted {
    /// Parses the codings accepted by a request with these headers.
    pub fn of(headers: &HeaderMap, guard: &Guard) -> Accepted {
        if !fields::has(headers, &header::ACCEPT_ENCODING) || may_be_forged(headers, guard) {
            return Accepted::default();
        }
        let (mut listed, mut plain, mut others) = ([None; Coding::ALL.len()], None, None);
        let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for (name, weight) in values.flat_map(|value| value.split(',')).filter_map(item) {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("identity") {
                plain = Some(weight);
            } else if is("*") {
                others = Some(weight);
            } else if let Some(at) =
                Coding::ALL.iter().position(|coding| is(coding.name()) || *coding == Coding::Gzip && is("x-gzip"))
            {
                listed[at] = Some(weight);
            }
        }
        let mut best: Option<(Weight, Coding)> = None;
        for (coding, weight) in Coding::ALL.into_iter().zip(listed) {
            let weight = weight.or(others).unwrap_or(0);
            // Of equal weights, the first wins.
            if weight > best.map_or(0, |(best, _)| best) {
                best = Some((weight, coding));
            }
        }
        Accepted {
            // A client that prefers the plain bytes gets them.
            coding: best.filter(|(weight, _)| plain.is_none_or(|plain| plain <= *weight)).map(|(_, coding)| coding),
            refuses_plain: plain.or(others) == Some(0),
            shows_cookie: headers.contains_key(header::COOKIE),
        }
    }

    /// Returns the coding to use, if any.
    pub fn coding(&self) -> Option<Coding> {
        self.coding
    }

    /// Returns whether the client accepts compressed responses only.
    pub fn refuses_plain(&self) -> bool {
        self.refuses_plain
    }

    /// Returns whether the response may contain a secret of this request's session.
    pub fn protects(&self, response: &HeaderMap) -> bool {
        let is_page = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/html");
        self.shows_cookie && response.get(header::CONTENT_TYPE).is_some_and(is_page)
    }
}

/// Parses a coding and its weight; `None` if malformed.
fn item(text: &str) -> Option<(&str, Weight)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let Some(weight) = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="))) else {
        return Some((name, FULL));
    };
    let weight: f32 = weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
    Some((name, (weight * f32::from(FULL)).round() as Weight))
}

/// Returns whether a page of another site may have made a browser send the request with credentials. The browser adds
/// some by itself: a cookie, or a token that its user has typed as a password.
fn may_be_forged(headers: &HeaderMap, guard: &Guard) -> bool {
    let is_typed = |value: &HeaderValue| value.as_bytes().get(..6).is_some_and(|s| s.eq_ignore_ascii_case(b"basic "));
    let has_cookie = headers.contains_key(header::COOKIE);
    match guard.is_of_own_page(headers) {
        Some(true) => false,
        Some(false) => has_cookie || headers.get_all(header::AUTHORIZATION).iter().any(is_typed),
        // An old browser or a program: programs with tokens are common, programs with cookies are not.
        None => has_cookie,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;

    fn accepted(fields: &[(&'static str, &str)]) -> Accepted {
        let guard = Guard::new(&ServerConfig::default(), "127.0.0.1:7117".parse().unwrap());
        let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("127.0.0.1:7117"))]);
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        Accepted::of(&headers, &guard)
    }

    fn coding(value: &str) -> Option<Coding> {
        accepted(&[("accept-encoding", value)]).coding()
    }

    #[test]
    fn the_client_decides_by_weights_and_the_server_between_equals() {
        use Coding::{Brotli, Gzip, Zstd};
        for (value, expected) in [
            ("", None),
            ("gzip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("GZIP, deflate", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, deflate, br", Some(Brotli)),
            ("gzip;q=1.0, br;q=0.5, zstd;q=0.999", Some(Gzip)),
            ("br ; q=0.4, gzip ; q=0.2", Some(Brotli)),
            ("*", Some(Zstd)),
            ("zstd;q=0, *", Some(Brotli)),
            ("zstd;q=0, br;q=0, *;q=0.1", Some(Gzip)),
            ("*;q=0", None),
            ("gzip;q=0", None),
            ("identity", None),
            ("identity;q=1, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
            ("deflate, compress", None),
            // An invalid weight is ignored together with its coding.
            ("gzip;q=2, br;q=0.1", Some(Brotli)),
            ("gzip;q=x", None),
            (",,gzip,", Some(Gzip)),
        ] {
            assert_eq!(coding(value), expected, "{value:?}");
        }
        assert_eq!(accepted(&[]).coding(), None);
        assert_eq!(accepted(&[("accept-encoding", "br;q=0.1"), ("accept-encoding", "gzip")]).coding(), Some(Gzip));
        assert!(accepted(&[("accept-encoding", "gzip, identity;q=0")]).refuses_plain());
        assert!(accepted(&[("accept-encoding", "gzip, *;q=0")]).refuses_plain());
        assert!(!accepted(&[("accept-encoding", "gzip, identity;q=0.1, *;q=0")]).refuses_plain());
    }

    #[test]
    fn what_another_site_may_have_asked_for_with_a_users_credential_is_not_compressed() {
        let of = |more: &[(&'static str, &str)]| {
            accepted(&[&[("accept-encoding", "gzip")], more].concat()).coding().is_some()
        };
        assert!(of(&[]) && of(&[("authorization", "Bearer x")]) && of(&[("authorization", "Basic x")]));
        // Browsers never add a bearer token by themselves.
        assert!(of(&[("authorization", "Bearer x"), ("sec-fetch-site", "cross-site")]));
        assert!(of(&[("cookie", "a=b"), ("sec-fetch-site", "same-origin")]));
        assert!(of(&[("cookie", "a=b"), ("sec-fetch-site", "none")]));
        assert!(of(&[("sec-fetch-site", "cross-site")]));
        for site in ["cross-site", "same-site", "else"] {
            assert!(!of(&[("cookie", "a=b"), ("sec-fetch-site", site)]), "{site}");
            assert!(!of(&[("authorization", "bAsic x"), ("sec-fetch-site", site)]), "{site}");
        }
        assert!(!of(&[("cookie", "a=b")]));
        // An older browser states the origin of the page alone.
        for credential in [("cookie", "a=b"), ("authorization", "Basic x")] {
            assert!(of(&[credential, ("origin", "http://127.0.0.1:7117")]), "{credential:?}");
            for origin in ["http://127.0.0.1:3000", "https://evil.example", "null"] {
                assert!(!of(&[credential, ("origin", origin)]), "{credential:?} {origin}");
            }
        }
        assert!(of(&[("authorization", "Bearer x"), ("origin", "https://evil.example")]));
    }
}
