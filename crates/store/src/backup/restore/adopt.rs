//! Partitions as they were: their files are copied, verified and opened once, and their manifest comes last.

use super::super::{Saved, SavedFile};
use super::source::Source;
use crate::catalog::manifest::Manifest;
use crate::error::StoreError;
use crate::options::{Durability, Settings};
use crate::recovery;
use crate::seams::Objects;
use crate::store::Store;
use meridian_model::Seq;
use std::io::ErrorKind;
use std::path::Path;

/// Makes a collection of these partitions, which are all that it has.
pub(super) fn adopt(
    source: &Source,
    store: &Store,
    partitions: &[Saved],
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let Some(first) = partitions.first() else { return Ok(()) };
    if let Some(registry) = store.inner().common.storage.registry() {
        registry.enroll(first.tenant(), first.name(), first.partitions())?;
    }
    // Its events get numbers that others had since the backup.
    let began = store.inner().common.seams.clock.now();
    partitions.iter().try_for_each(|saved| adopt_one(source, store, saved, began, progress))
}

/// Settings that a collection has where it is restored to: in a bucket none is ephemeral.
pub(super) fn settings_there(store: &Store, settings: &Settings) -> Settings {
    let shared = store.inner().common.storage.registry().is_some();
    let durability = if shared { Durability::Local } else { settings.durability };
    Settings { durability, ..settings.clone() }
}

fn adopt_one(
    source: &Source,
    store: &Store,
    saved: &Saved,
    began: i64,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let inner = store.inner();
    let (common, dir) = (&inner.common, inner.dir_of(saved.tenant(), saved.name(), saved.partition()));
    let settings = settings_there(store, &saved.manifest.settings);
    let manifest = Manifest { settings, copied: true, log: None, began: Some(began), ..saved.manifest.clone() };
    let storage = common.storage_of(&dir);
    if let Some(there) = storage.catalog.newest()? {
        // A try before came so far.
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
    // All files before the manifest: once that is there, the partition exists.
    sync()?;
    check(common, &dir, &manifest, saved)?;
    sync()?;
    Ok(storage.catalog.commit(0, &manifest).map(drop)?)
}

/// Opens a partition before it has its manifest: this rebuilds what is served beside archives, and shows whether all of it is there.
fn check(common: &recovery::Common, dir: &Path, manifest: &Manifest, saved: &Saved) -> Result<(), StoreError> {
    if manifest.settings.durability == Durability::Ephemeral {
        return Ok(());
    }
    let mut partition = recovery::prepare(common, dir, manifest.clone())?;
    partition.open_files()?;
    // What disk or bucket refused is said as such: nothing is damaged for that, and the restore can go on later.
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

/// Copies a file and compares it in one pass: one that has changed since is never used.
fn copy(
    source: &Source,
    objects: &dyn Objects,
    file: &SavedFile,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StoreError> {
    let path = objects.path(&file.name);
    // One of a try before is perhaps not whole, or not on disk.
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
