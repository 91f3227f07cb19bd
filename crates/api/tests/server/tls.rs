//! TLS: accepted clients, changed certificates, and the response to plain HTTP.

use crate::support::{Response, Server, ask_over, read_response};
use meridian_api::{Certificate, CertificateFault, ServerConfig, Tls};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A self-signed certificate for localhost, and its key.
pub struct Shown {
    pub chain: String,
    pub key: String,
    pub der: CertificateDer<'static>,
}

impl Shown {
    pub fn new() -> Shown {
        Shown::until(2999)
    }

    fn until(year: i32) -> Shown {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Shown { chain: certificate.pem(), key: key.serialize_pem(), der: certificate.der().clone() }
    }

    pub fn certificate(&self) -> Certificate {
        Certificate::of_pem(self.chain.as_bytes(), self.key.as_bytes()).unwrap()
    }

    pub fn tls(&self) -> Tls {
        Tls::new(self.certificate()).unwrap()
    }

    /// Returns a client that trusts only this certificate.
    pub fn client(&self, alpn: &[&[u8]], versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        config
    }
}

pub type Secured = StreamOwned<ClientConnection, TcpStream>;

/// Performs the handshake of a connection.
pub fn secured(stream: TcpStream, config: ClientConfig) -> std::io::Result<Secured> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

fn ask(server: &Server, shown: &Shown, path: &str) -> Response {
    let stream = secured(server.connect(), shown.client(&[b"http/1.1"], rustls::ALL_VERSIONS)).unwrap();
    ask_over(stream, "GET", path, &[], b"")
}

fn metric(server: &Server, shown: &Shown, name: &str) -> u64 {
    let text = ask(server, shown, "/metrics").text();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn both_versions_are_spoken_and_links_say_https() {
    let shown = Shown::new();
    let server = Server::within(shown.tls(), ServerConfig::default());
    for (version, spoken) in
        [(&rustls::version::TLS12, ProtocolVersion::TLSv1_2), (&rustls::version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        let stream = secured(server.connect(), shown.client(&[], &[version])).unwrap();
        assert_eq!(stream.conn.protocol_version(), Some(spoken));
        let answer = ask_over(stream, "GET", "/", &[], b"");
        assert_eq!(answer.json()["links"][0]["href"], "https://localhost/");
        assert_eq!(answer.header("strict-transport-security"), "");
    }
    let day = ServerConfig { hsts: Duration::from_secs(86_400), ..ServerConfig::default() };
    let server = Server::within(shown.tls(), day.clone());
    assert_eq!(ask(&server, &shown, "/").header("strict-transport-security"), "max-age=86400");
    assert_eq!(Server::with(day).get("/").header("strict-transport-security"), "");
}

#[test]
fn a_certificate_that_nobody_vouches_for_ends_the_handshake_on_the_clients_side() {
    let (shown, other) = (Shown::new(), Shown::new());
    let server = Server::within(shown.tls(), ServerConfig::default());
    assert!(secured(server.connect(), other.client(&[], rustls::ALL_VERSIONS)).is_err());
    assert_eq!(ask(&server, &shown, "/healthz").status, 200);
}

#[test]
fn new_connections_get_the_new_certificate_and_open_ones_go_on() {
    let (old, new) = (Shown::new(), Shown::new());
    let tls = old.tls();
    let server = Server::within(tls.clone(), ServerConfig::default());
    let mut open = secured(server.connect(), old.client(&[], rustls::ALL_VERSIONS)).unwrap();
    tls.replace(new.certificate());
    assert_eq!(ask(&server, &new, "/healthz").status, 200);
    assert!(secured(server.connect(), old.client(&[], rustls::ALL_VERSIONS)).is_err());
    open.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(read_response(&mut BufReader::new(open)).unwrap().status, 200);
}

#[test]
fn plain_http_is_told_to_use_https() {
    let shown = Shown::new();
    let server = Server::within(shown.tls(), ServerConfig::default());
    let answer = server.get("/");
    assert_eq!((answer.status, answer.header("connection")), (400, "close"));
    assert!(answer.text().contains("https"), "{}", answer.text());
}

#[test]
fn a_handshake_that_stalls_is_cut_off_and_counted() {
    let shown = Shown::new();
    let config = ServerConfig { handshake_timeout: Duration::from_millis(200), ..ServerConfig::default() };
    let server = Server::within(shown.tls(), config);
    let begun = Instant::now();
    // Nothing at all, and the first bytes of a handshake.
    for bytes in [&b""[..], &[22, 3, 1]] {
        let mut stream = server.connect();
        stream.write_all(bytes).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0, "it is closed");
    }
    // Something that turns out not to be a handshake.
    let mut stream = server.connect();
    stream.write_all(&[22, 3, 1, 0, 5, 1, 2, 3, 4, 5]).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    while metric(&server, &shown, "meridian_tls_handshakes_failed_total") < 3 {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_pair_that_cannot_be_used_says_which_file_and_why() {
    let (one, other) = (Shown::new(), Shown::new());
    let fault = |chain: &str, key: &str| Certificate::of_pem(chain.as_bytes(), key.as_bytes()).unwrap_err();
    let broken = one.chain.replace("MII", "AII");
    for (chain, key, at_key, words) in [
        ("", one.key.as_str(), false, "no certificate"),
        ("x", &one.key, false, "no certificate"),
        (&one.key, &one.key, false, "no certificate"),
        (&broken, &one.key, false, "certificate"),
        (&one.chain, "", true, "no private key"),
        (&one.chain, &one.chain, true, "no private key"),
        (&one.chain, &other.key, true, "does not belong"),
    ] {
        let fault = fault(chain, key);
        assert_eq!(matches!(fault, CertificateFault::Key(_)), at_key, "{fault}");
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[test]
fn the_end_of_a_certificate_is_known_and_an_expired_one_can_be_used() {
    let ends = |year| Shown::until(year).certificate().not_after().unwrap();
    assert_eq!(ends(2999), 32_472_144_000);
    // A server that refused to start because of it would be down, not merely untrusted.
    assert_eq!(ends(2020), 1_577_836_800);
}

#[test]
fn handshakes_of_one_address_wait_for_each_other_and_keep_nobody_else_out() {
    let shown = Shown::new();
    let config = ServerConfig { handshake_timeout: Duration::from_secs(600), ..ServerConfig::default() };
    let server = Arc::new(Server::within(shown.tls(), config));
    let stranger = [127, 0, 0, 2];
    let stalled: Vec<_> = (0..80)
        .map(|_| {
            let mut stream = server.connect_from(stranger, 1 << 16);
            stream.write_all(&[22, 3, 1]).unwrap();
            stream
        })
        .collect();
    assert_eq!(ask(&server, &shown, "/healthz").status, 200);
    let (done, waits) = std::sync::mpsc::channel();
    let (one, client) = (server.clone(), shown.client(&[], rustls::ALL_VERSIONS));
    std::thread::spawn(move || done.send(secured(one.connect_from(stranger, 1 << 16), client).is_ok()));
    assert!(waits.recv_timeout(Duration::from_millis(500)).is_err(), "it did not wait");
    assert_eq!(ask(&server, &shown, "/healthz").status, 200);
    drop(stalled);
    assert!(waits.recv_timeout(Duration::from_secs(60)).unwrap());
}
