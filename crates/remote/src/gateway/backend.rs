//! The backend of a gateway: all collections of one owner.

use super::append::Producer;
use super::engine::{Engine, Patience};
use super::link::Link;
use super::mirror::MirrorCache;
use super::remote::{GatewayState, Remote};
use super::scans::Scans;
use super::subscription::{self, Subscription};
use super::uses::SnapshotUses;
use super::{OwnerLocation, RemoteOptions};
use crate::wire::answer::{Hello, Reply};
use crate::wire::call::ActionCall;
use crate::wire::described::{CollectionRef, Description};
use crate::wire::fault::{Fault, WireDamaged};
use meridian_backend::cluster::ScanReads;
use meridian_backend::{
    AuditLog, Backend, Backup, BackupOptions, Collection, Damaged, Definition, Flusher, Metric, Operation,
    RecordSource, Records, Settings, StoreError,
};
use meridian_model::{Background, Positions, Schema, Subscriber};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

/// Max duration of a flush by the owner, which bounds how much it holds in memory.
pub(super) const FLUSH_MAX: Duration = Duration::from_secs(300);

/// The backend of a gateway: each call is a remote call to the process that owns the data.
///
/// Records and audit lines are the exceptions: all servers of the cluster share them.
///
/// Calls that "return at once" elsewhere do a round trip to the owner here. Called on a runtime worker, they let its
/// other tasks move to another thread. They fail at once while no owner is known or reachable.
pub struct RemoteBackend {
    pub(super) shared: Arc<GatewayState>,
    subscription: Arc<Subscription>,
    following: Mutex<Option<JoinHandle<()>>>,
    /// Task that reports to the owner which snapshots scan servers showed; `None` without scan servers.
    telling: Option<JoinHandle<()>>,
    ephemeral: OnceLock<bool>,
    /// The most recently requested collections.
    known: MirrorCache,
    records: Arc<dyn RecordSource>,
}

impl fmt::Debug for RemoteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteBackend").field("owner", &*self.shared.link.owner().borrow()).finish_non_exhaustive()
    }
}

impl Drop for RemoteBackend {
    fn drop(&mut self) {
        self.following.lock().take().into_iter().chain(self.telling.take()).for_each(|task| task.abort());
    }
}

impl RemoteBackend {
    /// Makes a backend for the owner at the address (`host:port`) in the channel, which may change at any time. Calls
    /// are refused while the channel has no address. Connects on first use. `records`: source of the records and the
    /// audit log, which need no owner.
    ///
    /// # Errors
    /// The system's error if threads cannot be started.
    pub fn connect(
        owner: watch::Receiver<Option<OwnerLocation>>,
        records: Arc<dyn RecordSource>,
        mut options: RemoteOptions,
    ) -> io::Result<Arc<RemoteBackend>> {
        let (seed, scans) = (options.random.next_u64(), Scans::take(&mut options));
        Ok(RemoteBackend::over(Engine::start()?, owner, (0, seed), (records, scans), options))
    }

    /// As [`RemoteBackend::connect`], for the owner of one group, on shared threads. `seed`: key of the object hashes,
    /// the same for all groups.
    pub(super) fn over(
        engine: Arc<Engine>,
        owner: watch::Receiver<Option<OwnerLocation>>,
        (group, seed): (u16, u64),
        (records, scans): (Arc<dyn RecordSource>, Option<Arc<Scans>>),
        options: RemoteOptions,
    ) -> Arc<RemoteBackend> {
        let producer = Producer::new(options.random.next_u64());
        let link = Arc::new(Link::new(engine, owner, group, options));
        let uses = SnapshotUses::new();
        let telling = scans.as_ref().map(|_| link.spawn(uses.clone().tell(link.clone())));
        let shared = Arc::new(GatewayState { link, mirrors: Arc::default(), producer, scans, uses, seed });
        let subscription = Arc::default();
        Arc::new(RemoteBackend {
            shared,
            subscription,
            following: Mutex::default(),
            telling,
            ephemeral: OnceLock::new(),
            known: MirrorCache::default(),
            records,
        })
    }

