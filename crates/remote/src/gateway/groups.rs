//! Collections whose partitions have several owners: one for each group of partitions. A collection is assembled from
//! its partitions.
//!
//! The first partition decides whether a collection exists: its owner is asked at each request. That owner creates and
//! drops the collection as a whole. The owners of the other partitions are notified; one that missed it finds out when
//! it is asked for a partition it does not know.
//!
//! While the owner of the first partition is away, its known collections stay usable, so writes to the other partitions
//! continue.

mod operation;

use super::backend::{FLUSH_MAX, RemoteBackend};
use super::calls::{SOON, one};
use super::engine::{Engine, Patience};
use super::link::Link;
use super::remote::Remote;
use super::scans::Scans;
use super::{OwnerLocation, RemoteOptions};
use crate::wire::answer::Reply;
use crate::wire::call::{ActionCall, Call};
use crate::wire::described::{CollectionRef, Description};
use crate::wire::fault::{Fault, WireDamaged};
use bytes::Bytes;
use meridian_backend::{
    AuditLog, Backend, Backup, BackupOptions, Collection, CollectionStats, Damaged, Definition, Flusher, Part,
    Partitioned, RecordSource, Records, Settings, StoreError,
};
use meridian_model::policy::groups::{Group, Groups};
use meridian_model::{Positions, Schema, Subscriber};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Max collections kept.
const KNOWN_MAX: usize = 4096;

/// A gateway's backend over the owners of all groups.
#[derive(Debug)]
pub struct GroupsBackend {
    groups: Groups,
    owners: Vec<Arc<RemoteBackend>>,
    records: Arc<dyn RecordSource>,
    known: Mutex<HashMap<(String, String), AssembledCollection>>,
}

/// A collection as last assembled.
#[derive(Debug, Clone)]
struct AssembledCollection {
    first: Arc<Remote>,
    whole: Arc<dyn Collection>,
}

impl GroupsBackend {
    /// Makes a backend over the owners of the groups, in group order. See [`RemoteBackend::connect`], which does the
    /// same for a single group.
    ///
    /// # Errors
    /// The system's error if threads cannot be started. An error of kind [`io::ErrorKind::InvalidInput`] for no groups,
    /// or too many.
    pub fn connect(
        owners: Vec<watch::Receiver<Option<OwnerLocation>>>,
        records: Arc<dyn RecordSource>,
        mut options: RemoteOptions,
    ) -> io::Result<Arc<GroupsBackend>> {
        let groups = u16::try_from(owners.len()).ok().and_then(Groups::new).ok_or(io::ErrorKind::InvalidInput)?;
        let (engine, seed, scans) = (Engine::start()?, options.random.next_u64(), Scans::take(&mut options));
        let one = |(group, owner): (Group, watch::Receiver<Option<OwnerLocation>>)| {
            let shared = (records.clone(), scans.clone());
            RemoteBackend::over(engine.clone(), owner, (group.number(), seed), shared, options.clone())
        };
        let owners = groups.all().zip(owners).map(one).collect();
        Ok(Arc::new(GroupsBackend { groups, owners, records, known: Mutex::default() }))
    }

    /// Checks that the owner of each group can be called now.
    ///
    /// # Errors
    /// [`StoreError::Busy`] with the reason if not.
    pub fn reach(&self) -> Result<(), StoreError> {
        self.owners.iter().try_for_each(|owner| owner.reach())
    }

    /// The only owner if there is a single group.
    fn only(&self) -> Option<&Arc<RemoteBackend>> {
        self.owners.first().filter(|_| self.groups == Groups::ONE)
    }

    /// Returns the owner of a partition.
    fn owner(&self, tenant: &str, name: &str, partition: u32) -> &Arc<RemoteBackend> {
        // There is an owner for each group.
        &self.owners[usize::from(self.groups.of(tenant, name, partition).number())]
    }

    fn link(&self) -> &Arc<Link> {
        &self.owners[0].shared.link
    }

