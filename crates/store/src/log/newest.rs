//! The file `NEWEST`, which names the newest file of the log.

use crate::codec::{Reader, frame, put_u64, unframe};
use crate::error::StoreError;
use crate::seams::Disk;
use crate::seams::files::read_file;
use crate::seams::files::replace_file;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const NAME: &str = "NEWEST";
const MAGIC: &[u8; 8] = b"MRDNNEWE";
/// Version 1 held the epoch only, and named a file without marks.
const VERSION: u32 = 2;

/// The content of `NEWEST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest {
    /// Epoch of the newest file; `None` if a manifest covers all records, and no file is needed.
    pub(super) epoch: Option<u64>,
    /// Offset of the first record in the file, after the marks; 0 if the file has no marks.
    pub(super) head: u64,
}

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Reads it; `None` if the file does not exist.
pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<Newest>, StoreError> {
    let path = path(dir);
    let bytes = match read_file(disk, &path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let mut reader = Reader::new(unframe(&path, MAGIC, VERSION, &bytes)?);
    let wrong = |detail: String| StoreError::corrupt(&path, detail);
    let epoch = reader.u64().map_err(wrong)?;
    let head = if reader.left() == 0 { 0 } else { reader.u64().map_err(wrong)? };
    reader.end().map_err(wrong)?;
    // No file has the epoch 0.
    Ok(Some(Newest { epoch: (epoch > 0).then_some(epoch), head }))
}

/// Writes it durably.
pub(super) fn write(disk: &dyn Disk, dir: &Path, newest: Newest) -> Result<(), StoreError> {
    let mut content = Vec::with_capacity(16);
    put_u64(&mut content, newest.epoch.unwrap_or(0));
    put_u64(&mut content, newest.head);
    replace_file(disk, &path(dir), &frame(MAGIC, VERSION, &content))
}
