//! The log that the owners of a cluster share.

use crate::config::Cluster;
use crate::failure::Failure;
use meridian_store::SharedLog;

/// Opens the log.
#[cfg(feature = "nats")]
pub(super) async fn open_log(cluster: &Cluster) -> Result<SharedLog, Failure> {
    use super::blocking;
    use crate::config::Address;
    use meridian_nats::NatsOptions;
    use tokio::runtime::Handle;

    if cluster.log != "nats" {
        return Ok(SharedLog::Bucket);
    }
    let nats = cluster.nats.clone();
    let texts = |list: &[Address]| list.iter().map(|one| one.0.clone()).collect();
    let options = NatsOptions {
        urls: texts(&nats.urls),
        monitor: texts(&nats.monitor),
        credentials: nats.credentials,
        tls_ca: nats.tls_ca,
        tls_cert: nats.tls_cert,
        tls_key: nats.tls_key,
        replicas: nats.replicas,
        stream_bytes: nats.stream_bytes,
        allow_unsynced: nats.allow_unsynced,
    };
    let runtime = Handle::current();
    let streams = blocking("opening the log", move || meridian_nats::open(&options, &runtime)).await??;
    Ok(SharedLog::Streams { streams, accept_loss: nats.accept_loss })
}

/// Opens the log.
#[cfg(not(feature = "nats"))]
pub(super) async fn open_log(_: &Cluster) -> Result<SharedLog, Failure> {
    Ok(SharedLog::Bucket)
}
