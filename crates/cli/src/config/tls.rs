//! The settings of TLS.

use super::setting::{Setting, text};
use crate::units;
use std::path::PathBuf;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    file!(
        "tls.certificate",
        "File of the server's certificate and those of the authorities between, in PEM; empty: no TLS. It is read again when it changes.",
        tls.certificate
    ),
    file!("tls.key", "File of the certificate's private key, in PEM, without a passphrase.", tls.key),
    duration!("tls.handshake_timeout", "Max time for a TLS handshake.", server.handshake_timeout, "1s", "1m"),
    duration!(
        "tls.hsts",
        "How long browsers use only https for the server's name, at any port (Strict-Transport-Security); 0s: not said.",
        server.hsts,
        "0s",
        "3650d"
    ),
];
