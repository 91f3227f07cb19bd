//! `--role gateway`: the whole HTTP API, over the collections of the owner.

use super::super::http::{self, Source};
use super::{OWNER, Opened, blocking};
use crate::config::{Config, Role};
use crate::failure::Failure;
use crate::output::say;
use meridian_remote::{OwnerAt, RemoteBackend, RemoteOptions};
use meridian_store::bucket::Peers;
use meridian_store::{Bucket, ControlPlane, Term, Terms};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Interval at which the lease is read for the owner's address.
const LOOK: Duration = Duration::from_millis(100);
/// How long after a try to reach the owner, at the start, the next one comes.
const RETRY: Duration = Duration::from_millis(100);
/// How long a start waits for the owner without a word: until a renewal of its lease was seen.
const TELL: Duration = Duration::from_secs(2);
/// A lease that was not renewed for so many times its length has no owner.
const LAPSES: u32 = 2;

/// Runs a gateway until `stop`.
pub(in super::super) async fn gateway(
    mut config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    let Opened { doors, seams, bucket, member, drained, obeying } = Opened::open(&mut config, Role::Gateway).await?;
    let stop = member.until(stop);
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
            member.leave().await?;
            say("stopped before there was an owner");
            return Ok(());
        }
    }
    let at = owner.borrow().as_ref().map(|owner| owner.address.clone()).unwrap_or_default();
    let place = format!("collections of the owner at {at}, bucket {}", config.cluster.bucket);
    let source = Source { backend, place, folder: None, bucket: Some(config.cluster.bucket.clone()), peers, drained };
    let served = http::serve(doors, config, source, &seams, stop).await;
    drop(obeying);
    member.leave().await?;
    served?;
    say("stopped");
    Ok(())
}

/// Waits until there is an owner that answers: the first one moves records into the bucket, and saved searches ask what they have missed.
async fn reach(backend: &Arc<RemoteBackend>) -> Result<(), Failure> {
    let (begun, mut told) = (Instant::now(), false);
    loop {
        let asked = backend.clone();
        let Err(why) = blocking("asking the owner", move || asked.reach()).await? else { return Ok(()) };
        if begun.elapsed() >= TELL && !std::mem::replace(&mut told, true) {
            say(&format!("waiting for an owner: {why}"));
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Keeps the address of the owner current. A bucket that does not answer changes nothing: the owner may well be there.
///
/// A term counts once it was seen to follow another one, and while others follow it. In a copy of a bucket none follows, and the process that
/// its newest term names owns the original.
async fn follow(bucket: Arc<dyn Bucket>, told: watch::Sender<Option<OwnerAt>>) {
    let (terms, mut known) = (Arc::new(Terms::new(&bucket, OWNER)), 0);
    let (mut is_first, mut renewed) = (true, None::<Instant>);
    loop {
        let looked = terms.clone();
        match blocking("looking for the owner", move || looked.newest_from(known)).await {
            Ok(Ok(newest)) => {
                let number = newest.as_ref().map_or(0, |(number, _)| *number);
                if std::mem::replace(&mut known, number) != number && !is_first {
                    renewed = Some(Instant::now());
                }
                is_first = false;
                let lives = |ttl: Duration| renewed.is_some_and(|at| at.elapsed() < ttl * LAPSES);
                // One that was given up for another process is that one's at any moment.
                let counts = |term: &Term| (!term.resigned || term.heir.is_some()) && lives(term.ttl());
                let owner = newest.map(|(_, term)| term).filter(counts).map(|term| OwnerAt {
                    address: term.address,
                    process: Some(term.process),
                    leaves: term.heir.is_some(),
                });
                told.send_if_modified(|known| {
                    let changed = *known != owner;
                    *known = owner;
                    changed
                });
            }
            Ok(Err(error)) => tracing::warn!(%error, "the owner's lease could not be read: trying again"),
            Err(failure) => tracing::error!("{failure}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
