//! Trusted server certificates: those of well-known authorities, of a file, or any.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// Authorities that a target trusts besides the well-known ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExtraTrust<'a> {
    /// A file of certificates (PEM): authorities, or the server's own.
    pub ca: Option<&'a Path>,
    /// Any certificate, for any host.
    pub any: bool,
}

/// Verifies by the usual rules, and also accepts the certificates that the target names.
#[derive(Debug)]
pub(super) struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    /// Certificates of the file. A server that presents one of them is trusted, although an authority's certificate is
    /// not valid for a server. `openssl req -x509` marks its certificates as authorities.
    own: Vec<CertificateDer<'static>>,
    any: bool,
}

impl Verifier {
    /// Reads the file; the error is a sentence.
    pub(super) fn new(trusted: &ExtraTrust<'_>, provider: Arc<CryptoProvider>) -> Result<Verifier, String> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let own = match trusted.ca {
            Some(path) => add(&mut roots, path).map_err(|e| format!("ca = {:?}: {e}", path.display()))?,
            None => Vec::new(),
        };
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let usual = usual.map_err(|e| format!("TLS cannot be set up: {e}"))?;
        Ok(Verifier { usual, own, any: trusted.any })
    }
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut own = Vec::new();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| e.to_string())? {
        let certificate = certificate.map_err(|e| format!("expected certificates in PEM form: {e}"))?;
        roots.add(certificate.clone()).map_err(|e| format!("a certificate in it cannot be trusted: {e}"))?;
        own.push(certificate);
    }
    if own.is_empty() { Err("expected certificates in PEM form, found none".to_owned()) } else { Ok(own) }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError as Cert;
        if self.any {
            return Ok(ServerCertVerified::assertion());
        }
        let usual = self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match usual {
            // Dates are checked first, so any other failure is not about dates.
            Err(Error::InvalidCertificate(
                Cert::Expired | Cert::ExpiredContext { .. } | Cert::NotValidYet | Cert::NotValidYetContext { .. },
            )) => usual,
            Err(_) if self.own.iter().any(|own| own == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
