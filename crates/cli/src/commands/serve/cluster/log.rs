//! The log shared by the owners of a cluster.

use crate::config::Cluster;
use crate::failure::Failure;
use meridian_store::SharedLog;

/// Opens the log.
#[cfg(feature = "nats")]
pub(crate) async fn open_log(cluster: &Cluster) -> Result<SharedLog, Failure> {
    use super::blocking;
    use crate::calls::calls;

    if cluster.log != "nats" {
        return Ok(SharedLog::Bucket);
    }
    let (options, accept_loss) = (cluster.nats.options(), cluster.nats.accept_loss);
    let open = move || -> Result<_, Failure> { Ok(meridian_nats::open(&options, &calls()?)?) };
    let streams = blocking("opening the log", open).await??;
    Ok(SharedLog::Streams { streams, accept_loss })
}

/// Opens the log.
#[cfg(not(feature = "nats"))]
pub(crate) async fn open_log(_: &Cluster) -> Result<SharedLog, Failure> {
    Ok(SharedLog::Bucket)
}
