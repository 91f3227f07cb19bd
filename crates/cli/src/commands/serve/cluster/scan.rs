//! `--role scan`: answers from what the owner has flushed to the bucket, and refuses writes.

use super::super::http::{self, Source};
use super::{Opened, blocking, records};
use crate::config::{Config, Role};
use crate::failure::Failure;
use crate::output::say;
use meridian_backend::Embedded;
use meridian_store::bucket::Peers;
use meridian_store::{ControlPlane, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often the bucket is asked for new manifests, and for what the owner says of them.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a server that only reads, until `stop`.
pub(in super::super) async fn scan(
    mut config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let Opened { doors, seams, bucket, member, drained, obeying } = Opened::open(&mut config, Role::Scan).await?;
    let stop = member.until(stop);
    let control = ControlPlane::new(bucket.clone(), &seams, config.store.audit_bytes);
    let peers = Some(Arc::new(Peers::new(bucket.clone(), &seams)));
    // Gateways match, poll and send them. Here each event would be matched once more, and late.
    config.server.saved.enabled = false;
    config.store.skew = config.cluster.skew;
    let (options, for_open) = (config.store.clone(), seams.clone());
    let opened = blocking("opening the bucket", move || Store::open_read_only(options, for_open, bucket)).await?;
    let store = Arc::new(opened?);
    for problem in store.problems() {
        tracing::error!("{problem}");
    }
    records::compare(&config, &control, &store).await?;
    // Its task ends with this function.
    let mut following = JoinSet::new();
    following.spawn(follow(store.clone()));
    let place = format!("read only, as flushed to {}", config.cluster.bucket);
    let folder = Some(config.store.data.clone());
    let backend = Embedded::with_records(store.clone(), control);
    let source = Source { backend, place, folder, bucket: Some(config.cluster.bucket.clone()), peers, drained };
    let served = http::serve(doors, config, source, &seams, stop).await;
    following.shutdown().await;
    drop(obeying);
    let closed = blocking("closing", move || store.close()).await;
    member.leave().await?;
    served?;
    closed??;
    say("stopped");
    Ok(())
}

/// Takes up what owners flush. A bucket that does not answer leaves the server with what it has.
async fn follow(store: Arc<Store>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let looked = store.clone();
        match blocking("looking for new manifests", move || looked.refresh()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "what the owner has flushed since could not be read: trying again")
            }
            Err(failure) => tracing::error!("{failure}"),
        }
    }
}
