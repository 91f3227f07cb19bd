//! The check, at the start of an owner, that the servers of its log are those of the bucket.

use super::kind::{is_id, said};
use super::storage::BucketStorage;
use super::{Bucket, ReadOnly};
use crate::error::StoreError;
use crate::paths::partition_dir;
use crate::seams::{Registry, Seams, Storage};
use crate::stream::{SharedLog, bucket_prefix};
use meridian_model::Invalid;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Checks the servers of a log in streams: if the bucket has collections, the servers must have their streams.
///
/// # Errors
/// [`StoreError::Invalid`] if they have none, so they are not the previous owner's servers; and errors of the bucket or
/// servers.
pub fn expect_streams(bucket: &Arc<dyn Bucket>, seams: &Seams, log: &SharedLog) -> Result<(), StoreError> {
    let SharedLog::Streams { streams, accept_loss: false } = log else { return Ok(()) };
    let (_, id) = said(bucket.as_ref())?;
    let root = Path::new("/");
    let storage = BucketStorage::new(Arc::new(ReadOnly(bucket.clone())), seams.clone(), root, 0, Duration::ZERO);
    // Dropped collections have no stream. Damaged ones decide nothing here.
    let is_live = |(tenant, name): &(String, String)| {
        let dir = partition_dir(root, tenant, name, 0);
        matches!(storage.partition(&dir, 0).catalog.newest(), Ok(Some(_)))
    };
    if !is_id(&id) || !storage.collections()?.iter().any(is_live) {
        return Ok(());
    }
    let place = streams.place();
    let names = streams.names(&bucket_prefix(&id)).map_err(StoreError::io("read", Path::new(&place)))?;
    if names.is_empty() {
        let detail = format!(
            "{place} has no stream of this bucket, whose id is {id}: expected the servers of its log in cluster.nats.urls, or \
             cluster.nats.accept_loss where its streams are lost"
        );
        return Err(Invalid::field("log", detail).into());
    }
    Ok(())
}