    /// Asks these owners concurrently, each with this timeout. Returns their responses in order.
    fn ask(
        &self,
        owners: &[&Arc<RemoteBackend>],
        time: Duration,
        ask: impl Fn() -> ActionCall,
    ) -> Result<Vec<Result<Vec<Bytes>, Fault>>, Fault> {
        let mut asked = Vec::new();
        for owner in owners {
            let (link, body) = (owner.shared.link.clone(), Call::of(ask(), time).to_json()?);
            let asking = async move { tokio::time::timeout(time, link.repeat(&body)).await };
            asked.push(self.link().spawn(async move { asking.await.unwrap_or(Err(Fault::Deadline)) }));
        }
        self.link().wait(&Patience::within(time), async move {
            let mut answers = Vec::new();
            for answer in asked {
                answers.push(answer.await.unwrap_or_else(|e| Err(Fault::internal(format!("a call failed: {e}")))));
            }
            Ok(answers)
        })
    }

    /// Concatenates the lists of all owners.
    fn gather<T: DeserializeOwned>(&self, ask: impl Fn() -> ActionCall) -> Result<Vec<T>, Fault> {
        let owners: Vec<&Arc<RemoteBackend>> = self.owners.iter().collect();
        let mut found = Vec::new();
        for answer in self.ask(&owners, self.link().options.timeout, ask)? {
            for body in answer? {
                found.push(Reply::read(&body)?);
            }
        }
        Ok(found)
    }

    /// Lets the owners of the other partitions adopt the state of the first. An owner that is away adopts it when it is
    /// asked for a partition.
    fn tell(&self, tenant: &str, name: &str) {
        let first = self.groups.of(tenant, name, 0);
        let others = self.groups.all().zip(&self.owners).filter(|(group, _)| *group != first);
        let others: Vec<&Arc<RemoteBackend>> = others.map(|(_, owner)| owner).collect();
        let told = self.ask(&others, SOON, || ActionCall::Adopt { tenant: tenant.to_owned(), name: name.to_owned() });
        for fault in told.unwrap_or_default().into_iter().filter_map(Result::err) {
            tracing::debug!(?fault, %tenant, collection = name, "an owner was not told of a collection");
        }
    }

