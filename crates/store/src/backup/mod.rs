//! Backups of a live store, and restores from them.
//!
//! After a flush, a collection's manifest and the files that it names are the collection at one position. Segments
//! never change, and anything else in the log is newer. So a backup flushes, *pins* that manifest and sends its files.
//! Pinning opens them, so they stay readable after a merge has removed their names. All partitions of a collection are
//! pinned before any is sent: a backup has all of them, or leaves out a collection that was dropped. Writers and
//! readers continue. For an archived segment only the archive is sent, since everything else is rebuilt from it.
//!
//! The output is a tar of the files of a *backup folder*:
//!
//! - `files/SEED-NUMBER-MARK.EXTENSION`: a file of a collection. The seed is that of the collection; the mark derives
//!   from the file's own checksums. So the name identifies the content, and a file that is present need not be sent
//!   again. A backup into the folder of an older or interrupted one only adds new files.
//! - `files/record-NAME-MARK`: a record that other crates keep beside the collections. Records are sent first, so they
//!   never refer to a newer state of a collection than the one sent.
//! - `files/sealed-NAME-MARK`: a record that holds a secret, sealed with the operator's key (`seal.rs`). Without a key,
//!   secrets are left out (`scope.rs`).
//! - `files/audit-NUMBER-MARK`: lines of the audit log, by the number of the first.
//! - `BACKUP`: the listing, sent and installed last. It has the position of each collection and the checksum of every
//!   file. A folder without it holds no backup.
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
pub use folder::{BackupFolder, BackupOutcome};
pub use restore::Restore;
pub use scope::BackupScope;
pub use seal::BackupKey;

use crate::codec::{frame, unframe};
use crate::error::StoreError;
use crate::manifest::Manifest;
use meridian_model::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the file that lists the content of a backup.
const LISTING: &str = "BACKUP";
/// Name of the folder with the files.
const FILES: &str = "files";
/// Name of the entry in which a server reports why it stopped early.
const ERROR: &str = "ERROR";
const MAGIC: &[u8; 8] = b"MRDNBKUP";
const VERSION: u32 = 1;
/// Bytes copied at a time.
const COPY_BYTES: usize = 256 << 10;

/// The content of a backup.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Backup {
    /// When the backup was begun, in microseconds since 1970.
    pub made: i64,
    /// Its collections, in order of tenant, name and partition.
    pub collections: Vec<SavedPartition>,
    /// Records of other crates beside the collections.
    #[serde(default)]
    records: Vec<SavedRecord>,
    /// Sealed records with secrets. Programs that predate them do not restore them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sealed: Vec<SavedRecord>,
    /// Lines of the audit log, in order. Empty in the backup of a single tenant, because lines name other tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit: Vec<SavedLines>,
    /// Number of secrets left out, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    left_out: BTreeMap<String, u64>,
    /// The only tenant in the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
}

/// A record in a backup; the file name is that of the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedRecord {
    /// Its folder within the data folder.
    folder: String,
    file: SavedFile,
}

/// Lines of the audit log in a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedLines {
    /// Number of the first line.
    first: u64,
    file: SavedFile,
}

/// A partition of a collection in a backup: complete batches, up to one position.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedPartition {
    manifest: Manifest,
    /// Number of live events; in mode `latest` including the history.
    events: u64,
    files: Vec<SavedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedFile {
    /// Name in its folder; for a file of a collection, in that of the segments.
    name: String,
    /// Name in the backup's folder of files.
    stored: String,
    bytes: u64,
    crc32c: u32,
}

impl SavedPartition {
    /// Returns the tenant that owns the collection.
    pub fn tenant(&self) -> &str {
        &self.manifest.tenant
    }

    /// Returns the name of the collection.
    pub fn name(&self) -> &str {
        &self.manifest.collection
    }

    /// Returns the number of the partition within its collection, from 0.
    pub fn partition(&self) -> u32 {
        self.manifest.partition
    }

    /// Returns the number of partitions of the collection.
    pub fn partitions(&self) -> u16 {
        self.manifest.settings.partitions
    }

    /// Returns the position of the newest write in it.
    pub fn position(&self) -> u64 {
        self.manifest.flushed
    }

    /// Returns the same position as a snapshot.
    pub fn seq(&self) -> Seq {
        Seq::end_of(self.manifest.flushed)
    }

    /// Returns the number of live events; in mode `latest` including the history.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the total size of its files.
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

    /// Returns the number and bytes of records kept beside the collections, such as saved searches.
    pub fn records(&self) -> (usize, u64) {
        (self.records.len(), self.records.iter().map(|record| record.file.bytes).sum())
    }

    /// Returns the number of sealed secrets.
    pub fn sealed(&self) -> usize {
        self.sealed.len()
    }

    /// Returns the number of secrets left out, by kind.
    pub fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    /// Returns the only tenant in the backup; `None` if it holds all.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Returns all files.
    fn files(&self) -> impl Iterator<Item = &SavedFile> {
        let of_collections = self.collections.iter().flat_map(|saved| &saved.files);
        let of_records = self.records.iter().chain(&self.sealed).map(|record| &record.file);
        of_collections.chain(of_records).chain(self.audit.iter().map(|lines| &lines.file))
    }
}

/// Checks that a file has the expected checksum.
fn checksum(path: &Path, crc: u32, expected: u32) -> Result<(), StoreError> {
    if crc == expected {
        return Ok(());
    }
    Err(StoreError::corrupt(path, format!("its checksum is {crc:08x} where the backup says {expected:08x}")))
}
