//! Keys and endpoints of issuers of JSON Web Tokens: loaded at startup, then reloaded periodically.
//!
//! If a load fails, the previous keys stay. A token that names an unknown key is refused, and triggers a reload of the
//! keys. The operator limits how often. The client's next attempt finds the new keys.

use crate::access::issuer_files::read_file;
use crate::state::AppState;
use meridian_admission::identity::jwt::{DOCUMENT_BYTES_MAX, Issuer, Issuers, KeySource};
use meridian_backend::Disk;
use meridian_federation::fetch;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until};

/// Max time for a document of an issuer to arrive.
const FETCH: Duration = Duration::from_secs(10);

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
    fetch::document(url, FETCH, DOCUMENT_BYTES_MAX).await.map(Vec::from)
}

async fn file(disk: &Arc<dyn Disk>, path: &Path) -> Result<Vec<u8>, String> {
    let (disk, path) = (disk.clone(), path.to_owned());
    let read = tokio::task::spawn_blocking(move || read_file(&*disk, &path));
    read.await.map_err(|e| e.to_string())?
}
