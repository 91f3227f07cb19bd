//! Addresses: from the text of a target to sockets, and the guard against load on public hosts.

use super::tls::{ExtraTrust, Tls};
use crate::generate::Encoding;
use crate::scenario::{Scenario, Target};
use meridian_lab_results::error::{LabError, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// The protocol of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (and Server-Sent Events over it).
    Http,
    /// WebSocket.
    WebSocket,
    /// RESP (Redis, Tile38).
    Redis,
    /// HTTP/2.
    Http2,
    /// PostgreSQL's protocol.
    Postgres,
    /// NATS.
    Nats,
}

impl Protocol {
    /// Returns how its requests are framed.
    pub fn encoding(self) -> Encoding {
        match self {
            Protocol::Http | Protocol::Http2 | Protocol::WebSocket => Encoding::Http,
            Protocol::Postgres => Encoding::Sql,
            Protocol::Redis | Protocol::Nats => Encoding::Plain,
        }
    }

    /// Returns the protocols offered by ALPN within TLS; none if a protocol has no name there.
    fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Http | Protocol::WebSocket => b"http/1.1",
            Protocol::Http2 => b"h2",
            Protocol::Redis | Protocol::Postgres | Protocol::Nats => b"",
        }
    }
}

/// User, password and database, from the parts of an address before and after its host.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// Name (or token).
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Database.
    pub database: Option<String>,
}

/// A scheme of a URL.
#[derive(Debug)]
struct Scheme {
    name: &'static str,
    protocol: Protocol,
    tls: bool,
    port: u16,
}

const fn scheme(name: &'static str, protocol: Protocol, tls: bool, port: u16) -> Scheme {
    Scheme { name, protocol, tls, port }
}

/// All supported schemes.
const SCHEMES: [Scheme; 10] = [
    scheme("http", Protocol::Http, false, 80),
    scheme("https", Protocol::Http, true, 443),
    scheme("ws", Protocol::WebSocket, false, 80),
    scheme("wss", Protocol::WebSocket, true, 443),
    scheme("redis", Protocol::Redis, false, 6379),
    scheme("rediss", Protocol::Redis, true, 6379),
    scheme("postgres", Protocol::Postgres, false, 5432),
    scheme("postgresql", Protocol::Postgres, false, 5432),
    scheme("nats", Protocol::Nats, false, 4222),
    scheme("tls", Protocol::Nats, true, 4222),
];

/// One address of a target.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its protocol.
    pub protocol: Protocol,
    /// Host name or number, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path after the port, without a trailing slash.
    pub base: String,
    /// Resolved sockets.
    pub socket: SocketAddr,
    /// The TLS settings, if its scheme uses TLS.
    pub tls: Option<Tls>,
    /// The user.
    pub login: Login,
    usual_port: u16,
}

impl Address {
    /// Returns host and port as in a `Host` header.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.usual_port { host } else { format!("{host}:{}", self.port) }
    }
}

/// Returns the addresses of a target, resolved and allowed. `allowed` are the public hosts that the user named.
pub fn addresses(target: &Target, allowed: &[String]) -> Result<Vec<Address>> {
    let all = target.addresses().map(|url| resolve(target, url, allowed)).collect::<Result<Vec<_>>>()?;
    let option = if target.ca.is_some() { Some("ca") } else { target.insecure.then_some("insecure") };
    if let Some(option) = option.filter(|_| all.iter().any(|address| address.tls.is_none())) {
        let name = &target.name;
        return Err(LabError::scenario(format!(
            "target {name}: {option} is for TLS: expected https://, wss://, rediss://, tls://, or postgres://…?sslmode=verify-full"
        )));
    }
    Ok(all)
}

/// Applies the command line's certificate options: every target that speaks TLS trusts `ca`, or accepts any
/// certificate.
///
/// # Errors
///
/// No target speaks TLS, so the option would have no effect.
pub fn trust(scenario: &mut Scenario, ca: Option<&Path>, insecure: bool) -> Result<()> {
    if ca.is_none() && !insecure {
        return Ok(());
    }
    let within_tls = |target: &&mut Target| target.addresses().all(|url| cut(url).is_ok_and(|parts| parts.tls));
    let mut found = false;
    for target in scenario.target.iter_mut().filter(within_tls) {
        found = true;
        target.insecure |= insecure;
        if let Some(ca) = ca {
            target.ca = Some(ca.to_owned());
        }
    }
    let option = if insecure { "--insecure" } else { "--ca" };
    if found { Ok(()) } else { Err(LabError::scenario(format!("{option}: no target speaks TLS"))) }
}

