//! Surveys a cluster from its bucket. Nothing is written.

use super::{
    Cluster, Collection, Condition, GroupOwner, Lease, Node, Owner, Pinned, Reader, Scan, Server, ServerStatus, Tail,
    VERSION,
};
use meridian_model::time::format_instant;
use meridian_store::bucket::{
    self, Bucket, FlushedTotals, PIN_HELD, PinUse, ReaderPin, RollEntry, SERVER_HELD, ScanServerStatus, StoredStatus,
    Survey, SurveyedCollection,
};
use meridian_store::seams::{Clock, Seams};
use meridian_store::{SharedLog, StoreError, Term};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Connections needed by a survey besides the bucket.
pub trait Connector: Debug + Send + Sync {
    /// Connects to the log in NATS. The error explains a failure. Called again until it succeeds. Blocks.
    fn streams(&self) -> Result<SharedLog, String>;

    /// Checks that an owner responds at an address. The error explains a failure. Blocks for two seconds at most.
    fn reaches(&self, address: &str) -> Result<(), String>;
}

/// Surveys one cluster, any number of times.
#[derive(Debug)]
pub struct ClusterSurvey {
    address: String,
    bucket: Survey,
    clock: Arc<dyn Clock>,
    connector: Arc<dyn Connector>,
    /// The log in NATS, once connected.
    streams: Mutex<Option<SharedLog>>,
}

impl ClusterSurvey {
    /// Makes a survey of this bucket, named by `address` in messages.
    pub fn new(address: &str, bucket: &Arc<dyn Bucket>, seams: &Seams, connector: Arc<dyn Connector>) -> ClusterSurvey {
        let (found, clock) = (Survey::new(bucket, seams), seams.clock.clone());
        ClusterSurvey { address: address.to_owned(), bucket: found, clock, connector, streams: Mutex::default() }
    }

    /// Surveys the present state. Blocks: a few calls to the bucket for each collection, and a connection to each
    /// owner.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the bucket does not respond. Damage is reported in the members concerned.
    pub fn run(&self) -> Result<Cluster, StoreError> {
        let kind = self.bucket.log()?;
        let now = self.clock.now();
        let (log, log_error) = match kind.as_str() {
            "nats" => self.streams().map_or_else(|why| (None, Some(why)), |log| (Some(log), None)),
            _ => (Some(SharedLog::Bucket), None),
        };
        // Before the collections, so that the owners' reports hold for the manifests found afterwards.
        let leases = self.bucket.owners()?;
        let collections = self.bucket.collections(log.as_ref())?;
        let pins = self.bucket.readers()?;
        let servers = self.bucket.servers()?;
        let nodes = self.bucket.nodes()?;
        let counted: Vec<&PinUse> = pins
            .iter()
            .filter(|pin| holds(now, pin.written, PIN_HELD) != Some(false))
            .filter_map(uses)
            .flatten()
            .collect();
        let unowned = leases.iter().all(|lease| lease.term.is_none());
        let empty = unowned && collections.is_empty() && self.bucket.is_empty()?;
        let owner_of = |lease: &bucket::GroupOwner| {
            lease.term.as_ref().map(|(term, written)| self.owner(term, age(now, *written)))
        };
        let groups = leases.iter().map(|lease| GroupOwner { group: lease.group.number(), owner: owner_of(lease) });
        let mut owners: Vec<GroupOwner> = groups.collect();
        let owner = owners.first().and_then(|first| first.owner.clone());
        if owners.len() == 1 {
            owners.clear();
        }
        Ok(Cluster {
            version: VERSION,
            time: format_instant(now),
            bucket: self.address.clone(),
            empty,
            log: kind,
            log_error,
            owner,
            owners,
            collections: collections.into_iter().map(|one| collection(one, &leases, &counted, now)).collect(),
            readers: pins.iter().map(|pin| reader(pin, now)).collect(),
            servers: servers.into_iter().map(|said| server(said, now)).collect(),
            nodes: nodes.into_iter().map(|found| node(found, now)).collect(),
        })
    }

    fn streams(&self) -> Result<SharedLog, String> {
        // Locked while it connects, so that surveys at the same time share one connection.
        let mut streams = self.streams.lock();
        match &*streams {
            Some(log) => Ok(log.clone()),
            None => Ok(streams.insert(self.connector.streams()?).clone()),
        }
    }

