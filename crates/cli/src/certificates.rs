//! The server's certificate and key: two files, read at start and again when they change.
//!
//! Programs that renew certificates write the two files in sequence, or replace a link. So the files are compared by
//! content, every few seconds. A pair that does not match is tried again when it changes.

use crate::failure::Failure;
use jiff::Timestamp;
use meridian_api::{Certificate, CertificateFault, Tls};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often the files are read.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// How often the server warns of a certificate that has expired, or soon will.
const REMIND_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before a certificate's expiry the warnings begin.
const SOON: i64 = 14 * 24 * 60 * 60;

/// Where certificate and key are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those of the authorities between, in PEM.
    pub certificate: Option<PathBuf>,
    /// The private key, in PEM, without a passphrase.
    pub key: Option<PathBuf>,
}

/// The files of one server and what was read from them last.
pub struct Certificates {
    tls: Tls,
    certificate: PathBuf,
    key: PathBuf,
    /// Certificate and key as last read, matching or not.
    last: Pair,
    not_after: Option<i64>,
}

/// The content of certificate and key.
type Pair = (Vec<u8>, Vec<u8>);

impl TlsFiles {
    /// Reads the files; `None` if none are configured.
    ///
    /// # Errors
    /// With the file and its error.
    pub fn open(&self) -> Result<Option<Certificates>, Failure> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            (Some(_), None) => {
                return Err(Failure::Usage(
                    "tls.key (--tls-key): expected the file of the certificate's key".to_owned(),
                ));
            }
            (None, Some(_)) => {
                return Err(Failure::Usage(
                    "tls.certificate (--tls-cert): expected the file of the key's certificate".to_owned(),
                ));
            }
        };
        // At the start a bad file is an error. Later the certificate in use stays, as `read_again` decides.
        let last = read(&certificate, &key).map_err(Failure::Usage)?;
        let pair = parse(&certificate, &key, &last).map_err(Failure::Usage)?;
        let not_after = pair.not_after();
        let tls = Tls::new(pair).map_err(|e| Failure::Refused(format!("TLS cannot be set up: {e}")))?;
        Ok(Some(Certificates { tls, certificate, key, last, not_after }))
    }
}

impl Certificates {
    /// TLS with the certificate, and with every later one.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// The warning about the certificate's end, if it is near.
    pub fn warning(&self) -> Option<String> {
        let not_after = self.not_after?;
        let now = Timestamp::now().as_second();
        let when = Timestamp::from_second(not_after).map_or_else(|_| not_after.to_string(), |at| at.to_string());
        let file = self.certificate.display();
        match not_after - now {
            ..=0 => Some(format!("{file}: the certificate expired at {when}: clients will refuse it")),
            1..=SOON => Some(format!("{file}: the certificate expires at {when}")),
            _ => None,
        }
    }

    /// Follows the files until it is dropped. SIGHUP reads them at once.
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

    /// Uses the files' content if it is new and matches. Otherwise the certificate stays.
    fn read_again(mut self, asked: bool) -> Certificates {
        let read = read(&self.certificate, &self.key);
        // By content, not by time: a renewed file may have an older time, and a link has its target's.
        if read.as_ref().is_ok_and(|pair| *pair == self.last) {
            if asked {
                tracing::info!("the certificate and its key have not changed");
            }
            return self;
        }
        let parsed = read.and_then(|pair| {
            let parsed = parse(&self.certificate, &self.key, &pair);
            // Reported once, however often it is read.
            self.last = pair;
            parsed
        });
        match parsed {
            Ok(certificate) => {
                self.not_after = certificate.not_after();
                self.tls.replace(certificate);
                tracing::info!(file = %self.certificate.display(), "a new certificate is in use");
                self.remind();
            }
            // The server must not stop serving because a renewal is half done: the next change is read again.
            Err(why) => tracing::warn!("the certificate in use stays: {why}"),
        }
        self
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Pair, String> {
    let content = |file: &Path| std::fs::read(file).map_err(|e| format!("{}: cannot be read: {e}", file.display()));
    Ok((content(certificate)?, content(key)?))
}

fn parse(certificate: &Path, key: &Path, (chain, secret): &Pair) -> Result<Certificate, String> {
    Certificate::of_pem(chain, secret).map_err(|fault| {
        let file = match &fault {
            CertificateFault::Certificate(_) => certificate,
            CertificateFault::Key(_) => key,
        };
        format!("{}: {fault}", file.display())
    })
}
