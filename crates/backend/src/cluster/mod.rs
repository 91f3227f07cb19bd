//! A cluster as seen in its bucket: what `meridian cluster status` prints and `/admin/cluster` serves.
//!
//! The types define the document of both, so they are serialised: names stay, and new ones may be added. `null` means
//! unknown. Times are RFC 3339, ages are in milliseconds. Manifests and snapshots are texts: their numbers exceed what
//! JSON readers keep exactly.
//!
//! `survey.rs` reads a bucket into it. `server_status.rs` is the status that each server writes there.
//! `standing.rs` has the words for people.

mod server_status;
mod span;
mod standing;
mod survey;

pub use server_status::{Caches, GatewayEndpoint, ScanReads, ServerLoad, ServerStatus};
pub use span::span;
pub use survey::{ClusterSurvey, Connector};

use meridian_model::Positions;
use schemars::JsonSchema;
use serde::Serialize;

/// Incremented when a name is removed or changes its meaning.
const VERSION: u32 = 1;

/// A cluster, at one moment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Cluster {
    /// 1; another number if a name is removed or changes its meaning.
    pub version: u32,
    /// Time of the survey.
    pub time: String,
    /// Address of the bucket.
    pub bucket: String,
    /// Nothing of a cluster is in the bucket: its address, or the prefix in it, may be wrong.
    pub empty: bool,
    /// Where the log of the collections is: `bucket` or `nats`.
    pub log: String,
    /// Why the log in NATS was not checked.
    pub log_error: Option<String>,
    /// The holder of the lease, or the last one; null before the first owner. With several groups of partitions, that
    /// of group 0.
    pub owner: Option<Owner>,
    /// The same of each group of partitions, if there are several.
    pub owners: Vec<GroupOwner>,
    /// The collections, by tenant and name.
    pub collections: Vec<Collection>,
    /// Processes that only read the bucket, by their pins.
    pub readers: Vec<Reader>,
    /// Gateways and scan servers, as they say of themselves.
    pub servers: Vec<Server>,
    /// All processes by the roll, owners included. One that ended without a word stays for some time.
    pub nodes: Vec<Node>,
}

/// The owner of a group of partitions.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterGroup")]
pub struct GroupOwner {
    /// Its number, from 0.
    pub group: u16,
    /// The holder of its lease, or the last one; null before the first owner.
    pub owner: Option<Owner>,
}

/// The holder, by its lease.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Owner {
    /// Whether it still owns the collections.
    pub state: Lease,
    /// Its name.
    pub node: String,
    /// Host and port by which gateways reach it.
    pub address: String,
    /// Number of its term.
    pub epoch: u64,
    /// Length of the lease.
    pub lease_ms: u64,
    /// Time since the last renewal.
    pub age_ms: Option<i64>,
    /// Time until the lease ends without another renewal; less than 0: since then.
    pub expires_in_ms: Option<i64>,
    /// Whether it answers the process that looks; null unless it holds the lease.
    pub reachable: Option<bool>,
    /// Why it does not answer.
    pub reason: Option<String>,
}

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LeaseState")]
pub enum Lease {
    /// It was renewed in time.
    Held,
    /// It was not: a candidate takes it, if there is one.
    Lapsed,
    /// Its holder gave it up.
    Resigned,
}

/// A collection.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterCollection")]
pub struct Collection {
    /// Its tenant.
    pub tenant: String,
    /// Its name.
    pub collection: String,
    /// Why a part of it cannot be read; its values are then null.
    pub error: Option<String>,
    /// Number of partitions.
    pub partitions: Option<u64>,
    /// Version of the newest manifest.
    pub manifest: Option<String>,
    /// Epoch of the manifest's writer.
    pub epoch: Option<u64>,
    /// Position up to which the segments have all writes; a list, of several partitions.
    #[schemars(with = "Option<PositionDocument>")]
    pub position: Option<Positions>,
    /// Live segments.
    pub segments: Option<u64>,
    /// Rows of these segments, those included that were replaced or deleted.
    pub rows: Option<u64>,
    /// Bytes of these segments.
    pub bytes: Option<u64>,
    /// Records of the log that no manifest covers yet.
    pub tail: Option<Tail>,
    /// The segments have every write that was acknowledged before this time, according to the owner.
    pub complete: Option<String>,
    /// Time since then.
    pub complete_age_ms: Option<i64>,
    /// The objects of it that readers use; null without a reader.
    pub pinned: Option<Pinned>,
}

