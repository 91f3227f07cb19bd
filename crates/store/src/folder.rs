//! The data folder itself: made durably, marked as Meridian's, cleared of what was dropped.

use crate::codec::{read_file, replace_file};
use crate::error::StoreError;
use crate::seams::{Disk, Seams};
use meridian_model::Invalid;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::Path;

/// Name of the file that says what the folder is.
pub(crate) const MARKER: &str = "meridian.json";
pub(crate) const LOCK: &str = "LOCK";
/// Name of the note that a restore is at work in a folder: it has no marker yet.
pub(crate) const RESTORING: &str = "RESTORING";
/// Version of the folder's format: grows when an older program could not make sense of the folder as a whole.
const FOLDER_VERSION: u32 = 1;
/// Makes the folder and those above it, durably.
pub(crate) fn make_root(disk: &dyn Disk, root: &Path) -> Result<(), StoreError> {
    if disk.list(root).is_ok() {
        return Ok(());
    }
    let missing: Vec<&Path> = root.ancestors().take_while(|a| disk.list(a).is_err()).collect();
    disk.create_dir(root).map_err(StoreError::io("create", root))?;
    for folder in missing {
        if let Some(above) = folder.parent().filter(|a| !a.as_os_str().is_empty()) {
            disk.sync_dir(above).map_err(StoreError::io("sync", above))?;
        }
    }
    Ok(())
}

/// Reads the marker file, or makes it in a new folder.
pub(crate) fn check_marker(seams: &Seams, root: &Path) -> Result<(), StoreError> {
    let disk = seams.disk.as_ref();
    let path = root.join(MARKER);
    match read_file(disk, &path) {
        Ok(bytes) => parse_marker(&path, &bytes),
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let others = disk.list(root).map_err(StoreError::io("list", root))?;
            if others.iter().any(|name| name == RESTORING) {
                let detail =
                    format!("a restore into {} was broken off: run it again, or empty the folder", root.display());
                return Err(Invalid::field("data", detail).into());
            }
            // A marker half made, the lock, and what a file system puts into its root are no reason.
            let ours = |name: &str| name.starts_with(MARKER) || name == LOCK || name == "lost+found";
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
            write_marker(seams, root)
        }
        Err(e) => Err(e),
    }
}

/// Makes a folder a data folder.
pub(crate) fn write_marker(seams: &Seams, root: &Path) -> Result<(), StoreError> {
    let text = marker_text(seams.clock.now());
    replace_file(seams.disk.as_ref(), &root.join(MARKER), text.as_bytes())
}

/// The marker is text for people: one line of JSON that says the version, and a checksum of the rest.
fn marker_text(created: i64) -> String {
    let body = format!("\"program\":\"meridian\",\"created\":{created}");
    let crc = crc32c::crc32c(format!("{FOLDER_VERSION},{body}").as_bytes());
    format!("{{\"format\":{FOLDER_VERSION},{body},\"crc32c\":{crc}}}\n")
}

fn parse_marker(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    #[derive(Deserialize)]
    struct Text {
        format: u32,
        created: i64,
    }
    let text: Text =
        serde_json::from_slice(bytes).map_err(|e| StoreError::corrupt(path, format!("it does not read: {e}")))?;
    if text.format > FOLDER_VERSION {
        return Err(StoreError::NewerFormat { path: path.to_owned(), found: text.format, supported: FOLDER_VERSION });
    }
    if bytes != marker_text(text.created).as_bytes() {
        return Err(StoreError::corrupt(path, "its checksum is wrong"));
    }
    Ok(())
}

/// Removes what is in the folder of a dropped or half-made partition; the mark goes last.
pub(crate) fn clear(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
    for sub in ["log", "segments"] {
        let sub = dir.join(sub);
        let Ok(names) = disk.list(&sub) else { continue };
        for name in names {
            let path = sub.join(name);
            disk.remove(&path).map_err(StoreError::io("remove", &path))?;
        }
        disk.remove_dir(&sub).map_err(StoreError::io("remove", &sub))?;
    }
    disk.sync_dir(dir).map_err(StoreError::io("sync", dir))?;
    for name in disk.list(dir).map_err(StoreError::io("list", dir))? {
        let path = dir.join(name);
        disk.remove(&path).map_err(StoreError::io("remove", &path))?;
    }
    for folder in dir.ancestors().take(2) {
        disk.remove_dir(folder).map_err(StoreError::io("remove", folder))?;
        if let Some(above) = folder.parent() {
            disk.sync_dir(above).map_err(StoreError::io("sync", above))?;
        }
    }
    Ok(())
}

/// Names in a folder; none if it does not exist.
pub(crate) fn names(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    match disk.list(dir) {
        Ok(names) => Ok(names),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(e) => Err(StoreError::io("list", dir)(e)),
    }
}
