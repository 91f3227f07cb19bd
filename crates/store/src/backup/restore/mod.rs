//! Restores a backup to a data folder, or to the collections of an empty bucket.
//!
//! Both run the same steps over the seams of a partition. Its files are verified and opened once (`adopt.rs`), or its
//! events are divided among another number of partitions (`divide.rs`). Its manifest is written last. Records follow.
//! Meanwhile a mark in the folder or bucket reports a restore in progress, and no process opens it. A retry of the same
//! restore resumes: a partition that has its manifest is complete.

mod adopt;
mod divide;
mod folder;
mod source;

use super::seal::BackupKey;
use super::{Backup, SavedPartition};
use crate::audit::AuditLog;
use crate::bucket::{BucketStorage, check_log, restoring};
use crate::control::ControlPlane;
use crate::disk_storage::DiskStorage;
use crate::error::StoreError;
use crate::options::Options;
use crate::recovery::SharedResources;
use crate::seams::Bucket;
use crate::seams::{MemoryDisk, Seams};
use crate::store::folder::write_marker;
use crate::store::records::Records;
use crate::store::{OpenScope, Store};
use crate::stream::SharedLog;
use meridian_model::{Invalid, RecordChange};
use source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Placeholder for the data folder of a process that works on a bucket.
const ROOT: &str = "/restore";

/// A restore from the backup in a folder.
#[derive(Debug, Clone)]
pub struct Restore {
    from: PathBuf,
    key: Option<BackupKey>,
    partitions: Option<u16>,
}

impl Restore {
    /// Restores from the backup in this folder.
    pub fn of(from: impl Into<PathBuf>) -> Restore {
        Restore { from: from.into(), key: None, partitions: None }
    }

    /// Sets the key that sealed the secrets. Without one, records are restored without their secrets.
    #[must_use]
    pub fn with_key(self, key: Option<BackupKey>) -> Restore {
        Restore { key, ..self }
    }

    /// Sets the number of partitions of each collection, in place of its own. Events keep their ids. Idempotency keys
    /// and earlier snapshots are not kept.
    #[must_use]
    pub fn in_partitions(self, partitions: Option<u16>) -> Restore {
        Restore { partitions, ..self }
    }

