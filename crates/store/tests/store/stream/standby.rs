//! What a process checks before it becomes a standby.

use super::Cluster;
use crate::bucket::seams;
use meridian_store::SharedLog;
use meridian_store::bucket::{Bucket, expect_log, expect_streams};
use std::sync::Arc;

#[test]
fn a_candidate_with_another_log_than_the_owner_is_refused() {
    let (cluster, other) = (Cluster::default(), Cluster::default());
    let bucket: Arc<dyn Bucket> = Arc::new(cluster.bucket.clone());
    let kind = |kind: &str| expect_log(bucket.as_ref(), kind).map_err(|e| e.to_string());
    let streams = |log: SharedLog| expect_streams(&bucket, &seams(), &log).map_err(|e| e.to_string());
    // The first owner decides.
    assert_eq!((kind("bucket"), kind("nats"), streams(other.log(false))), (Ok(()), Ok(()), Ok(())));
    drop(cluster.first());
    assert_eq!((kind("nats"), streams(cluster.log(false)), streams(SharedLog::Bucket)), (Ok(()), Ok(()), Ok(())));
    assert!(kind("bucket").unwrap_err().contains("--log nats"));
    // Other servers have no stream of this bucket.
    let refused = streams(other.log(false)).unwrap_err();
    assert!(refused.contains("cluster.nats.urls") && refused.contains("accept_loss"), "{refused}");
    assert_eq!(streams(other.log(true)), Ok(()), "its streams are given up");
    // Nor do its own, once no collection is left.
    assert!(cluster.next().store.drop_collection("t", "c").unwrap());
    assert_eq!(streams(other.log(false)), Ok(()));
}
