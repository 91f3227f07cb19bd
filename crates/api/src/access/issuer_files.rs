//! Files of issuers: keys, and secrets of this server.

use meridian_admission::identity::jwt::{DOCUMENT_BYTES_MAX, Issuers, KeySource};
use meridian_backend::{Disk, OpenMode};
use meridian_model::Invalid;
use std::io;
use std::path::Path;

/// Reads the keys that are in files.
///
/// # Errors
/// The error of a file: a server whose operator configured keys must not start without them.
pub fn read_files(issuers: &Issuers, disk: &dyn Disk) -> Result<(), Invalid> {
    for issuer in issuers.iter() {
        let wrong = |path: &Path, why| {
            let name = &issuer.settings().name;
            Invalid::new(format!("access.issuers: issuer {name:?}: {}: {why}", path.display()))
        };
        if let KeySource::File(path) | KeySource::Secret(path) = &issuer.settings().keys {
            let taken = read_file(disk, path).and_then(|document| issuers.take_keys(issuer, &document));
            taken.map_err(|why| wrong(path, why))?;
        }
        // It is read again at each use, but an error must be reported at startup.
        if let Some(path) = issuer.settings().sign_in.as_ref().and_then(|sign_in| sign_in.client_secret.as_ref()) {
            read_client_secret(disk, path).map_err(|why| wrong(path, why))?;
        }
    }
    Ok(())
}

/// Reads a file of at most [`DOCUMENT_BYTES_MAX`].
///
/// # Errors
/// A sentence that describes the failure.
pub fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, String> {
    let read = || {
        let file = disk.open(path, OpenMode::Read)?;
        // One byte beyond the limit, so that a longer file is detected without reading it in full.
        let bytes = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(DOCUMENT_BYTES_MAX + 1);
        let mut document = vec![0; bytes];
        file.read_at(0, &mut document)?;
        Ok::<_, io::Error>(document)
    };
    read().map_err(|e| format!("it cannot be read: {e}"))
}

/// Reads this server's client secret for an issuer. Blocks on the disk.
pub fn read_client_secret(disk: &dyn Disk, path: &Path) -> Result<String, String> {
    let secret = String::from_utf8(read_file(disk, path)?).map_err(|_| "the client secret is not UTF-8")?;
    // Editors end a file with a newline.
    match secret.trim_end() {
        "" => Err("the client secret is empty".to_owned()),
        secret => Ok(secret.to_owned()),
    }
}
