//! The servers that this program trusts over https, and the message for others.

use crate::failure::Failure;
use crate::output::remark;
use meridian_store::seams::read_named;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// Location of a server.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its URL.
    pub url: String,
    /// File of the authorities to trust, if not the system's.
    pub ca: Option<PathBuf>,
}

/// Returns TLS that trusts the system's authorities, or instead those in a file.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn tls(ca: Option<&Path>) -> Result<TlsConfig, Failure> {
    let roots = match ca {
        None => RootCerts::PlatformVerifier,
        Some(file) => {
            let wrong = |why: String| Failure::Usage(format!("--ca-file {}: {why}", file.display()));
            let text = read_named(file).map_err(|e| wrong(format!("cannot be read: {e}")))?;
            let items = parse_pem(&text).map(|item| match item {
                Ok(PemItem::Certificate(one)) => Ok(Some(one)),
                Ok(_) => Ok(None),
                Err(e) => Err(wrong(format!("it is not PEM: {e}"))),
            });
            let found: Vec<Certificate<'static>> = items.filter_map(Result::transpose).collect::<Result<_, _>>()?;
            // Without this check every server would be refused, without a mention of the file.
            if found.is_empty() {
                return Err(wrong("it has no certificate: expected -----BEGIN CERTIFICATE-----".to_owned()));
            }
            RootCerts::new_with_certs(&found)
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder().provider(TlsProvider::Rustls).root_certs(roots);
    Ok(tls.unversioned_rustls_crypto_provider(provider).build())
}

/// Returns the TLS error of a server as a sentence; `None` for another error.
pub fn fault(error: &ureq::Error) -> Option<String> {
    use rustls::{CertificateError as Cert, Error};
    let inner = match error {
        ureq::Error::Rustls(e) => e,
        // A handshake failure is wrapped in a connection error.
        ureq::Error::Io(e) => e.get_ref()?.downcast_ref::<Error>()?,
        _ => return None,
    };
    Some(match inner {
        // The last variant means an authority with the name of a trusted one, and a key of another kind.
        Error::InvalidCertificate(
            Cert::UnknownIssuer
            | Cert::BadSignature
            | Cert::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
        ) => {
            "no trusted authority has signed its certificate: --ca-file, or MERIDIAN_CA, names a file with the one to trust"
                .to_owned()
        }
        // `openssl req -x509` makes such a certificate by default.
        Error::InvalidCertificate(Cert::Other(wrong)) if wrong.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority: expected one of a server, with the basic constraint CA:FALSE".to_owned()
        }
        Error::InvalidCertificate(wrong) => format!("its certificate is not accepted: {wrong}"),
        Error::InvalidMessage(_) => "it does not speak TLS on this port: expected http://".to_owned(),
        other => format!("TLS failed: {other}"),
    })
}

/// Warns, once, that a token is sent where others can read it.
pub fn warn_of_plain_token(base: &str) {
    static WARNED: Once = Once::new();
    if let Some(host) = base.strip_prefix("http://").map(host_of).filter(|host| !is_this_machine(host)) {
        // A command may open several connections: one warning is enough.
        WARNED.call_once(|| {
            remark(&format!(
                "meridian: warning: the token goes to {host} without TLS, so others on the way can read it: \
                 use https://"
            ));
        });
    }
}

/// Refuses to send a secret, given by this option, where others can read it.
///
/// # Errors
/// The server is on another machine and its URL is not https.
pub fn demand_private(base: &str, option: &str) -> Result<(), Failure> {
    match base.strip_prefix("http://").map(host_of).filter(|host| !is_this_machine(host)) {
        None => Ok(()),
        Some(host) => Err(Failure::Usage(format!(
            "{option}: it would go to {host} without TLS, so others on the way could read it: use https://, or run the command there"
        ))),
    }
}

fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_gets_a_token_in_plain_without_a_word() {
        for (base, safe) in [
            ("127.0.0.1:7117", true),
            ("[::1]:7117/x", true),
            ("localhost", true),
            ("events.example.org:7117", false),
            ("192.0.2.7", false),
            ("localhost.example.org", false),
        ] {
            assert_eq!(is_this_machine(host_of(base)), safe, "{base}");
            assert_eq!(demand_private(&format!("http://{base}"), "--key").is_ok(), safe, "{base}");
            assert!(demand_private(&format!("https://{base}"), "--key").is_ok());
        }
    }

    #[test]
    fn an_authority_that_has_only_the_name_of_a_trusted_one_is_not_trusted_in_these_words() {
        let other_key = rustls::CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: Vec::new(),
            public_key_algorithm_id: Vec::new(),
        };
        for wrong in [rustls::CertificateError::UnknownIssuer, rustls::CertificateError::BadSignature, other_key] {
            let error = ureq::Error::Rustls(rustls::Error::InvalidCertificate(wrong));
            assert!(fault(&error).unwrap().starts_with("no trusted authority has signed"), "{error}");
        }
    }

    #[test]
    fn a_file_without_authorities_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (path, words) in [(Path::new("/nowhere.pem"), "cannot be read"), (file.path(), "no certificate")] {
            let error = tls(Some(path)).unwrap_err();
            assert_eq!(error.code(), 2);
            assert!(error.to_string().contains(words), "{error}");
        }
        assert!(tls(None).is_ok());
    }
}
