//! Reads, replaces and lists whole files.

use super::{Disk, OpenMode};
use crate::error::StoreError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Reads a whole file.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, StoreError> {
    let file = disk.open(path, OpenMode::Read).map_err(StoreError::io("open", path))?;
    let len = file.len().map_err(StoreError::io("read", path))?;
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes).map_err(StoreError::io("read", path))?;
    Ok(bytes)
}

/// Writes a whole file durably: under a temporary name, synced, renamed, and its folder synced.
pub(crate) fn replace_file(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    replace_file_as(OpenMode::Create, disk, path, bytes)
}

/// Does the same, opening the file in this mode.
pub(crate) fn replace_file_as(mode: OpenMode, disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let file = disk.open(&beside, mode).map_err(StoreError::io("create", &beside))?;
    file.write_at(0, bytes).map_err(StoreError::io("write", &beside))?;
    file.sync().map_err(StoreError::io("sync", &beside))?;
    // After the sync: a crash leaves either the old content or the new one, never an empty file under the name.
    disk.rename(&beside, path).map_err(StoreError::io("rename", &beside))?;
    match path.parent() {
        // The rename itself is durable only with its directory.
        Some(dir) => disk.sync_dir(dir).map_err(StoreError::io("sync", dir)),
        None => Ok(()),
    }
}

/// Returns the names in a folder; empty if it does not exist.
pub(crate) fn names(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>, StoreError> {
    match disk.list(dir) {
        Ok(names) => Ok(names),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(e) => Err(StoreError::io("list", dir)(e)),
    }
}
