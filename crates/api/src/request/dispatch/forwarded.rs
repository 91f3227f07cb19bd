//! Determines the client of a request and its connection from the headers that proxies add.
//!
//! Any client can write these headers, so each statement is trusted only if it comes from a proxy in the settings.
//! Every proxy appends the peer of its own connection to the list. The list is therefore read from its end, for as long
//! as the hops are proxies in the settings. Anything before the first other hop is only that client's claim.
//!
//! Two forms are supported: `Forwarded` (RFC 7239), and `X-Forwarded-For` with `X-Forwarded-Proto`. A proxy sets one
//! and may pass on what a client wrote into the other, so both must name the same client.

use crate::config::network::Network;
use crate::protocol::problem::{Kind, Problem, Result};
use axum::http::{HeaderMap, HeaderName, header};
use std::net::{IpAddr, SocketAddr};

static FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Returns whether the head shows that a request came through a proxy. If so, a peer on this machine is the proxy.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| is_of_proxy(name.as_str()))
}

/// How names of headers begin that proxies add.
const STARTS: [&str; 12] = [
    "cf-",
    "cloudfront-",
    "fastly-",
    "tailscale-",
    "x-akamai-",
    "x-amzn-trace-",
    "x-arr-",
    "x-azure-",
    "x-envoy-",
    "x-forwarded",
    "x-original-",
    "x-sucuri-",
];

/// Returns whether only proxies add a header of this name.
fn is_of_proxy(name: &str) -> bool {
    STARTS.iter().any(|start| name.starts_with(start))
        || matches!(
            name,
            "ali-cdn-real-ip"
                | "cdn-loop"
                | "client-ip"
                | "do-connecting-ip"
                | "fly-client-ip"
                | "forwarded"
                | "incap-client-ip"
                | "proxy-client-ip"
                | "true-client-ip"
                | "via"
                | "wl-proxy-client-ip"
                | "x-amz-cf-id"
                | "x-appengine-user-ip"
                | "x-client-ip"
                | "x-cloud-trace-context"
                | "x-cluster-client-ip"
                | "x-nf-client-connection-ip"
                | "x-real-ip"
                | "x-varnish"
                | "x-vercel-forwarded-for"
        )
}

/// The client that a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// Whether it uses TLS.
    pub secure: bool,
}

/// One statement of a proxy: the peer of its connection, if stated, and whether that connection used TLS.
#[derive(Debug, Clone, Copy, Default)]
struct Hop {
    from: Option<IpAddr>,
    secure: Option<bool>,
}

/// Returns the client behind the `peer` of a connection.
///
/// # Errors
/// 400 if two headers of a trusted proxy name different clients, or if one cannot be parsed.
pub fn client(peer: Client, proxies: &[Network], headers: &HeaderMap) -> Result<Client> {
    let trusted = |address: IpAddr| proxies.iter().any(|network| network.contains(address));
    if !trusted(peer.address) {
        return Ok(peer);
    }
    let standard = match headers.contains_key(header::FORWARDED) {
        true => Some(walk(peer, trusted, forwarded(headers)?)),
        false => None,
    };
    let common = headers.contains_key(&FOR).then(|| walk(peer, trusted, x_forwarded(headers)));
    match (standard, common) {
        (Some(one), Some(other)) if one.address != other.address => Err(invalid(
            "Forwarded and X-Forwarded-For name different clients: the proxy must remove the one that it does not set",
        )),
        (Some(client), _) | (None, Some(client)) => Ok(client),
        // A proxy that states no address may still state how it was reached.
        (None, None) => Ok(Client { secure: protocols(headers).last().is_some_and(is_https), ..peer }),
    }
}

/// Follows the hops from the last one, which the peer added, back to the client.
fn walk(peer: Client, trusted: impl Fn(IpAddr) -> bool, hops: Vec<Hop>) -> Client {
    let mut client = peer;
    for hop in hops.into_iter().rev() {
        // Only the proxy to which a client is connected knows how it is connected.
        client.secure = hop.secure.unwrap_or(false);
        match hop.from {
            Some(from) => client.address = from,
            // Deliberately hidden (`unknown`, `_hidden`) or unreadable: anything before it cannot be trusted.
            None => return client,
        }
        if !trusted(client.address) {
            return client;
        }
    }
    client
}

