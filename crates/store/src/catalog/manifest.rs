//! The manifest of a partition: what it consists of, replaced as a whole.
//!
//! A copy is replaced after it, so that the copy is never the newer one: where it is, an earlier manifest was put in the place
//! of the newest. Every manifest takes a number of a file, so `next_file` tells which of two is newer.

use crate::catalog::ranges::Range;
use crate::codec::{frame, read_file, replace_file, unframe};
use crate::error::{Problem, StoreError};
use crate::options::Settings;
use crate::part::segment::RestEntry;
use crate::seams::Disk;
use meridian_model::Schema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// Name of the manifest in the folder of its partition.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// Name of its copy. Older programs write none.
pub(crate) const COPY: &str = "MANIFEST.copy";
/// Name that the manifest gets when the collection is dropped: from then on the folder is rubbish.
pub(crate) const DROPPED: &str = "DROPPED";
/// Number of the first file of a collection.
pub(crate) const FIRST_FILE: u64 = 1;
const MAGIC: &[u8; 8] = b"MRDNMANI";
/// Version of the format written, and newest read.
pub(crate) const VERSION: u32 = 1;

/// What a partition consists of, but for what the log holds after `flushed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) tenant: String,
    pub(crate) collection: String,
    pub(crate) partition: u32,
    pub(crate) schema: Schema,
    pub(crate) settings: Settings,
    /// Keys the hashes of ids.
    pub(crate) seed: u64,
    /// When the collection was made, in microseconds since 1970.
    pub(crate) created: i64,
    /// Writes up to this position are in the segments; later ones are in the log.
    pub(crate) flushed: u64,
    /// Snapshots below this number are gone: rows that died before were dropped.
    pub(crate) dropped_seq: u64,
    /// Number of the next file.
    pub(crate) next_file: u64,
    pub(crate) segments: Vec<SegmentEntry>,
    /// Files of idempotency keys, oldest first.
    pub(crate) keys: Vec<KeysEntry>,
    /// Files at rest that somebody outside was told of: they stay until the time, in microseconds since 1970, even if
    /// no segment is made of them any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) listed: Vec<(u64, i64)>,
    /// The file of hidden rows of all segments, in collections of mode `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden: Option<u64>,
    /// Whether a copy lies beside it; in memory always.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copied: bool,
}

/// How the copy of a manifest stands to it.
#[derive(Debug)]
pub(crate) enum Twin {
    /// Whole and no newer: the manifest is the newest that was written.
    Proof {
        /// A crash came between the two.
        behind: bool,
    },
    /// The program that wrote the manifest writes no copy.
    Never,
    /// A crash came before the first one.
    First,
    /// Missing or damaged.
    Bad(Problem),
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
    /// The rows at rest: from then on they are the truth, and the segment's other files are made from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<RestEntry>,
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

/// Name of a segment's rows as GeoParquet.
pub(crate) fn rest_name(file: u64) -> String {
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
    /// Reads the manifest of the partition in `dir`.
    pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<Manifest, StoreError> {
        Manifest::read_from(disk, &dir.join(MANIFEST))
    }

    /// Reads a manifest under whatever name.
    pub(crate) fn read_from(disk: &dyn Disk, path: &Path) -> Result<Manifest, StoreError> {
        let bytes = read_file(disk, path)?;
        let content = unframe(path, MAGIC, VERSION, &bytes)?;
        serde_json::from_slice(content).map_err(|e| StoreError::corrupt(path, format!("it does not read: {e}")))
    }

    /// Reads the manifest of the partition in `dir`, and says what its copy proves.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the manifest is damaged or older than its copy.
    pub(crate) fn read_both(disk: &dyn Disk, dir: &Path) -> Result<(Manifest, Twin), StoreError> {
        let mut manifest = Manifest::read(disk, dir)?;
        let copied = std::mem::replace(&mut manifest.copied, true);
        let path = dir.join(COPY);
        let bad = |detail: &str| Twin::Bad(Problem { path: path.clone(), detail: detail.to_owned() });
        let twin = match Manifest::read_from(disk, &path) {
            Ok(copy) if copy.seed != manifest.seed => bad("it is that of another collection"),
            Ok(copy) if copy.next_file > manifest.next_file => {
                let detail = format!(
                    "it is older than its copy {COPY} ({} files were numbered where the copy says {}): \
                     an earlier manifest was put in its place",
                    manifest.next_file, copy.next_file
                );
                return Err(StoreError::corrupt(&dir.join(MANIFEST), detail));
            }
            Ok(copy) => Twin::Proof { behind: copy != manifest },
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => match copied {
                true if manifest.next_file <= FIRST_FILE => Twin::First,
                true => bad("it is missing"),
                false => Twin::Never,
            },
            Err(e) => Twin::Bad(Problem::of(&e)),
        };
        Ok((manifest, twin))
    }

    /// Replaces the manifest and then its copy, durably; gives the length of both.
    ///
    /// The manifest counts: a copy that cannot be written is tried again with the next one, and at the next start.
    pub(crate) fn write(&self, disk: &dyn Disk, dir: &Path) -> Result<u64, StoreError> {
        let path = dir.join(MANIFEST);
        let json = serde_json::to_vec(self).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        let bytes = frame(MAGIC, VERSION, &json);
        replace_file(disk, &path, &bytes)?;
        if let Err(e) = replace_file(disk, &dir.join(COPY), &bytes) {
            tracing::warn!(collection = %self.collection, error = %e, "the copy of a manifest was not written");
        }
        Ok(2 * bytes.len() as u64)
    }

    /// Brings the copy up to date with the manifest.
    pub(crate) fn write_copy(&self, disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(COPY);
        let json = serde_json::to_vec(self).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        replace_file(disk, &path, &frame(MAGIC, VERSION, &json))
    }
}
