//! A data folder made from a backup.

use super::folder::{BackupFolder, checksum_of, read_listing};
use super::seal::BackupKey;
use super::{Backup, FILES, Saved, SavedFile, SavedRecord, checksum};
use crate::catalog;
use crate::catalog::manifest::Manifest;
use crate::catalog::sidecars::needed_files;
use crate::codec::{read_file, replace_file};
use crate::error::StoreError;
use crate::options::{Options, PARTITIONS_MAX};
use crate::recovery::make_folders;
use crate::seams::{Disk, OpenMode, Seams};
use crate::store::Store;
use crate::store::folder::{LOCK, MARKER, RESTORING, make_root, write_marker};
use crate::store::records::Records;
use meridian_model::Invalid;
use meridian_model::schema::validate_name;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

/// Makes the data folder of `options` from the backup in `from`, and opens it once. That rebuilds the files that are
/// served beside archives. Each collection must have the position and the number of events that the backup lists.
///
/// The data folder must be absent or empty, or hold the beginning of a restore of this backup. It becomes a data folder in the
/// last step. `progress` receives the bytes copied. With the key that sealed them, secrets are restored; without it, records
/// are restored without their secrets.
///
/// # Errors
/// [`StoreError::Invalid`] if there is no backup, the folder is not empty or the key is the wrong one. [`StoreError::Corrupt`] naming a file
/// of the backup that has changed. [`StoreError::Io`].
pub fn restore(
    from: &Path,
    options: Options,
    seams: Seams,
    key: Option<&BackupKey>,
    progress: &mut dyn FnMut(u64),
) -> Result<Backup, StoreError> {
    let disk = seams.disk.clone();
    let backup = read_listing(disk.as_ref(), from)?;
    // The lock keeps files of the backup from being removed meanwhile. A backup on a read-only medium needs none.
    let locked = match BackupFolder::open(disk.clone(), from) {
        Err(StoreError::Io { source, .. })
            if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
        {
            None
        }
        locked => Some(locked?),
    };
    let root = options.data.clone();
    // Before anything is written: a wrong key opens no record.
    if let (Some(key), Some(first)) = (key, backup.sealed.first()) {
        open_sealed(disk.as_ref(), from, first, key)?;
    }
    begin(disk.as_ref(), &root, &backup)?;
    // No server may open the folder before the marker is in it.
    let held = disk.lock(&root.join(LOCK)).map_err(|e| match e.kind() {
        ErrorKind::WouldBlock => StoreError::InUse { path: root.clone() },
        _ => StoreError::io("lock", &root.join(LOCK))(e),
    })?;
    for saved in &backup.collections {
        restore_collection(disk.as_ref(), from, &root, saved, progress)?;
    }
    let put = |record: &SavedRecord, content: &[u8]| {
        Records::named(disk.clone(), &root, &record.folder)?.put(&record.file.name, content)
    };
    for record in &backup.records {
        put(record, &read_record(disk.as_ref(), from, record, progress)?)?;
    }
    if let Some(key) = key {
        // After the others: the whole record takes the place of the one without its secret.
        for record in &backup.sealed {
            put(record, &open_sealed(disk.as_ref(), from, record, key)?)?;
        }
    }
    write_marker(&seams, &root)?;
    let begun = root.join(RESTORING);
    disk.remove(&begun).map_err(StoreError::io("remove", &begun))?;
    disk.sync_dir(&root).map_err(StoreError::io("sync", &root))?;
    // Released for the store below, which takes the lock itself.
    drop((held, locked));
    compare(&backup, &Store::open(Options { background: false, ..options }, seams)?)?;
    Ok(backup)
}

/// Marks the folder as being restored from this backup.
fn begin(disk: &dyn Disk, root: &Path, backup: &Backup) -> Result<(), StoreError> {
    make_root(disk, root)?;
    let note = format!("a restore is at work: {:08x}\n", crc32c::crc32c(&backup.encode()?));
    let path = root.join(RESTORING);
    let names = disk.list(root).map_err(StoreError::io("list", root))?;
    let refuse =
        |why: &str| Err(Invalid::field("data", format!("{} {why}: name a new or empty folder", root.display())).into());
    if names.iter().any(|name| name == MARKER) {
        return refuse("is a data folder already");
    }
    if names.iter().any(|name| name == RESTORING) {
        // An interrupted restore of the same backup starts over; what it copied is copied again.
        return if read_file(disk, &path)? == note.as_bytes() {
            Ok(())
        } else {
            refuse("holds the beginning of a restore of another backup")
        };
    }
    let ours = |name: &str| name == LOCK || name == "lost+found" || name.starts_with(RESTORING);
    match names.iter().find(|name| !ours(name)) {
        Some(other) => refuse(&format!("is not empty, it holds {other:?}")),
        None => replace_file(disk, &path, note.as_bytes()),
    }
}

