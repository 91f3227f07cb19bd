//! Backups of a live store, and restores from them.
//!
//! After a flush, a collection's manifest and the files that it names are the collection at one position. Segments
//! never change, and what the log holds besides is newer. So a backup flushes, *pins* that manifest and sends its
//! files. To pin is to open them: they stay readable after a merge has removed their names. Writers and readers
//! continue. Of an archived segment only the archive is sent, since everything else is rebuilt from it.
//!
//! The output is a tar of files for a *backup folder*:
//!
//! - `files/SEED-NUMBER-MARK.EXTENSION`: a file of a collection. The seed is that of the collection, and the mark is
//!   taken from the file's own checksums. So the name identifies the content, and a file that is present need not be
//!   sent again. A backup into the folder of an older or interrupted one only adds new files.
//! - `files/record-NAME-MARK`: a record that other crates keep beside the collections. Records are sent first, so none refers to
//!   a newer state of a collection than the one sent.
//! - `files/sealed-NAME-MARK`: a record that holds a secret, sealed with the operator's key (`seal.rs`). Without a key secrets are
//!   left out (`scope.rs`).
//! - `files/audit-NUMBER-MARK`: lines of the audit log, by the number of the first.
//! - `BACKUP`: the listing. It is sent last and put in place last. It has the position of each collection and the
//!   checksum of every file. A folder without it holds no backup.
//!
//! A restore keeps the same order: the data folder's marker is written last, and a folder without one does not open.

mod bucket;
mod folder;
mod pin;
mod restore;
mod scope;
mod seal;
mod send;
mod tar;

pub use bucket::Flusher;
pub use folder::{BackupFolder, Received};
pub use restore::Restore;
pub use scope::BackupScope;
pub use seal::BackupKey;

use crate::catalog::manifest::Manifest;
use crate::codec::{frame, unframe};
use crate::error::StoreError;
use meridian_model::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file that lists the content of a backup.
const LISTING: &str = "BACKUP";
/// Folder of the files.
const FILES: &str = "files";
/// Name under which a server states why it stopped early.
const ERROR: &str = "ERROR";
const MAGIC: &[u8; 8] = b"MRDNBKUP";
const VERSION: u32 = 1;
/// Bytes copied at a time.
const COPY_BYTES: usize = 256 << 10;

/// The content of a backup.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Backup {
    /// When it was begun, in microseconds since 1970.
    pub made: i64,
    /// Its collections, in order of tenant, name and partition.
    pub collections: Vec<Saved>,
    /// Records of other crates beside the collections.
    #[serde(default)]
    records: Vec<SavedRecord>,
    /// Records that hold secrets, sealed. Programs from before there were any do not restore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sealed: Vec<SavedRecord>,
    /// Lines of the audit log, in order. One tenant's backup has none, as others are named in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit: Vec<SavedLines>,
    /// Numbers of secrets that were left out, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<String, u64>,
    /// The only tenant that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
}

/// A record in a backup; the name in its file is that of the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedRecord {
    /// In the data folder.
    folder: String,
    file: SavedFile,
}

/// Lines of the audit log in a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedLines {
    /// Number of the first.
    first: u64,
    file: SavedFile,
}

/// A partition of a collection in a backup: whole batches, up to one position.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    manifest: Manifest,
    /// Live events, in mode `latest` those of the history.
    events: u64,
    files: Vec<SavedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedFile {
    /// In its folder: of a collection that of its segments.
    name: String,
    /// In the backup's folder of files.
    stored: String,
    bytes: u64,
    crc32c: u32,
}

impl Saved {
    /// The tenant that it belongs to.
    pub fn tenant(&self) -> &str {
        &self.manifest.tenant
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.collection
    }

    /// Which partition of the collection it is, from 0.
    pub fn partition(&self) -> u32 {
        self.manifest.partition
    }

    /// How many partitions the collection has.
    pub fn partitions(&self) -> u16 {
        self.manifest.settings.partitions
    }

    /// Position of the newest write in it.
    pub fn position(&self) -> u64 {
        self.manifest.flushed
    }

    /// The same as a snapshot.
    pub fn seq(&self) -> Seq {
        Seq::end_of(self.manifest.flushed)
    }

    /// Its live events, in mode `latest` those of the history.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

impl Backup {
    fn encode(&self) -> Result<Vec<u8>, StoreError> {
        let json = serde_json::to_vec(self).map_err(|e| StoreError::corrupt(Path::new(LISTING), e.to_string()))?;
        Ok(frame(MAGIC, VERSION, &json))
    }

    fn decode(path: &Path, bytes: &[u8]) -> Result<Backup, StoreError> {
        let content = unframe(path, MAGIC, VERSION, bytes)?;
        serde_json::from_slice(content).map_err(|e| StoreError::corrupt(path, format!("it does not read: {e}")))
    }

    /// How many records it has that are kept beside the collections, such as saved searches, and their bytes.
    pub fn records(&self) -> (usize, u64) {
        (self.records.len(), self.records.iter().map(|record| record.file.bytes).sum())
    }

    /// How many secrets are sealed in it.
    pub fn sealed(&self) -> usize {
        self.sealed.len()
    }

    /// How many secrets were left out of it, by kind.
    pub fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    /// The only tenant that is in it; `None` if it holds all.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// All files.
    fn files(&self) -> impl Iterator<Item = &SavedFile> {
        let of_collections = self.collections.iter().flat_map(|saved| &saved.files);
        let of_records = self.records.iter().chain(&self.sealed).map(|record| &record.file);
        of_collections.chain(of_records).chain(self.audit.iter().map(|lines| &lines.file))
    }
}

/// An error unless the file has the expected checksum.
fn checksum(path: &Path, crc: u32, expected: u32) -> Result<(), StoreError> {
    if crc == expected {
        return Ok(());
    }
    Err(StoreError::corrupt(path, format!("its checksum is {crc:08x} where the backup says {expected:08x}")))
}