/// Returns a single address, for queries beside the load (metrics).
pub fn single(whose: &str, url: &str, allowed: &[String]) -> Result<Address> {
    let address = resolve(&Target::at(whose, url), url, allowed)?;
    if address.protocol == Protocol::Http && address.tls.is_none() {
        return Ok(address);
    }
    Err(LabError::scenario(format!("{whose}: {url:?}: metrics are read over http://")))
}

fn resolve(target: &Target, url: &str, allowed: &[String]) -> Result<Address> {
    let whose = &target.name;
    let wrong = |e: String| LabError::scenario(format!("target {whose}: {url:?}: {e}"));
    let Parts { scheme, host, port, base, login, tls } = cut(url).map_err(wrong)?;
    let protocol = match (scheme.protocol, target.http2) {
        (Protocol::Http, true) => Protocol::Http2,
        (_, true) => return Err(wrong("http2 is for http:// and https://".to_owned())),
        (protocol, false) => protocol,
    };
    let trusted = ExtraTrust { ca: target.ca.as_deref(), any: target.insecure };
    let tls = if tls { Some(Tls::new(&host, &trusted, protocol.alpn()).map_err(wrong)?) } else { None };
    let found: Vec<SocketAddr> = (host.as_str(), port)
        .to_socket_addrs()
        .map_err(|e| LabError::target(format!("target {whose}: {host} cannot be resolved: {e}")))?
        .collect();
    let Some(socket) = found.first().copied() else {
        return Err(LabError::target(format!("target {whose}: {host} has no address")));
    };
    // Every address counts, not only the one in use: a resolver may return them in another order next time.
    if !found.iter().all(|socket| is_at_home(socket.ip())) && !allowed.contains(&host) {
        return Err(LabError::scenario(format!(
            "target {whose}: {host} is outside loopback and private networks: load is sent there only with --allow-public {host}"
        )));
    }
    Ok(Address { protocol, host, port, base, socket, tls, login, usual_port: scheme.port })
}

/// The parts of a URL.
struct Parts {
    scheme: &'static Scheme,
    host: String,
    port: u16,
    base: String,
    login: Login,
    tls: bool,
}

fn cut(url: &str) -> Result<Parts, String> {
    let (scheme, rest) = url.split_once("://").ok_or("expected a URL such as http://127.0.0.1:7117")?;
    let Some(scheme) = SCHEMES.iter().find(|known| known.name == scheme) else {
        let known: Vec<String> = SCHEMES.iter().map(|scheme| format!("{}://", scheme.name)).collect();
        return Err(format!("{scheme}:// is not spoken: expected one of {}", known.join(", ")));
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, base) = rest.split_at(end);
    let (who, place) = authority.rsplit_once('@').map_or((None, authority), |(who, place)| (Some(who), place));
    let (host, port) = host_and_port(place, scheme.port)?;
    let mut parts = Parts { scheme, host, port, base: String::new(), login: Login::default(), tls: scheme.tls };
    if let Some(who) = who {
        if !matches!(scheme.protocol, Protocol::Redis | Protocol::Postgres | Protocol::Nats) {
            return Err(format!("a name and password are not sent over {}://", scheme.name));
        }
        let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
        parts.login.user = Some(plain(user)?);
        parts.login.password = password.map(plain).transpose()?;
    }
    if scheme.protocol == Protocol::Postgres {
        database(base, &mut parts)?;
    } else if base.contains(['?', '#']) {
        return Err("a query belongs in a request's path".to_owned());
    } else {
        base.trim_end_matches('/').clone_into(&mut parts.base);
    }
    Ok(parts)
}

