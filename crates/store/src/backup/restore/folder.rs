//! The data folder that a restore creates.

use super::super::Backup;
use crate::error::StoreError;
use crate::seams::Disk;
use crate::seams::files::read_file;
use crate::seams::files::replace_file;
use crate::store::Store;
use crate::store::folder::{LOCK, MARKER, RESTORING, make_root};
use meridian_model::Invalid;
use std::collections::BTreeMap;
use std::path::Path;

/// Marks the folder as being restored from the backup that this note identifies.
pub(super) fn begin(disk: &dyn Disk, root: &Path, note: &str) -> Result<(), StoreError> {
    make_root(disk, root)?;
    let path = root.join(RESTORING);
    let names = disk.list(root).map_err(StoreError::io("list", root))?;
    let refuse =
        |why: &str| Err(Invalid::field("data", format!("{} {why}: name a new or empty folder", root.display())).into());
    if names.iter().any(|name| name == MARKER) {
        return refuse("is a data folder already");
    }
    if names.iter().any(|name| name == RESTORING) {
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

/// Marks the restore as complete.
pub(super) fn end(disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
    let begun = root.join(RESTORING);
    disk.remove(&begun).map_err(StoreError::io("remove", &begun))?;
    disk.sync_dir(root).map_err(StoreError::io("sync", root))
}

/// Verifies that the store, opened as a server would, has what the backup lists.
pub(super) fn compare(backup: &Backup, store: &Store) -> Result<(), StoreError> {
    if let Some(problem) = store.problems().into_iter().next() {
        return Err(StoreError::corrupt(&problem.path, problem.detail));
    }
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    for saved in &backup.collections {
        let (events, position) = expected.entry((saved.tenant(), saved.name())).or_insert((0, 0));
        (*events, *position) = (*events + saved.events(), saved.position().max(*position));
    }
    let collections = store.collections();
    for collection in &collections {
        let (events, position) = found.entry((collection.tenant(), collection.name())).or_insert((0, 0));
        (*events, *position) = (*events + collection.history_events(), collection.position().max(*position));
    }
    if let Some((tenant, name)) = expected.keys().find(|at| expected.get(*at) != found.get(*at)) {
        let detail = format!(
            "the collection {name} came out with {:?} events and position, where the backup says {:?}",
            found.get(&(*tenant, *name)),
            expected.get(&(*tenant, *name)),
        );
        return Err(StoreError::corrupt(store.root(), detail));
    }
    Ok(())
}
