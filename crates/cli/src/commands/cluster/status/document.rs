//! What was found, as `meridian cluster status --json` prints it: names stay, and new ones may come.
//!
//! Times are RFC 3339, ages milliseconds. Manifests and snapshots are texts: their numbers exceed what JSON readers keep exactly.

use super::super::nodes::Kind;
use crate::failure::Failure;
use meridian_model::Positions;
use meridian_store::bucket::Condition;
use serde::Serialize;
use serde_json::Value;

/// Grows when a name goes or changes its meaning.
const VERSION: u32 = 1;

/// A cluster, at one moment.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) version: u32,
    pub(super) time: Option<String>,
    pub(super) bucket: String,
    /// `bucket` or `nats`.
    pub(super) log: String,
    /// Why the log in NATS was not checked, if so.
    pub(super) log_error: Option<String>,
    /// The holder of the lease, or the last one; `None`: there never was one.
    pub(super) owner: Option<Owner>,
    pub(super) collections: Vec<Collection>,
    pub(super) readers: Vec<Reader>,
    /// What processes say of themselves.
    pub(super) nodes: Vec<OnRoll>,
    /// `None`: no folder of `meridian cluster up` was given.
    pub(super) processes: Option<Vec<Process>>,
}

/// What the lease says.
#[derive(Debug, Serialize)]
pub(super) struct Owner {
    pub(super) state: Lease,
    pub(super) node: String,
    pub(super) address: String,
    pub(super) epoch: u64,
    pub(super) lease_ms: u64,
    /// Since the last renewal.
    pub(super) age_ms: Option<i64>,
    /// Until the lease ends unless it is renewed; less than 0: since then.
    pub(super) expires_in_ms: Option<i64>,
    /// Whether it takes connections; not asked of one that does not hold the lease.
    pub(super) reachable: Option<bool>,
}

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Lease {
    /// It was renewed in time.
    Held,
    /// It was not: a candidate takes it, if there is one.
    Lapsed,
    /// Its holder gave it up.
    Resigned,
}

/// A collection.
#[derive(Debug, Serialize)]
pub(super) struct Collection {
    pub(super) tenant: String,
    pub(super) collection: String,
    /// Why its manifest does not read, if so; then what comes from that is `None`.
    pub(super) error: Option<String>,
    /// Version of the newest manifest.
    pub(super) manifest: Option<String>,
    /// Epoch of the manifest's writer.
    pub(super) epoch: Option<u64>,
    /// Position up to which the segments have all writes; of several partitions a list.
    pub(super) position: Option<Positions>,
    pub(super) segments: Option<u64>,
    /// Rows of segments, those included that were replaced or deleted.
    pub(super) rows: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// What the log holds beyond the manifest.
    pub(super) tail: Option<Tail>,
    /// Every write that was acknowledged before this is in the segments, as the owner says.
    pub(super) complete: Option<String>,
    pub(super) complete_age_ms: Option<i64>,
    /// What readers use of it.
    pub(super) pinned: Option<Pinned>,
}

/// The part of a log that no manifest covers.
#[derive(Debug, Serialize)]
pub(super) struct Tail {
    /// Objects or messages.
    pub(super) entries: u64,
    pub(super) bytes: Option<u64>,
}

/// What readers use of a collection.
#[derive(Debug, Serialize)]
pub(super) struct Pinned {
    pub(super) readers: u64,
    /// Version of the oldest manifest in use.
    pub(super) manifest: String,
    /// Min sequence number of a snapshot in use.
    pub(super) snapshot: String,
}

/// A process that only reads, by its pin.
#[derive(Debug, Serialize)]
pub(super) struct Reader {
    pub(super) reader: String,
    /// Since its pin was written.
    pub(super) age_ms: Option<i64>,
    /// Whether the pin counts yet; `None`: its age is not known.
    pub(super) counts: Option<bool>,
    /// Collections that it reads.
    pub(super) collections: u64,
    /// Why its pin does not read, if so.
    pub(super) error: Option<String>,
}

/// A process, by what it says on the roll.
#[derive(Debug, Serialize)]
pub(super) struct OnRoll {
    pub(super) node: String,
    pub(super) role: String,
    pub(super) address: String,
    /// Version and level of its program.
    pub(super) program: String,
    pub(super) level: u32,
    pub(super) condition: Condition,
    /// Leases that it holds.
    pub(super) leases: Vec<String>,
    /// Since it said so.
    pub(super) age_ms: Option<i64>,
}

/// A process of `meridian cluster up`.
#[derive(Debug, Serialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) role: Kind,
    pub(super) pid: Option<u32>,
    pub(super) address: String,
    /// `None`: it is an owner that stands by.
    pub(super) answers: Option<bool>,
    /// Whether it says that it is ready; `None` of owners, which do not say, and of one that does not answer.
    pub(super) ready: Option<bool>,
    /// Why it is not ready, as it says.
    pub(super) reason: Option<String>,
}

impl Document {
    pub(super) fn new(time: Option<String>, bucket: String, log: String) -> Document {
        Document {
            version: VERSION,
            time,
            bucket,
            log,
            log_error: None,
            owner: None,
            collections: Vec::new(),
            readers: Vec::new(),
            nodes: Vec::new(),
            processes: None,
        }
    }

    /// It as JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        serde_json::to_value(self).map_err(|e| Failure::Refused(format!("the status cannot be written as JSON: {e}")))
    }

    /// Bad if something is damaged.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let collections = self.collections.iter().filter(|one| one.error.is_some()).count();
        let pins = self.readers.iter().filter(|one| one.error.is_some()).count();
        match collections + pins {
            0 => Ok(()),
            bad => Err(Failure::Bad(format!("{}: {bad} objects do not read", self.bucket))),
        }
    }
}
