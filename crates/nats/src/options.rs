//! The operator's settings of the log, and their errors.

use async_nats::ServerAddr;
use meridian_model::Invalid;
use std::path::Path;

/// The log over NATS, by the settings `cluster.nats.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsOptions {
    /// Addresses of servers, `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub urls: Vec<String>,
    /// File with a user's credentials (`.creds`); empty: none.
    pub credentials: String,
    /// Name of a user with a password; empty: none.
    pub user: String,
    /// File whose first line is that password.
    pub password_file: String,
    /// File with certificates of the authorities for servers; empty: those of the system.
    pub tls_ca: String,
    /// File with the certificate of this process; empty: none.
    pub tls_cert: String,
    /// File with its key.
    pub tls_key: String,
    /// Number of servers that store each stream: 1, 3 or 5.
    pub replicas: usize,
    /// Max bytes of a stream; 0: as many as the server allows.
    pub stream_bytes: u64,
    /// Monitoring addresses of all servers, `http://HOST:PORT`, to check whether they sync each message.
    pub monitor: Vec<String>,
    /// Whether to accept servers that do not sync each message, or do not report whether they do.
    pub allow_unsynced: bool,
}

impl Default for NatsOptions {
    fn default() -> NatsOptions {
        NatsOptions {
            urls: vec!["nats://127.0.0.1:4222".to_owned()],
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
        }
    }
}

impl NatsOptions {
    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// The setting at fault, and the expected form.
    #[allow(clippy::disallowed_methods, reason = "files of the operator, and none of the store")]
    pub fn check(&self) -> Result<(), Invalid> {
        let wrong = |field: &str, detail: String| Err(Invalid::field(format!("cluster.nats.{field}"), detail));
        if self.urls.is_empty() {
            return wrong("urls", "it is empty: expected addresses such as nats://127.0.0.1:4222".to_owned());
        }
        for url in &self.urls {
            let address: ServerAddr = match url.parse() {
                Ok(address) => address,
                Err(error) => {
                    return wrong(
                        "urls",
                        format!("{url:?}: {error}: expected an address such as nats://127.0.0.1:4222"),
                    );
                }
            };
            // Settings are displayed, and so are logs.
            if address.has_user_pass() || address.password().is_some() {
                return wrong(
                    "urls",
                    "a password in an address is shown to others: put it into a file, and name that in \
                     cluster.nats.password_file or cluster.nats.credentials"
                        .to_owned(),
                );
            }
            if !matches!(address.scheme(), "nats" | "tls") {
                return wrong("urls", format!("{url:?}: expected nats:// or tls://"));
            }
        }
        for url in &self.monitor {
            if !url.starts_with("http://") {
                return wrong("monitor", format!("{url:?}: expected an address such as http://127.0.0.1:8222"));
            }
        }
        if !matches!(self.replicas, 1 | 3 | 5) {
            return wrong("replicas", format!("{}: expected 1, 3 or 5", self.replicas));
        }
        for (field, file) in [
            ("credentials", &self.credentials),
            ("password_file", &self.password_file),
            ("tls_ca", &self.tls_ca),
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
        ] {
            if !file.is_empty() && !Path::new(file).is_file() {
                return wrong(
                    field,
                    format!("{file:?} is no file: expected the name of one that this process can read"),
                );
            }
        }
        match (self.user.is_empty(), self.password_file.is_empty()) {
            (false, true) => {
                return wrong(
                    "password_file",
                    "it is empty, and cluster.nats.user is not: expected the file with its password".to_owned(),
                );
            }
            (true, false) => {
                return wrong("user", "it is empty, and cluster.nats.password_file is not: expected a name".to_owned());
            }
            (false, false) if !self.credentials.is_empty() => {
                return wrong("user", "cluster.nats.credentials names a user as well: expected one of both".to_owned());
            }
            _ => {}
        }
        match (self.tls_cert.is_empty(), self.tls_key.is_empty()) {
            (false, true) => {
                wrong("tls_key", "it is empty, and cluster.nats.tls_cert is not: expected its key".to_owned())
            }
            (true, false) => {
                wrong("tls_cert", "it is empty, and cluster.nats.tls_key is not: expected the certificate".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the servers as named in messages.
    pub(crate) fn place(&self) -> String {
        self.urls.first().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_cannot_work_is_named() {
        let good = NatsOptions::default();
        assert_eq!(good.check(), Ok(()));
        let urls = |url: &str| NatsOptions { urls: vec![url.to_owned()], ..good.clone() };
        // Any existing file.
        let here = || concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
        for (options, words) in [
            (NatsOptions { urls: Vec::new(), ..good.clone() }, "cluster.nats.urls"),
            (urls("http://here"), "nats://"),
            (urls("ws://here"), "nats:// or tls://"),
            (urls("nats://user:secret@here"), "cluster.nats.credentials"),
            (urls("nats://:secret@here"), "cluster.nats.credentials"),
            (NatsOptions { replicas: 2, ..good.clone() }, "expected 1, 3 or 5"),
            (NatsOptions { credentials: "/no/such".to_owned(), ..good.clone() }, "cluster.nats.credentials"),
            (NatsOptions { user: "u".to_owned(), ..good.clone() }, "cluster.nats.password_file: it is empty"),
            (NatsOptions { password_file: "/no/such".to_owned(), ..good.clone() }, "cluster.nats.password_file"),
            (NatsOptions { credentials: "/dev/zero".to_owned(), ..good.clone() }, "cluster.nats.credentials"),
            (NatsOptions { password_file: here(), ..good.clone() }, "cluster.nats.user: it is empty"),
            (
                NatsOptions { user: "u".to_owned(), password_file: here(), credentials: here(), ..good.clone() },
                "expected one of both",
            ),
            (NatsOptions { tls_cert: here(), ..good.clone() }, "cluster.nats.tls_key"),
            (NatsOptions { monitor: vec!["here:8222".to_owned()], ..good.clone() }, "cluster.nats.monitor"),
        ] {
            let said = options.check().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
