//! The backup that a restore reads.

use super::super::folder::{BackupFolder, checksum_of, read_listing};
use super::super::seal::BackupKey;
use super::super::{Backup, FILES, SavedFile, SavedPartition, SavedRecord, checksum};
use crate::catalog::sidecars::needed_files;
use crate::error::StoreError;
use crate::options::PARTITIONS_MAX;
use crate::seams::{Disk, DiskObjects, Object, ObjectWriter, Objects};
use meridian_model::Invalid;
use meridian_model::schema::validate_name;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder with a backup, locked.
#[derive(Debug)]
pub(super) struct Source {
    disk: Arc<dyn Disk>,
    from: PathBuf,
    pub(super) backup: Backup,
    key: Option<BackupKey>,
    /// Keeps files of the backup from being removed meanwhile. Absent for a backup on a read-only medium.
    _lock: Option<BackupFolder>,
}

impl Source {
    /// Opens the backup, and tests the key: a wrong one opens no record.
    pub(super) fn open(disk: &Arc<dyn Disk>, from: &Path, key: Option<&BackupKey>) -> Result<Source, StoreError> {
        let backup = read_listing(disk.as_ref(), from)?;
        let lock = match BackupFolder::open(disk.clone(), from) {
            Err(StoreError::Io { source, .. })
                if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
            {
                None
            }
            locked => Some(locked?),
        };
        let (disk, from, key) = (disk.clone(), from.to_owned(), key.cloned());
        let source = Source { disk, from, backup, key, _lock: lock };
        if let Some(first) = source.backup.sealed.first().filter(|_| source.key.is_some()) {
            source.open_sealed(first)?;
        }
        Ok(source)
    }

    /// Checks the listing of a partition: it may be forged even if its checksum is right.
    pub(super) fn check(&self, saved: &SavedPartition) -> Result<(), StoreError> {
        validate_name("tenant", saved.tenant())?;
        validate_name("collection", saved.name())?;
        if saved.partition() >= u32::from(PARTITIONS_MAX) || saved.partition() >= u32::from(saved.partitions()) {
            let detail = format!("{} has no partition {}", saved.name(), saved.partition());
            return Err(StoreError::corrupt(&self.from, detail));
        }
        let expected = needed_files(&saved.manifest);
        let found: BTreeSet<String> = saved.files.iter().map(|file| file.name.clone()).collect();
        if expected != found {
            let detail = format!("its files of {} are not those of its manifest", saved.name());
            return Err(StoreError::corrupt(&self.from, detail));
        }
        Ok(())
    }

    fn path(&self, file: &SavedFile) -> PathBuf {
        self.from.join(FILES).join(&file.stored)
    }

    /// Passes a file to `sink`, piece by piece, and verifies its checksum.
    pub(super) fn read(
        &self,
        file: &SavedFile,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let path = self.path(file);
        let (bytes, crc) = checksum_of(self.disk.as_ref(), &path, sink)?;
        if bytes != file.bytes {
            let detail = format!("it has {bytes} bytes where the backup says {}", file.bytes);
            return Err(StoreError::corrupt(&path, detail));
        }
        checksum(&path, crc, file.crc32c)
    }

    /// Returns the files of a partition, under their names in the manifest. They are not verified.
    pub(super) fn objects(&self, saved: &SavedPartition) -> impl Objects + use<> {
        let stored = saved.files.iter().map(|file| (file.name.clone(), file.stored.clone())).collect();
        BackupObjects { files: DiskObjects::new(self.disk.clone(), self.from.join(FILES)), stored }
    }

    /// Returns all records by kind and name; with their secrets if there is a key.
    pub(super) fn records(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<(String, String, Vec<u8>)>, StoreError> {
        let mut all = BTreeMap::new();
        for record in &self.backup.records {
            all.insert((record.folder.clone(), record.file.name.clone()), self.record(record, progress)?);
        }
        // Last: the complete record replaces the one without its secret.
        for record in self.backup.sealed.iter().filter(|_| self.key.is_some()) {
            all.insert((record.folder.clone(), record.file.name.clone()), self.open_sealed(record)?);
        }
        Ok(all.into_iter().map(|((kind, name), content)| (kind, name, content)).collect())
    }

    /// Passes the lines of the audit log to `sink` in pieces, with the number of the first.
    pub(super) fn audit(&self, sink: &mut impl FnMut(u64, &[u8]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        for saved in &self.backup.audit {
            let mut lines = Vec::new();
            self.read(&saved.file, &mut |piece| {
                lines.extend_from_slice(piece);
                Ok(())
            })?;
            sink(saved.first, &lines)?;
        }
        Ok(())
    }

    fn record(&self, record: &SavedRecord, progress: &mut dyn FnMut(u64)) -> Result<Vec<u8>, StoreError> {
        let mut content = Vec::new();
        self.read(&record.file, &mut |piece| {
            content.extend_from_slice(piece);
            progress(piece.len() as u64);
            Ok(())
        })?;
        Ok(content)
    }

    fn open_sealed(&self, record: &SavedRecord) -> Result<Vec<u8>, StoreError> {
        let sealed = self.record(record, &mut |_| {})?;
        let opened = self.key.as_ref().and_then(|key| key.open(&record.folder, &record.file.name, &sealed));
        opened.ok_or_else(|| {
            let detail = format!("{} was not sealed with this key", self.path(&record.file).display());
            Invalid::field("key", detail).into()
        })
    }
}

/// Files of a backup, presented as the readable objects of a partition.
#[derive(Debug)]
struct BackupObjects {
    files: DiskObjects,
    stored: BTreeMap<String, String>,
}

fn refused() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "files of a backup are only read")
}

impl BackupObjects {
    fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.stored.get(name).map_or(name, String::as_str)
    }
}

impl Objects for BackupObjects {
    fn put(&self, _: &str) -> io::Result<Box<dyn ObjectWriter>> {
        Err(refused())
    }

    fn replace(&self, _: &str) -> io::Result<Box<dyn ObjectWriter>> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
        self.files.open(self.name(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.stored.keys().cloned().collect())
    }

    fn delete(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path(self.name(name))
    }
}