    fn owner(&self, term: &Term, age: Option<i64>) -> Owner {
        let state = lease(term, age);
        // Only an owner with a lease is expected to respond, and each attempt may take two seconds.
        let reached = (state == Lease::Held).then(|| self.connector.reaches(&term.address));
        Owner {
            state,
            node: term.node.clone(),
            address: term.address.clone(),
            epoch: term.epoch,
            lease_ms: term.ttl_ms,
            age_ms: age,
            expires_in_ms: age.filter(|_| state != Lease::Resigned).map(|age| milliseconds(term.ttl()) - age),
            reachable: reached.as_ref().map(Result::is_ok),
            reason: reached.and_then(Result::err),
        }
    }
}

fn lease(term: &Term, age: Option<i64>) -> Lease {
    let ttl = milliseconds(term.ttl());
    match age {
        _ if term.resigned => Lease::Resigned,
        // As long as a candidate waits before it takes over.
        Some(age) if age > ttl + ttl / 8 => Lease::Lapsed,
        _ => Lease::Held,
    }
}

/// Returns the time up to which all partitions of a collection are complete, according to their owners; `None` if one
/// does not report it.
fn complete(found: &SurveyedCollection, leases: &[bucket::GroupOwner]) -> Option<i64> {
    let groups = leases.first()?.group.groups();
    let mut all = i64::MAX;
    for partition in 0..u32::try_from(found.folders.len()).ok()? {
        let group = groups.of(&found.tenant, &found.name, partition);
        let (term, _) = leases.get(usize::from(group.number()))?.term.as_ref()?;
        all = term.complete.as_ref()?.time_of(&found.tenant, &found.name).min(all);
    }
    // The min time stands for an unknown one.
    Some(all).filter(|time| *time != i64::MIN)
}

fn collection(found: SurveyedCollection, leases: &[bucket::GroupOwner], pins: &[&PinUse], now: i64) -> Collection {
    let complete = complete(&found, leases);
    let used: Vec<&&PinUse> = pins.iter().filter(|used| found.folders.contains(&used.folder)).collect();
    // A reader uses all partitions of a collection.
    let readers = used.iter().filter(|used| found.folders.first() == Some(&used.folder)).count();
    let oldest = used.iter().map(|used| used.manifest).min();
    let min = used.iter().map(|used| used.seq).min();
    let pinned = oldest.zip(min).map(|(manifest, seq)| Pinned {
        readers: readers as u64,
        manifest: version(manifest),
        snapshot: seq.to_string(),
    });
    let (flushed, mut error) = match found.flushed {
        Ok(flushed) => (Some(flushed), None),
        Err(e) => (None, Some(e.to_string())),
    };
    let of = |get: fn(&FlushedTotals) -> u64| flushed.as_ref().map(get);
    let tail = match flushed.as_ref().and_then(|flushed| flushed.tail.as_ref()) {
        None => None,
        Some(Ok(tail)) => Some(Tail { entries: tail.entries, bytes: tail.bytes }),
        Some(Err(e)) => {
            error = Some(format!("its log: {e}"));
            None
        }
    };
    Collection {
        partitions: flushed.as_ref().map(|_| found.folders.len() as u64),
        manifest: of(|flushed| flushed.version).map(version),
        epoch: of(|flushed| flushed.epoch),
        position: flushed.as_ref().map(|flushed| flushed.position.clone()),
        segments: of(|flushed| flushed.segments),
        rows: of(|flushed| flushed.rows),
        bytes: of(|flushed| flushed.bytes),
        tail,
        complete: complete.map(format_instant),
        complete_age_ms: age(now, complete),
        pinned,
        tenant: found.tenant,
        collection: found.name,
        error,
    }
}

fn reader(pin: &ReaderPin, now: i64) -> Reader {
    // A pin names partitions.
    let collections: BTreeSet<&str> = uses(pin).into_iter().flatten().map(PinUse::collection).collect();
    Reader {
        reader: pin.reader.clone(),
        age_ms: age(now, pin.written),
        counts: holds(now, pin.written, PIN_HELD),
        collections: collections.len() as u64,
        scan: pin.serves.clone().map(|ScanServerStatus { address, group, working, started, waiting }| Scan {
            address,
            group,
            working,
            started,
            waiting,
        }),
        error: pin.uses.as_ref().err().map(ToString::to_string),
    }
}

fn server(found: StoredStatus, now: i64) -> Server {
    let (said, error) = match found.content {
        Ok(bytes) => (ServerStatus::read(&bytes), None),
        Err(error) => (ServerStatus::default(), Some(error.to_string())),
    };
    Server {
        server: found.server,
        role: said.role,
        node: said.node,
        address: said.address,
        version: said.version,
        age_ms: age(now, found.written),
        counts: holds(now, found.written, SERVER_HELD),
        load: said.load,
        error,
    }
}

