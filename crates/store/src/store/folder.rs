//! The data folder itself: created durably, marked as Meridian's, cleared of dropped collections.

use crate::catalog::disk::{COPY, DROPPED, MANIFEST, read_manifest};
use crate::error::{Problem, StoreError};
use crate::paths::LOST;
use crate::seams::files::names;
use crate::seams::files::read_file;
use crate::seams::files::replace_file;
use crate::seams::{Disk, DiskLock, Seams};
use meridian_model::Invalid;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the file that marks the folder as Meridian's.
pub(crate) const MARKER: &str = "meridian.json";
pub(crate) const LOCK: &str = "LOCK";
/// Name of the lock that a process that may become an owner holds as long as it runs.
pub(crate) const CANDIDATE: &str = "CANDIDATE";
/// Name of the note that a restore is in progress in a folder, which has no marker yet.
pub(crate) const RESTORING: &str = "RESTORING";
/// Name of the folder in a data folder for files that responses of its process are made in. The store keeps nothing there.
pub const ANSWERS: &str = "answers";
/// Version of the folder's format: raised when an older program could not read the folder as a whole.
const FOLDER_VERSION: u32 = 1;
/// Creates the folder and its parents, durably.
pub(crate) fn make_root(disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
    if disk.list(root).is_ok() {
        return Ok(());
    }
    let missing: Vec<&Path> = root.ancestors().take_while(|a| disk.list(a).is_err()).collect();
    // Other accounts of the machine may not read it. An existing folder keeps its mode.
    disk.create_private_dir(root).map_err(StoreError::io("create", root))?;
    // A new name is durable only when its parent folder is synced, on each level.
    for folder in missing {
        if let Some(above) = folder.parent().filter(|a| !a.as_os_str().is_empty()) {
            disk.sync_dir(above).map_err(StoreError::io("sync", above))?;
        }
    }
    Ok(())
}

/// Takes a lock in the folder.
pub(crate) fn lock(disk: &dyn Disk, root: &Path, name: &str) -> Result<Box<dyn DiskLock>, StoreError> {
    let path = root.join(name);
    disk.lock(&path).map_err(|e| match e.kind() {
        ErrorKind::WouldBlock => StoreError::InUse { path: root.to_owned() },
        _ => unwritable(root, StoreError::io("lock", &path)(e)),
    })
}

/// Returns a dedicated error for a read-only folder, whichever call found it, because the operator has to fix that.
pub(crate) fn unwritable(root: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Io { source, .. }
            if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) =>
        {
            StoreError::ReadOnly { path: root.to_owned(), source }
        }
        other => other,
    }
}

/// Reads the marker file, or creates it in a new folder. A damaged or missing one is rewritten if collections show that
/// the folder is Meridian's; the result reports that.
pub(crate) fn check_marker(seams: &Seams, root: &Path) -> Result<Option<Problem>, StoreError> {
    let disk = seams.disk.as_ref();
    let path = root.join(MARKER);
    let anew = |problem: Problem| {
        write_marker(seams, root).map(|()| Some(problem.and("it is rewritten, as the folder holds collections")))
    };
    match read_file(disk, &path) {
        Ok(bytes) => match parse_marker(&path, &bytes) {
            Err(damaged @ StoreError::Corrupt { .. }) if holds_collections(disk, root) => anew(Problem::of(&damaged)),
            read => read.map(|()| None),
        },
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let others = disk.list(root).map_err(StoreError::io("list", root))?;
            // A partial restore would look like a small but valid data folder.
            if others.iter().any(|name| name == RESTORING) {
                let detail =
                    format!("a restore into {} was broken off: run it again, or empty the folder", root.display());
                return Err(Invalid::field("data", detail).into());
            }
            if holds_collections(disk, root) {
                return anew(Problem { path, detail: "it is missing".to_owned() });
            }
            // A half-written marker, the locks and a file system's own files do not make the folder foreign.
            let ours = |name: &str| name.starts_with(MARKER) || [LOCK, CANDIDATE, "lost+found"].contains(&name);
            if let Some(other) = others.iter().find(|n| !ours(n)) {
                return Err(Invalid::field(
                    "data",
                    format!(
                        "{} is not a data folder of Meridian: it holds {other:?} but no {MARKER}; name an empty folder",
                        root.display()
                    ),
                )
                .into());
            }
            write_marker(seams, root).map(|()| None)
        }
        Err(e) => Err(e),
    }
}

/// Returns true if a readable manifest is in its place below the folder: only Meridian creates such a tree.
fn holds_collections(disk: &dyn Disk, root: &Path) -> bool {
    let below = |dir: &Path| -> Vec<PathBuf> {
        names(disk, dir).unwrap_or_default().into_iter().map(|name| dir.join(name)).collect()
    };
    let collections = below(&root.join("tenants")).into_iter().flat_map(|tenant| below(&tenant));
    let mut partitions = collections.flat_map(|collection| below(&collection));
    partitions.any(|dir| [MANIFEST, COPY].iter().any(|name| read_manifest(disk, &dir.join(name)).is_ok()))
}

