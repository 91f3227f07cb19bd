//! Restores partitions unchanged: their files are copied, verified and opened once, and the manifest is written last.

use super::super::{SavedFile, SavedPartition};
use super::source::Source;
use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::options::{Durability, Settings};
use crate::recovery;
use crate::seams::Objects;
use crate::store::Store;
use meridian_model::Seq;
use std::io::ErrorKind;
use std::path::Path;

/// Creates a collection from these partitions, which are all of it.
pub(super) fn adopt(
    source: &Source,
    store: &Store,
    partitions: &[SavedPartition],
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let Some(first) = partitions.first() else { return Ok(()) };
    if let Some(registry) = store.inner().common.storage.registry() {
        registry.enroll(first.tenant(), first.name(), first.partitions())?;
    }
    // The clock now, because its events get numbers that other events have had since the backup.
    let began = store.inner().common.seams.clock.now();
    partitions.iter().try_for_each(|saved| adopt_one(source, store, saved, began, progress))
}

/// Returns the settings that a collection gets where it is restored: no collection in a bucket is ephemeral.
pub(super) fn settings_there(store: &Store, settings: &Settings) -> Settings {
    let shared = store.inner().common.storage.registry().is_some();
    let durability = if shared { Durability::Local } else { settings.durability };
    Settings { durability, ..settings.clone() }
}

fn adopt_one(
    source: &Source,
    store: &Store,
    saved: &SavedPartition,
    began: i64,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let inner = store.inner();
    let (common, dir) = (&inner.common, inner.dir_of(saved.tenant(), saved.name(), saved.partition()));
    let settings = settings_there(store, &saved.manifest.settings);
    let manifest = Manifest { settings, copied: true, log: None, began: Some(began), ..saved.manifest.clone() };
    let storage = common.storage_of(&dir);
    if let Some(there) = storage.catalog.newest()? {
        // An earlier attempt got this far.
        return match there.manifest.seed == manifest.seed && there.manifest.version() == manifest.version() {
            true => {
                progress(saved.bytes());
                Ok(())
            }
            false => Err(StoreError::corrupt(&dir, "it holds another partition than the backup")),
        };
    }
    if common.storage.registry().is_none() {
        recovery::make_folders(common.seams.disk.as_ref(), &inner.root, &dir)?;
    }
    for file in &saved.files {
        copy(source, storage.objects.as_ref(), file, progress)?;
    }
    let sync = || storage.objects.sync().map_err(StoreError::io("sync", &dir));
    // All files before the manifest, since the manifest makes the partition exist.
    sync()?;
    check(common, &dir, &manifest, saved)?;
    sync()?;
    Ok(storage.catalog.commit(0, &manifest).map(drop)?)
}

/// Opens a partition before it has its manifest. This rebuilds the files served beside archives, and detects missing
/// parts.
fn check(common: &recovery::Common, dir: &Path, manifest: &Manifest, saved: &SavedPartition) -> Result<(), StoreError> {
    if manifest.settings.durability == Durability::Ephemeral {
        return Ok(());
    }
    let mut partition = recovery::prepare(common, dir, manifest.clone())?;
    partition.open_files(false)?;
    // An error of the disk or bucket is reported as such: nothing is damaged, and the restore can be resumed.
    partition.unread.take().map_or(Ok(()), Err)?;
    partition.check_whole()?;
    let flushed = Seq::end_of(manifest.flushed).0;
    let alive = partition.entries.iter().map(|entry| u64::from(entry.part.rows) - entry.dead.count_by(flushed));
    let (events, expected) = (alive.sum::<u64>(), saved.events());
    match events == expected {
        true => Ok(()),
        false => {
            let detail = format!("{} came out with {events} events, where the backup says {expected}", saved.name());
            Err(StoreError::corrupt(dir, detail))
        }
    }
}

/// Copies and compares a file in one pass: one that has changed meanwhile is never used.
fn copy(
    source: &Source,
    objects: &dyn Objects,
    file: &SavedFile,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let path = objects.path(&file.name);
    // A copy of an earlier attempt may be incomplete or not durable.
    match objects.delete(&file.name) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(StoreError::io("remove", &path)(e)),
        _ => {}
    }
    let mut to = objects.put(&file.name).map_err(StoreError::io("create", &path))?;
    source.read(file, &mut |piece| {
        to.write(piece).map_err(StoreError::io("write", &path))?;
        progress(piece.len() as u64);
        Ok(())
    })?;
    to.finish().map(drop).map_err(StoreError::io("sync", &path))
}