fn node(found: RollEntry, now: i64) -> Node {
    let bucket::Node { node, role, program, level, address, condition, leases, .. } = found.node;
    let condition = match condition {
        bucket::Condition::Serves => Condition::Serves,
        bucket::Condition::StandsBy => Condition::StandsBy,
        bucket::Condition::Drained => Condition::Drained,
        bucket::Condition::Other => Condition::Other,
    };
    Node { node, role, address, program, level, condition, leases, age_ms: age(now, found.written) }
}

/// Returns the uses named by a pin; `None` if it is unreadable.
fn uses(pin: &ReaderPin) -> Option<&Vec<PinUse>> {
    pin.uses.as_ref().ok()
}

/// Returns true if a report written at that time still counts; `None` if the time is unknown.
fn holds(now: i64, written: Option<i64>, held: Duration) -> Option<bool> {
    age(now, written).map(|age| age <= milliseconds(held))
}

/// Returns the milliseconds since a time, at least 0, as clocks of two machines differ.
fn age(now: i64, since: Option<i64>) -> Option<i64> {
    since.map(|since| (now.saturating_sub(since) / 1_000).max(0))
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}

fn version(number: u64) -> String {
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::{MemoryBucket, Peers};

    #[derive(Debug)]
    struct Nothing;

    impl Connector for Nothing {
        fn streams(&self) -> Result<SharedLog, String> {
            Err("no settings name its servers".to_owned())
        }

        fn reaches(&self, _: &str) -> Result<(), String> {
            Err("it is silent".to_owned())
        }
    }

    fn term(resigned: bool) -> Term {
        Term {
            node: "owner-1".to_owned(),
            process: 1,
            address: "127.0.0.1:9".to_owned(),
            epoch: 3,
            ttl_ms: 3_000,
            counter: 7,
            resigned,
            heir: None,
            level: 1,
            complete: None,
        }
    }

    fn survey(bucket: &MemoryBucket) -> ClusterSurvey {
        let bucket: Arc<dyn Bucket> = Arc::new(bucket.clone());
        ClusterSurvey::new("memory", &bucket, &Seams::real(), Arc::new(Nothing))
    }

    #[test]
    fn a_lease_is_held_for_as_long_as_a_candidate_waits() {
        let survey = survey(&MemoryBucket::new());
        let state = |resigned, age| lease(&term(resigned), age);
        assert_eq!(state(false, Some(3_375)), Lease::Held);
        assert_eq!(state(false, Some(3_376)), Lease::Lapsed);
        assert_eq!(state(true, Some(1)), Lease::Resigned);
        let lapsed = survey.owner(&term(false), Some(10_000));
        assert_eq!((lapsed.expires_in_ms, lapsed.reachable), (Some(-7_000), None));
        let held = survey.owner(&term(false), Some(1_000));
        assert_eq!((held.expires_in_ms, held.reachable), (Some(2_000), Some(false)));
        assert_eq!(held.reason.as_deref(), Some("it is silent"));
    }

    #[test]
    fn ages_are_not_less_than_nothing() {
        assert_eq!((age(5_000, Some(2_000)), age(5_000, Some(9_000)), age(5_000, None)), (Some(3), Some(0), None));
        assert_eq!(version(0x100_0000_0001), "0000010000000001");
    }

    #[test]
    fn a_reader_of_four_partitions_reads_one_collection() {
        let one = |collection: &str, partition: u32| PinUse {
            folder: format!("tenants/t/{collection}/p{partition}/00000000"),
            manifest: 1,
            seq: 1,
        };
        let uses = (0..4).map(|partition| one("ships", partition)).chain([one("quakes", 0)]).collect();
        let pin = ReaderPin { reader: "a".to_owned(), written: None, uses: Ok(uses), serves: None };
        assert_eq!(reader(&pin, 0).collections, 2);
    }

    #[test]
    fn an_empty_bucket_is_told_from_one_whose_first_server_waits_for_an_owner() {
        let bucket = MemoryBucket::new();
        let survey = survey(&bucket);
        assert!(survey.run().unwrap().empty);
        let peers = Peers::new(Arc::new(bucket.clone()), &Seams::real());
        let said = ServerStatus {
            role: Some("gateway".to_owned()),
            node: Some("gateway-1".to_owned()),
            ..ServerStatus::default()
        };
        peers.say(&said.write()).unwrap();
        let found = survey.run().unwrap();
        assert!(!found.empty && found.owner.is_none());
        assert_eq!(found.servers.len(), 1);
        assert_eq!((&found.servers[0].role, &found.servers[0].error), (&said.role, &None));
        let (name, _) = bucket.objects().remove(0);
        bucket.harm(&name, Some(b"damaged".to_vec()));
        let found = survey.run().unwrap();
        assert_eq!(found.unreadable(), 1);
        bucket.cut(true);
        assert!(survey.run().is_err());
    }
}
