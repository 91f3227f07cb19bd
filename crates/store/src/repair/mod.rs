//! Repairs a collection without a trustworthy manifest.
//!
//! If the manifest's copy is intact and nothing is newer, it becomes the manifest. Otherwise a manifest is built from
//! the files: the schema from segments, then archives or Arrow rows, dead rows and idempotency keys. Then the log is
//! replayed as at any start. Settings, seed and tenant names come from a copy or an older manifest.
//!
//! If the manifest is good but its files or the log are damaged, the readable part is kept (`salvage.rs`).
//!
//! Nothing is deleted. Unreadable and unreferenced files move to the partition's folder `lost`, and so do replaced
//! manifests. The new manifest is written last, so an interrupted repair can be run again.

mod build;
mod cut;
mod marks;
mod report;
mod salvage;
mod survey;

pub use report::Repair;

use crate::catalog::disk::{COPY, MANIFEST, read_manifest, read_newest, write};
use crate::catalog::lineage::Lineage;
use crate::catalog::sidecars::{files_of, needed_files};
use crate::collection::Collection;
use crate::error::StoreError;
use crate::ingest::partition::Partition;
use crate::manifest::Manifest;
use crate::options::{Durability, PARTITIONS_MAX};
use crate::paths::LOST;
use crate::recovery::{self, Common, make_folders, prepare};
use crate::seams::files::names;
use crate::seams::objects::HALF;
use crate::seams::{Catalog, CommitError, Disk, Newest, Objects, Proof};
use crate::store::partitions::align;
use crate::store::{Inner, Store};
use report::Report;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Store {
    /// Repairs every collection that could not be opened, lacks data, refuses writes or has unreadable events. Reports
    /// for each what was found, done and is missing. Nothing is deleted.
    ///
    /// Takes as long as reading everything. No other caller may use the collections meanwhile. Only collections of a
    /// data folder are repaired.
    pub fn repair(&self) -> Vec<Repair> {
        let inner = self.inner();
        if inner.common.storage.registry().is_some() {
            return Vec::new();
        }
        let hurt = self.collections().into_iter().filter(|c| {
            let core = c.core.lock();
            !core.is_sound() || core.has_lost_blocks()
        });
        let mut names: BTreeSet<(String, String)> =
            hurt.map(|c| (c.tenant().to_owned(), c.name().to_owned())).collect();
        names.extend(inner.damaged.lock().keys().cloned());
        names.into_iter().map(|(tenant, name)| inner.repair(&tenant, &name)).collect()
    }
}

impl Inner {
    fn repair(&self, tenant: &str, name: &str) -> Repair {
        let at = (tenant.to_owned(), name.to_owned());
        let mut report = Report::default();
        // Keeps others from creating a collection of its name meanwhile.
        let _changing = self.changing.lock();
        if let Some(open) = self.collections.remove(tenant, name) {
            // Writes that it did not flush are in the log.
            open.iter().for_each(|partition| drop(partition.close(false)));
        }
        let (mut sound, mut failed, mut opened) = (true, None, Vec::new());
        let partitions = self.partitions_of(tenant, name);
        for partition in 0..partitions {
            let dir = self.dir_of(tenant, name, partition);
            let (common, root, report) = (&self.common, &self.root, &mut report);
            let mut mender =
                PartitionRepair { common, root, dir: &dir, tenant, name, of: (partition, partitions), report };
            let mended = mender.mend();
            sound &= mended.as_ref().is_ok_and(Partition::is_sound);
            match mended {
                Ok(partition) => opened.push(Collection::new(tenant, name, partition, self.wake.clone())),
                Err(e) => {
                    mender.report.missing(format!("it could not be put together: {e}"));
                    failed.get_or_insert(e);
                }
            }
        }
        let collection = match failed {
            None => align(&opened).map(|()| Some(opened.into())),
            // A collection that is served continues unchanged.
            Some(failed) => self.open_one(tenant, name).map_err(|_| failed),
        };
        match collection {
            Ok(collection) => {
                self.damaged.lock().remove(&at);
                if let Some(collection) = collection {
                    self.collections.insert(tenant, name, collection);
                }
            }
            Err(e) => drop(self.set_apart(tenant, name, &e)),
        }
        report.of(at, sound)
    }

