//! `--role gateway`: the whole HTTP API, over the collections of the owner.

use super::super::http::{self, Source};
use super::{OWNER, Opened, blocking};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::say;
use meridian_remote::{RemoteBackend, RemoteOptions};
use meridian_store::bucket::Peers;
use meridian_store::{Bucket, ControlPlane, Terms};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Interval at which the lease is read for the owner's address.
const LOOK: Duration = Duration::from_millis(100);
/// How long after a try to reach the owner, at the start, the next one comes.
const RETRY: Duration = Duration::from_millis(100);

/// Runs a gateway until `stop`.
pub(in super::super) async fn gateway(
    mut config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let Opened { doors, seams, bucket } = Opened::open(&mut config).await?;
    let records = ControlPlane::new(bucket.clone(), &seams, config.store.audit_bytes);
    let peers = Some(Arc::new(Peers::new(bucket.clone(), &seams)));
    let (told, owner) = watch::channel(None);
    // Its task ends with this function.
    let mut following = JoinSet::new();
    following.spawn(follow(bucket, told));
    let backend = RemoteBackend::connect(owner.clone(), records, RemoteOptions::new(seams.random.clone()))
        .map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
    let mut stop = Box::pin(stop);
    tokio::select! {
        reached = reach(&backend) => reached?,
        () = &mut stop => {
            say("stopped before there was an owner");
            return Ok(());
        }
    }
    let at = owner.borrow().clone().unwrap_or_default();
    let place = format!("collections of the owner at {at}, bucket {}", config.cluster.bucket);
    let source = Source { backend, place, folder: None, bucket: Some(config.cluster.bucket.clone()), peers };
    http::serve(doors, config, source, &seams, stop).await?;
    say("stopped");
    Ok(())
}

/// Waits until there is an owner that answers: the first one moves records into the bucket, and saved searches ask what they have missed.
async fn reach(backend: &Arc<RemoteBackend>) -> Result<(), Failure> {
    let mut told = false;
    loop {
        let asked = backend.clone();
        let Err(why) = blocking("asking the owner", move || asked.reach()).await? else { return Ok(()) };
        if !std::mem::replace(&mut told, true) {
            say(&format!("waiting for an owner: {why}"));
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Keeps the address of the owner current. A bucket that does not answer changes nothing: the owner may well be there.
async fn follow(bucket: Arc<dyn Bucket>, told: watch::Sender<Option<String>>) {
    let (terms, mut known) = (Arc::new(Terms::new(&bucket, OWNER)), 0);
    loop {
        let looked = terms.clone();
        match blocking("looking for the owner", move || looked.newest_from(known)).await {
            Ok(Ok(newest)) => {
                known = newest.as_ref().map_or(0, |(number, _)| *number);
                let address = newest.filter(|(_, term)| !term.resigned).map(|(_, term)| term.address);
                told.send_if_modified(|known| {
                    let changed = *known != address;
                    *known = address;
                    changed
                });
            }
            Ok(Err(error)) => tracing::warn!(%error, "the owner's lease could not be read: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
