//! TLS between roles, with the certificate named in the settings.

use crate::certificates::{Certificates, Files, RenewableTls};
use crate::config::Roles;
use crate::failure::Failure;
use meridian_api::Certificate;
use meridian_remote::{RoleTls, RoleTlsFault, Security};
use tokio::task::JoinSet;

impl RenewableTls for RoleTls {
    fn renew(&self, certificate: Certificate, authorities: &[u8], files: &Files) -> Result<(), String> {
        self.replace(certificate.key(), authorities).map_err(|fault| of_file(&fault, files))
    }
}

/// Opens the TLS between roles; `None` without settings. `host`: host by which callers reach this process, if it is a
/// server of roles.
pub fn open(settings: &Roles, host: Option<&str>) -> Result<Option<Certificates<RoleTls>>, Failure> {
    let Some(files) = settings.files()? else { return Ok(None) };
    let (names, named) = (settings.names.clone(), files.clone());
    let opened = Certificates::open(files, move |certificate, authorities| {
        RoleTls::new(certificate.key(), authorities, names, host).map_err(|fault| of_file(&fault, &named))
    });
    opened.map(Some)
}

/// Returns what a caller requires of servers of roles, by the settings.
pub fn security(settings: &Roles, certificates: Option<&Certificates<RoleTls>>) -> Security {
    match certificates {
        Some(certificates) => Security::Tls(certificates.tls()),
        None if settings.allow_plain => Security::Plain,
        None => Security::PlainHere,
    }
}

/// Loads renewed certificates, until the set is dropped.
pub fn follow(certificates: Option<Certificates<RoleTls>>, following: &mut JoinSet<()>) -> Result<(), Failure> {
    let Some(certificates) = certificates else { return Ok(()) };
    if let Some(warning) = certificates.warning() {
        tracing::warn!("{warning}");
    }
    let followed = certificates.follow();
    following.spawn(followed.map_err(|e| Failure::Refused(format!("cannot watch for signals: {e}")))?);
    Ok(())
}

fn of_file(fault: &RoleTlsFault, files: &Files) -> String {
    let file = match fault {
        RoleTlsFault::Certificate(_) => Some(&files.certificate),
        RoleTlsFault::Authorities(_) => files.authorities.as_ref(),
    };
    file.map_or_else(|| fault.to_string(), |file| format!("{file}: {fault}"))
}