/// Parses the elements of `Forwarded` (RFC 7239, 4).
fn forwarded(headers: &HeaderMap) -> Result<Vec<Hop>> {
    let mut hops = Vec::new();
    for value in headers.get_all(header::FORWARDED) {
        for element in split(value.as_bytes(), b',')? {
            let mut hop = Hop::default();
            for pair in split(element, b';')? {
                let (name, value) = text(pair).split_once('=').unwrap_or_default();
                let value = value.trim().trim_matches('"');
                match name.trim() {
                    name if name.eq_ignore_ascii_case("for") => hop.from = node(value),
                    name if name.eq_ignore_ascii_case("proto") => hop.secure = Some(is_https(value)),
                    _ => {}
                }
            }
            hops.push(hop);
        }
    }
    Ok(hops)
}

/// Parses the addresses of `X-Forwarded-For`, each with its value of `X-Forwarded-Proto`.
fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let mut hops: Vec<Hop> = values(headers, &FOR).map(|from| Hop { from: node(from), secure: None }).collect();
    let protocols: Vec<bool> = protocols(headers).map(is_https).collect();
    // Some proxies append one value each. Others replace the value, so the last proxy's value applies to all hops.
    let replaced = protocols.len() != hops.len();
    for (n, hop) in hops.iter_mut().enumerate() {
        hop.secure = if replaced { protocols.last() } else { protocols.get(n) }.copied();
    }
    hops
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    values(headers, &PROTO)
}

/// Iterates over the members of a list that may be spread over several fields (RFC 9110, 5.3).
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    headers.get_all(name).into_iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b',').map(text))
}

/// Returns a part of a field as text; empty if it is not text. Parts are parsed separately, since they may have
/// different authors.
fn text(part: &[u8]) -> &str {
    std::str::from_utf8(part).unwrap_or_default().trim()
}

fn is_https(protocol: &str) -> bool {
    protocol.eq_ignore_ascii_case("https") || protocol.eq_ignore_ascii_case("wss")
}

/// Parses an address with or without a port (RFC 7239, 6); `None` if it is not one.
fn node(text: &str) -> Option<IpAddr> {
    let bare = || text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text).parse::<IpAddr>().ok();
    let address = text.parse::<SocketAddr>().map(|socket| socket.ip()).ok().or_else(bare)?;
    Some(address.to_canonical())
}

/// Splits at a separator that is not within quotes.
///
/// # Errors
/// 400 for an unclosed quote: a client could hide the proxy's statement behind it.
fn split(field: &[u8], separator: u8) -> Result<Vec<&[u8]>> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = field.split(|&byte| {
        if escaped {
            escaped = false;
        } else if quoted && byte == b'\\' {
            escaped = true;
        } else if byte == b'"' {
            quoted = !quoted;
        }
        !quoted && byte == separator
    });
    let parts = parts.collect();
    if quoted { Err(invalid("Forwarded has a quote that is not closed (RFC 7239)")) } else { Ok(parts) }
}

