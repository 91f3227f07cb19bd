//! TLS between roles: each process shows its one certificate, and expects one signed by the same authorities.
//!
//! `caller.rs` connects to a server of roles, `server.rs` accepts connections for one; `refusal.rs` explains why a peer
//! was rejected. Only TLS 1.3 is supported, as both ends are this program. Sessions are not resumed: every connection
//! is verified from scratch.

mod caller;
mod refusal;
mod server;

pub(crate) use caller::{channel, refusal_of};
pub(crate) use server::incoming;

use meridian_model::policy::names::NamePattern;
use parking_lot::RwLock;
use refusal::NotAllowed;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    ServerConfig, SignatureScheme,
};
use std::fmt;
use std::sync::Arc;

/// HTTP/2 in ALPN (RFC 9113, 3.2).
const H2: &[u8] = b"h2";

/// What a process requires of the other end of a connection between roles.
#[derive(Debug, Clone, Default)]
pub enum Security {
    /// Both ends show certificates.
    Tls(RoleTls),
    /// No TLS; connections stay on this machine.
    #[default]
    PlainHere,
    /// No TLS; the network must be trusted.
    Plain,
}

/// The certificate of this process, and the shared authorities. Clones share both, which can change while connections
/// are open.
#[derive(Clone)]
pub struct RoleTls(Arc<SharedTls>);

struct SharedTls {
    names: Vec<NamePattern>,
    /// Host under which callers reach this process, if it is a server of roles.
    host: Option<ServerName<'static>>,
    current: RwLock<TlsConfigs>,
}

/// Configuration of new connections.
#[derive(Clone)]
struct TlsConfigs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for RoleTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleTls").field("names", &self.0.names).finish_non_exhaustive()
    }
}

impl RoleTls {
    /// Makes the TLS of this certificate and its key. `authorities`: certificates in PEM, one of which must have signed
    /// a peer's certificate. `names`: patterns, one of which must match a name of the caller; empty to allow any.
    /// `host`: host under which callers reach this process, if it is a server of roles.
    ///
    /// # Errors
    /// The problem with the certificate or the authorities.
    pub fn new(
        certificate: Arc<CertifiedKey>,
        authorities: &[u8],
        names: Vec<NamePattern>,
        host: Option<&str>,
    ) -> Result<RoleTls, RoleTlsFault> {
        let host = host.map(server_name).transpose().map_err(RoleTlsFault::Certificate)?;
        let current = TlsConfigs::new(certificate, authorities, &names, host.as_ref())?;
        Ok(RoleTls(Arc::new(SharedTls { names, host, current: RwLock::new(current) })))
    }

    /// Replaces the certificate and the authorities for new connections. Open ones keep theirs.
    ///
    /// # Errors
    /// As [`RoleTls::new`]; nothing has changed then.
    pub fn replace(&self, certificate: Arc<CertifiedKey>, authorities: &[u8]) -> Result<(), RoleTlsFault> {
        let new = TlsConfigs::new(certificate, authorities, &self.0.names, self.0.host.as_ref())?;
        *self.0.current.write() = new;
        Ok(())
    }

    /// Connects to the server of roles at an address, and closes the connection. There is no deadline.
    ///
    /// # Errors
    /// Those of the connection. If either end rejects the other's certificate, a sentence without its beginning.
    pub async fn reach(&self, address: &str) -> std::io::Result<()> {
        caller::connect(self, address).await.map(drop)
    }

    fn server(&self) -> Arc<ServerConfig> {
        self.0.current.read().server.clone()
    }

    fn client(&self) -> Arc<ClientConfig> {
        self.0.current.read().client.clone()
    }
}

/// Why certificates cannot be used. The text completes "FILE: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleTlsFault {
    /// The problem is the certificate of this process.
    Certificate(String),
    /// The problem is the certificates of the authorities.
    Authorities(String),
}

impl fmt::Display for RoleTlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoleTlsFault::Certificate(why) | RoleTlsFault::Authorities(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RoleTlsFault {}

impl TlsConfigs {
    fn new(
        certificate: Arc<CertifiedKey>,
        authorities: &[u8],
        names: &[NamePattern],
        host: Option<&ServerName<'static>>,
    ) -> Result<TlsConfigs, RoleTlsFault> {
        if let Some(host) = host {
            expect_host(&certificate, host).map_err(RoleTlsFault::Certificate)?;
        }
        let roots = Arc::new(roots(authorities).map_err(RoleTlsFault::Authorities)?);
        let library = |what: &dyn fmt::Display| RoleTlsFault::Authorities(format!("TLS cannot be set up: {what}"));
        let provider = Arc::new(default_provider());
        let callers = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let callers = Callers { inner: callers.map_err(|e| library(&e))?, names: names.to_vec() };
        let shown = Arc::new(SingleCertAndKey::from(certificate));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| library(&e))?
            .with_client_cert_verifier(Arc::new(callers))
            .with_cert_resolver(shown.clone());
        server.alpn_protocols = vec![H2.to_vec()];
        // A resumed session is not verified: a certificate that has since expired, or a removed authority, would still
        // count.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let servers = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| library(&e))?
            .with_webpki_verifier(servers.map_err(|e| library(&e))?)
            .with_client_cert_resolver(shown);
        client.alpn_protocols = vec![H2.to_vec()];
        client.resumption = Resumption::disabled();
        Ok(TlsConfigs { server: Arc::new(server), client: Arc::new(client) })
    }
}

/// Parses the certificates of authorities in PEM.
fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_slice_iter(pem) {
        let certificate = found.map_err(|e| format!("it is not PEM: {e}"))?;
        roots.add(certificate).map_err(|e| format!("a certificate in it cannot be read: {e}"))?;
    }
    match roots.is_empty() {
        true => Err("it has no certificate: expected -----BEGIN CERTIFICATE-----".to_owned()),
        false => Ok(roots),
    }
}

/// Callers verify the certificate against this host, so each of them would reject one without it.
fn expect_host(certificate: &CertifiedKey, host: &ServerName<'_>) -> Result<(), String> {
    let own = certificate.end_entity_cert().map_err(|e| e.to_string())?;
    let parsed = webpki::EndEntityCert::try_from(own).map_err(|e| format!("the certificate cannot be read: {e}"))?;
    parsed.verify_is_valid_for_subject_name(host).map_err(|_| {
        let host = host.to_str();
        format!("the certificate does not name {host}, by which gateways reach this process: expected it among its subject alternative names")
    })
}

/// Converts the host of an address to the form used in certificates.
fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(bare.to_owned()).map_err(|_| format!("{host:?} is no name that a certificate could have"))
}

/// Verifies callers: signed by an authority, within the validity period, and with an allowed name.
#[derive(Debug)]
struct Callers {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<NamePattern>,
}

impl Callers {
    fn expect_name(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        if self.names.is_empty() {
            return Ok(());
        }
        // The library's verifier has just parsed it.
        let parsed = webpki::EndEntityCert::try_from(certificate)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let names: Vec<&str> = parsed.valid_dns_names().chain(parsed.valid_uri_names()).collect();
        if names.iter().any(|name| self.names.iter().any(|pattern| pattern.matches(name))) {
            return Ok(());
        }
        let refused = Arc::new(NotAllowed::new(&names));
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(refused))))
    }
}

impl ClientCertVerifier for Callers {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, between, now)?;
        self.expect_name(certificate)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
