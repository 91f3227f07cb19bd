//! Certificates of this process: files, read at start and again when they change.
//!
//! Programs that renew certificates write the files in sequence, or replace a link. So the files are compared by
//! content, every few seconds. Mismatched files are retried when one changes.

use crate::failure::Failure;
use jiff::Timestamp;
use meridian_api::{Certificate, CertificateFault, Tls};
use meridian_store::seams::read_named;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Settings of the server's own files, with their options.
const CERTIFICATE: &str = "tls.certificate (--tls-cert)";
const KEY: &str = "tls.key (--tls-key)";
/// How often the files are read.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// How often the server warns of a certificate that has expired, or soon will.
const REMIND_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before a certificate's expiry the warnings begin.
const SOON: i64 = 14 * 24 * 60 * 60;

/// Paths of the certificate and key that the server shows to clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and the intermediate ones, in PEM.
    pub certificate: Option<PathBuf>,
    /// The private key, in PEM, without a passphrase.
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// Reads the files; `None` if none are configured.
    ///
    /// # Errors
    /// The setting, the file and its error.
    pub fn open(&self) -> Result<Option<Certificates<Tls>>, Failure> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (NamedFile::new(CERTIFICATE, certificate), NamedFile::new(KEY, key)),
            (Some(_), None) => {
                return Err(Failure::Usage(format!("{KEY}: expected the file of the certificate's key")));
            }
            (None, Some(_)) => {
                return Err(Failure::Usage(format!("{CERTIFICATE}: expected the file of the key's certificate")));
            }
        };
        Certificates::open(Files { certificate, key, authorities: None }, |certificate, _| {
            Tls::new(certificate).map_err(|e| format!("TLS cannot be set up: {e}"))
        })
        .map(Some)
    }
}

/// A file, with the setting that names it. Messages show both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// The setting, and its option if it has one.
    setting: &'static str,
    path: PathBuf,
}

impl NamedFile {
    /// Returns the file that a setting names.
    pub fn new(setting: &'static str, path: &Path) -> NamedFile {
        NamedFile { setting, path: path.to_owned() }
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        read_named(&self.path).map_err(|e| format!("{self}: cannot be read: {e}"))
    }
}

impl fmt::Display for NamedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.path.display())
    }
}

/// Files of one identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate and the intermediate ones, in PEM.
    pub certificate: NamedFile,
    /// The private key, in PEM, without a passphrase.
    pub key: NamedFile,
    /// Certificates of the authorities that sign for peers, in PEM, if peers show certificates.
    pub authorities: Option<NamedFile>,
}

/// The content of [`Files`].
#[derive(Debug, PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// Empty if there is no such file.
    authorities: Vec<u8>,
}

/// TLS whose certificate can change while connections are open.
pub trait RenewableTls: Clone + Send + 'static {
    /// Uses a certificate, and the authorities of peers as PEM, for new connections.
    ///
    /// # Errors
    /// The reason, with the file; nothing has changed then.
    fn renew(&self, certificate: Certificate, authorities: &[u8], files: &Files) -> Result<(), String>;
}

impl RenewableTls for Tls {
    fn renew(&self, certificate: Certificate, _: &[u8], _: &Files) -> Result<(), String> {
        self.replace(certificate);
        Ok(())
    }
}

/// The files of one identity, what was read from them last, and the TLS that uses it.
pub struct Certificates<T> {
    tls: T,
    files: Files,
    /// The last content read, matching or not.
    last: Content,
    not_after: Option<i64>,
}

impl<T: RenewableTls> Certificates<T> {
    /// Reads the files, and makes TLS of the certificate and the authorities of peers.
    ///
    /// # Errors
    /// The file and its error: at the start a bad file is an error. Later the current certificate stays, as
    /// `read_again` decides.
    pub fn open(files: Files, make: impl FnOnce(Certificate, &[u8]) -> Result<T, String>) -> Result<Self, Failure> {
        let last = files.read().map_err(Failure::Usage)?;
        let certificate = files.parse(&last).map_err(Failure::Usage)?;
        let not_after = certificate.not_after();
        let tls = make(certificate, &last.authorities).map_err(Failure::Usage)?;
        Ok(Certificates { tls, files, last, not_after })
    }

    /// Returns the TLS of the certificate, and of every later one.
    pub fn tls(&self) -> T {
        self.tls.clone()
    }

    /// The warning about the certificate's end, if it is near.
    pub fn warning(&self) -> Option<String> {
        let not_after = self.not_after?;
        let now = Timestamp::now().as_second();
        let when = Timestamp::from_second(not_after).map_or_else(|_| not_after.to_string(), |at| at.to_string());
        let file = self.files.certificate.path.display();
        match not_after - now {
            ..=0 => Some(format!("{file}: the certificate expired at {when}: others will refuse it")),
            1..=SOON => Some(format!("{file}: the certificate expires at {when}")),
            _ => None,
        }
    }

    /// Watches the files until dropped. SIGHUP reads them at once.
    ///
    /// # Errors
    /// If the signal cannot be watched.
    pub fn follow(mut self) -> std::io::Result<impl Future<Output = ()> + Send> {
        let mut hangup = signal(SignalKind::hangup())?;
        Ok(async move {
            let mut ticks = interval(READ_INTERVAL);
            // After a suspended machine wakes, one read is enough.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut reminded = Instant::now();
            loop {
                let asked = tokio::select! {
                    _ = ticks.tick() => false,
                    heard = hangup.recv() => heard.is_some(),
                };
                // Reading files blocks, and a network folder may hang.
                self = match tokio::task::spawn_blocking(move || self.read_again(asked)).await {
                    Ok(read) => read,
                    Err(e) => return tracing::error!(error = %e, "the files of TLS are no longer followed"),
                };
                if reminded.elapsed() >= REMIND_INTERVAL {
                    reminded = Instant::now();
                    self.remind();
                }
            }
        })
    }

    fn remind(&self) {
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
    }

    /// Uses the files' content if it is new and matches. Otherwise the current certificate stays.
    fn read_again(mut self, asked: bool) -> Self {
        let file = self.files.certificate.path.display().to_string();
        let read = self.files.read();
        // By content, not by time: a renewed file may have an older time, and a link has its target's.
        if read.as_ref().is_ok_and(|content| *content == self.last) {
            if asked {
                tracing::info!(file, "the certificate and its key have not changed");
            }
            return self;
        }
        let used = read.and_then(|content| {
            let used = self.files.parse(&content).and_then(|certificate| {
                let not_after = certificate.not_after();
                self.tls.renew(certificate, &content.authorities, &self.files).map(|()| not_after)
            });
            // Reported once, however often it is read.
            self.last = content;
            used
        });
        match used {
            Ok(not_after) => {
                self.not_after = not_after;
                tracing::info!(file, "a new certificate is in use");
                self.remind();
            }
            // The server must not stop serving because a renewal is half done: the next change is read again.
            Err(why) => tracing::warn!("the certificate in use stays: {why}"),
        }
        self
    }
}

impl Files {
    fn read(&self) -> Result<Content, String> {
        Ok(Content {
            certificate: self.certificate.read()?,
            key: self.key.read()?,
            authorities: self.authorities.as_ref().map(NamedFile::read).transpose()?.unwrap_or_default(),
        })
    }

    fn parse(&self, content: &Content) -> Result<Certificate, String> {
        Certificate::of_pem(&content.certificate, &content.key).map_err(|fault| {
            let file = match &fault {
                CertificateFault::Certificate(_) => &self.certificate,
                CertificateFault::Key(_) => &self.key,
            };
            format!("{file}: {fault}")
        })
    }
}
