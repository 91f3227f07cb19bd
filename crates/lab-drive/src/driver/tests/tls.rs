//! TLS: the servers of other protocols behind a TLS proxy, with certificates of this test's own authority.

use super::*;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// An authority and the file that names it.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Authority {
    pub(super) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("sound names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(&file, params.self_signed(&key).expect("a certificate").pem()).expect("writes");
        Authority { issuer: Issuer::new(params, key), file }
    }

    /// Returns the configuration line of a target that trusts it.
    pub(super) fn trusted(&self) -> String {
        format!("ca = {:?}", self.file.path())
    }

    /// Creates a certificate for `host`, and its key.
    fn certificate(&self, host: &str, expired: bool) -> (Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a sound name");
        if expired {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// Writes them as files of a folder, for a server that reads them: `server.crt` and `server.key`.
    pub(super) fn write(&self, host: &str, folder: &std::path::Path) {
        use std::os::unix::fs::PermissionsExt;
        let (certificate, key) = self.certificate(host, false);
        std::fs::write(folder.join("server.crt"), certificate.pem()).expect("writes");
        std::fs::write(folder.join("server.key"), key.serialize_pem()).expect("writes");
        // Servers refuse a key that others may read.
        let own = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(folder.join("server.key"), own).expect("sets");
    }

    /// Returns the identity of a server for `host`.
    pub(super) fn server(&self, host: &str, expired: bool, alpn: &[&[u8]]) -> Arc<rustls::ServerConfig> {
        let (certificate, key) = self.certificate(host, expired);
        config(certificate, &key, alpn)
    }

    /// Starts a proxy for `host` before the plain server at `behind`.
    fn front(&self, behind: SocketAddr, host: &str, expired: bool) -> SocketAddr {
        front(self.server(host, expired, &[b"http/1.1"]), behind)
    }
}

fn config(certificate: Certificate, key: &KeyPair, alpn: &[&[u8]]) -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .expect("a certificate with its key");
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

/// Starts a server that presents a certificate before the plain one at `behind`.
fn front(config: Arc<rustls::ServerConfig>, behind: SocketAddr) -> SocketAddr {
    let acceptor = TlsAcceptor::from(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut secure) = acceptor.accept(stream).await else { return };
                    let Ok(mut plain) = tokio::net::TcpStream::connect(behind).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut secure, &mut plain).await;
                });
            }
        });
    });
    address
}

/// Starts a server with a self-signed certificate, as `openssl req -x509` makes one; returns its file, and the server.
fn self_signed(is_ca: bool, host: &str, expired: bool) -> (tempfile::NamedTempFile, Arc<rustls::ServerConfig>) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a sound name");
    params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
    if expired {
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, certificate.pem()).expect("writes");
    (file, config(certificate, &key, &[b"http/1.1"]))
}

fn target(url: &str, rest: &str, request: &str) -> String {
    format!("[target]\nurl = \"{url}\"\n{rest}\n[arrival]\nkind = \"burst\"\ncount = 12\n[request]\n{request}\n")
}