    /// Returns the number of partitions of a damaged collection: from a readable manifest, or by counting folders.
    fn partitions_of(&self, tenant: &str, name: &str) -> u32 {
        let folders = self.others_there(tenant, name).unwrap_or_default().into_iter().max().map_or(1, |last| last + 1);
        let said = (0..folders).filter_map(|partition| {
            let (disk, dir) = (self.common.seams.disk.as_ref(), self.dir_of(tenant, name, partition));
            let manifest = [MANIFEST, COPY].iter().find_map(|name| read_manifest(disk, &dir.join(name)).ok())?;
            Some(u32::from(manifest.settings.partitions))
        });
        said.max().unwrap_or(1).max(folders).min(u32::from(PARTITIONS_MAX))
    }
}

/// Name of the folder of segments and their indexes.
const SEGMENTS: &str = "segments";

/// The repair of one partition.
struct PartitionRepair<'a> {
    common: &'a Common,
    root: &'a Path,
    dir: &'a Path,
    tenant: &'a str,
    name: &'a str,
    /// Number of the partition, and the total.
    of: (u32, u32),
    report: &'a mut Report,
}

/// A catalog whose manifest is replaced without a comparison, because the current one cannot be trusted.
#[derive(Debug)]
struct Rewrite {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

impl Catalog for Rewrite {
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        read_newest(self.disk.as_ref(), &self.dir).map(Some)
    }

    fn commit(&self, _: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        write(manifest, self.disk.as_ref(), &self.dir).map_err(CommitError::Unknown)
    }
}

