//! Why a peer is rejected, in words for a log: a problem found by TLS, or the alert of the other end.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;
use std::io;

/// Max characters of a certificate's names in a message.
const NAMES_MAX: usize = 400;

/// The certificate of a caller has no allowed name.
#[derive(Debug)]
pub(super) struct NotAllowed {
    names: String,
}

impl NotAllowed {
    pub(super) fn new(names: &[&str]) -> NotAllowed {
        let mut names = names.join(", ");
        if let Some((cut, _)) = names.char_indices().nth(NAMES_MAX) {
            names.truncate(cut);
            names.push('…');
        }
        NotAllowed { names }
    }
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.as_str() {
            "" => f.write_str("its certificate has no DNS name or URI, and cluster.tls.names asks for one"),
            names => write!(f, "its certificate is of {names}, which cluster.tls.names does not allow"),
        }
    }
}

impl std::error::Error for NotAllowed {}

/// Returns the TLS error of a failed connection; `None` if it failed for another reason, such as a peer that went away.
pub(super) fn of_tls(error: &io::Error) -> Option<&Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}

/// Explains to the server why a caller is rejected.
pub(super) fn of_caller(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        Error::AlertReceived(alert) => format!("it refuses the certificate of this process ({alert:?})"),
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "it does not speak TLS 1.3".to_owned()
        }
        Error::PeerIncompatible(why) => format!("it does not speak TLS 1.3 as this process does: {why:?}"),
        other => of_peer(other),
    }
}

/// Explains to the caller why a server is rejected, or rejects this process.
pub(super) fn of_server(error: &Error, host: &str) -> String {
    let refuses = |why: &str| format!("it refuses the certificate of this process: {why}");
    match error {
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => refuses("it has expired, or is not valid yet"),
            // Authorities of the same name differ only in their signatures.
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                refuses("no authority in its cluster.tls.ca has signed it")
            }
            AlertDescription::CertificateUnknown => refuses("its cluster.tls.names does not allow the names in it"),
            AlertDescription::UnsupportedCertificate => refuses("it is not meant for clients"),
            AlertDescription::CertificateRequired => "it asks for a certificate".to_owned(),
            other => format!("it ended the handshake of TLS ({other:?})"),
        },
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            format!("its certificate does not name {host}")
        }
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            "it does not speak TLS 1.3: are cluster.tls.cert, key and ca set there?".to_owned()
        }
        other => of_peer(other),
    }
}

/// Explains what is wrong with a peer's certificate.
fn of_peer(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet".to_owned()
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "no authority in cluster.tls.ca has signed its certificate".to_owned()
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "its certificate is not meant for this side of a connection (extended key usage)".to_owned()
            }
            CertificateError::Other(other) => other.to_string(),
            other => format!("its certificate cannot be used: {other}"),
        },
        other => format!("TLS failed: {other}"),
    }
}