#[test]
fn what_is_spoken_within_tls_is_measured_like_what_is_not() {
    let authority = Authority::new();
    let lines: String = (0..5000).map(|n| format!("{n}\n")).collect();
    let web = serve(move |_, _, stream| {
        say(stream, &format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{lines}", lines.len()))
    });
    let web = web.url.trim_start_matches("http://").parse().expect("an address");
    let question = "path = \"/whole\"\nmethod = \"POST\"\nbody = '{\"q\":1}'\nresult = \"packet\"";
    for (scheme, behind, request, results) in [
        ("https", web, "path = \"/x\"\nresult = \"line\"", 5000),
        ("wss", websocket::server(), question, 40_002),
        ("rediss", resp::server(), "body = \"KEYS *\"\nresult = \"line\"", 3),
    ] {
        let front = authority.front(behind, "127.0.0.1", false);
        let ran = drive(&target(&format!("{scheme}://{front}"), &authority.trusted(), request));
        assert_eq!(ran.outcomes(), BTreeMap::from([("sound", 12)]), "{scheme}: {:?}", ran.records);
        assert!(ran.records.iter().all(|record| record.results == results), "{scheme}: {:?}", ran.records);
        assert!(ran.records.iter().all(|record| record.sent <= record.first_byte && record.first_byte <= record.done));
    }
}

#[test]
fn a_certificate_that_is_not_to_be_believed_is_named_before_anything_is_sent() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let web = serve(|_, _, stream| ok(stream));
    let behind: SocketAddr = web.url.trim_start_matches("http://").parse().expect("an address");
    let of = |front: SocketAddr, rest: &str| refusal(&target(&format!("https://{front}"), rest, "path = \"/\""));
    let good = authority.front(behind, "127.0.0.1", false);
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let plain_address = plain.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in plain.incoming().flatten() {
            say(&mut stream, "220 ready\r\n");
            // Reads the request, so that its response is not lost with the connection.
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    for (error, words) in [
        (of(authority.front(behind, "127.0.0.1", true), &authority.trusted()), "has expired"),
        (of(authority.front(behind, "example.org", false), &authority.trusted()), "is for another host"),
        (of(good, &stranger.trusted()), "no trusted authority"),
        (of(good, ""), "no trusted authority"),
        (of(plain_address, ""), "does not speak it"),
        // Waits for the end of a request.
        (of(behind, ""), "no TLS handshake"),
    ] {
        assert!(matches!(&error, LabError::Target(text) if text.contains(words)), "{error}");
    }
    assert!(web.asked.lock().expect("a log").is_empty());
}

#[test]
fn a_file_of_authorities_that_holds_none_is_a_mistake_of_the_scenario() {
    let empty = tempfile::NamedTempFile::new().expect("a file");
    let of = |url: &str, file: &str| refusal(&target(url, &format!("ca = {file:?}"), "path = \"/\""));
    let none = of("https://127.0.0.1:1", &empty.path().display().to_string());
    assert!(matches!(&none, LabError::Scenario(text) if text.contains("found none")), "{none}");
    let missing = of("https://127.0.0.1:1", "/nowhere.pem");
    assert!(matches!(&missing, LabError::Scenario(text) if text.contains("/nowhere.pem")), "{missing}");
    let plain = of("http://127.0.0.1:1", "/nowhere.pem");
    assert!(matches!(&plain, LabError::Scenario(text) if text.contains("ca is for TLS")), "{plain}");
}

#[test]
fn a_self_signed_target_is_trusted_by_its_own_file_or_without_a_look() {
    let web = serve(|_, _, stream| ok(stream));
    let behind: SocketAddr = web.url.trim_start_matches("http://").parse().expect("an address");
    let twelve = BTreeMap::from([("sound", 12)]);
    for is_ca in [true, false] {
        let (file, config) = self_signed(is_ca, "127.0.0.1", false);
        let url = format!("https://{}", front(config, behind));
        let trusted = format!("ca = {:?}", file.path());
        assert_eq!(drive(&target(&url, &trusted, "path = \"/x\"")).outcomes(), twelve, "is_ca = {is_ca}");
        assert_eq!(drive(&target(&url, "insecure = true", "path = \"/x\"")).outcomes(), twelve, "is_ca = {is_ca}");
        let stranger = self_signed(is_ca, "127.0.0.1", false).0;
        for rest in [String::new(), format!("ca = {:?}", stranger.path())] {
            let refused = refusal(&target(&url, &rest, "path = \"/x\""));
            assert!(matches!(&refused, LabError::Target(text) if text.contains("certificate")), "{refused}");
        }
    }
    // The file makes neither another host's certificate nor an expired one valid; `insecure` accepts both.
    for (host, expired, why) in [("example.org", false, "is for another host"), ("127.0.0.1", true, "has expired")] {
        let (file, config) = self_signed(true, host, expired);
        let url = format!("https://{}", front(config, behind));
        let refused = refusal(&target(&url, &format!("ca = {:?}", file.path()), "path = \"/x\""));
        assert!(matches!(&refused, LabError::Target(text) if text.contains(why)), "{refused}");
        assert_eq!(drive(&target(&url, "insecure = true", "path = \"/x\"")).outcomes(), twelve);
    }
}

#[test]
fn a_command_line_trusts_for_every_target_within_tls_and_refuses_where_there_is_none() {
    let parsed = |url: &str| Scenario::parse(&target(url, "", "path = \"/x\""), "t", &[]).expect("a scenario");
    let mut scenario = parsed("https://127.0.0.1:1");
    trust(&mut scenario, Some(std::path::Path::new("/own.pem")), true).expect("fits");
    assert_eq!(
        (scenario.target[0].ca.as_deref(), scenario.target[0].insecure),
        (Some(std::path::Path::new("/own.pem")), true)
    );
    let error = trust(&mut parsed("http://127.0.0.1:1"), None, true).expect_err("no TLS").to_string();
    assert!(error.contains("--insecure: no target speaks TLS"), "{error}");
}