fn restore_collection(
    disk: &dyn Disk,
    from: &Path,
    root: &Path,
    saved: &Saved,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    // A listing whose checksum is right may still be forged.
    validate_name("tenant", saved.tenant())?;
    validate_name("collection", saved.name())?;
    if saved.partition() >= u32::from(PARTITIONS_MAX) {
        return Err(StoreError::corrupt(from, format!("{} has no partition {}", saved.name(), saved.partition())));
    }
    let expected = needed_files(&saved.manifest);
    let found: BTreeSet<String> = saved.files.iter().map(|file| file.name.clone()).collect();
    if expected != found {
        return Err(StoreError::corrupt(from, format!("its files of {} are not those of its manifest", saved.name())));
    }
    let dir = Store::dir_of(root, saved.tenant(), saved.name(), saved.partition());
    make_folders(disk, root, &dir)?;
    let segments = dir.join("segments");
    for file in &saved.files {
        let (source, path) = (from.join(FILES).join(&file.stored), segments.join(&file.name));
        let to = disk.open(&path, OpenMode::Create).map_err(StoreError::io("create", &path))?;
        // Copied and compared in one pass: a file of the backup that changed since is never used.
        let mut at = 0;
        copy(disk, &source, file, &mut |piece| {
            to.write_at(at, piece).map_err(StoreError::io("write", &path))?;
            at += piece.len() as u64;
            progress(piece.len() as u64);
            Ok(())
        })?;
        // All files before the manifest: once that is there, the collection exists.
        to.sync().map_err(StoreError::io("sync", &path))?;
    }
    disk.sync_dir(&segments).map_err(StoreError::io("sync", &segments))?;
    catalog::disk::write(&Manifest { copied: true, ..saved.manifest.clone() }, disk, &dir).map(|_| ())
}

/// Gives a file of the backup to `sink`, piece by piece, and verifies its checksum.
fn copy(
    disk: &dyn Disk,
    source: &Path,
    file: &SavedFile,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (bytes, crc) = checksum_of(disk, source, sink)?;
    if bytes != file.bytes {
        let detail = format!("it has {bytes} bytes where the backup says {}", file.bytes);
        return Err(StoreError::corrupt(source, detail));
    }
    checksum(source, crc, file.crc32c)
}

/// The content of a sealed record.
fn open_sealed(disk: &dyn Disk, from: &Path, record: &SavedRecord, key: &BackupKey) -> Result<Vec<u8>, StoreError> {
    let sealed = read_record(disk, from, record, &mut |_| {})?;
    key.open(&record.folder, &record.file.name, &sealed).ok_or_else(|| {
        let detail = format!("{} was not sealed with this key", from.join(FILES).join(&record.file.stored).display());
        Invalid::field("key", detail).into()
    })
}

fn read_record(
    disk: &dyn Disk,
    from: &Path,
    record: &SavedRecord,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<u8>, StoreError> {
    let mut content = Vec::new();
    copy(disk, &from.join(FILES).join(&record.file.stored), &record.file, &mut |piece| {
        content.extend_from_slice(piece);
        progress(piece.len() as u64);
        Ok(())
    })?;
    Ok(content)
}

/// Verifies that the store matches the backup's listing.
fn compare(backup: &Backup, store: &Store) -> Result<(), StoreError> {
    if let Some(problem) = store.problems().into_iter().next() {
        return Err(StoreError::corrupt(&problem.path, problem.detail));
    }
    for saved in &backup.collections {
        let partitions = store.partitions(saved.tenant(), saved.name());
        let partition = saved.partition() as usize;
        let Some(collection) = partitions.as_ref().and_then(|partitions| partitions.get(partition)) else {
            let detail = format!("the collection {} did not come out of it", saved.name());
            return Err(StoreError::corrupt(store.root(), detail));
        };
        let (position, events) = (collection.position(), collection.history_events());
        if (position, events) != (saved.position(), saved.events) {
            let detail = format!(
                "the collection {} came out with {events} events at position {position}, where the backup says {} at {}",
                saved.name(),
                saved.events,
                saved.position()
            );
            return Err(StoreError::corrupt(store.root(), detail));
        }
    }
    Ok(())
}
