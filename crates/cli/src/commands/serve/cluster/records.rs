//! Records that an owner has in its data folder, from before there was a bucket or from an older version, move into the bucket.

use super::blocking;
use super::keeper::Keeper;
use super::owner::RETRY;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::say;
use meridian_api::RECORD_KINDS;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, ControlPlane, Moved, Store, StoreError};
use std::sync::Arc;

/// Moves the records of an owner into the bucket, unless that has some. `false`: the lease ended before.
pub(super) async fn move_in(
    config: &Config,
    keeper: &Keeper,
    epoch: u64,
    bucket: &Arc<dyn Bucket>,
    store: &Arc<Store>,
    seams: &Seams,
) -> Result<bool, Failure> {
    let folder = config.store.data.display();
    while keeper.holds(epoch) {
        let (control, store) = (ControlPlane::new(bucket.clone(), seams, config.store.audit_bytes), store.clone());
        match blocking("moving records into the bucket", move || control.move_in(&store, &RECORD_KINDS)).await? {
            Ok(Moved::Nothing) => return Ok(true),
            Ok(Moved::Records(count)) => {
                say(&format!(
                    "moved {count} records of tokens, tenants, users and saved searches from {folder} to the bucket"
                ));
                return Ok(true);
            }
            Ok(Moved::Kept) => {
                say(&format!(
                    "the tokens, tenants, users and saved searches in {folder} are not used: those in the bucket count"
                ));
                return Ok(true);
            }
            // The bucket may answer again while the lease holds.
            Err(error @ (StoreError::Io { .. } | StoreError::Busy(_))) => {
                tracing::warn!(%error, "the records of this process cannot be moved into the bucket now: trying again");
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
