//! Records in the data folder of a process, from before there was a bucket or from an older version. An owner moves
//! them into the bucket.

use super::blocking;
use super::lease_holder::LeaseHolder;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::say;
use meridian_api::RECORD_KINDS;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, ControlPlane, FolderRecords, MoveOutcome, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Pause before a retry while the bucket does not respond.
const RETRY: Duration = Duration::from_secs(1);

/// Moves the records of an owner into the bucket, unless that has some. Returns `false` if the lease ended first.
pub(super) async fn move_in(
    config: &Config,
    lease_holder: &LeaseHolder,
    epoch: u64,
    bucket: &Arc<dyn Bucket>,
    store: &Arc<Store>,
    seams: &Seams,
) -> Result<bool, Failure> {
    let folder = config.store.data.display();
    while lease_holder.holds(epoch) {
        let (control, store) = (ControlPlane::new(bucket.clone(), seams, config.store.audit_bytes), store.clone());
        match blocking("moving records into the bucket", move || control.move_in(&store, &RECORD_KINDS)).await? {
            Ok(MoveOutcome::Nothing) => return Ok(true),
            Ok(MoveOutcome::Records(count)) => {
                say(&format!(
                    "moved {count} records of tokens, tenants, users and saved searches from {folder} to the bucket"
                ));
                return Ok(true);
            }
            Ok(MoveOutcome::Kept) => {
                say(&format!(
                    "the tokens, tenants, users and saved searches in {folder} are not used: those in the bucket count"
                ));
                return Ok(true);
            }
            // The bucket may respond again while the lease holds.
            Err(error @ (StoreError::Io { .. } | StoreError::Busy(_) | StoreError::Unknown(_))) => {
                tracing::warn!(%error, "the records of this process cannot be moved into the bucket now: trying again");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Warns that the tokens in the folder of a read-only server have no effect. A server that would be open to all without
/// them does not start.
pub(super) async fn compare(config: &Config, records: &Arc<ControlPlane>, store: &Arc<Store>) -> Result<(), Failure> {
    let folder = config.store.data.display();
    let (records, store) = (records.clone(), store.clone());
    // The last kind is that of tokens. Saved searches do not run here.
    let tokens = RECORD_KINDS.last().copied();
    match blocking("looking for records", move || records.in_folder(&store, tokens.as_slice())).await?? {
        FolderRecords::Nothing => Ok(()),
        FolderRecords::Beside => {
            say(&format!("the tokens, tenants and users in {folder} are not used: those in the bucket count"));
            Ok(())
        }
        FolderRecords::Alone => Err(Failure::Usage(format!(
            "--data {folder}: its tokens, tenants and users do not count in a cluster, and the bucket has none: start an owner with this \
             folder, which moves them into the bucket, or make a token with `meridian token create --role operator --bucket {}`",
            config.cluster.bucket
        ))),
    }
}
