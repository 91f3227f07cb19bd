//! Addresses: from the text of a target to sockets, and the guard that keeps the lab at home.

use crate::error::{LabError, Result};
use crate::scenario::{Protocol, Target};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// One address of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What is spoken there.
    pub protocol: Protocol,
    /// Name or number, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What follows the port, without a slash at its end.
    pub base: String,
    /// Where it resolves to.
    pub socket: SocketAddr,
}

impl Address {
    /// Host and port as a `Host` header has them.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = match self.protocol {
            Protocol::Http | Protocol::WebSocket | Protocol::Http2 => 80,
            Protocol::Https => 443,
            Protocol::Redis => 6379,
        };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

/// The addresses of a target, resolved and allowed. `allowed` are the public hosts that the user named.
pub fn addresses(target: &Target, allowed: &[String]) -> Result<Vec<Address>> {
    target.addresses().map(|url| resolve(&target.name, url, target.http2, allowed)).collect()
}

/// A single address, for what is asked beside the load (metrics).
pub fn single(whose: &str, url: &str, allowed: &[String]) -> Result<Address> {
    resolve(whose, url, false, allowed)
}

fn resolve(whose: &str, url: &str, http2: bool, allowed: &[String]) -> Result<Address> {
    let (protocol, host, port, base) =
        cut(url, http2).map_err(|e| LabError::scenario(format!("target {whose}: {url:?}: {e}")))?;
    let found: Vec<SocketAddr> = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(|e| LabError::target(format!("target {whose}: {host} cannot be resolved: {e}")))?
        .collect();
    let Some(socket) = found.first().copied() else {
        return Err(LabError::target(format!("target {whose}: {host} has no address")));
    };
    if !found.iter().all(|socket| is_at_home(socket.ip())) && !allowed.contains(&host) {
        return Err(LabError::scenario(format!(
            "target {whose}: {host} is outside loopback and private networks: load is sent there only with --allow-public {host}"
        )));
    }
    Ok(Address { protocol, host, port, base, socket })
}

fn cut(url: &str, http2: bool) -> Result<(Protocol, String, u16, String), String> {
    let (scheme, rest) = url.split_once("://").ok_or("expected a URL such as http://127.0.0.1:7117")?;
    let (protocol, port) = match (scheme, http2) {
        ("http", false) => (Protocol::Http, 80),
        ("http", true) => (Protocol::Http2, 80),
        ("ws", false) => (Protocol::WebSocket, 80),
        ("redis", false) => (Protocol::Redis, 6379),
        ("https" | "wss" | "rediss" | "postgres" | "postgresql" | "nats" | "tls", _) => {
            return Err(format!("{scheme}:// is not spoken by this version: expected http://, ws:// or redis://"));
        }
        ("ws" | "redis", true) => return Err("http2 is for http://".to_owned()),
        _ => return Err(format!("{scheme}:// is not known: expected http://, ws:// or redis://")),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, base) = rest.split_at(end);
    if base.contains(['?', '#']) {
        return Err("a query belongs in a request's path".to_owned());
    }
    if authority.contains('@') {
        return Err("a name and password in a URL are not sent: expected a header".to_owned());
    }
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (host, after) = inner.split_once(']').ok_or("the bracket of an IPv6 address is not closed")?;
        (host, after.strip_prefix(':').map_or(Ok(port), read_port)?)
    } else {
        match authority.split_once(':') {
            Some((host, text)) => (host, read_port(text)?),
            None => (authority, port),
        }
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    Ok((protocol, host.to_owned(), port, base.trim_end_matches('/').to_owned()))
}

fn read_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("port {text:?}: expected a number from 1 to 65535"))
}

/// Loopback, RFC 1918, RFC 4193, link-local: networks that somebody here answers for.
fn is_at_home(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => is_at_home(IpAddr::V4(ip)),
            None => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, allowed: &[&str]) -> Result<Address> {
        single("t", url, &allowed.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn public_hosts_are_refused_unless_they_are_named() {
        for url in
            ["http://8.8.8.8", "http://[2001:4860:4860::8888]:80/x", "http://172.32.0.1", "http://[::ffff:1.1.1.1]"]
        {
            let message = of(url, &[]).expect_err(url).to_string();
            assert!(message.contains("--allow-public"), "{message}");
        }
        assert!(of("http://8.8.8.8", &["8.8.8.8"]).is_ok());
        for url in
            ["http://127.0.0.1:1", "http://10.1.2.3", "http://192.168.0.9:80", "http://[::1]:8080", "http://172.16.0.1"]
        {
            of(url, &[]).expect(url);
        }
    }

    #[test]
    fn parts_of_a_url_are_kept_and_mistakes_are_sentences() {
        let address = of("http://127.0.0.1:7117/base/", &[]).expect("sound");
        assert_eq!(
            (address.port, address.base.as_str(), address.authority().as_str()),
            (7117, "/base", "127.0.0.1:7117")
        );
        assert_eq!(of("ws://[::1]", &[]).expect("sound").authority(), "[::1]");
        for (url, part) in [
            ("127.0.0.1:80", "expected a URL"),
            ("ftp://127.0.0.1", "not known"),
            ("nats://127.0.0.1", "not spoken"),
            ("http://127.0.0.1:99999", "65535"),
            ("http://", "host is missing"),
            ("http://127.0.0.1/x?y=1", "request's path"),
        ] {
            let message = of(url, &[]).expect_err(url).to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
