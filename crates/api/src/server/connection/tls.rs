//! TLS: the server's certificate, which can be replaced at run time, and handshakes within limits.

use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::io;
use std::sync::Arc;
use thiserror::Error as ThisError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Max concurrent handshakes; further ones wait until their deadline.
const HANDSHAKES_MAX: usize = 1024;
/// Max encrypted bytes of a connection that wait for its client.
const UNSENT_BYTES: usize = 32 << 10;
/// A time later than the expiry of any certificate, in seconds since 1970: the year 9999.
const FAR_FUTURE: Duration = Duration::from_secs(253_402_300_799);

/// HTTP/2 in ALPN (RFC 9113, 3.2).
pub const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// The server's identity: a certificate, the intermediate certificates, and the private key.
#[derive(Debug, Clone)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    not_after: Option<i64>,
}

/// Why a certificate and a key cannot be used. The text completes "FILE: ".
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum CertificateFault {
    /// The certificate file is at fault.
    #[error("{0}")]
    Certificate(String),
    /// The key file is at fault.
    #[error("{0}")]
    Key(String),
}

impl Certificate {
    /// Parses a certificate chain, the server's own first, and the private key, both as PEM (RFC 7468).
    ///
    /// # Errors
    /// If one is missing or unreadable, or if they do not belong together. An expired certificate is not an error.
    pub fn of_pem(chain: &[u8], key: &[u8]) -> Result<Certificate, CertificateFault> {
        let of_chain = CertificateFault::Certificate;
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|e| of_chain(format!("it is not PEM: {e}")))?;
        let Some(own) = certificates.first().cloned() else {
            return Err(of_chain("it has no certificate: expected -----BEGIN CERTIFICATE-----".to_owned()));
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| {
            CertificateFault::Key(match e {
                pem::Error::NoItemsFound => "it has no private key: expected -----BEGIN PRIVATE KEY-----, \
                                             without a passphrase"
                    .to_owned(),
                e => format!("it is not PEM: {e}"),
            })
        })?;
        let provider = default_provider();
        let loaded = CertifiedKey::from_der(certificates, key, &provider).map_err(|e| match e {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                CertificateFault::Key("the key does not belong to the certificate".to_owned())
            }
            Error::InvalidCertificate(e) => of_chain(format!("the certificate cannot be read: {e}")),
            e => CertificateFault::Key(format!("the key cannot be used: {e}")),
        })?;
        Ok(Certificate { key: Arc::new(loaded), not_after: not_after(&own, &provider) })
    }

    /// Returns certificate and key, for servers and clients outside this crate.
    pub fn key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }

    /// Returns its expiry in seconds since 1970, if that can be determined.
    pub fn not_after(&self) -> Option<i64> {
        self.not_after
    }
}

/// Returns the end of a certificate's validity. The verifier checks dates first, and its error contains the date.
fn not_after(certificate: &CertificateDer<'_>, provider: &CryptoProvider) -> Option<i64> {
    let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
    let algorithms = provider.signature_verification_algorithms.all;
    // Deliberately verified at a time after its expiry: the error then contains the date, and no date parser is needed.
    let (time, usage) = (UnixTime::since_unix_epoch(FAR_FUTURE), webpki::KeyUsage::server_auth());
    match parsed.verify_for_usage(algorithms, &[], &[], time, usage, None, None).err()? {
        webpki::Error::CertExpired { not_after, .. } => i64::try_from(not_after.as_secs()).ok(),
        _ => None,
    }
}

/// The server's TLS configuration, versions 1.2 and 1.3. Clones share the certificate.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
    handshakes: Arc<Semaphore>,
}

/// The certificate for new connections.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// Creates the configuration with this certificate. Offers HTTP/2 and HTTP/1.1, in this order.
    ///
    /// # Errors
    /// If the library rejects its own defaults.
    pub fn new(certificate: Certificate) -> Result<Tls, Error> {
        let current = Arc::new(Current(ArcSwap::new(certificate.key)));
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            // Consulted at each handshake, so that a new certificate needs no new acceptor.
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![H2.to_vec(), HTTP_1_1.to_vec()];
        // A handshake costs more processor time than a request, so a flood of them must not take all of it.
        let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), current, handshakes })
    }

    /// Replaces the certificate for new connections. Open ones keep theirs.
    pub fn replace(&self, certificate: Certificate) {
        self.current.0.store(certificate.key);
    }

    /// Performs the TLS handshake of a connection. Waits for a slot among the handshakes of its address, then among
    /// all. The caller sets the deadline.
    ///
    /// # Errors
    /// If the client does not speak TLS, or no version that the server supports.
    pub(super) async fn shake_hands<S>(&self, stream: S, of_address: &Semaphore) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // In this order: connections of one address that wait for each other must not hold slots that others need.
        let _of_address = of_address.acquire().await.map_err(io::Error::other)?;
        let _of_all = self.handshakes.acquire().await.map_err(io::Error::other)?;
        self.acceptor.accept_with(stream, |connection| connection.set_buffer_limit(Some(UNSENT_BYTES))).await
    }
}
