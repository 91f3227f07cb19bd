//! The settings of TLS between the roles of a cluster.

use super::setting::{Setting, text, texts, truth};
use crate::certificates::{Files, NamedFile};
use crate::failure::Failure;
use meridian_model::policy::names::NamePattern;
#[cfg(feature = "cluster")]
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::Value;

/// The settings `cluster.tls.*`.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// File of the certificate of this process, for both sides of a connection.
    pub cert: Option<PathBuf>,
    /// File of its key.
    pub key: Option<PathBuf>,
    /// File with the certificates of the authorities that sign for all roles.
    pub ca: Option<PathBuf>,
    /// Accepted names of callers; empty: any.
    pub names: Vec<NamePattern>,
    /// Whether roles on different machines talk without TLS.
    pub allow_plain: bool,
}

impl Roles {
    /// Returns the files; `None` if none are configured.
    ///
    /// # Errors
    /// [`Failure::Usage`] that names what is missing, or contradicts another setting.
    pub fn files(&self) -> Result<Option<Files>, Failure> {
        let wrong = |what: &str| Err(Failure::Usage(what.to_owned()));
        let (certificate, key, authorities) = match (&self.cert, &self.key, &self.ca) {
            (None, None, None) if self.names.is_empty() => return Ok(None),
            (Some(cert), Some(key), Some(ca)) => (
                NamedFile::new("cluster.tls.cert", cert),
                NamedFile::new("cluster.tls.key", key),
                Some(NamedFile::new("cluster.tls.ca", ca)),
            ),
            (None, ..) => {
                return wrong(
                    "cluster.tls.cert: expected the file of the certificate of this process, with cluster.tls.key and ca",
                );
            }
            (_, None, _) => return wrong("cluster.tls.key: expected the file of the key of cluster.tls.cert"),
            (.., None) => {
                return wrong(
                    "cluster.tls.ca: expected the file with the certificates of the authorities of all roles",
                );
            }
        };
        if self.allow_plain {
            return wrong("cluster.tls.allow_plain: cluster.tls.cert is set as well: expected one of both");
        }
        Ok(Some(Files { certificate, key, authorities }))
    }

    /// Refuses a server of roles that other machines can reach, and that would serve all of them.
    ///
    /// # Errors
    /// [`Failure::Usage`] that names the settings.
    #[cfg(feature = "cluster")]
    pub fn expect_protected(&self, option: &str, address: SocketAddr) -> Result<(), Failure> {
        if self.cert.is_some() || self.allow_plain || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{option} {address}: everyone who reaches this address could read and change everything: expected certificates \
             (cluster.tls.cert, key and ca), or cluster.tls.allow_plain = true in a private network"
        )))
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    file!(
        "cluster.tls.cert",
        "File of the certificate that this process shows to other roles, in PEM; empty: no TLS between roles. It is read again when it changes.",
        cluster.tls.cert
    ),
    file!("cluster.tls.key", "File of its private key, in PEM, without a passphrase.", cluster.tls.key),
    file!(
        "cluster.tls.ca",
        "File with the certificates of the authorities that sign for all roles, in PEM. It is read again when it changes.",
        cluster.tls.ca
    ),
    list!(
        "cluster.tls.names",
        "Names in certificates of callers that may call, with * for a part: DNS names or URIs; empty: every name.",
        cluster.tls.names
    ),
    Setting {
        key: "cluster.tls.allow_plain",
        help: "Talk without TLS to roles on other machines. Every process that reaches an owner can then read and change everything.",
        get: |c| Value::Boolean(c.cluster.tls.allow_plain),
        set: |c, v| truth(v).map(|b| c.cluster.tls.allow_plain = b),
    },
];

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_missing_or_contradicts_another_is_named() {
        let file = |name: &str| Some(PathBuf::from(name));
        let full = Roles { cert: file("c"), key: file("k"), ca: file("a"), ..Roles::default() };
        assert!(full.files().unwrap().is_some() && Roles::default().files().unwrap().is_none());
        for (settings, words) in [
            (Roles { cert: None, ..full.clone() }, "cluster.tls.cert"),
            (Roles { key: None, ..full.clone() }, "cluster.tls.key"),
            (Roles { ca: None, ..full.clone() }, "cluster.tls.ca"),
            (Roles { names: vec!["a.example".parse().unwrap()], ..Roles::default() }, "cluster.tls.cert"),
            (Roles { allow_plain: true, ..full.clone() }, "cluster.tls.allow_plain"),
        ] {
            let said = settings.files().unwrap_err();
            assert!(said.code() == 2 && said.to_string().contains(words), "{said}");
        }
        let reached = |settings: &Roles, at: &str| settings.expect_protected("--flight", at.parse().unwrap());
        for (settings, at) in [
            (&Roles::default(), "127.0.0.1:1"),
            (&Roles::default(), "[::1]:1"),
            (&full, "10.0.0.7:1"),
            (&Roles { allow_plain: true, ..Roles::default() }, "0.0.0.0:1"),
        ] {
            assert!(reached(settings, at).is_ok(), "{at}");
        }
        let said = reached(&Roles::default(), "0.0.0.0:1").unwrap_err();
        assert!(said.code() == 2 && said.to_string().contains("cluster.tls.allow_plain"), "{said}");
    }
}
