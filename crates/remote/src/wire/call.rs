//! Calls: JSON in tickets, actions and descriptors.
//!
//! A call must be understood completely, since an ignored condition would give a wrong result. So a reader refuses
//! unknown members of what is asked, and later versions. A call may also carry hints, such as its place in a trace;
//! unknown ones are ignored. A program that extends what can be asked writes such calls with a later version. It does
//! so only once all processes can read it (`policy::level`).

use super::described::CollectionRef;
use super::fault::Fault;
use meridian_backend::{Definition, Near, OnConflict, ReadPoint, Settings};
use meridian_model::{Field, Positions, Schema, Seq};
use meridian_observe as observe;
use meridian_query::ByValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Version of the calls written here, and the latest that is read.
pub(crate) const VERSION: u32 = 1;

/// A call with its common members.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call<T> {
    version: u32,
    /// Time left, as a duration, since clocks of two servers differ.
    pub(crate) left_us: u64,
    /// Its place in a trace (W3C Trace Context).
    pub(crate) trace: Option<String>,
    pub(crate) ask: T,
}

impl<T: Serialize> Call<T> {
    /// Makes a call on behalf of this thread's work.
    pub(crate) fn of(ask: T, left: Duration) -> Call<T> {
        let trace = observe::current().trace.map(|trace| trace.to_pass_on().traceparent());
        Call { version: VERSION, left_us: u64::try_from(left.as_micros()).unwrap_or(u64::MAX), trace, ask }
    }

    pub(crate) fn to_json(&self) -> Result<Vec<u8>, Fault> {
        serde_json::to_vec(self).map_err(|e| Fault::internal(format!("a call cannot be written: {e}")))
    }
}

impl<T: DeserializeOwned> Call<T> {
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Call<T>, Fault> {
        /// The only field read before the version is known.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let malformed = |e: serde_json::Error| Fault::internal(format!("a call is malformed: {e}"));
        let Head { version } = serde_json::from_slice(bytes).map_err(malformed)?;
        if !(1..=VERSION).contains(&version) {
            let detail = "the servers must be of versions that go together";
            return Err(Fault::internal(format!("a call of version {version}, expected {VERSION} at most: {detail}")));
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }
}

impl<T> Call<T> {
    pub(crate) fn left(&self) -> Duration {
        Duration::from_micros(self.left_us)
    }
}

/// The snapshot that a query reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireAt {
    seq: Option<Positions>,
    history: bool,
}

impl From<ReadPoint> for WireAt {
    fn from(at: ReadPoint) -> WireAt {
        WireAt { seq: at.seq.map(|seqs| seqs.map(|seq| seq.0)), history: at.history }
    }
}

impl From<WireAt> for ReadPoint {
    fn from(at: WireAt) -> ReadPoint {
        ReadPoint { seq: at.seq.map(|seqs| seqs.map(Seq)), history: at.history, eventual: None }
    }
}

/// A circle, and a condition on the events in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireNear {
    lon: f64,
    lat: f64,
    radius_m: f64,
    skip: usize,
    limit: usize,
}

impl From<&Near> for WireNear {
    fn from(near: &Near) -> WireNear {
        let Near { lon, lat, radius_m, skip, limit } = *near;
        WireNear { lon, lat, radius_m, skip, limit }
    }
}

impl From<WireNear> for Near {
    fn from(near: WireNear) -> Near {
        let WireNear { lon, lat, radius_m, skip, limit } = near;
        Near { lon, lat, radius_m, skip, limit }
    }
}

/// A query in the encoding of `query::wire`, with its snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireQuery {
    pub(crate) place: CollectionRef,
    pub(crate) at: WireAt,
    pub(crate) question: Value,
    /// Max bytes of events that it may read.
    pub(crate) bytes_max: Option<u64>,
    /// How long a scan server may leave it waiting to start, in microseconds; zero: as long as its caller waits. Owners
    /// start every query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) busy_timeout_us: Option<u64>,
}

impl WireQuery {
    pub(crate) fn busy_timeout(&self) -> Duration {
        Duration::from_micros(self.busy_timeout_us.unwrap_or(0))
    }
}