/// A position, as [`Positions`] serialises.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Position")]
#[expect(dead_code, reason = "it only describes")]
enum PositionDocument {
    /// The status of one partition.
    One(u64),
    /// With several partitions, in their order.
    Several(Vec<u64>),
}

/// The part of a log that no manifest covers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "LogTail")]
pub struct Tail {
    /// Objects, or messages.
    pub entries: u64,
    /// Bytes; of objects only.
    pub bytes: Option<u64>,
}

/// The objects of a collection that readers use.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Pinned {
    /// How many use it.
    pub readers: u64,
    /// Version of the oldest manifest in use.
    pub manifest: String,
    /// Min sequence number of a snapshot in use.
    pub snapshot: String,
}

/// A process that only reads, by its pin.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterReader")]
pub struct Reader {
    /// A random number that the process has until it ends.
    pub reader: String,
    /// Age of its pin.
    pub age_ms: Option<i64>,
    /// Whether the pin still counts; null: its age is not known.
    pub counts: Option<bool>,
    /// Collections that it reads.
    pub collections: u64,
    /// The report of a scan server; null for other roles.
    pub scan: Option<Scan>,
    /// Why its pin is unreadable.
    pub error: Option<String>,
}

/// A scan server that answers gateways, as of when its pin was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterScan")]
pub struct Scan {
    /// Where gateways reach it.
    pub address: String,
    /// Its group, which profiles name.
    pub group: String,
    /// Questions that work on a batch.
    pub working: u64,
    /// Questions that have started and not ended.
    pub started: u64,
    /// Questions that wait for their start.
    pub waiting: u64,
}

/// A gateway or a scan server, by its own report.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterServer")]
pub struct Server {
    /// A random number that the process has until it ends.
    pub server: String,
    /// `gateway` or `scan`; null if it does not say.
    pub role: Option<String>,
    /// Its name.
    pub node: Option<String>,
    /// Where it listens for clients.
    pub address: Option<String>,
    /// Its version of Meridian.
    pub version: Option<String>,
    /// Time since its last report, which it renews every 15 s at the latest.
    pub age_ms: Option<i64>,
    /// Whether its report is recent; null if the time is unknown.
    pub counts: Option<bool>,
    /// Its work; null if it does not say.
    pub load: Option<ServerLoad>,
    /// Why its report cannot be read.
    pub error: Option<String>,
}

/// A process, by its entry on the roll.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "ClusterNode")]
pub struct Node {
    /// Its name, by which orders find it.
    pub node: String,
    /// `owner`, `gateway` or `scan`.
    pub role: String,
    /// Where clients reach it, or gateways an owner.
    pub address: String,
    /// Its version of Meridian.
    pub program: String,
    /// The forms of objects that it reads and writes, as a number that grows with versions.
    pub level: u32,
    /// Its role.
    pub condition: Condition,
    /// Names of the leases that it holds.
    pub leases: Vec<String>,
    /// Time since its last report, which it renews after two thirds of a lease.
    pub age_ms: Option<i64>,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "NodeCondition")]
pub enum Condition {
    /// It answers clients, or owns collections.
    Serves,
    /// It is ready to own collections, and holds no lease.
    StandsBy,
    /// It takes no new work, until it starts again.
    Drained,
    /// A newer version does something else.
    Other,
}

impl Cluster {
    /// Returns the owner of each group, or the last one; a single group has no number.
    pub fn groups(&self) -> impl Iterator<Item = (Option<u16>, Option<&Owner>)> {
        let one = self.owners.is_empty().then_some((None, self.owner.as_ref()));
        one.into_iter().chain(self.owners.iter().map(|of| (Some(of.group), of.owner.as_ref())))
    }

    /// Returns the number of unreadable collections, pins and server reports.
    pub fn unreadable(&self) -> usize {
        let collections = self.collections.iter().filter(|one| one.error.is_some()).count();
        let readers = self.readers.iter().filter(|one| one.error.is_some()).count();
        collections + readers + self.servers.iter().filter(|one| one.error.is_some()).count()
    }
}
