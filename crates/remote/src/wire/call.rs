//! Calls: JSON in tickets, actions and descriptors.
//!
//! What is asked must be understood whole, since a condition left out would give a wrong answer. Members of it that a reader does not know are
//! refused, as is a later version. Besides what is asked, a call may carry hints, such as its place in a trace; unknown ones are left out. A
//! program that adds to what can be asked writes its calls of that kind with a later version. It does so only once all processes read it
//! (`policy::level`).

use super::described::CollectionRef;
use super::fault::Fault;
use meridian_backend::{At, Near, OnConflict, Settings};
use meridian_model::{Field, Positions, Schema, Seq};
use meridian_observe as observe;
use meridian_query::ByValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Version of calls that is written, and the latest that is read.
pub(crate) const VERSION: u32 = 1;

/// A call with what every call carries.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call<T> {
    version: u32,
    /// The time that is left: a time span, since clocks of two servers differ.
    pub(crate) left_us: u64,
    /// Its place in a trace (W3C Trace Context).
    pub(crate) trace: Option<String>,
    pub(crate) ask: T,
}

impl<T: Serialize> Call<T> {
    /// A call of the work that this thread does.
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
        /// The only field that is read before the version is known.
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

/// The snapshot that a question reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireAt {
    seq: Option<Positions>,
    history: bool,
}

impl From<At> for WireAt {
    fn from(at: At) -> WireAt {
        WireAt { seq: at.seq.map(|seqs| seqs.map(|seq| seq.0)), history: at.history }
    }
}

impl From<WireAt> for At {
    fn from(at: WireAt) -> At {
        At { seq: at.seq.map(|seqs| seqs.map(Seq)), history: at.history, eventual: None }
    }
}

/// A circle, and which of the events in it.
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

/// A question as the module `query::wire` writes it, of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) place: CollectionRef,
    pub(crate) at: WireAt,
    pub(crate) question: Value,
    /// Bytes of events that it may read.
    pub(crate) bytes_max: Option<u64>,
    /// How long a scan server may leave it unstarted, in microseconds; zero: as long as its caller waits. Owners start what they are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) busy_timeout_us: Option<u64>,
}

impl Asked {
    pub(crate) fn busy_timeout(&self) -> Duration {
        Duration::from_micros(self.busy_timeout_us.unwrap_or(0))
    }
}

/// What `DoGet` answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Get {
    /// Rows of a question for items.
    Rows(Asked),
    /// The same of one partition, each row with its cursor.
    PartRows(Asked),
    /// A partial answer to any other question.
    Partial(Asked),
    /// The cost of a question for items.
    Explain(Asked),
    /// Where to cut all events into parts.
    Cuts { place: CollectionRef, at: WireAt, parts: usize },
    /// The event of an id, from the history.
    Event { place: CollectionRef, id: String },
    /// The events in a circle, nearest first.
    Near { place: CollectionRef, near: WireNear },
    /// A page of all events.
    Page { place: CollectionRef, skip: u64, limit: usize },
    /// The event of an id.
    Find { place: CollectionRef, id: String },
    /// A random event.
    Sample { place: CollectionRef },
    /// Events written after an event.
    After { place: CollectionRef, after: Positions, max: usize, step_bytes: usize },
    /// Events written between two positions.
    Between { place: CollectionRef, after: Positions, upto: Positions, max: usize },
    /// The event of an object before another.
    Prior { place: CollectionRef, object: ByValue, before: u64, columns: Vec<String> },
    /// The positions of all collections, whenever one moves.
    Positions,
}

/// What `DoAction` does.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Do {
    /// Says what the server is.
    Hello,
    Describe {
        tenant: String,
        name: String,
        /// The number of a partition; `None`: all of the collection.
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
    /// Takes up what the first partition of a collection says.
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
    },
    RemovedBy {
        place: CollectionRef,
        settings: Settings,
    },
    Room {
        place: CollectionRef,
    },
    /// Says which snapshot a question would read.
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
    /// Archives everything, and names the files.
    Files {
        place: CollectionRef,
    },
    /// Names all collections of all tenants.
    All,
    /// Flushes what was acknowledged before.
    Flush {
        tenant: String,
        name: String,
    },
    MetFullDisk,
    FullDisk,
    /// Keeps snapshots that scan servers showed.
    Used {
        uses: Vec<SnapshotUse>,
    },
}

/// A snapshot of a partition that was shown elsewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotUse {
    pub(crate) place: CollectionRef,
    pub(crate) seq: u64,
}

/// What `DoPut` writes: the batches that follow are one batch of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put {
    pub(crate) place: CollectionRef,
    pub(crate) key: Option<String>,
    pub(crate) on_conflict: WireConflict,
    /// Number of events: fewer mean that the stream was cut.
    pub(crate) rows: usize,
    /// Bytes of the messages that follow: what the receiver makes room for, and the most that it takes.
    pub(crate) bytes: usize,
    /// Who numbers, and its number of this write: a write that is sent twice is applied once.
    pub(crate) producer: u64,
    pub(crate) number: u64,
    /// The server that it is meant for, by its number: any other refuses it.
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