fn host_and_port(place: &str, usual: u16) -> Result<(String, u16), String> {
    let (host, port) = if let Some(inner) = place.strip_prefix('[') {
        let (host, after) = inner.split_once(']').ok_or("the bracket of an IPv6 address is not closed")?;
        (host, after.strip_prefix(':').map_or(Ok(usual), read_port)?)
    } else {
        match place.split_once(':') {
            Some((host, text)) => (host, read_port(text)?),
            None => (place, usual),
        }
    };
    if host.is_empty() { Err("the host is missing".to_owned()) } else { Ok((host.to_owned(), port)) }
}

/// Parses the path after the port of a PostgreSQL server: a database, and whether TLS is wanted. The libpq modes that
/// use TLS opportunistically are left out: they hide what was measured.
fn database(base: &str, parts: &mut Parts) -> Result<(), String> {
    let (name, query) = base.split_once('?').map_or((base, None), |(name, query)| (name, Some(query)));
    let name = name.trim_matches('/');
    if !name.is_empty() {
        parts.login.database = Some(plain(name)?);
    }
    parts.tls = match query {
        None | Some("sslmode=disable") => false,
        Some("sslmode=verify-full") => true,
        Some(query) => return Err(format!("?{query}: expected sslmode=disable or sslmode=verify-full")),
    };
    Ok(())
}

/// Decodes the percent-encoding of a part of a URL.
fn plain(text: &str) -> Result<String, String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if !decoded.contains(char::is_control) => Ok(decoded.into_owned()),
        _ => Err(format!("{text:?}: expected percent-encoded text")),
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("port {text:?}: expected a number from 1 to 65535"))
}

/// Returns whether an address is in a private network: loopback, RFC 1918, RFC 4193, link-local.
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
    use proptest::prelude::*;

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
        let target = Target::at("t", "wss://[::1]");
        let address = &addresses(&target, &[]).expect("sound")[0];
        assert_eq!((address.authority().as_str(), address.port, address.tls.is_some()), ("[::1]", 443, true));
        let target = Target::at("t", "postgres://me:p%40ss@127.0.0.1/db?sslmode=verify-full");
        let address = &addresses(&target, &[]).expect("sound")[0];
        let login = &address.login;
        assert_eq!((login.user.as_deref(), login.password.as_deref()), (Some("me"), Some("p@ss")));
        assert_eq!((login.database.as_deref(), address.tls.is_some(), address.base.as_str()), (Some("db"), true, ""));
        for (url, part) in [
            ("127.0.0.1:80", "expected a URL"),
            ("ftp://127.0.0.1", "not spoken"),
            ("http://a:b@127.0.0.1", "not sent"),
            ("postgres://127.0.0.1/db?sslmode=prefer", "verify-full"),
            ("rediss://127.0.0.1", "over http://"),
            ("http://127.0.0.1:99999", "65535"),
            ("http://", "host is missing"),
            ("http://127.0.0.1/x?y=1", "request's path"),
        ] {
            let message = of(url, &[]).expect_err(url).to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    fn encoded(text: &str) -> String {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    }

    proptest! {
        /// Every part written into a URL is read back from it: any name and password, any port, any path.
        #[test]
        fn a_url_is_read_as_it_was_written(
            user in "[^\\p{C}]{1,8}", password in "[^\\p{C}]{0,8}", host in "[a-z][a-z0-9.-]{0,10}", port: u16,
            database in "[^\\p{C}/]{1,8}", tls: bool,
        ) {
            let query = if tls { "verify-full" } else { "disable" };
            let url = format!(
                "postgres://{}:{}@{host}:{port}/{}?sslmode={query}", encoded(&user), encoded(&password), encoded(&database)
            );
            let parts = cut(&url).expect(&url);
            prop_assert_eq!((parts.host.as_str(), parts.port, parts.tls), (host.as_str(), port, tls));
            prop_assert_eq!(parts.login.user, Some(user));
            prop_assert_eq!(parts.login.password, Some(password));
            prop_assert_eq!(parts.login.database, Some(database));
        }

        #[test]
        fn any_text_is_an_address_or_a_mistake(scheme in "(http|wss|redis|postgres|nats|x)?", rest in "(://)?[\\PC]{0,30}") {
            if let Ok(parts) = cut(&format!("{scheme}{rest}")) {
                prop_assert!(!parts.host.is_empty());
            }
        }
    }
}
