//! Names of servers, as in the field `Host` (RFC 9110, 7.2).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name or address of a server, as in `Host`: for one port, or for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName {
    /// Includes the brackets around an IPv6 address.
    pub host: Box<str>,
    /// `None` for any.
    pub port: Option<u16>,
}

impl HostName {
    /// Returns the name in a listen address (`events:7117`), for any port; `None` if it is an IP address.
    pub fn listened_on(listen: &str) -> Option<HostName> {
        let name: HostName = listen.parse().ok()?;
        matches!(shape(name.host.as_bytes()), Some(Shape::Name)).then_some(HostName { port: None, ..name })
    }

    /// Returns the name that an address is, for any port.
    pub fn of(address: IpAddr) -> HostName {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        HostName { host: host.into(), port: None }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl FromStr for HostName {
    type Err = String;

    /// Parses a name or an address, with an optional port.
    fn from_str(text: &str) -> Result<HostName, String> {
        // Without brackets, its colons would be taken for a port.
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(HostName::of(address.into()));
        }
        let expected = || {
            format!(
                "{text:?}: expected a host such as events.example.org, 192.0.2.7 or [2001:db8::7], with a port or without"
            )
        };
        let (host, port) = split(text.as_bytes()).ok_or_else(expected)?;
        let host = std::str::from_utf8(host).map_err(|_| expected())?;
        let plain = match shape(host.as_bytes()) {
            Some(Shape::Address) => true,
            Some(Shape::Name) => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
            None => false,
        };
        // A `Host` may end with a colon; in a setting that is a mistake.
        if !plain || port.is_none() && host.len() != text.len() {
            return Err(expected());
        }
        Ok(HostName { host: host.into(), port })
    }
}

/// Returns host and port of a URL: the part between `//` and the path.
pub fn authority_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}

/// Splits the port off an authority; `None` if anything but a port follows the host.
pub fn split(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let end = match authority.first()? {
        b'[' => authority.iter().position(|&byte| byte == b']')? + 1,
        _ => authority.iter().position(|&byte| byte == b':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    match rest {
        // A colon without a port denotes the default port (RFC 3986, 3.2.3).
        [] | [b':'] => Some((host, None)),
        [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
            Some((host, Some(std::str::from_utf8(digits).ok()?.parse().ok()?)))
        }
        _ => None,
    }
}

/// The syntactic form of a host.
pub enum Shape {
    /// An IP address.
    Address,
    /// A name.
    Name,
}

/// Returns the syntactic form of a host; `None` if it is not one.
pub fn shape(host: &[u8]) -> Option<Shape> {
    let text = std::str::from_utf8(host).ok()?;
    if let Some(inner) = text.strip_prefix('[') {
        return inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(|_| Shape::Address);
    }
    if text.parse::<Ipv4Addr>().is_ok() {
        return Some(Shape::Address);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    (!text.is_empty() && text.bytes().all(plain)).then_some(Shape::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_listened_on_is_known() {
        assert_eq!(HostName::listened_on("events:7117").unwrap().to_string(), "events");
        for address in ["127.0.0.1:7117", "[::]:7117", ":7117", ""] {
            assert!(HostName::listened_on(address).is_none(), "{address}");
        }
    }

    #[test]
    fn a_wrong_name_is_refused() {
        for wrong in ["", "http://x", "x/y", "a b", "x:", "x:y", "[::1", "x:99999", "*", "*.example.org"] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong}");
        }
    }
}
