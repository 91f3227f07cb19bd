//! The log of a cluster over NATS JetStream.

use super::setting::{Setting, TIB, size, text, texts, truth, within};
use crate::units;
use std::str::FromStr;
use toml::Value;

/// Address of a server, checked when the log is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(pub String);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        Ok(Address(text.to_owned()))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The settings `cluster.nats.*`.
#[derive(Debug, Clone)]
pub struct Nats {
    /// Addresses of servers.
    pub urls: Vec<Address>,
    /// File with a user's credentials; empty: none.
    pub credentials: String,
    /// Name of a user with a password; empty: none.
    pub user: String,
    /// File whose first line is that password.
    pub password_file: String,
    /// File with the certificates of authorities; empty: those of the system.
    pub tls_ca: String,
    /// File with the certificate of this process; empty: none.
    pub tls_cert: String,
    /// File with its key.
    pub tls_key: String,
    /// Number of servers that store each stream.
    pub replicas: usize,
    /// Max bytes of a stream; 0: as many as the server allows.
    pub stream_bytes: u64,
    /// Monitoring addresses of all servers.
    pub monitor: Vec<Address>,
    /// Whether to accept servers that do not sync each message, or do not report whether they do.
    pub allow_unsynced: bool,
    /// Whether a collection accepts writes although its stream has lost some.
    pub accept_loss: bool,
}

impl Default for Nats {
    fn default() -> Nats {
        Nats {
            urls: vec![Address("nats://127.0.0.1:4222".to_owned())],
            credentials: String::new(),
            user: String::new(),
            password_file: String::new(),
            tls_ca: String::new(),
            tls_cert: String::new(),
            tls_key: String::new(),
            replicas: 1,
            stream_bytes: 0,
            monitor: Vec::new(),
            allow_unsynced: false,
            accept_loss: false,
        }
    }
}

#[cfg(feature = "nats")]
impl Nats {
    /// Converts them to the options of the log.
    pub fn options(&self) -> meridian_nats::NatsOptions {
        let texts = |list: &[Address]| list.iter().map(|one| one.0.clone()).collect();
        meridian_nats::NatsOptions {
            urls: texts(&self.urls),
            monitor: texts(&self.monitor),
            credentials: self.credentials.clone(),
            user: self.user.clone(),
            password_file: self.password_file.clone(),
            tls_ca: self.tls_ca.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            replicas: self.replicas,
            stream_bytes: self.stream_bytes,
            allow_unsynced: self.allow_unsynced,
        }
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    list!(
        "cluster.nats.urls",
        "Addresses of NATS servers for --log nats: nats://HOST:PORT or tls://HOST:PORT.",
        cluster.nats.urls
    ),
    plain!(
        "cluster.nats.credentials",
        "File with the credentials of a NATS user, as `nsc` makes it.",
        cluster.nats.credentials
    ),
    plain!(
        "cluster.nats.user",
        "Name of a NATS user with a password, in place of cluster.nats.credentials.",
        cluster.nats.user
    ),
    plain!(
        "cluster.nats.password_file",
        "File whose first line is the password of cluster.nats.user.",
        cluster.nats.password_file
    ),
    plain!(
        "cluster.nats.tls_ca",
        "File with the certificates of the authorities that NATS servers are trusted by.",
        cluster.nats.tls_ca
    ),
    plain!(
        "cluster.nats.tls_cert",
        "File with the certificate that this process shows to NATS servers.",
        cluster.nats.tls_cert
    ),
    plain!("cluster.nats.tls_key", "File with the key of that certificate.", cluster.nats.tls_key),
    Setting {
        key: "cluster.nats.replicas",
        help: "NATS servers that keep the log of each collection: 1, 3 or 5. For streams made from then on.",
        get: |c| Value::Integer(c.cluster.nats.replicas as i64),
        set: |c, v| {
            let found = [1_usize, 3, 5].into_iter().find(|n| v.as_integer() == Some(*n as i64));
            c.cluster.nats.replicas = found.ok_or_else(|| "expected 1, 3 or 5".to_owned())?;
            Ok(())
        },
    },
    size!(
        "cluster.nats.stream_bytes",
        "Max size of the log of a collection in NATS; 0: as the server allows. Full, it refuses writes.",
        cluster.nats.stream_bytes,
        0,
        64 * TIB
    ),
    list!(
        "cluster.nats.monitor",
        "Monitoring addresses of all NATS servers, http://HOST:PORT: whether they sync each message is looked up there.",
        cluster.nats.monitor
    ),
    Setting {
        key: "cluster.nats.allow_unsynced",
        help: "Take NATS servers that do not sync each message, or do not say so. A power failure may lose acknowledged writes.",
        get: |c| Value::Boolean(c.cluster.nats.allow_unsynced),
        set: |c, v| truth(v).map(|b| c.cluster.nats.allow_unsynced = b),
    },
    Setting {
        key: "cluster.nats.accept_loss",
        help: "Give up writes that NATS has lost: collections that miss some take writes again. For the first takeover of a process.",
        get: |c| Value::Boolean(c.cluster.nats.accept_loss),
        set: |c, v| truth(v).map(|b| c.cluster.nats.accept_loss = b),
    },
];
