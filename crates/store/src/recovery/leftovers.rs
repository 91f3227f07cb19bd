//! Files in the folder of segments that the manifest does not name.
//!
//! An interrupted flush or merge leaves some, and so does a crash before a merged segment's files are removed. But a
//! manifest that is not the newest names too few files, and then these are all that is left of acknowledged writes. So
//! they are removed only if all of this holds:
//! - the copy of the manifest is intact and not newer, so the manifest is the newest that was written;
//! - every file that it names is readable, and the log continues where they end: together they are the collection at
//!   its position;
//! - none of the files holds a later write.
//!
//! In a bucket another process may have taken over since, so there only files of earlier epochs are leftovers
//! (`model::policy::owner`).
//!
//! Otherwise they stay, and their numbers are not reused. A file with a later write makes the collection refuse writes,
//! which would take its positions.

use crate::catalog::disk::MANIFEST;
use crate::catalog::sidecars::{files_of, last_death_of};
use crate::error::{Problem, StoreError};
use crate::ingest::idempotency;
use crate::ingest::partition::Partition;
use crate::manifest::Manifest;
use crate::part::segment::seq_max_of;
use crate::seams::objects::HALF;
use crate::seams::{Objects, Proof};
use meridian_model::Seq;
use meridian_model::policy::owner::{Rules, is_leftover};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

impl Partition {
    /// Raises the next file number above all files in the folder, whether the manifest names them or not.
    pub(crate) fn pass_numbers(&self) -> Result<(), StoreError> {
        for name in self.segment_files()? {
            if let Some(number) = number_of(&name) {
                self.shared.next_file.fetch_max(number.saturating_add(1), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Removes files that are certain to be leftovers; keeps all others.
    pub(crate) fn sweep_leftovers(&mut self, proof: &Proof) -> Result<(), StoreError> {
        let objects = self.shared.objects.clone();
        let remove = |name: &String| objects.delete(name).map_err(StoreError::io("remove", &objects.path(name)));
        let unnamed = self.unnamed()?.into_iter();
        // No manifest ever names a file that is being written.
        let (half, unnamed): (Vec<String>, Vec<String>) = unnamed.partition(|name| name.ends_with(HALF));
        half.iter().try_for_each(remove)?;
        // A later write in an unnamed file proves that this manifest is not the newest: nothing may be removed.
        if let Some((path, position)) = self.later_file()? {
            self.note_later(&path, position);
        } else if matches!(proof, Proof::Newest { .. }) && self.check_whole().is_ok() {
            unnamed.iter().try_for_each(remove)?;
        } else if !unnamed.is_empty() {
            let (collection, files) = (&self.manifest.collection, unnamed.len());
            tracing::warn!(%collection, files, "files that no manifest names are kept: they may be more than leftovers");
        }
        Ok(())
    }

    /// Returns a file that no manifest names with a later write than the newest known one, and its position.
    pub(crate) fn later_file(&self) -> Result<Option<(PathBuf, u64)>, StoreError> {
        let (objects, unnamed) = (self.shared.objects.as_ref(), self.unnamed()?);
        let later = |name: String| {
            let position = newest_write(objects, &name).filter(|position| *position > self.position)?;
            Some((objects.path(&name), position))
        };
        Ok(unnamed.into_iter().find_map(later))
    }

    /// Returns the files that the manifest does not name, except those that another process may need: it may have taken
    /// over since.
    fn unnamed(&self) -> Result<Vec<String>, StoreError> {
        let named = files_of(&self.manifest);
        let leftover = |name: &String| {
            let file = number_of(name).filter(|_| self.claimed);
            file.is_none_or(|file| is_leftover(Rules::SERVER, file, self.manifest.next_file))
        };
        Ok(self.segment_files()?.into_iter().filter(|name| !named.contains(name) && leftover(name)).collect())
    }

    fn note_later(&mut self, path: &Path, position: u64) {
        // In a bucket nothing is repaired. Only there numbers are claimed before leftovers are swept.
        let cure = match self.claimed {
            true => "put back what is missing from a copy of the bucket",
            false => "`meridian check --repair` puts together what there is",
        };
        let detail = format!(
            "it is not the newest, or the log has lost its end: {} holds writes up to {position}, and both together know of \
             writes up to {}; {cure}",
            path.display(),
            self.position
        );
        self.problems.push(Problem { path: self.shared.dir.join(MANIFEST), detail });
        self.stale = true;
        let why = "a file holds acknowledged writes that neither manifest nor log knows; see the problems listed";
        // New writes would take positions of the lost ones.
        self.refuses.get_or_insert(why.to_owned());
    }

    fn segment_files(&self) -> Result<Vec<String>, StoreError> {
        self.shared.objects.list().map_err(StoreError::io("list", &self.shared.objects.path("")))
    }
}

/// Returns the file with the newest write of all that a manifest does not name, and the position of that write.
pub(crate) fn newest_unnamed(objects: &dyn Objects, manifest: &Manifest) -> Result<Option<(PathBuf, u64)>, StoreError> {
    let (named, all) = (files_of(manifest), objects.list().map_err(StoreError::io("list", &objects.path("")))?);
    let unnamed = all.iter().filter(|name| !named.contains(*name));
    let writes = unnamed.filter_map(|name| Some((objects.path(name), newest_write(objects, name)?)));
    Ok(writes.max_by_key(|(_, position)| *position))
}

/// Returns the number in a file's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.split('.').next()?, 16).ok()
}

/// Returns the position of the newest write in a file; `None` if it has none, or is unreadable.
fn newest_write(objects: &dyn Objects, name: &str) -> Option<u64> {
    match name.rsplit_once('.')?.1 {
        "segment" => seq_max_of(objects, name).ok().map(|seq| Seq(seq).position()),
        "dead" | "hidden" => last_death_of(objects, name).ok().map(|seq| Seq(seq).position()),
        "keys" => idempotency::read(objects, name).ok()?.iter().map(|(_, what)| what.position).max(),
        _ => None,
    }
}