    /// Returns the damage an owner has found in a partition. An owner that does not respond soon is skipped: it has not
    /// opened the partitions it took over.
    fn found_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, Fault> {
        let owners: Vec<&Arc<RemoteBackend>> = self.owners.iter().collect();
        let ask = || ActionCall::WhyDamaged { tenant: tenant.to_owned(), name: name.to_owned() };
        for answer in self.ask(&owners, SOON, ask)? {
            match answer.and_then(|bodies| one::<Option<WireDamaged>>(&bodies)) {
                Ok(None) => {}
                Ok(Some(damaged)) => return Ok(Some(damaged.into())),
                Err(fault) if fault.is_of_absence() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }

    /// Assembles a collection from the description of its first partition.
    fn whole(&self, found: Description, asked: Instant) -> Arc<dyn Collection> {
        let place = CollectionRef { partition: Some(0), ..found.place };
        let at = (place.tenant.clone(), place.name.clone());
        let found = Description { place, ..found };
        let owner = self.owner(&at.0, &at.1, 0);
        let first = owner.remote(found.clone(), asked);
        let known = self.known.lock().get(&at).filter(|known| Arc::ptr_eq(&known.first.mirror, &first.mirror)).cloned();
        let whole = match known {
            Some(known) => known.whole,
            None => self.join(&found, first.clone()),
        };
        let mut known = self.known.lock();
        // Cleared entries come back when they are next requested.
        if known.len() >= KNOWN_MAX && !known.contains_key(&at) {
            known.clear();
        }
        known.insert(at, AssembledCollection { first, whole: whole.clone() });
        whole
    }

    fn join(&self, found: &Description, first: Arc<Remote>) -> Arc<dyn Collection> {
        let partitions = found.settings.partitions;
        if partitions <= 1 {
            return first;
        }
        let (tenant, name) = (&found.place.tenant, &found.place.name);
        let other = |number: u16| {
            let place = CollectionRef { partition: Some(number), ..found.place.clone() };
            // Used until its owner is asked, which happens on first use. Its schema starts out as that of the first
            // partition.
            let assumed = Description {
                place,
                stats: CollectionStats::default(),
                position: Positions::one(0),
                oldest: Positions::one(0),
                room: true,
                late: false,
                ..found.clone()
            };
            self.owner(tenant, name, number.into()).assume(assumed)
        };
        let others = (1..partitions).map(other);
        let parts = std::iter::once(first).chain(others).map(|part| part as Arc<dyn Part>).collect();
        Arc::new(Partitioned::new(parts))
    }

    /// Returns the last state of a collection whose first partition cannot be asked.
    fn known(&self, tenant: &str, name: &str) -> Option<AssembledCollection> {
        self.known.lock().get(&(tenant.to_owned(), name.to_owned())).cloned()
    }

    fn forget(&self, tenant: &str, name: &str) {
        self.known.lock().remove(&(tenant.to_owned(), name.to_owned()));
    }
}

impl Flusher for GroupsBackend {
    fn all(&self) -> Result<Vec<(String, String)>, StoreError> {
        // Each owner lists the collections whose first partition it has. It refuses while it cannot open one of its
        // partitions.
        let mut all: Vec<(String, String)> = self.gather(|| ActionCall::All).map_err(Fault::into_store)?;
        all.sort();
        Ok(all)
    }

    fn flush(&self, tenant: &str, name: &str) -> Result<Option<Positions>, StoreError> {
        if let Some(only) = self.only() {
            return only.flush(tenant, name);
        }
        let Some(found) = self.collection(tenant, name)? else { return Ok(None) };
        let partitions = u32::from(found.settings().partitions);
        if partitions > 1 {
            self.tell(tenant, name);
        }
        let of = |partition: u32| usize::from(self.groups.of(tenant, name, partition).number());
        let asked: BTreeSet<usize> = (0..partitions).map(of).collect();
        let owners: Vec<&Arc<RemoteBackend>> = asked.iter().map(|group| &self.owners[*group]).collect();
        let ask = || ActionCall::Flush { tenant: tenant.to_owned(), name: name.to_owned() };
        let answers = self.ask(&owners, FLUSH_MAX, ask).map_err(Fault::into_store)?;
        let mut flushed = BTreeMap::new();
        for (group, answer) in asked.into_iter().zip(answers) {
            let positions = answer.and_then(|bodies| one::<Option<Positions>>(&bodies)).map_err(Fault::into_store)?;
            match positions {
                Some(positions) => drop(flushed.insert(group, positions.as_slice().to_vec().into_iter())),
                None if group == of(0) => return Ok(None),
                None => return Err(StoreError::Busy(format!("an owner does not know {name} yet: try again"))),
            }
        }
        // Each owner lists its partitions in order.
        let next = |partition| flushed.get_mut(&of(partition)).and_then(Iterator::next);
        let positions: Option<Positions> = (0..partitions).map(next).collect();
        positions.map(Some).ok_or_else(|| {
            StoreError::Busy(format!("the owners of {name} do not have all of its partitions yet: try again"))
        })
    }
}

impl Backend for GroupsBackend {
    fn collection(&self, tenant: &str, name: &str) -> Result<Option<Arc<dyn Collection>>, StoreError> {
        if let Some(only) = self.only() {
            return only.collection(tenant, name);
        }
        let (asked, known) = (Instant::now(), self.known(tenant, name));
        let found = match &known {
            // Within a burst of requests, only a few ask the owner whether the collection exists.
            Some(known) if known.first.is_there() || known.first.mirror.has_failed() => {
                return Ok(Some(known.whole.clone()));
            }
            Some(known) => known.first.describe_newest(),
            None => {
                let (tenant, name, partition) = (tenant.to_owned(), name.to_owned(), Some(0));
                let link = &self.owner(&tenant, &name, 0).shared.link;
                link.value::<Option<Description>>(ActionCall::Describe { tenant, name, partition }, &link.patience())
            }
        };
        match (found, known) {
            (Ok(Some(found)), _) => Ok(Some(self.whole(found, asked))),
            (Ok(None), Some(known)) if known.first.is_retried() => Ok(Some(known.whole)),
            (Ok(None), _) => {
                self.forget(tenant, name);
                Ok(None)
            }
            (Err(fault), Some(known)) if fault.is_of_absence() => Ok(Some(known.whole)),
            (Err(fault), _) => Err(fault.into_store()),
        }
    }

    fn list(&self, tenant: &str) -> Result<Vec<Arc<dyn Collection>>, StoreError> {
        if let Some(only) = self.only() {
            return only.list(tenant);
        }
        let asked = Instant::now();
        let mut found: Vec<Description> =
            self.gather(|| ActionCall::List { tenant: tenant.to_owned() }).map_err(Fault::into_store)?;
        found.sort_by(|a, b| a.place.name.cmp(&b.place.name));
        Ok(found.into_iter().map(|found| self.whole(found, asked)).collect())
    }

    fn damaged(&self, tenant: &str) -> Result<Vec<Damaged>, StoreError> {
        let found = self
            .gather::<WireDamaged>(|| ActionCall::Damaged { tenant: tenant.to_owned() })
            .map_err(Fault::into_store)?;
        // If several owners cannot open a collection, one of their reports is enough.
        let by_name: BTreeMap<String, Damaged> =
            found.into_iter().map(Damaged::from).map(|damaged| (damaged.name.clone(), damaged)).collect();
        Ok(by_name.into_values().collect())
    }

    fn why_damaged(&self, tenant: &str, name: &str) -> Result<Option<Damaged>, StoreError> {
        // Asked for a collection that was not found, so its first partition is the damaged one. The owners of the other
        // partitions need not be reachable.
        self.owner(tenant, name, 0).why_damaged(tenant, name)
    }

    fn create(
        &self,
        tenant: &str,
        name: &str,
        schema: Schema,
        settings: Settings,
    ) -> Result<Arc<dyn Collection>, StoreError> {
        if let Some(only) = self.only() {
            return only.create(tenant, name, schema, settings);
        }
        let asked = Instant::now();
        let made = self.owner(tenant, name, 0).make(tenant, name, schema, settings).map_err(Fault::into_store)?;
        if made.settings.partitions > 1 {
            self.tell(tenant, name);
        }
        Ok(self.whole(made, asked))
    }

    fn remove(&self, tenant: &str, name: &str) -> Result<bool, StoreError> {
        if let Some(only) = self.only() {
            return only.remove(tenant, name);
        }
        // A damaged partition may still be restored; the owner of the first partition does not know of it.
        if let Some(damaged) = self.found_damaged(tenant, name).map_err(Fault::into_store)? {
            return Err(StoreError::Damaged(Box::new(damaged)));
        }
        let removed = self.owner(tenant, name, 0).remove(tenant, name)?;
        self.forget(tenant, name);
        self.tell(tenant, name);
        Ok(removed)
    }

    fn remove_unwritten(&self, tenant: &str, name: &str, created: i64, seen: &Definition) -> Result<bool, StoreError> {
        // A collection of one partition concerns no other owner.
        let removed = self.owner(tenant, name, 0).remove_unwritten(tenant, name, created, seen);
        self.forget(tenant, name);
        removed
    }

    fn subscribe(&self, subscriber: Arc<dyn Subscriber>) {
        let parts = self.groups != Groups::ONE;
        self.owners.iter().for_each(|owner| owner.follow(subscriber.clone(), parts));
    }

    fn records(&self, kind: &'static str) -> Arc<dyn Records> {
        self.owners[0].records(kind)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        self.owners[0].audit()
    }

    fn backup(&self, what: &BackupOptions<'_>, out: &mut dyn Write) -> Result<Backup, StoreError> {
        self.records.backup(self, what, out)
    }
}
