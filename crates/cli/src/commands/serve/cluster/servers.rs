//! The scan servers used by a gateway: their list, and the selection rules.

use super::blocking;
use crate::config::Scan;
use crate::failure::Failure;
use meridian_model::Invalid;
use meridian_model::policy::selector::{Fallback, Hedging, Profiles};
use meridian_remote::{ScanOptions, ScanServerLocation};
use meridian_store::Bucket;
use meridian_store::bucket::{ScanServer, ScanServers};
use meridian_store::seams::{Seams, read_named_text};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Interval at which the servers are listed.
const LOOK: Duration = Duration::from_secs(5);
/// Default profile: three servers, then ten others, then any. If there are no servers, a scan does not wait for one.
const DEFAULT: &str = r#"[{
    "isDefault": true, "maxBusyTimeout": "5m", "busyTimeoutMultiplier": 8, "timeToWaitForScanServers": "0s",
    "attemptPlans": [
        {"servers": "3", "busyTimeout": "33ms", "salt": "one"},
        {"servers": "13", "busyTimeout": "33ms", "salt": "two"},
        {"servers": "100%", "busyTimeout": "33ms"}
    ]
}]"#;

/// Returns the options of the settings, and the sender for the list of servers.
pub(super) async fn options(
    settings: &Scan,
) -> Result<(watch::Sender<Arc<[ScanServerLocation]>>, ScanOptions), Failure> {
    let file = settings.profiles.clone();
    let profiles = match file.as_str() {
        "" => Profiles::parse(DEFAULT).map_err(|e| Failure::Refused(format!("the default profile: {e}")))?,
        file => {
            let path = file.to_owned();
            let read = blocking("reading profiles", move || read_named_text(Path::new(&path))).await?;
            let wrong = |e: &dyn std::fmt::Display| Failure::Usage(format!("cluster.scan.profiles {file}: {e}"));
            Profiles::parse(&read.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?
        }
    };
    let wrong = |e: Invalid| Failure::Usage(format!("cluster.scan.{e}"));
    let absent = settings.absent.parse().map_err(wrong)?;
    let fallback = Fallback::new(absent, settings.fallback_per_second, settings.fallback_burst).map_err(wrong)?;
    let hedging = Hedging::new(settings.hedge_after, settings.hedge_share, settings.hedge_burst).map_err(wrong)?;
    let (told, servers) = watch::channel(Arc::from(Vec::new()));
    Ok((told, ScanOptions { servers, profiles, fallback, hedging }))
}

/// Keeps the list of servers current. While the bucket does not respond, the last list is used.
pub(super) async fn find(bucket: Arc<dyn Bucket>, seams: Seams, told: watch::Sender<Arc<[ScanServerLocation]>>) {
    let servers = Arc::new(ScanServers::new(bucket, seams.clock.clone()));
    loop {
        let looked = servers.clone();
        match blocking("listing scan servers", move || looked.look()).await {
            Ok(Ok(found)) => {
                let found: Arc<[ScanServerLocation]> = found.into_iter().map(at).collect();
                told.send_if_modified(|known| {
                    let changed = **known != *found;
                    *known = found;
                    changed
                });
            }
            Ok(Err(error)) => tracing::warn!(%error, "the scan servers could not be listed: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn at(ScanServer { reader, serves }: ScanServer) -> ScanServerLocation {
    ScanServerLocation { process: reader, address: serves.address, group: serves.group }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn settings_are_checked_at_the_start() {
        let wrong = async |settings: Scan| match options(&settings).await {
            Err(Failure::Usage(what)) => what,
            other => panic!("expected a mistake, found {:?}", other.map(drop)),
        };
        assert!(options(&Scan::default()).await.is_ok());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profiles.json");
        std::fs::write(&file, r#"[{"isDefault": true, "attemptPlans": [{"servers": "3"}]}]"#).unwrap();
        let profiles = file.display().to_string();
        let said = wrong(Scan { profiles, ..Scan::default() }).await;
        assert!(said.contains("cluster.scan.profiles") && said.contains("busyTimeout"), "{said}");
        let said = wrong(Scan { profiles: "/no/such/file".to_owned(), ..Scan::default() }).await;
        assert!(said.contains("cluster.scan.profiles /no/such/file"), "{said}");
        let said = wrong(Scan { hedge_share: 2.0, ..Scan::default() }).await;
        assert!(said.contains("cluster.scan.hedge_share"), "{said}");
        let said = wrong(Scan { fallback_burst: 0.5, ..Scan::default() }).await;
        assert!(said.contains("cluster.scan.fallback_burst"), "{said}");
    }
}