    /// Checks that the owner can be called now.
    ///
    /// # Errors
    /// [`StoreError::Busy`] with the reason if not.
    pub fn reach(&self) -> Result<(), StoreError> {
        let Hello { ephemeral } = self.value(ActionCall::Hello).map_err(Fault::into_store)?;
        self.ephemeral.get_or_init(|| ephemeral);
        Ok(())
    }

    /// Registers a subscriber. `parts`: the owner has only some partitions of a collection, so changes are read per
    /// partition.
    pub(super) fn follow(&self, subscriber: Arc<dyn Subscriber>, parts: bool) {
        self.subscription.add(subscriber);
        let mut following = self.following.lock();
        // One task serves all subscribers, as each would read the same changes.
        if following.is_none() {
            let (link, mirrors) = (self.shared.link.clone(), self.shared.mirrors.clone());
            let follow = subscription::follow(link, mirrors, self.subscription.clone(), parts);
            *following = Some(self.shared.link.spawn(follow));
        }
    }

    /// Adds a partition whose owner has not been asked yet. Anything already known of it takes precedence.
    pub(super) fn assume(&self, assumed: Description) -> Arc<Remote> {
        let mirror = self.shared.mirrors.assume(assumed);
        Arc::new(Remote { shared: self.shared.clone(), mirror })
    }

    /// Creates a collection and returns its description.
    pub(super) fn make(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Description, Fault> {
        let (tenant, name, schema) = (tenant.to_owned(), name.to_owned(), Box::new(schema));
        self.shared.link.once(ActionCall::Create { tenant, name, schema, settings }, &self.shared.link.patience())
    }

    fn value<T: DeserializeOwned>(&self, ask: ActionCall) -> Result<T, Fault> {
        self.shared.link.value(ask, &self.shared.link.patience())
    }

    fn values<T: DeserializeOwned>(&self, ask: ActionCall) -> Result<Vec<T>, Fault> {
        let bodies = self.shared.link.repeatable(ask, &self.shared.link.patience())?;
        bodies.iter().map(|body| Reply::read(body)).collect()
    }

    /// Has the owner remove a collection.
    fn removed(&self, tenant: &str, name: &str, ask: ActionCall) -> Result<bool, StoreError> {
        let removed = self.shared.link.once(ask, &self.shared.link.patience()).map_err(Fault::into_store);
        // After the call, so that no concurrent request caches it again; regardless of the result.
        self.known.note(tenant, name, None);
        removed
    }

    pub(super) fn remote(&self, found: Description, asked: Instant) -> Arc<Remote> {
        let mirror = self.shared.mirrors.put(found, asked);
        Arc::new(Remote { shared: self.shared.clone(), mirror })
    }
}

impl Flusher for RemoteBackend {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.values(ActionCall::All).map_err(Fault::into_store)
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        let ask = ActionCall::Flush { tenant: tenant.to_owned(), name: name.to_owned() };
        self.shared.link.value(ask, &Patience::within(FLUSH_MAX)).map_err(Fault::into_store)
    }
}

