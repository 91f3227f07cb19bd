//! Responses: the metadata beside the columns of a stream, and the results of actions.

use super::described::{WireHead, WireProblem};
use super::fault::{Fault, shown};
use arrow_flight::FlightData;
use bytes::Bytes;
use meridian_backend::{DeleteReceipt, Files, WriteReceipt};
use meridian_model::{Positions, Seq};
use meridian_query::Stats;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Metadata of a message of a stream.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    /// Set in the first message of a response from a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<WireHead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<RowsSoFar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<ChangesHead>,
    /// Numbers up to which everything was returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upto: Option<Positions>,
    /// Total number of events, for a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    /// The result, where it is not columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    /// Positions of collections that have moved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) moved: Vec<PartitionPosition>,
    /// Why the stream ends early. Sent in the stream, because its status has no room for a hundred mistakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<Fault>,
    /// Whether the response is complete. A stream that ends without this was truncated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done: bool,
}

/// Running state of a stream of rows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RowsSoFar {
    pub(crate) stats: Stats,
    pub(crate) matched: Option<u64>,
    pub(crate) over: bool,
    /// Cursor of the next page in base64url, once the rows have ended.
    pub(crate) next: Option<String>,
}

/// State of a changes stream before its first event.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChangesHead {
    pub(crate) left_out: u64,
    pub(crate) missing: Vec<WireProblem>,
}

/// Position of a partition of a collection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PartitionPosition {
    pub(crate) tenant: String,
    pub(crate) name: String,
    pub(crate) made: i64,
    #[serde(default)]
    pub(crate) partition: usize,
    /// Number of partitions of the collection.
    #[serde(default = "one")]
    pub(crate) partitions: u16,
    pub(crate) position: u64,
    /// The position before the first recorded write.
    pub(crate) since: u64,
}

fn one() -> u16 {
    1
}

impl Meta {
    pub(crate) fn done() -> Meta {
        Meta { done: true, ..Meta::default() }
    }

    pub(crate) fn fault(fault: Fault) -> Meta {
        Meta { fault: Some(fault), ..Meta::default() }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        // Only numbers, texts and lists, so encoding cannot fail. If it did, the receiver would refuse the empty
        // message.
        serde_json::to_vec(self).map(Bytes::from).unwrap_or_default()
    }

    /// Returns it as a message without columns.
    pub(crate) fn alone(&self) -> FlightData {
        FlightData::new().with_app_metadata(self.to_bytes())
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Meta, Fault> {
        serde_json::from_slice(bytes).map_err(|e| Fault::internal(format!("a message of an answer is malformed: {e}")))
    }
}

/// [`Files`] on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireFiles {
    seq: Positions,
    paths: Vec<String>,
    kept_until: i64,
}

impl From<Files> for WireFiles {
    fn from(files: Files) -> WireFiles {
        let paths = files.paths.iter().map(|path| shown(path)).collect();
        WireFiles { seq: files.seq.map(|seq| seq.0), paths, kept_until: files.kept_until }
    }
}

impl From<WireFiles> for Files {
    fn from(files: WireFiles) -> Files {
        let paths = files.paths.into_iter().map(PathBuf::from).collect();
        Files { seq: files.seq.map(Seq), paths, kept_until: files.kept_until }
    }
}

/// The result of an action or of a write.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply<T> {
    Value(T),
    Fault(Fault),
}

impl<T: Serialize> Reply<T> {
    pub(crate) fn to_bytes(result: Result<T, Fault>) -> Bytes {
        let reply = result.map_or_else(Reply::Fault, Reply::Value);
        let written = serde_json::to_vec(&reply);
        let written = written.or_else(|e| {
            let fault = Fault::internal(format!("an answer cannot be written: {e}"));
            serde_json::to_vec(&Reply::<()>::Fault(fault))
        });
        written.map(Bytes::from).unwrap_or_default()
    }
}

impl<T: DeserializeOwned> Reply<T> {
    pub(crate) fn read(bytes: &[u8]) -> Result<T, Fault> {
        match serde_json::from_slice(bytes) {
            Ok(Reply::Value(value)) => Ok(value),
            Ok(Reply::Fault(fault)) => Err(fault),
            Err(e) => Err(Fault::internal(format!("an answer is malformed: {e}"))),
        }
    }
}

/// Identity of the owner.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) ephemeral: bool,
}

/// [`WriteReceipt`] on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireWritten {
    written: u64,
    replaced: u64,
    duplicates: u64,
    pub(crate) position: Positions,
    first: u64,
}

impl From<WriteReceipt> for WireWritten {
    fn from(done: WriteReceipt) -> WireWritten {
        let WriteReceipt { written, replaced, duplicates, position, first } = done;
        WireWritten { written, replaced, duplicates, position, first: first.0 }
    }
}

impl From<WireWritten> for WriteReceipt {
    fn from(done: WireWritten) -> WriteReceipt {
        let WireWritten { written, replaced, duplicates, position, first } = done;
        WriteReceipt { written, replaced, duplicates, position, first: Seq(first) }
    }
}

/// [`DeleteReceipt`] on the wire, with the reason if a deletion by filter stopped early. One by ids is then
/// [`Fault::Partly`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireDeleted {
    pub(crate) deleted: u64,
    pub(crate) position: Positions,
    /// For a deletion that stopped early: the number of matching events, whether a write failed, and why.
    pub(crate) stopped: Option<(u64, bool, Fault)>,
    /// Whether more may match, in partitions that it did not reach. Earlier versions do not say.
    #[serde(default)]
    pub(crate) unreached: bool,
}

impl From<DeleteReceipt> for WireDeleted {
    fn from(DeleteReceipt { deleted, position }: DeleteReceipt) -> WireDeleted {
        WireDeleted { deleted, position, stopped: None, unreached: false }
    }
}