/// Makes a folder a data folder.
pub(crate) fn write_marker(seams: &Seams, root: &Path) -> Result<(), StoreError> {
    let text = marker_text(seams.clock.now());
    replace_file(seams.disk.as_ref(), &root.join(MARKER), text.as_bytes())
}

/// Returns the marker's text: one line of JSON with the version, and a checksum of the rest.
fn marker_text(created: i64) -> String {
    let body = format!("\"program\":\"meridian\",\"created\":{created}");
    let crc = crc32c::crc32c(format!("{FOLDER_VERSION},{body}").as_bytes());
    format!("{{\"format\":{FOLDER_VERSION},{body},\"crc32c\":{crc}}}\n")
}

fn parse_marker(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    #[derive(Deserialize)]
    struct Text {
        format: u32,
        crc32c: u32,
    }
    let text: Text =
        serde_json::from_slice(bytes).map_err(|e| StoreError::corrupt(path, format!("it does not read: {e}")))?;
    // The checksum first: a flipped bit in the version is damage, not a newer format. Every version keeps this frame.
    let line = std::str::from_utf8(bytes).unwrap_or_default();
    let end = format!(",\"crc32c\":{}}}\n", text.crc32c);
    let body = line.strip_prefix("{\"format\":").and_then(|line| line.strip_suffix(end.as_str()));
    if body.is_none_or(|body| crc32c::crc32c(body.as_bytes()) != text.crc32c) {
        return Err(StoreError::corrupt(path, "its checksum is wrong"));
    }
    if text.format > FOLDER_VERSION {
        return Err(StoreError::NewerFormat { path: path.to_owned(), found: text.format, supported: FOLDER_VERSION });
    }
    Ok(())
}

/// The state of a partition's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderState {
    /// No partition, or the remains of a creation interrupted before its manifest: no write was acknowledged.
    Empty,
    /// A manifest lists its content.
    Made,
    /// A drop renamed the manifest and was interrupted: the rest is removed too.
    Dropped,
    /// Files without a manifest. They may be all that is left of a collection.
    Lost(Problem),
}

/// Determines the state of a partition's folder, from names alone except for the mark of a drop.
pub(crate) fn standing(disk: &dyn Disk, dir: &Path) -> Result<FolderState, StoreError> {
    let inside = names(disk, dir)?;
    let has = |what: &str| inside.iter().any(|name| name == what);
    let lost = |detail: String| Ok(FolderState::Lost(Problem { path: dir.join(MANIFEST), detail }));
    if has(MANIFEST) {
        return Ok(FolderState::Made);
    }
    if has(DROPPED) {
        // An unreadable mark proves nothing.
        return match read_manifest(disk, &dir.join(DROPPED)) {
            Ok(_) => Ok(FolderState::Dropped),
            Err(e) => lost(format!("it is missing, and the mark of a drop does not read: {}", Problem::of(&e))),
        };
    }
    for name in &inside {
        let within = match name.as_str() {
            // The temporary file of the first manifest. A copy has no such file here, as it is written after the
            // manifest.
            "MANIFEST.new" => continue,
            "log" | "segments" => names(disk, &dir.join(name))?,
            _ => vec![String::new()],
        };
        if let Some(first) = within.first() {
            return lost(format!("it is missing, and the folder holds {}", Path::new(name).join(first).display()));
        }
    }
    Ok(FolderState::Empty)
}

/// Removes the content of the folder of a dropped or incomplete partition. The mark of the drop is removed last, so the
/// rest is never mistaken for a collection that lost its manifest.
pub(crate) fn clear(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    clear_partition(disk, dir)?;
    dir.parent().map_or(Ok(()), |collection| remove_folder(disk, collection))
}

/// Does the same for one of several partitions: the folder of the collection stays.
pub(crate) fn clear_partition(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    for sub in ["log", "segments", LOST] {
        let sub = dir.join(sub);
        let Ok(names) = disk.list(&sub) else { continue };
        for name in names {
            let path = sub.join(name);
            disk.remove(&path).map_err(StoreError::io("remove", &path))?;
        }
        disk.remove_dir(&sub).map_err(StoreError::io("remove", &sub))?;
    }
    let mut names = disk.list(dir).map_err(StoreError::io("list", dir))?;
    // The mark distinguishes the remains from a lost collection, so it is removed last.
    names.sort_by_key(|name| name == DROPPED);
    for name in names {
        if name == DROPPED {
            disk.sync_dir(dir).map_err(StoreError::io("sync", dir))?;
        }
        let path = dir.join(name);
        disk.remove(&path).map_err(StoreError::io("remove", &path))?;
    }
    remove_folder(disk, dir)
}

/// Removes an empty folder, durably.
fn remove_folder(disk: &dyn Disk, folder: &Path) -> Result<(), StoreError> {
    disk.remove_dir(folder).map_err(StoreError::io("remove", folder))?;
    folder.parent().map_or(Ok(()), |above| disk.sync_dir(above).map_err(StoreError::io("sync", above)))
}