impl Backend for RemoteBackend {
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        let asked = Instant::now();
        let found = match self.known.get(tenant, name).map(|mirror| Remote { shared: self.shared.clone(), mirror }) {
            // Within a burst of requests, only a few ask the owner whether the collection exists.
            Some(known) if known.is_there() => return Ok(Some(Arc::new(known))),
            // While the owner is away, scan servers serve the known collections.
            Some(known) if self.shared.scans.is_some() && known.mirror.has_failed() => {
                return Ok(Some(Arc::new(known)));
            }
            // While nothing newer can be learnt, the last description stays valid: scan servers serve it.
            Some(known) if self.shared.scans.is_some() => match known.describe_newest() {
                Err(fault) if fault.is_of_absence() => return Ok(Some(Arc::new(known))),
                Ok(None) if known.is_retried() => return Ok(Some(Arc::new(known))),
                found => found,
            },
            _ => {
                let ask = ActionCall::Describe { tenant: tenant.to_owned(), name: name.to_owned(), partition: None };
                self.value::<Option<Description>>(ask)
            }
        };
        let found = found.map_err(Fault::into_store)?.map(|found| self.remote(found, asked));
        self.known.note(tenant, name, found.as_ref().map(|found| found.mirror.clone()));
        Ok(found.map(|found| found as Arc<dyn Collection>))
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        let asked = Instant::now();
        let found =
            self.values::<Description>(ActionCall::List { tenant: tenant.to_owned() }).map_err(Fault::into_store)?;
        Ok(found.into_iter().map(|found| self.remote(found, asked) as Arc<dyn Collection>).collect())
    }

    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError> {
        let found = self.values::<WireDamaged>(ActionCall::Damaged { tenant: tenant.to_owned() });
        Ok(found.map_err(Fault::into_store)?.into_iter().map(Damaged::from).collect())
    }

    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError> {
        let ask = ActionCall::WhyDamaged { tenant: tenant.to_owned(), name: name.to_owned() };
        Ok(self.value::<Option<WireDamaged>>(ask).map_err(Fault::into_store)?.map(Damaged::from))
    }

    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError> {
        let asked = Instant::now();
        let made = self.make(tenant, name, schema, settings).map_err(Fault::into_store)?;
        let made = self.remote(made, asked);
        self.known.note(tenant, name, Some(made.mirror.clone()));
        Ok(made)
    }

    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        let ask = ActionCall::Remove { tenant: tenant.to_owned(), name: name.to_owned() };
        self.removed(tenant, name, ask)
    }

    fn remove_unwritten(&self, tenant: &str, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError> {
        let place = CollectionRef::of(tenant, name, created);
        self.removed(tenant, name, ActionCall::RemoveUnwritten { place, seen: Box::new(seen.clone()) })
    }

    fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        self.follow(subscriber, false);
    }

    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        self.records.records(kind)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.records.audit()
    }

    fn backup(&self, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        // Records are stored beside the collections, where this process reads them itself. The owner only flushes.
        self.records.backup(self, what, out)
    }
}

impl Operation for RemoteBackend {
    fn guarantee(&self, weights: &[(Arc<str>, u32)]) {
        let weights: Vec<(String, u32)> =
            weights.iter().map(|(tenant, weight)| (tenant.to_string(), *weight)).collect();
        // Kept for later owners; the current one is notified without waiting.
        self.subscription.set_weights(weights.clone());
        let link = self.shared.link.clone();
        self.shared.link.spawn(async move {
            if let Err(fault) = link.act(ActionCall::Guarantee { weights }).await {
                tracing::debug!(?fault, "the owner was not told the tenants' weights");
            }
        });
    }

    fn charge_to(&self, _: Arc<dyn Background>) {
        // Maintenance runs at the owner, which charges its own tenants.
    }

    fn figures(&self) -> Vec<Metric> {
        self.shared.scans.as_ref().map(|scans| scans.figures()).unwrap_or_default()
    }

    fn scan_reads(&self) -> Option<ScanReads> {
        self.shared.scans.as_ref().map(|scans| scans.reads())
    }

    fn is_ephemeral(&self) -> bool {
        match self.ephemeral.get() {
            Some(ephemeral) => *ephemeral,
            None => self.reach().is_ok() && self.ephemeral.get().copied().unwrap_or(false),
        }
    }

    fn data_folder(&self) -> Option<&Path> {
        None
    }

    fn met_full_disk(&self) -> bool {
        self.value(ActionCall::MetFullDisk).unwrap_or(false)
    }

    fn full_disk(&self) -> Option<PathBuf> {
        self.value::<Option<String>>(ActionCall::FullDisk).ok().flatten().map(PathBuf::from)
    }
}