impl PartitionRepair<'_> {
    fn disk(&self) -> &dyn Disk {
        self.common.seams.disk.as_ref()
    }

    fn objects(&self) -> Arc<dyn Objects> {
        self.common.storage_of(self.dir).objects
    }

    /// Creates a partition without any open file. Its next manifest replaces any in the folder.
    fn prepare(&self, manifest: Manifest) -> Result<Partition, StoreError> {
        let mut partition = prepare(self.common, self.dir, manifest)?;
        let rewrite = Rewrite { disk: self.common.seams.disk.clone(), dir: self.dir.to_owned() };
        partition.catalog = Arc::new(Lineage::after(Arc::new(rewrite), 0));
        Ok(partition)
    }

    fn mend(&mut self) -> Result<Partition, StoreError> {
        for sub in ["segments", "log"] {
            if self.disk().list(&self.dir.join(sub)).is_err() {
                self.report.missing(format!("the folder {sub}, and what was in it"));
            }
        }
        make_folders(self.disk(), self.root, self.dir)?;
        // A trusted manifest is kept: it has deletions, settings and keys that the files alone do not show.
        if !self.is_newest() {
            self.mend_manifest()?;
        }
        let opened = recovery::open(self.common, self.dir)?;
        if opened.is_sound() && !opened.has_lost_blocks() {
            return Ok(opened);
        }
        drop(opened);
        // The manifest is good but the data is not: from here on readable parts are copied out.
        self.salvage()?;
        recovery::open(self.common, self.dir)
    }

    /// Returns true if the manifest is the newest that was written. Then it lists the content of the collection,
    /// readable or not.
    fn is_newest(&self) -> bool {
        let read = read_newest(self.disk(), self.dir);
        matches!(read, Ok(Newest { proof: Proof::Newest { .. } | Proof::Never | Proof::First, .. }))
            && recovery::open(self.common, self.dir).is_ok_and(|opened| !opened.stale)
    }

    /// Installs a manifest that lists the content of the collection.
    fn mend_manifest(&mut self) -> Result<(), StoreError> {
        match self.newest()? {
            Some((from, manifest)) if self.is_whole(&manifest)? => {
                self.report.done(format!("{from} names all that the collection consists of: it is the manifest again"));
                // Copied before they are replaced, so that an operator can undo the repair.
                self.keep_manifests()?;
                self.set_aside(SEGMENTS, |name| !files_of(&manifest).contains(name))?;
                // Above every file in the folder: the repaired manifest must be newer than any that was lost.
                let next_file = self.next_file()?.max(manifest.next_file) + 1;
                write(&Manifest { next_file, copied: true, ..manifest }, self.disk(), self.dir)?;
                Ok(())
            }
            found => self.rebuild(found.map(|(_, manifest)| manifest)),
        }
    }

    /// Returns the newest readable manifest under any name, and that name.
    fn newest(&mut self) -> Result<Option<(String, Manifest)>, StoreError> {
        let mut newest: Option<(String, Manifest)> = None;
        for name in [MANIFEST.to_owned(), COPY.to_owned(), format!("{MANIFEST}{HALF}"), format!("{COPY}{HALF}")] {
            match read_manifest(self.disk(), &self.dir.join(&name)) {
                Ok(found) if newest.as_ref().is_none_or(|(_, best)| best.next_file < found.next_file) => {
                    newest = Some((name, found));
                }
                Ok(_) => {}
                // A newer program's manifest is not damage: a repair by this program would destroy what it cannot read.
                Err(newer @ StoreError::NewerFormat { .. }) => return Err(newer),
                Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    if !name.ends_with(HALF) {
                        self.report.done(format!("{name} is not there"));
                    }
                }
                Err(e) => self.report.done(e.to_string()),
            }
        }
        Ok(newest)
    }

    /// Returns true if a manifest covers the collection except for the log: all files it names are readable, and no
    /// file has later writes.
    fn is_whole(&mut self, manifest: &Manifest) -> Result<bool, StoreError> {
        if manifest.settings.durability == Durability::Ephemeral {
            return Ok(true);
        }
        let there: BTreeSet<String> = names(self.disk(), &self.dir.join("segments"))?.into_iter().collect();
        // The index can be rebuilt from the rows.
        let needed = needed_files(manifest).into_iter().filter(|name| !name.ends_with(".segment"));
        if let Some(missing) = needed.into_iter().find(|name| !there.contains(name)) {
            self.report.missing(format!("the file {missing}, which the newest manifest that reads names"));
            return Ok(false);
        }
        let mut opened = self.prepare(manifest.clone())?;
        opened.open_files(false)?;
        if let Err(e) = opened.check_whole() {
            self.report.done(format!("the newest manifest that reads does not hold: {e}"));
            return Ok(false);
        }
        opened.open_log(self.common.storage_of(self.dir))?;
        // The log is opened first: it may hold the later writes of the file.
        if let Some((path, position)) = opened.later_file()? {
            self.report.done(format!("{} holds writes up to {position}, after the newest manifest", path.display()));
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns a number that no file has.
    fn next_file(&self) -> Result<u64, StoreError> {
        let names = names(self.disk(), &self.dir.join("segments"))?;
        Ok(names.iter().filter_map(|name| crate::recovery::leftovers::number_of(name)).max().map_or(1, |last| last + 1))
    }

    /// Copies the manifests that are about to be replaced.
    fn keep_manifests(&mut self) -> Result<(), StoreError> {
        for name in [MANIFEST, COPY] {
            self.keep_copy(self.dir, name)?;
        }
        Ok(())
    }

    /// Copies a file that is about to be replaced.
    fn keep_copy(&self, dir: &Path, name: &str) -> Result<(), StoreError> {
        let Ok(bytes) = crate::seams::files::read_file(self.disk(), &dir.join(name)) else { return Ok(()) };
        crate::seams::files::replace_file(self.disk(), &self.place_for(name)?, &bytes)
    }

    /// Moves files of a folder of the collection to the folder `lost`.
    fn set_aside(&mut self, folder: &str, chosen: impl Fn(&str) -> bool) -> Result<(), StoreError> {
        let folder = self.dir.join(folder);
        let moved: Vec<String> = names(self.disk(), &folder)?.into_iter().filter(|name| chosen(name)).collect();
        for name in &moved {
            let (from, to) = (folder.join(name), self.place_for(name)?);
            // Renamed, never copied: a full disk must not prevent a repair.
            self.disk().rename(&from, &to).map_err(StoreError::io("rename", &from))?;
        }
        if !moved.is_empty() {
            for dir in [self.dir.join(LOST), folder] {
                self.disk().sync_dir(&dir).map_err(StoreError::io("sync", &dir))?;
            }
            self.report.done(format!("set aside in {}: {}", self.dir.join(LOST).display(), moved.join(", ")));
        }
        Ok(())
    }

    /// Returns a free path in the folder `lost`, with this name or a similar one.
    fn place_for(&self, name: &str) -> Result<PathBuf, StoreError> {
        let lost = self.dir.join(LOST);
        self.disk().create_dir(&lost).map_err(StoreError::io("create", &lost))?;
        self.disk().sync_dir(self.dir).map_err(StoreError::io("sync", self.dir))?;
        let there = names(self.disk(), &lost)?;
        let numbered = (1..).map(|n| format!("{name}.{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !there.contains(name));
        Ok(lost.join(free.unwrap_or_default()))
    }
}