/// Calls of `DoGet`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Get {
    /// Rows of an items query.
    Rows(WireQuery),
    /// Rows of an items query from one partition, each with its cursor.
    PartRows(WireQuery),
    /// Partial result of any other query.
    Partial(WireQuery),
    /// Cost of an items query.
    Explain(WireQuery),
    /// Where to cut all events into parts.
    Cuts { place: CollectionRef, at: WireAt, parts: usize },
    /// The event with an id, from the history.
    Event { place: CollectionRef, id: String },
    /// The events in a circle, nearest first.
    Near { place: CollectionRef, near: WireNear },
    /// A page of all events.
    Page { place: CollectionRef, skip: u64, limit: usize },
    /// The event with an id.
    Find { place: CollectionRef, id: String },
    /// A random event.
    Sample { place: CollectionRef },
    /// Events written after an event.
    After { place: CollectionRef, after: Positions, max: usize, step_bytes: usize },
    /// Events written between two positions.
    Between { place: CollectionRef, after: Positions, upto: Positions, max: usize },
    /// The event of an object before another one.
    Prior { place: CollectionRef, object: ByValue, before: u64, columns: Vec<String> },
    /// Positions of all collections, whenever one moves.
    Positions,
}

/// Calls of `DoAction`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ActionCall {
    /// Returns the identity of the server.
    Hello,
    Describe {
        tenant: String,
        name: String,
        /// Number of a partition; `None`: the whole collection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partition: Option<u16>,
    },
    List {
        tenant: String,
    },
    Damaged {
        tenant: String,
    },
    WhyDamaged {
        tenant: String,
        name: String,
    },
    Create {
        tenant: String,
        name: String,
        schema: Box<Schema>,
        settings: Settings,
    },
    Remove {
        tenant: String,
        name: String,
    },
    /// Removes a collection that has this definition and was never written to.
    RemoveUnwritten {
        place: CollectionRef,
        seen: Box<Definition>,
    },
    /// Adopts the state of a collection's first partition.
    Adopt {
        tenant: String,
        name: String,
    },
    Guarantee {
        weights: Vec<(String, u32)>,
    },
    Change {
        place: CollectionRef,
        fields: Vec<Field>,
        settings: Option<Settings>,
        /// The definition that it replaces; `None`: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<Box<Definition>>,
    },
    RemovedBy {
        place: CollectionRef,
        settings: Settings,
    },
    Room {
        place: CollectionRef,
    },
    /// Returns the snapshot that a query would read.
    Head {
        place: CollectionRef,
        at: WireAt,
    },
    /// Counts the events of a partition between two positions.
    CountBetween {
        place: CollectionRef,
        after: u64,
        upto: u64,
    },
    Delete {
        place: CollectionRef,
        ids: Vec<String>,
    },
    DeleteMatching {
        place: CollectionRef,
        filter: Value,
        at: WireAt,
        bytes_max: Option<u64>,
    },
    /// Archives everything, and lists the files.
    Files {
        place: CollectionRef,
    },
    /// Lists all collections of all tenants.
    All,
    /// Flushes everything acknowledged before.
    Flush {
        tenant: String,
        name: String,
    },
    MetFullDisk,
    FullDisk,
    /// Keeps snapshots shown by scan servers.
    Used {
        uses: Vec<SnapshotUse>,
    },
}

/// A snapshot of a partition, shown elsewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotUse {
    pub(crate) place: CollectionRef,
    pub(crate) seq: u64,
}

/// The write of a `DoPut`: the batches that follow are one batch of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    pub(crate) place: CollectionRef,
    pub(crate) key: Option<String>,
    pub(crate) on_conflict: WireConflict,
    /// Number of events; fewer mean that the stream was truncated.
    pub(crate) rows: usize,
    /// Bytes of the messages that follow. The receiver reserves this much, and accepts no more.
    pub(crate) bytes: usize,
    /// The producer, whose number for this write makes a resent write apply once.
    pub(crate) producer: u64,
    pub(crate) number: u64,
    /// Instance number of the intended server: any other refuses it.
    pub(crate) to: u64,
    /// The server that an earlier attempt may have reached.
    pub(crate) sent_to: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireConflict {
    Refuse,
    Replace,
    ReplaceOnly(u64),
}

impl From<OnConflict> for WireConflict {
    fn from(on: OnConflict) -> WireConflict {
        match on {
            OnConflict::Refuse => WireConflict::Refuse,
            OnConflict::Replace => WireConflict::Replace,
            OnConflict::ReplaceOnly(seq) => WireConflict::ReplaceOnly(seq.0),
        }
    }
}

impl From<WireConflict> for OnConflict {
    fn from(on: WireConflict) -> OnConflict {
        match on {
            WireConflict::Refuse => OnConflict::Refuse,
            WireConflict::Replace => OnConflict::Replace,
            WireConflict::ReplaceOnly(seq) => OnConflict::ReplaceOnly(Seq(seq)),
        }
    }
}
