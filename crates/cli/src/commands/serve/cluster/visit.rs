//! A command that works on a bucket: through the owner, as a gateway does, or as the owner where there is none.

use super::gateway::follow;
use super::keeper::Keeper;
use super::log::open_log;
use super::{OWNER, blocking, name_of, open_bucket};
use crate::config::Config;
use crate::failure::Failure;
use crate::roles;
use meridian_backend::{Backend, Embedded};
use meridian_remote::{RemoteBackend, RemoteOptions};
use meridian_store::bucket::Survey;
use meridian_store::seams::{MemoryDisk, Seams};
use meridian_store::{Bucket, ControlPlane, Options, Store, Terms};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Where gateways would reach this process, which answers none.
const NOWHERE: &str = "127.0.0.1:9";

/// The collections and records of a bucket, for as long as a command works on them.
pub(crate) struct Visit {
    backend: Arc<dyn Backend>,
    /// The collections, and the lease, where this process is the owner.
    owned: Option<(Arc<Store>, Keeper)>,
    /// What follows the lease; it ends with this.
    _following: JoinSet<()>,
}

impl Visit {
    /// Finds the owner of the bucket that the settings name, or becomes it. A new owner reads the log first.
    pub(crate) async fn begin(mut config: Config) -> Result<Visit, Failure> {
        let seams = Seams::real();
        let bucket = open_bucket(&config.cluster, &seams).await?;
        config.cluster.log = log_of(&config, &bucket, &seams).await?;
        // Servers decide how much of the audit log is kept.
        let records = ControlPlane::new(bucket.clone(), &seams, u64::MAX);
        let (told, mut owner) = watch::channel(None);
        let mut following = JoinSet::new();
        following.spawn(follow(bucket.clone(), told));
        let node = name_of(&config.cluster, "owner");
        let mut keeper = Keeper::new(OWNER, node, config.cluster.lease, &bucket, NOWHERE, &seams);
        keeper.start();
        // An owner renews its lease before this process could take it.
        let there = tokio::select! {
            epoch = keeper.wait(|_| ()) => Err(epoch),
            found = owner.wait_for(Option::is_some) => Ok(found.is_ok()),
        };
        let Err(epoch) = there else {
            drop(keeper);
            let certificates = roles::open(&config.cluster.tls, None)?;
            let security = roles::security(&config.cluster.tls, certificates.as_ref());
            let options = RemoteOptions { security, ..RemoteOptions::new(seams.random.clone()) };
            let backend = RemoteBackend::connect(owner, records, options);
            let backend = backend.map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
            return Ok(Visit { backend, owned: None, _following: following });
        };
        match own(&config, &keeper, epoch, bucket, &seams).await {
            Ok(store) => {
                let backend = Embedded::with_records(store.clone(), records);
                Ok(Visit { backend, owned: Some((store, keeper)), _following: following })
            }
            Err(failure) => {
                keeper.resign().await?;
                Err(failure)
            }
        }
    }

    /// The collections and records.
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    /// Lets go of the bucket. As its owner, this process flushes everything first.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        let Visit { backend, owned, .. } = self;
        drop(backend);
        let Some((store, keeper)) = owned else { return Ok(()) };
        let closed = blocking("closing the collections", move || store.close()).await;
        // The lease goes back whatever came of it.
        let resigned = keeper.resign().await;
        closed??;
        resigned
    }
}

/// Where the collections have their log. Refuses a bucket that no cluster has used: a mistake in the address must not make one of it.
async fn log_of(config: &Config, bucket: &Arc<dyn Bucket>, seams: &Seams) -> Result<String, Failure> {
    let (looked, seams) = (bucket.clone(), seams.clone());
    let look = move || {
        let survey = Survey::new(&looked, &seams);
        let used = Terms::new(&looked, OWNER).newest()?.is_some() || !survey.collections(None)?.is_empty();
        Ok::<_, Failure>((survey.log()?, used))
    };
    let (log, used) = blocking("looking at the bucket", look).await??;
    let address = &config.cluster.bucket;
    if !used {
        let what = "there are no collections, and no owner ever was there: expected the bucket of a cluster";
        return Err(Failure::Usage(format!("--bucket {address}: {what}")));
    }
    if log == "nats" && config.cluster.nats.urls.is_empty() {
        let what = "the log of its collections is in NATS: expected --config with cluster.nats.urls";
        return Err(Failure::Usage(format!("--bucket {address}: {what}")));
    }
    Ok(log)
}

/// Opens the collections as their owner.
async fn own(
    config: &Config,
    keeper: &Keeper,
    epoch: u64,
    bucket: Arc<dyn Bucket>,
    seams: &Seams,
) -> Result<Arc<Store>, Failure> {
    let log = open_log(&config.cluster).await?;
    // It needs a folder for its lock alone.
    let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
    let open = move || Store::open_shared_over(Options::at("/of-this-command"), own, bucket, log);
    let store = Arc::new(blocking("opening the collections", open).await??);
    match keeper.holds(epoch) {
        true => Ok(store),
        false => Err(Failure::Refused("another process has taken the collections over: try again".to_owned())),
    }
}