    /// Creates the data folder of `options`, and opens it once. That rebuilds the files served beside archives. Each
    /// collection must have the events that the backup lists, and each partition its position.
    ///
    /// The folder must be absent or empty, or hold the beginning of the same restore. It becomes a data folder in the
    /// last step. `progress` receives the bytes copied.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if there is no backup, the folder is not empty or the key is the wrong one.
    /// [`StoreError::Corrupt`] naming a file of the backup that has changed. [`StoreError::Io`].
    pub fn to_folder(
        &self,
        options: Options,
        seams: Seams,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, StoreError> {
        let source = Source::open(&seams.disk, &self.from, self.key.as_ref())?;
        self.check(&source)?;
        let root = options.data.clone();
        folder::begin(seams.disk.as_ref(), &root, &self.note(&source)?)?;
        let options = Options { background: false, ..options };
        let bare = |disk| Arc::new(DiskStorage(disk)) as Arc<dyn crate::seams::Storage>;
        // No server may open the folder before it has its marker.
        let store =
            Store::open_as(options.clone(), seams.clone(), bare, &SharedResources::of(&options), OpenScope::Restoring)?;
        self.collections(&source, &store, progress)?;
        for (folder, name, content) in source.records(progress)? {
            Records::named(seams.disk.clone(), &root, &folder)?.put(&name, &content)?;
        }
        source.audit(&mut |first, lines| AuditLog::write_copied(seams.disk.as_ref(), &root, first, lines))?;
        write_marker(&seams, &root)?;
        folder::end(seams.disk.as_ref(), &root)?;
        // Released for the store below, which takes the lock itself.
        drop(store);
        folder::compare(&source.backup, &Store::open(options, seams)?)?;
        Ok(source.backup)
    }

    /// Creates the collections and records of an empty bucket, whose log is `log`. Partitions stay as they are, unless
    /// another number was set. A collection that was ephemeral, and so is only a definition in the backup, becomes
    /// durable.
    ///
    /// The bucket must be empty, or hold the beginning of the same restore. No process serves it before the last step.
    ///
    /// # Errors
    /// Those of [`Restore::to_folder`], and errors of the bucket or log.
    pub fn to_bucket(
        &self,
        seams: &Seams,
        bucket: &Arc<dyn Bucket>,
        log: SharedLog,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, StoreError> {
        let source = Source::open(&seams.disk, &self.from, self.key.as_ref())?;
        self.check(&source)?;
        restoring::begin(bucket.as_ref(), seams.clock.as_ref(), &self.note(&source)?)?;
        let own = Seams { disk: Arc::new(MemoryDisk::new()), ..seams.clone() };
        let options = Options { background: false, ..Options::at(ROOT) };
        let id = check_log(bucket.as_ref(), seams, &log)?;
        let storage = BucketStorage::new(bucket.clone(), own.clone(), &options.data, 0, Duration::ZERO);
        let storage = Arc::new(storage.with_log(log, id).alone());
        let resources = SharedResources::of(&options);
        let store = Store::open_as(options, own, |_| storage, &resources, OpenScope::Restoring)?;
        self.collections(&source, &store, progress)?;
        store.close()?;
        let control = ControlPlane::new(bucket.clone(), seams, u64::MAX);
        put_records(source.records(progress)?, &control)?;
        source.audit(&mut |first, lines| control.audit().take_up(first, lines))?;
        restoring::end(bucket.as_ref())?;
        Ok(source.backup)
    }

    /// Returns the identity of the restore, for the mark: only the same restore may resume.
    fn note(&self, source: &Source) -> Result<String, StoreError> {
        let listing = crc32c::crc32c(&source.backup.encode()?);
        let partitions = self.partitions.map_or_else(String::new, |number| format!(", {number} partitions"));
        Ok(format!("a restore is at work: {listing:08x}{partitions}\n"))
    }

    /// Refuses what cannot be restored, before anything is written.
    fn check(&self, source: &Source) -> Result<(), StoreError> {
        for saved in &source.backup.collections {
            source.check(saved)?;
            if let Some(wanted) = self.other_partitions(saved) {
                divide::check(saved, wanted)?;
            }
        }
        Ok(())
    }

    /// Returns the number of partitions that was set, if it differs from the original.
    fn other_partitions(&self, saved: &SavedPartition) -> Option<u16> {
        self.partitions.filter(|wanted| *wanted != saved.partitions())
    }

    fn collections(&self, source: &Source, store: &Store, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let all = &source.backup.collections;
        let same = |a: &SavedPartition, b: &SavedPartition| (a.tenant(), a.name()) == (b.tenant(), b.name());
        for of_one in all.chunk_by(same) {
            let Some(first) = of_one.first() else { continue };
            if of_one.len() != usize::from(first.partitions()) {
                let detail =
                    format!("it has {} of {} partitions of {}", of_one.len(), first.partitions(), first.name());
                return Err(StoreError::corrupt(&self.from, detail));
            }
            match self.other_partitions(first) {
                None => adopt::adopt(source, store, of_one, progress)?,
                Some(wanted) => divide::divide(source, store, of_one, wanted, progress)?,
            }
        }
        Ok(())
    }
}

/// Writes records to a bucket, each kind in one step. An existing record comes from an earlier attempt.
fn put_records(records: Vec<(String, String, Vec<u8>)>, control: &ControlPlane) -> Result<(), StoreError> {
    let mut rest = records.into_iter().peekable();
    while let Some(kind) = rest.peek().map(|(kind, ..)| kind.clone()) {
        let mut changes = Vec::new();
        while let Some((_, name, content)) = rest.next_if(|(of, ..)| *of == kind) {
            changes.push(RecordChange::put(name, content));
        }
        // A name from outside that becomes part of object names.
        Records::named(Arc::new(MemoryDisk::new()), Path::new(ROOT), &kind)?;
        let records = control.records(&kind);
        if records.since(0)?.is_none() && records.commit(0, &changes)?.is_none() {
            let detail = "records were made in the bucket at the same moment: stop all other processes".to_owned();
            return Err(Invalid::field("bucket", detail).into());
        }
    }
    Ok(())
}
