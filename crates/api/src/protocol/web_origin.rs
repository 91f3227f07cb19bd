//! Origins of pages: scheme, host and port, as browsers send them (RFC 6454).

use super::host_name::{HostName, authority_of};
use std::fmt;
use std::str::FromStr;

/// An origin of pages, such as `https://maps.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(Box<str>);

impl WebOrigin {
    /// Returns the origin of a URL.
    pub fn of_url(url: &str) -> Result<WebOrigin, String> {
        let expected = || format!("{url:?}: expected an origin such as https://maps.example.org");
        let url = url.to_ascii_lowercase();
        let (scheme, default) = scheme_of(url.as_bytes()).ok_or_else(expected)?;
        let authority = authority_of(&url).ok_or_else(expected)?;
        authority.parse::<HostName>().map_err(|_| expected())?;
        let authority = authority.strip_suffix(default).unwrap_or(authority);
        Ok(WebOrigin(format!("{scheme}{authority}").into()))
    }

    /// Returns whether an `Origin` header has this value.
    pub fn is(&self, origin: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(origin)
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for WebOrigin {
    type Err = String;

    /// Parses scheme, host and port. A path is refused, since it would be ignored.
    fn from_str(text: &str) -> Result<WebOrigin, String> {
        let origin = WebOrigin::of_url(text)?;
        match authority_of(text) {
            Some(authority) if text.ends_with(authority) => Ok(origin),
            _ => Err(format!("{text:?}: expected an origin without a path, such as {origin}")),
        }
    }
}

/// Returns whether an `Origin` names the host and port of a `Host`, by http or https. A proxy before this server may
/// use either with its clients.
pub fn is_of_host(origin: &[u8], host: &[u8]) -> bool {
    let Some((scheme, default)) = scheme_of(origin) else { return false };
    let without =
        |authority: &[u8]| authority.len() - if authority.ends_with(default.as_bytes()) { default.len() } else { 0 };
    let from = &origin[scheme.len()..];
    from[..without(from)].eq_ignore_ascii_case(&host[..without(host)])
}

/// Returns the scheme that an origin begins with, and the port that it omits.
fn scheme_of(origin: &[u8]) -> Option<(&'static str, &'static str)> {
    [("http://", ":80"), ("https://", ":443")].into_iter().find(|(scheme, _)| {
        origin.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (text, shown) in [
            ("https://Maps.example.org", "https://maps.example.org"),
            ("https://maps.example.org:443", "https://maps.example.org"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(text.parse::<WebOrigin>().unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "null",
            "maps.example.org",
            "ftp://x",
            "https://",
            "https://x/",
            "https://x/y",
            "https://a b",
            "https://x;y",
            "*",
        ] {
            assert!(wrong.parse::<WebOrigin>().is_err(), "{wrong}");
        }
        assert_eq!(WebOrigin::of_url("https://x.example:443/y?z").unwrap().to_string(), "https://x.example");
    }

    #[test]
    fn default_ports_are_left_out_on_either_side() {
        for (origin, host, same) in [
            ("http://h", "h:80", true),
            ("https://h", "h:443", true),
            ("https://h", "h", true),
            ("http://h", "h:443", false),
            ("http://h:7117", "H:7117", true),
            ("http://h:7117", "h:7118", false),
            ("null", "null", false),
            ("h:7117", "h:7117", false),
        ] {
            assert_eq!(is_of_host(origin.as_bytes(), host.as_bytes()), same, "{origin} {host}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_origin_is_read_as_it_was_shown(scheme in "https?", host in "[a-z0-9]{1,8}(\\.[a-z0-9]{1,8}){0,3}", port in proptest::option::of(1u16..)) {
            let authority = port.map_or(host.clone(), |port| format!("{host}:{port}"));
            let origin: WebOrigin = format!("{scheme}://{authority}").parse().unwrap();
            proptest::prop_assert_eq!(origin.to_string().parse(), Ok(origin.clone()));
            proptest::prop_assert!(is_of_host(origin.to_string().as_bytes(), authority.as_bytes()));
            // A longer name with the same start is another host.
            let longer = format!("{host}.evil");
            proptest::prop_assert!(!is_of_host(origin.to_string().as_bytes(), longer.as_bytes()));
        }
    }
}
