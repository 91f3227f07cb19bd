//! The host names that the server accepts.

use crate::config::ServerConfig;
use crate::protocol::host_name::{HostName, Shape, authority_of, shape, split};
use std::fmt;
use std::net::SocketAddr;

/// How a `Host` relates to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostMatch {
    Ours,
    Other,
    Malformed,
}

/// All names of a server.
///
/// These are the loopback names, the address that the server listens on, the host of its public URL, and the names in
/// the settings. A server that listens on every address (`0.0.0.0` or `[::]`) cannot list its own. It accepts any
/// address, but no other names. That is safe, since an address, unlike a name, cannot be redirected: a page whose own
/// host is an address came from that address.
///
/// Ports do not matter unless the settings name one: behind a forwarded port, the client's port differs from the
/// server's.
pub struct Hosts {
    names: Vec<HostName>,
    any_address: bool,
}

impl Hosts {
    /// Collects the names of a server that listens on `listen`.
    pub fn new(config: &ServerConfig, listen: SocketAddr) -> Hosts {
        let own = (!listen.ip().is_unspecified()).then(|| HostName::of(listen.ip()));
        let public = config.public_url.as_deref().and_then(|url| authority_of(url)?.parse().ok());
        // Without the port: behind a proxy the `Host` may contain another one.
        let public = public.map(|name: HostName| HostName { port: None, ..name });
        let loopback = ["127.0.0.1", "localhost", "[::1]"].map(|name| HostName { host: name.into(), port: None });
        let mut names: Vec<HostName> = Vec::new();
        // The listen address comes first, as most clients use it.
        for name in own.into_iter().chain(loopback).chain(public).chain(config.hosts.iter().cloned()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Hosts { names, any_address: listen.ip().is_unspecified() }
    }

    /// Returns how an authority (a host with an optional port) relates to this server. Allocates nothing.
    pub(super) fn match_host(&self, authority: &[u8]) -> HostMatch {
        let Some((host, port)) = split(authority) else { return HostMatch::Malformed };
        let is = |name: &HostName| {
            name.host.as_bytes().eq_ignore_ascii_case(host) && name.port.is_none_or(|wanted| Some(wanted) == port)
        };
        // Listed names first, which is the common case. Only other names are checked for their syntax.
        if self.names.iter().any(is) {
            return HostMatch::Ours;
        }
        match shape(host) {
            None => HostMatch::Malformed,
            Some(Shape::Address) if self.any_address => HostMatch::Ours,
            Some(_) => HostMatch::Other,
        }
    }
}

impl fmt::Display for Hosts {
    /// Writes the names, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names.iter().enumerate() {
            write!(f, "{}{name}", if i == 0 { "" } else { ", " })?;
        }
        if self.any_address { f.write_str(", any IP address") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HostMatch::{Malformed, Other, Ours};

    fn hosts(listen: &str, more: &[&str], public: Option<&str>) -> Hosts {
        let config = ServerConfig {
            hosts: more.iter().map(|name| name.parse().unwrap()).collect(),
            public_url: public.map(str::to_owned),
            ..ServerConfig::default()
        };
        Hosts::new(&config, listen.parse().unwrap())
    }

    #[track_caller]
    fn check(hosts: &Hosts, cases: &[(&str, HostMatch)]) {
        for (authority, expected) in cases {
            assert_eq!(hosts.match_host(authority.as_bytes()), *expected, "{authority}");
        }
    }

    #[test]
    fn loopback_names_are_known_at_any_port() {
        let cases = [
            ("127.0.0.1", Ours),
            ("127.0.0.1:7117", Ours),
            ("localhost", Ours),
            ("LocalHost:80", Ours),
            ("[::1]", Ours),
            ("[::1]:7117", Ours),
            ("localhost:", Ours),
            ("localhost.evil.example", Other),
            ("evil.example", Other),
            ("evil.example:7117", Other),
            ("127.0.0.1.evil.example", Other),
            ("127.0.0.2", Other),
            ("192.0.2.7:7117", Other),
            ("::1", Malformed),
            ("", Malformed),
            (":7117", Malformed),
            ("localhost:x", Malformed),
            ("localhost:70000", Malformed),
            ("user@localhost", Malformed),
            ("localhost, evil.example", Malformed),
            ("localhost/", Malformed),
            ("[::1", Malformed),
            ("[localhost]", Malformed),
            ("[::1]x", Malformed),
        ];
        check(&hosts("127.0.0.1:7117", &[], None), &cases);
    }

    #[test]
    fn the_operators_names_are_known() {
        let hosts = hosts(
            "192.0.2.7:80",
            &["Events.example.org", "db:7117", "2001:db8::7"],
            Some("https://maps.example.org:8443/meridian"),
        );
        let cases = [
            ("192.0.2.7", Ours),
            ("events.example.org", Ours),
            ("events.example.org:8080", Ours),
            ("db:7117", Ours),
            ("db", Other),
            ("db:7118", Other),
            ("[2001:db8::7]:80", Ours),
            ("maps.example.org", Ours),
            ("192.0.2.8", Other),
        ];
        check(&hosts, &cases);
        assert_eq!(
            hosts.to_string(),
            "192.0.2.7, 127.0.0.1, localhost, [::1], maps.example.org, Events.example.org, db:7117, [2001:db8::7]"
        );
    }

    #[test]
    fn a_server_on_every_address_accepts_addresses_and_no_other_names() {
        for listen in ["0.0.0.0:7117", "[::]:7117"] {
            let hosts = hosts(listen, &[], None);
            let cases = [
                ("192.0.2.7:7117", Ours),
                ("[2001:db8::7]", Ours),
                ("localhost", Ours),
                ("evil.example", Other),
                ("1.2.3", Other),
                ("0x7f000001", Other),
                ("2130706433", Other),
            ];
            check(&hosts, &cases);
            assert!(hosts.to_string().ends_with("any IP address"), "{hosts}");
        }
    }
}
