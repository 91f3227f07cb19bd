//! TLS: trusted certificates, and errors of failed handshakes.
//!
//! Sessions are not resumed: each connection pays for the whole handshake, as a first visit does.

use super::fault::{CLOSED, ExchangeError};
use super::trust::Verifier;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, Error};
use std::borrow::Cow;
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use super::trust::ExtraTrust;

/// TLS settings of one address.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// Returns TLS to `host`, whose certificate must be `trusted`. `protocol` is offered by ALPN (RFC 7301) unless it
    /// is empty.
    pub fn new(host: &str, trusted: &ExtraTrust<'_>, protocol: &[u8]) -> Result<Tls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(trusted, Arc::clone(&provider))?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| format!("TLS cannot be set up: {e}"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        if !protocol.is_empty() {
            config.alpn_protocols.push(protocol.to_vec());
        }
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?}: expected a host name or a number that a certificate can be for"))?;
        Ok(Tls { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Secures a connection.
    pub async fn shake_hands(&self, plain: TcpStream) -> Result<TlsStream<TcpStream>, ExchangeError> {
        let shaken = self.connector.connect(self.name.clone(), plain).await;
        shaken.map_err(|e| ExchangeError::failed(why(&e)))
    }
}

/// Describes a failed handshake as a sentence.
fn why(error: &std::io::Error) -> Cow<'static, str> {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
        return match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                format!("TLS: {CLOSED} within the handshake").into()
            }
            _ => "TLS: the handshake failed".into(),
        };
    };
    use CertificateError as Cert;
    match tls {
        Error::InvalidCertificate(Cert::Expired | Cert::ExpiredContext { .. }) => {
            "TLS: the certificate has expired".into()
        }
        Error::InvalidCertificate(Cert::NotValidYet | Cert::NotValidYetContext { .. }) => {
            "TLS: the certificate is not valid yet".into()
        }
        Error::InvalidCertificate(Cert::NotValidForName | Cert::NotValidForNameContext { .. }) => {
            "TLS: the certificate is for another host".into()
        }
        // An authority with a trusted one's name but another key shows as a bad signature.
        Error::InvalidCertificate(Cert::UnknownIssuer | Cert::BadSignature) => {
            "TLS: no trusted authority has signed the certificate (ca, or --ca, names a file of trusted ones)".into()
        }
        Error::InvalidCertificate(wrong) => format!("TLS: the certificate is not accepted: {wrong}").into(),
        Error::InvalidMessage(_) => "TLS: the server does not speak it".into(),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "TLS: the server does not speak what was offered (HTTP/2 where the target says http2)".into()
        }
        Error::AlertReceived(alert) => format!("TLS: the server refused the handshake: {alert:?}").into(),
        Error::PeerIncompatible(_) => "TLS: the server offers no version or cipher that this side knows".into(),
        wrong => format!("TLS: the handshake failed: {wrong}").into(),
    }
}
