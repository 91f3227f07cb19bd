//! The manifest of a partition: what it consists of, replaced as a whole.
//!
//! Every manifest takes a number of a file, so `next_file` is its version: it shows which of two is newer.

use crate::catalog::ranges::Range;
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::options::Settings;
use crate::part::segment::ArchiveEntry;
use crate::seams::{FileEnd, LogPlace};
use meridian_model::policy::owner::first_of_next_epoch;
use meridian_model::seq::SeqLayout;
use meridian_model::{Bounds, Numbering, Positions, Schema};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Number of the first file of a collection.
pub(crate) const FIRST_FILE: u64 = 1;
const MAGIC: &[u8; 8] = b"MRDNMANI";
/// Version of the format written, and newest read.
pub(crate) const VERSION: u32 = 1;

/// The content of a partition, except the log after `flushed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) tenant: String,
    pub(crate) collection: String,
    pub(crate) partition: u32,
    pub(crate) schema: Schema,
    pub(crate) settings: Settings,
    /// Keys the hashes of ids.
    pub(crate) seed: u64,
    /// When the collection was made, in microseconds since 1970.
    pub(crate) created: i64,
    /// When what it holds began, where that is later: with a restore, or with the start of an ephemeral collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<i64>,
    /// Writes up to this position are in the segments; later ones are in the log.
    pub(crate) flushed: u64,
    /// Snapshots below this number are gone: rows that died before were dropped.
    pub(crate) dropped_seq: u64,
    /// Number of the next file: the epoch of the writer above a count (`model::policy::owner`).
    pub(crate) next_file: u64,
    pub(crate) segments: Vec<SegmentEntry>,
    /// Files of idempotency keys, oldest first.
    pub(crate) keys: Vec<KeysEntry>,
    /// Archives that were listed for other programs. They stay until this time, in microseconds since 1970, even if
    /// they belong to no segment any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) listed: Vec<(u64, i64)>,
    /// The file of hidden rows of all segments, in collections of mode `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<u64>,
    /// Where the log continues after `flushed`, if the log does not find that by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogPlace>,
    /// How its sequence numbers are divided. Manifests without it are from before there was a choice.
    #[serde(default, skip_serializing_if = "is_embedded", with = "layout_name")]
    pub(crate) seq_layout: SeqLayout,
    /// The events that a restore into another number of partitions has divided among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<Imported>,
    /// The other partitions are being made: the collection does not exist yet. Only of the first partition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) making: bool,
    /// Whether a copy lies beside it; in memory always.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copied: bool,
}

/// Events of a collection that a restore has divided among another number of partitions. They keep their numbers, and with these their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Max position among them. A number up to here does not name the partition that has its event.
    pub upto: u64,
    /// The position of each partition that there was.
    pub from: Positions,
}

/// A live segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    /// Number in the file's name.
    pub(crate) file: u64,
    /// Segments of one flush or merge over one range share this number.
    pub(crate) run: u64,
    pub(crate) rows: u32,
    /// Of the segment and its Arrow rows as they were written.
    pub(crate) bytes: u64,
    pub(crate) range: Range,
    /// The file of its dead rows, and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead: Option<(u64, u64)>,
    /// The archive of its rows. Once there is one, it is the source, and the segment's other files are rebuilt from
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "rest")]
    pub(crate) archive: Option<ArchiveEntry>,
    /// Facts about it that are known without opening it; segments of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sketch: Option<Sketch>,
}

/// Facts by which a question leaves a segment out, and a reader opens it by one read of each file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sketch {
    /// The box of all rows.
    pub(crate) bounds: Bounds,
    /// Min and max sequence numbers.
    pub(crate) seqs: (u64, u64),
    /// The end of the index.
    pub(crate) index: FileEnd,
    /// Where the trees lie in the index: their first byte, and how many.
    pub(crate) trees: (u64, u32),
    /// The end of the Arrow rows.
    pub(crate) rows: FileEnd,
}

/// A file of idempotency keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeysEntry {
    pub(crate) file: u64,
    /// When its newest key was used, in microseconds since 1970.
    pub(crate) newest: i64,
    pub(crate) count: u64,
}

pub(crate) fn segment_name(file: u64) -> String {
    format!("{file:016x}.segment")
}

/// Name of a segment's rows as Arrow.
pub(crate) fn rows_name(file: u64) -> String {
    format!("{file:016x}.rows")
}

/// Name of a segment's archive: its rows as GeoParquet.
pub(crate) fn archive_name(file: u64) -> String {
    format!("{file:016x}.parquet")
}

pub(crate) fn dead_name(file: u64) -> String {
    format!("{file:016x}.dead")
}

pub(crate) fn hidden_name(file: u64) -> String {
    format!("{file:016x}.hidden")
}

pub(crate) fn keys_name(file: u64) -> String {
    format!("{file:016x}.keys")
}

impl Manifest {
    /// How its events are numbered.
    pub(crate) fn numbering(&self) -> Numbering {
        Numbering { layout: self.seq_layout, partition: self.partition as u8 }
    }

    /// Version in the catalog: greater than that of the manifest before.
    pub fn version(&self) -> u64 {
        self.next_file
    }

    /// How its sequence numbers are divided.
    pub fn seq_layout(&self) -> SeqLayout {
        self.seq_layout
    }

    /// The same under the next version: what a writer commits to take the collection over.
    pub fn successor(&self) -> Manifest {
        Manifest { next_file: first_of_next_epoch(self.next_file), ..self.clone() }
    }

    /// Name of its collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Position up to which it holds all writes.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// The manifest as bytes.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] naming `path` if a value cannot be written as JSON.
    pub fn encode(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let json = serde_json::to_vec(self).map_err(|e| StoreError::corrupt(path, e.to_string()))?;
        Ok(frame(MAGIC, VERSION, &json))
    }

    /// Reads what [`Manifest::encode`] wrote; `path` is what errors name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::NewerFormat`].
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, StoreError> {
        let content = unframe(path, MAGIC, VERSION, bytes)?;
        serde_json::from_slice(content).map_err(|e| StoreError::corrupt(path, format!("it does not read: {e}")))
    }

    /// The same collection without events: what a restart keeps of an ephemeral one.
    pub(crate) fn without_events(&self) -> Manifest {
        Manifest {
            flushed: 0,
            segments: Vec::new(),
            keys: Vec::new(),
            listed: Vec::new(),
            hidden: None,
            log: None,
            ..self.clone()
        }
    }
}

fn is_embedded(layout: &SeqLayout) -> bool {
    *layout == SeqLayout::Embedded
}

/// A layout of sequence numbers by its name.
mod layout_name {
    use meridian_model::seq::SeqLayout;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(layout: &SeqLayout, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(layout.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SeqLayout, D::Error> {
        let name = String::deserialize(from)?;
        SeqLayout::from_name(&name).map_err(de::Error::custom)
    }
}
