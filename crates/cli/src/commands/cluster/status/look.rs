//! Looks at a bucket, and asks processes whether they are there.

use super::super::nodes::{Kind, Node};
use super::super::probe::{self, Readiness};
use super::document::{Collection, Document, Lease, OnRoll, Owner, Pinned, Process, Reader, Tail};
use super::nodes_of;
use crate::config::{Config, S3};
use crate::failure::Failure;
use jiff::Timestamp;
use meridian_store::bucket::{self, Flushed, PIN_HELD, PinUse, ReaderPin, Roll, Survey, Surveyed};
use meridian_store::seams::Seams;
use meridian_store::{Bucket, SharedLog, StoreError, Term};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Looks at one cluster, as often as it is asked to.
pub(super) struct Looker {
    bucket: String,
    /// Of `meridian cluster up`, if it was named.
    folder: Option<PathBuf>,
    config: Option<Config>,
    seams: Seams,
    opened: Arc<dyn Bucket>,
    survey: Survey,
    runtime: Handle,
    /// The log in NATS, once it is connected to.
    streams: Option<SharedLog>,
}

impl Looker {
    /// Opens the bucket at an address, whose folder is there.
    pub(super) fn open(
        bucket: &str,
        folder: Option<PathBuf>,
        config: Option<Config>,
        runtime: &Handle,
    ) -> Result<Looker, Failure> {
        let seams = Seams::real();
        let s3 = config.as_ref().map_or_else(S3::default, |config| config.cluster.s3.clone()).options();
        let opened = meridian_bucket::open_to_look(bucket, &s3, runtime).map_err(|e| match e {
            StoreError::Invalid(what) => Failure::Usage(format!("--bucket {bucket}: {what}")),
            other => other.into(),
        })?;
        let survey = Survey::new(&opened, &seams);
        let bucket = bucket.to_owned();
        Ok(Looker { bucket, folder, config, seams, opened, survey, runtime: runtime.clone(), streams: None })
    }

    /// What there is now.
    pub(super) fn look(&mut self) -> Result<Document, Failure> {
        let log = self.survey.log()?;
        let now = self.seams.clock.now();
        let mut found = Document::new(time(now), self.bucket.clone(), log);
        if found.log == "nats"
            && self.streams.is_none()
            && let Err(failure) = self.connect()
        {
            found.log_error = Some(failure.to_string());
        }
        let log = if found.log == "nats" { self.streams.clone() } else { Some(SharedLog::Bucket) };
        // Before the collections: what the owner says of them holds for the manifests that are found after it.
        let term = self.survey.owner()?;
        let collections = self.survey.collections(log.as_ref())?;
        let pins = self.survey.readers()?;
        found.owner = term.as_ref().map(|(term, written)| owner(term, age(now, *written)));
        let counted: Vec<&PinUse> =
            pins.iter().filter(|pin| counts(now, pin) != Some(false)).filter_map(uses).flatten().collect();
        let term = term.as_ref().map(|(term, _)| term);
        found.collections = collections.into_iter().map(|one| collection(one, term, &counted, now)).collect();
        found.readers = pins.iter().map(|pin| reader(pin, now)).collect();
        found.nodes = Roll::read(self.opened.as_ref(), None)?.into_iter().map(|one| on_roll(one, now)).collect();
        if let Some(folder) = &self.folder {
            let nodes = nodes_of(folder)?.nodes;
            found.processes = Some(nodes.iter().map(|node| process(node, found.owner.as_ref())).collect());
        }
        Ok(found)
    }

    /// Connects to the log in NATS, as the settings say.
    #[cfg(feature = "nats")]
    fn connect(&mut self) -> Result<(), Failure> {
        let Some(config) = &self.config else {
            return Err(Failure::Usage(
                "where its servers are is in the settings of a process: name them with --config".to_owned(),
            ));
        };
        let streams = meridian_nats::open_to_look(&config.cluster.nats.options(), &self.runtime)?;
        self.streams = Some(SharedLog::Streams { streams, accept_loss: false });
        Ok(())
    }

    #[cfg(not(feature = "nats"))]
    fn connect(&mut self) -> Result<(), Failure> {
        let _ = (&self.config, &self.runtime);
        Err(Failure::Usage("this program was built without the feature `nats`".to_owned()))
    }
}

fn owner(term: &Term, age: Option<i64>) -> Owner {
    let ttl = milliseconds(term.ttl());
    let state = match age {
        _ if term.resigned => Lease::Resigned,
        // As long as a candidate waits.
        Some(age) if age > ttl + ttl / 8 => Lease::Lapsed,
        _ => Lease::Held,
    };
    Owner {
        state,
        node: term.node.clone(),
        address: term.address.clone(),
        epoch: term.epoch,
        lease_ms: term.ttl_ms,
        age_ms: age,
        expires_in_ms: age.filter(|_| state != Lease::Resigned).map(|age| ttl - age),
        reachable: (state == Lease::Held).then(|| probe::takes_connections(&term.address)),
    }
}

