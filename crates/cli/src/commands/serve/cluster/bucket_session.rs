//! A command that works on a bucket: through the owners, as a gateway does, or as the owner of all groups if there is
//! none.

use super::gateway::follow_all;
use super::lease_holder::LeaseHolder;
use super::log::open_log;
use super::{blocking, name_of, open_bucket};
use crate::config::Config;
use crate::failure::Failure;
use crate::roles;
use meridian_backend::{Backend, Embedded};
use meridian_model::policy::groups::Groups;
use meridian_remote::{GroupsBackend, OwnerLocation, RemoteOptions};
use meridian_store::bucket::{Survey, decide_groups, groups_of, lease_of};
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{Bucket, ControlPlane, Options, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Address at which gateways would reach this process, which serves none.
const NOWHERE: &str = "127.0.0.1:9";
/// Time for owners to take all groups if some of them have owners, as a multiple of the lease length.
const OWNED_LEASES: u32 = 10;

/// The collections and records of a bucket, while a command works on them.
pub(crate) struct BucketSession {
    backend: Arc<dyn Backend>,
    /// The collections and the leases, if this process is the owner.
    owned: Option<(Arc<Store>, Vec<LeaseHolder>)>,
    /// Task that follows the leases; ends with this value.
    _following: JoinSet<()>,
}

impl BucketSession {
    /// Finds the owners of the bucket in the settings, or becomes the owner of all groups. A new owner reads the log
    /// first.
    pub(crate) async fn begin(mut config: Config) -> Result<BucketSession, Failure> {
        let seams = Seams::real();
        let bucket = open_bucket(&config.cluster, &seams).await?;
        let groups;
        (config.cluster.log, groups) = kind_of(&config, &bucket, &seams).await?;
        // Servers decide how much of the audit log is kept.
        let records = ControlPlane::new(bucket.clone(), &seams, u64::MAX);
        let mut following = JoinSet::new();
        let mut owners = follow_all(&bucket, groups, &mut following);
        let (mut lease_holders, process) = (Vec::new(), seams.random.next_u64());
        for group in groups.all() {
            let node = (name_of(&config.cluster, "owner"), process);
            let mut lease_holder =
                LeaseHolder::new(&lease_of(group), node, config.cluster.lease, &bucket, NOWHERE, &seams);
            // With several groups, one that is being passed on is left to a process that serves it.
            lease_holder.lease().ranks(usize::from(!group.is_all()));
            lease_holder.start();
            lease_holders.push(lease_holder);
        }
        let mut epochs = Vec::new();
        for (lease_holder, owner) in lease_holders.iter().zip(&mut owners) {
            // An owner renews its lease before this process could take it. A term of this process is in the bucket a
            // moment before it knows.
            let is_other = |at: &Option<OwnerLocation>| at.as_ref().is_some_and(|at| at.process != Some(process));
            tokio::select! {
                biased;
                epoch = lease_holder.wait(|_| ()) => epochs.push(epoch),
                _ = owner.wait_for(is_other) => {}
            }
        }
        if epochs.len() < lease_holders.len() {
            // There are owners, so they take the other groups too.
            end_all(lease_holders).await?;
            owned(&mut owners, config.cluster.lease * OWNED_LEASES).await?;
            let certificates = roles::open(&config.cluster.tls, None)?;
            let security = roles::security(&config.cluster.tls, certificates.as_ref());
            let options = RemoteOptions { security, ..RemoteOptions::new(seams.random.clone()) };
            let backend = GroupsBackend::connect(owners, records, options);
            let backend = backend.map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
            return Ok(BucketSession { backend, owned: None, _following: following });
        }
        let held: Vec<(&LeaseHolder, u64)> = lease_holders.iter().zip(epochs).collect();
        match own(&config, groups, &held, bucket, &seams).await {
            Ok(store) => {
                let backend = Embedded::with_records(store.clone(), records);
                Ok(BucketSession { backend, owned: Some((store, lease_holders)), _following: following })
            }
            Err(failure) => {
                end_all(lease_holders).await?;
                Err(failure)
            }
        }
    }

    /// The collections and records.
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    /// Releases the bucket. As its owner, this process flushes everything first.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        let BucketSession { backend, owned, .. } = self;
        drop(backend);
        let Some((store, lease_holders)) = owned else { return Ok(()) };
        let closed = blocking("closing the collections", move || store.close()).await;
        // The leases are given up, whatever the outcome.
        let resigned = end_all(lease_holders).await;
        closed??;
        resigned
    }
}

/// Gives up all leases that this process holds, and stops competing for them.
async fn end_all(lease_holders: Vec<LeaseHolder>) -> Result<(), Failure> {
    let mut ended = Ok(());
    for lease_holder in lease_holders {
        ended = ended.and(lease_holder.end().await);
    }
    ended
}

/// Waits until each group has an owner that serves gateways.
async fn owned(owners: &mut [watch::Receiver<Option<OwnerLocation>>], time: Duration) -> Result<(), Failure> {
    let all = async {
        for owner in owners.iter_mut() {
            let serves = |at: &Option<OwnerLocation>| at.as_ref().is_some_and(|at| at.address != NOWHERE);
            // The sender lives as long as the task that follows the leases.
            let _ = owner.wait_for(serves).await;
        }
    };
    tokio::time::timeout(time, all).await.map_err(|_| {
        Failure::Refused(
            "some partitions have an owner, and others have none: start an owner, or stop all of them".to_owned(),
        )
    })
}

/// Returns the kind of the collections' log, and their groups. Refuses a bucket that no cluster has used, since a
/// mistyped address must not create a cluster.
async fn kind_of(config: &Config, bucket: &Arc<dyn Bucket>, seams: &Seams) -> Result<(String, Groups), Failure> {
    let (looked, seams, wanted) = (bucket.clone(), seams.clone(), config.cluster.groups);
    let look = move || {
        let survey = Survey::new(&looked, &seams);
        let groups = match groups_of(looked.as_ref())? {
            Some(groups) => Some(groups),
            None if survey.collections(None)?.is_empty() => None,
            // It was restored, so this process is its first owner.
            None => Some(decide_groups(looked.as_ref(), seams.clock.as_ref(), wanted)?),
        };
        Ok::<_, Failure>((survey.log()?, groups))
    };
    let (log, groups) = blocking("looking at the bucket", look).await??;
    let address = &config.cluster.bucket;
    let Some(groups) = groups else {
        let what = "there are no collections, and no owner ever was there: expected the bucket of a cluster";
        return Err(Failure::Usage(format!("--bucket {address}: {what}")));
    };
    if log == "nats" && config.cluster.nats.urls.is_empty() {
        let what = "the log of its collections is in NATS: expected --config with cluster.nats.urls";
        return Err(Failure::Usage(format!("--bucket {address}: {what}")));
    }
    Ok((log, groups))
}

/// Opens the collections as the owner of all groups, with the leases and the epochs in which they were taken.
async fn own(
    config: &Config,
    groups: Groups,
    held: &[(&LeaseHolder, u64)],
    bucket: Arc<dyn Bucket>,
    seams: &Seams,
) -> Result<Arc<Store>, Failure> {
    let log = open_log(&config.cluster).await?;
    // It needs a folder only for its lock.
    let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
    let open = move || Store::open_groups(Options::at("/of-this-command"), own, bucket, log, groups);
    let store = Arc::new(blocking("opening the collections", open).await??);
    match held.iter().all(|(lease_holder, epoch)| lease_holder.holds(*epoch)) {
        true => Ok(store),
        false => Err(Failure::Refused("another process has taken the collections over: try again".to_owned())),
    }
}
