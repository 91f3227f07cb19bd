//! Keys and endpoints of issuers of JSON Web Tokens: loaded at startup, then reloaded periodically.
//!
//! If a load fails, the previous keys stay. A token that names an unknown key is refused, and triggers a reload of the
//! keys. The operator limits how often. The client's next attempt finds the new keys.

use crate::state::AppState;
use meridian_admission::identity::jwt::{DOCUMENT_BYTES_MAX, Issuer, Issuers, KeySource};
use meridian_backend::{Disk, OpenMode};
use meridian_federation::provider;
use meridian_model::Invalid;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until};

/// Max time for a document of an issuer to arrive.
const FETCH: Duration = Duration::from_secs(10);

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

fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, String> {
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

/// Reloads the keys of all issuers periodically, until dropped.
pub async fn tend(state: AppState) {
    let mut each = JoinSet::new();
    for n in 0..state.registry.issuers().iter().len() {
        each.spawn(tend_one(state.clone(), n));
    }
    while each.join_next().await.is_some() {}
}

async fn tend_one(state: AppState, n: usize) {
    let issuers = state.registry.issuers();
    let Some(issuer) = issuers.iter().nth(n) else { return };
    let settings = issuer.settings();
    loop {
        let begun = Instant::now();
        let again = match read(issuers, issuer, &state.disk).await {
            Ok(()) => settings.refresh,
            Err(why) => {
                let (issuer, keys) = (&*settings.name, issuer.key_count());
                tracing::warn!(issuer, keys, why, "keys could not be read: the former keys stay");
                settings.refresh_min
            }
        };
        // Enforces the min interval, however many tokens name unknown keys.
        sleep_until(begun + settings.refresh_min).await;
        tokio::select! {
            () = sleep_until(begun + again) => {}
            () = issuer.wants_keys() => {
                tracing::info!(issuer = &*settings.name, "a token names an unknown key: keys are read again");
            }
        }
    }
}

/// Loads the documents of an issuer and applies them.
async fn read(issuers: &Issuers, issuer: &Issuer, disk: &Arc<dyn Disk>) -> Result<(), String> {
    match &issuer.settings().keys {
        KeySource::Url(url) => issuers.take_keys(issuer, &fetch(url).await?),
        KeySource::Discovered => {
            let (keys, endpoints) = issuer.discovered(&fetch(&issuer.discovery_url()).await?)?;
            issuers.take_keys(issuer, &fetch(&keys).await?)?;
            // After the keys: a browser that is sent to an endpoint returns with a token signed by one of them.
            issuer.take_endpoints(endpoints);
            Ok(())
        }
        KeySource::File(path) | KeySource::Secret(path) => issuers.take_keys(issuer, &file(disk, path).await?),
    }
}

async fn fetch(url: &str) -> Result<Vec<u8>, String> {
    provider::document(url, FETCH, DOCUMENT_BYTES_MAX).await.map(Vec::from)
}

async fn file(disk: &Arc<dyn Disk>, path: &Path) -> Result<Vec<u8>, String> {
    let (disk, path) = (disk.clone(), path.to_owned());
    let read = tokio::task::spawn_blocking(move || read_file(&*disk, &path));
    read.await.map_err(|e| e.to_string())?
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
