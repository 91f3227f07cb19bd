//! The manifest of a partition: a list of its content, replaced as a whole.
//!
//! Every manifest takes a file number, so `next_file` is its version: it shows which of two is newer.

pub(crate) mod ranges;

use crate::codec::{expect_position, frame, unframe};
use crate::error::StoreError;
use crate::manifest::ranges::Range;
use crate::options::Settings;
use meridian_model::policy::owner::LogPlace;
use meridian_model::policy::owner::first_of_next_epoch;
use meridian_model::seq::SeqLayout;
use meridian_model::{Bounds, Numbering, Positions, Schema};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Number of the first file of a collection.
pub(crate) const FIRST_FILE: u64 = 1;
const MAGIC: &[u8; 8] = b"MRDNMANI";
/// Version of the format that is written, and the newest that is read.
pub(crate) const VERSION: u32 = 1;

/// The content of a partition, except the log after `flushed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(crate) tenant: String,
    pub(crate) collection: String,
    pub(crate) partition: u32,
    pub(crate) schema: Schema,
    pub(crate) settings: Settings,
    /// The seed for hashes of ids.
    pub(crate) seed: u64,
    /// When the collection was created, in microseconds since 1970.
    pub(crate) created: i64,
    /// When its content began, if later: with a restore, or with the start of an ephemeral collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<i64>,
    /// Position up to which writes are in the segments; later writes are in the log.
    pub(crate) flushed: u64,
    /// Number below which snapshots are gone: rows that died earlier were dropped.
    pub(crate) dropped_seq: u64,
    /// Number of the next file: the writer's epoch in the high bits, a count in the low ones (`model::policy::owner`).
    pub(crate) next_file: u64,
    pub(crate) segments: Vec<SegmentEntry>,
    /// Files of idempotency keys, oldest first.
    pub(crate) keys: Vec<KeysEntry>,
    /// Archives that were listed for other programs. They stay until this time, in microseconds since 1970, even if
    /// they no longer belong to a segment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) listed: Vec<(u64, i64)>,
    /// The file of hidden rows of all segments, in collections of mode `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<u64>,
    /// Where the log continues after `flushed`, if the log cannot find that itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<LogPlace>,
    /// Layout of its sequence numbers. Manifests without it predate the choice.
    #[serde(default, skip_serializing_if = "is_embedded", with = "layout_name")]
    pub(crate) seq_layout: SeqLayout,
    /// The events that a restore divided among another number of partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<ImportOrigin>,
    /// Whether the other partitions are still being created, so that the collection does not exist yet. Only in the
    /// first partition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) making: bool,
    /// Whether it has a copy beside it; always true in memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copied: bool,
}

/// Events of a collection that a restore divided among another number of partitions. They keep their numbers, and so
/// their ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOrigin {
    /// Max position among them. A number up to this one does not identify the partition of its event.
    pub upto: u64,
    /// Position of each original partition.
    pub from: Positions,
}

/// A live segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SegmentEntry {
    /// Number in the file's name.
    pub(crate) file: u64,
    /// Number shared by the segments of one flush or merge over one range.
    pub(crate) run: u64,
    pub(crate) rows: u32,
    /// Bytes of the segment and its Arrow rows when written.
    pub(crate) bytes: u64,
    pub(crate) range: Range,
    /// The file of its dead rows, and their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead: Option<(u64, u64)>,
    /// The archive of its rows. Once it exists it is the source, and the segment's other files can be rebuilt from it.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "rest")]
    pub(crate) archive: Option<ArchiveEntry>,
    /// Facts known without opening the segment; absent in segments of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sketch: Option<Sketch>,
}

/// Facts by which a query skips a segment, and a reader opens it with one read of each file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sketch {
    /// The bounding box of all rows.
    pub(crate) bounds: Bounds,
    /// First and last instant of the events that have a time, if others have none: `bounds` is open then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<(i64, i64)>,
    /// Min and max sequence numbers.
    pub(crate) seqs: (u64, u64),
    /// The end of the index.
    pub(crate) index: FileEnd,
    /// Offset of the trees in the index, and their number.
    pub(crate) trees: (u64, u32),
    /// The end of the Arrow rows.
    pub(crate) rows: FileEnd,
}

/// The manifest's entry of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveEntry {
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Offset of the directory; pages lie before it.
    pub(crate) directory: u64,
    /// CRC32C of the directory.
    pub(crate) crc32c: u32,
}

impl ArchiveEntry {
    /// Returns the same as a [`FileEnd`].
    pub(crate) fn end(&self) -> FileEnd {
        FileEnd { bytes: self.bytes, footer: self.directory, crc32c: self.crc32c, version: 1 }
    }
}

/// The end of a file of blocks, as recorded in the manifest. It suffices to find the footer, and to tell the file from
/// any other of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEnd {
    /// Length of the file.
    pub bytes: u64,
    /// Offset of the footer.
    pub footer: u64,
    /// CRC32C of the footer, which has a checksum of each block.
    pub crc32c: u32,
    /// Version of the file format.
    pub version: u32,
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

/// Returns the name of a segment's Arrow rows.
pub(crate) fn rows_name(file: u64) -> String {
    format!("{file:016x}.rows")
}

/// Returns the name of a segment's archive: its rows as GeoParquet.
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
    /// Returns how its events are numbered.
    pub(crate) fn numbering(&self) -> Numbering {
        Numbering { layout: self.seq_layout, partition: self.partition as u8 }
    }

    /// Returns the version in the catalog, greater than that of the previous manifest.
    pub fn version(&self) -> u64 {
        self.next_file
    }

    /// Returns the layout of its sequence numbers.
    pub fn seq_layout(&self) -> SeqLayout {
        self.seq_layout
    }

    /// Returns the same manifest with the next version, which a writer commits to take over the collection.
    pub fn successor(&self) -> Manifest {
        Manifest { next_file: first_of_next_epoch(self.next_file), ..self.clone() }
    }

    /// Returns the name of its collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Returns the position up to which it holds all writes.
    pub fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Encodes the manifest.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] naming `path` if a value cannot be written as JSON.
    pub fn encode(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let json = serde_json::to_vec(self).map_err(|e| StoreError::corrupt(path, e.to_string()))?;
        Ok(frame(MAGIC, VERSION, &json))
    }

    /// Decodes the output of [`Manifest::encode`]; errors name `path`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::NewerFormat`].
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Manifest, StoreError> {
        let content = unframe(path, MAGIC, VERSION, bytes)?;
        let corrupt = |detail: String| StoreError::corrupt(path, format!("it does not read: {detail}"));
        let manifest: Manifest = serde_json::from_slice(content).map_err(|e| corrupt(e.to_string()))?;
        expect_position(manifest.flushed).map_err(corrupt)?;
        Ok(manifest)
    }

    /// Returns the same collection without events: what a restart keeps of an ephemeral one.
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

/// A layout of sequence numbers, serialized by name.
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