fn collection(found: Surveyed, term: Option<&Term>, pins: &[&PinUse], now: i64) -> Collection {
    let said = term.and_then(|term| term.complete.as_ref());
    let complete = said.map(|said| said.time_of(&found.tenant, &found.name));
    // The min time stands for an unknown one.
    let complete = complete.filter(|time| *time != i64::MIN);
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
    let of = |get: fn(&Flushed) -> u64| flushed.as_ref().map(get);
    let tail = match flushed.as_ref().and_then(|flushed| flushed.tail.as_ref()) {
        None => None,
        Some(Ok(tail)) => Some(Tail { entries: tail.entries, bytes: tail.bytes }),
        Some(Err(e)) => {
            error = Some(format!("its log: {e}"));
            None
        }
    };
    Collection {
        manifest: of(|flushed| flushed.version).map(version),
        epoch: of(|flushed| flushed.epoch),
        position: flushed.as_ref().map(|flushed| flushed.position.clone()),
        segments: of(|flushed| flushed.segments),
        rows: of(|flushed| flushed.rows),
        bytes: of(|flushed| flushed.bytes),
        tail,
        complete: complete.and_then(time),
        complete_age_ms: age(now, complete),
        pinned,
        tenant: found.tenant,
        collection: found.name,
        error,
    }
}

fn reader(pin: &ReaderPin, now: i64) -> Reader {
    Reader {
        reader: pin.reader.clone(),
        age_ms: age(now, pin.written),
        counts: counts(now, pin),
        collections: pin.uses.as_ref().map_or(0, |uses| uses.len() as u64),
        error: pin.uses.as_ref().err().map(ToString::to_string),
    }
}

fn on_roll(found: bucket::OnRoll, now: i64) -> OnRoll {
    let bucket::Node { node, role, program, level, address, condition, leases, .. } = found.node;
    OnRoll { node, role, address, program, level, condition, leases, age_ms: age(now, found.written) }
}

fn process(node: &Node, owner: Option<&Owner>) -> Process {
    let holds = owner.filter(|owner| owner.address == node.address).and_then(|owner| owner.reachable);
    let (answers, ready, reason) = match (node.pid, node.role, holds) {
        (None, _, _) => (Some(false), None, None),
        (Some(_), Kind::Owner, Some(reachable)) => (Some(reachable), None, None),
        (Some(_), Kind::Owner, None) => ((!probe::stands_by(&node.address)).then_some(false), None, None),
        (Some(_), _, _) => match probe::ask(node) {
            Readiness::Ready => (Some(true), Some(true), None),
            Readiness::NotReady(why) => (Some(true), Some(false), Some(why)),
            Readiness::Silent => (Some(false), None, None),
        },
    };
    let (name, address) = (node.name.clone(), node.address.clone());
    Process { name, role: node.role, pid: node.pid, address, answers, ready, reason }
}

/// What a pin names; `None`: it does not read.
fn uses(pin: &ReaderPin) -> Option<&Vec<PinUse>> {
    pin.uses.as_ref().ok()
}

/// Whether a pin counts yet, if its age is known.
fn counts(now: i64, pin: &ReaderPin) -> Option<bool> {
    age(now, pin.written).map(|age| age <= milliseconds(PIN_HELD))
}

/// Milliseconds since a time, none of them less than 0: clocks of two machines differ.
fn age(now: i64, since: Option<i64>) -> Option<i64> {
    since.map(|since| (now.saturating_sub(since) / 1_000).max(0))
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}

fn version(number: u64) -> String {
    format!("{number:016x}")
}

/// Microseconds since 1970 as text.
fn time(micros: i64) -> Option<String> {
    Timestamp::from_microsecond(micros).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(resigned: bool) -> Term {
        Term {
            node: "owner-1".to_owned(),
            process: 1,
            // Nothing listens there.
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

    #[test]
    fn a_lease_is_held_for_as_long_as_a_candidate_waits() {
        let state = |resigned, age| owner(&term(resigned), age).state;
        assert_eq!(state(false, Some(3_375)), Lease::Held);
        assert_eq!(state(false, Some(3_376)), Lease::Lapsed);
        assert_eq!(state(true, Some(1)), Lease::Resigned);
        let lapsed = owner(&term(false), Some(10_000));
        assert_eq!((lapsed.expires_in_ms, lapsed.reachable), (Some(-7_000), None));
        let held = owner(&term(false), Some(1_000));
        assert_eq!((held.expires_in_ms, held.reachable), (Some(2_000), Some(false)));
    }

    #[test]
    fn ages_are_not_less_than_nothing() {
        assert_eq!((age(5_000, Some(2_000)), age(5_000, Some(9_000)), age(5_000, None)), (Some(3), Some(0), None));
        assert_eq!(time(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(version(0x100_0000_0001), "0000010000000001");
    }
}