fn invalid(detail: &str) -> Problem {
    Problem::new(Kind::InvalidForwarding, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_of(fields: &[(&'static str, &'static str)]) -> std::result::Result<(String, bool), u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, axum::http::HeaderValue::from_static(value));
        }
        let proxies: Vec<Network> = ["10.0.0.0/8", "2001:db8::1"].map(|text| text.parse().unwrap()).into();
        let peer = Client { address: "10.0.0.1".parse().unwrap(), secure: false };
        let found = client(peer, &proxies, &headers);
        found.map(|client| (client.address.to_string(), client.secure)).map_err(|problem| problem.status().as_u16())
    }

    /// The fields of a head, and the client that they name.
    type Case = (&'static [(&'static str, &'static str)], &'static str, bool);

    #[test]
    fn the_client_is_the_first_hop_from_the_end_that_is_no_proxy() {
        let cases: &[Case] = &[
            (&[], "10.0.0.1", false),
            (&[("x-forwarded-for", "192.0.2.7")], "192.0.2.7", false),
            // The client's own claims precede its address.
            (&[("x-forwarded-for", "198.51.100.1, 192.0.2.7")], "192.0.2.7", false),
            (&[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "192.0.2.7, 10.0.0.9")], "192.0.2.7", false),
            (&[("x-forwarded-for", "192.0.2.7, 2001:db8::1")], "192.0.2.7", false),
            (&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")], "10.0.0.3", false),
            (&[("x-forwarded-for", "192.0.2.7:4711")], "192.0.2.7", false),
            (&[("x-forwarded-for", "[2001:db8::7]:4711")], "2001:db8::7", false),
            (&[("x-forwarded-for", "::ffff:192.0.2.7")], "192.0.2.7", false),
            // No address beyond a hidden hop is trusted.
            (&[("x-forwarded-for", "192.0.2.7, unknown")], "10.0.0.1", false),
            (&[("x-forwarded-for", "192.0.2.7, nonsense, 10.0.0.2")], "10.0.0.2", false),
            (&[("x-forwarded-for", "")], "10.0.0.1", false),
            (&[("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")], "192.0.2.7", true),
            (&[("x-forwarded-for", "192.0.2.7, 10.0.0.2"), ("x-forwarded-proto", "https, http")], "192.0.2.7", true),
            (&[("x-forwarded-for", "192.0.2.7, 10.0.0.2"), ("x-forwarded-proto", "https")], "192.0.2.7", true),
            (&[("x-forwarded-for", "1.1.1.1, 192.0.2.7"), ("x-forwarded-proto", "https, http")], "192.0.2.7", false),
            (&[("x-forwarded-proto", "HTTPS")], "10.0.0.1", true),
            (&[("forwarded", "for=192.0.2.7")], "192.0.2.7", false),
            (
                &[("forwarded", "for=198.51.100.1;proto=http, For=\"[2001:db8::7]:99\" ; Proto=https")],
                "2001:db8::7",
                true,
            ),
            (&[("forwarded", "for=192.0.2.7;proto=https, for=10.0.0.4;proto=http")], "192.0.2.7", true),
            (&[("forwarded", "for=\"198.51.100.1, for=192.0.2.9\", for=192.0.2.7")], "192.0.2.7", false),
            (&[("forwarded", "for=_hidden;proto=https")], "10.0.0.1", true),
            (
                &[("forwarded", "for=192.0.2.7;proto=https"), ("x-forwarded-for", "9.9.9.9, 192.0.2.7")],
                "192.0.2.7",
                true,
            ),
        ];
        for (fields, address, secure) in cases {
            assert_eq!(client_of(fields), Ok(((*address).to_owned(), *secure)), "{fields:?}");
        }
    }

    #[test]
    fn what_a_client_writes_into_the_other_header_is_refused() {
        for fields in [
            &[("forwarded", "for=198.51.100.1"), ("x-forwarded-for", "192.0.2.7")][..],
            &[("forwarded", "for=198.51.100.1;x=\", for=192.0.2.7")],
            &[("forwarded", "for=198.51.100.1;x=\"\\, for=192.0.2.7")],
        ] {
            assert_eq!(client_of(fields), Err(400), "{fields:?}");
        }
    }

    #[test]
    fn nobody_else_is_believed() {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", axum::http::HeaderValue::from_static("127.0.0.1"));
        headers.insert("x-forwarded-proto", axum::http::HeaderValue::from_static("https"));
        let peer = Client { address: "192.0.2.7".parse().unwrap(), secure: false };
        for proxies in [&[][..], &["10.0.0.0/8".parse().unwrap()]] {
            assert_eq!(client(peer, proxies, &headers).unwrap(), peer);
        }
        assert!(is_forwarded(&headers) && !is_forwarded(&HeaderMap::new()));
    }

    #[test]
    fn every_header_of_a_proxy_shows_one() {
        for name in [
            "Ali-CDN-Real-IP",
            "Client-IP",
            "Forwarded",
            "Incap-Client-IP",
            "Via",
            "WL-Proxy-Client-IP",
            "X-Amz-Cf-Id",
            "X-NF-Client-Connection-IP",
            "X-Varnish",
            "CDN-Loop",
            "CF-Connecting-IP",
            "CF-Connecting-IPv6",
            "CF-Ray",
            "CloudFront-Viewer-Address",
            "Fastly-Client-IP",
            "Fly-Client-IP",
            "True-Client-IP",
            "X-AppEngine-User-IP",
            "X-Azure-ClientIP",
            "X-ARR-ClientIP",
            "X-Azure-Ref",
            "X-Cloud-Trace-Context",
            "X-Client-IP",
            "X-Cluster-Client-IP",
            "X-Envoy-External-Address",
            "X-Forwarded",
            "X-Forwarded-Port",
            "X-Forwarded-Server",
            "X-Original-Forwarded-For",
            "X-Original-Host",
            "X-Real-IP",
            "X-Vercel-Forwarded-For",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, axum::http::HeaderValue::from_static("localhost"));
            assert!(!is_forwarded(&headers));
            headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), axum::http::HeaderValue::from_static(""));
            assert!(is_forwarded(&headers), "{name}");
        }
    }
}
