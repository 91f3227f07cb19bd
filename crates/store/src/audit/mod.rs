//! The audit log: a line of JSON for each administrative act, in the folder `audit` of the data folder.
//!
//! Lines are on disk when [`AuditLog::append`] returns. Each holds the SHA-256 of the previous line, so a line that was
//! changed, removed or inserted is detected (`verify.rs`). `act.rs` has the fields, `tail.rs` the file that is appended
//! to; `lines.rs` reads lines back.
//!
//! Files are named by the number of their first line. The oldest file is removed before the total exceeds the limit
//! (`trim.rs`). `shared.rs` is the log of a cluster, in its bucket.

mod act;
mod holders;
mod lines;
mod shared;
mod tail;
#[cfg(test)]
mod tests;
mod trim;
mod verify;

pub use act::{Act, RecordedAct};
pub use shared::SharedAudit;

use crate::error::{Problem, StoreError};
use crate::seams::{Clock, Disk, OpenMode, Seams};
use lines::Lines;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tail::Tail;

/// Name of the folder.
pub(crate) const FOLDER: &str = "audit";
const EXTENSION: &str = ".ndjson";
/// Min and max size of a file; within these bounds it is a sixteenth of the total.
const FILE_BYTES: (u64, u64) = (64 << 10, 16 << 20);
/// Max bytes for a store in memory: it does not survive the process anyway.
const MEMORY_BYTES: u64 = 1 << 20;
/// Max bytes that one call of [`AuditLog::page`] reads, not counting the line at which it ends.
const PAGE_BYTES: u64 = 16 << 20;
/// The placeholder for the previous hash in the very first line.
const NO_LINE: [u8; 32] = [0; 32];

/// Receives lines, and the number of the first one.
pub(crate) type LineSink<'a> = dyn FnMut(u64, &[u8]) -> Result<(), StoreError> + 'a;

/// The administrative acts of a server, oldest first.
#[derive(Debug)]
pub struct AuditLog {
    files: Files,
    clock: Arc<dyn Clock>,
    /// Held while a line is written: number and hash follow from the previous line.
    tail: Mutex<Tail>,
}

/// The folder, and its size limit.
#[derive(Debug)]
struct Files {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    dir: PathBuf,
    bytes_total: u64,
    file_bytes: u64,
}

/// Lines of the log, in order.
#[derive(Debug)]
pub struct AuditPage {
    /// The matching lines, up to the limit asked for.
    pub lines: Vec<RecordedAct>,
    /// Where to continue; `None` at the end of the log. A page may be short or empty without being the last.
    pub next: Option<u64>,
}

impl AuditLog {
    /// Opens the log of a data folder, and cuts off a partial line left by a crash. A log that cannot be read accepts
    /// no lines; [`AuditLog::append`] reports that. The rest of the store is not affected.
    pub(crate) fn open(seams: &Seams, root: &Path, bytes_total: u64, ephemeral: bool) -> AuditLog {
        let bytes_total = if ephemeral { bytes_total.min(MEMORY_BYTES) } else { bytes_total };
        let file_bytes = (bytes_total / 16).clamp(FILE_BYTES.0, FILE_BYTES.1);
        let (disk, root, dir) = (seams.disk.clone(), root.to_owned(), root.join(FOLDER));
        let files = Files { disk, root, dir, bytes_total, file_bytes };
        let tail = Tail::open(&files).unwrap_or_else(|error| {
            tracing::error!(%error, "the audit log cannot be read: administrative acts are refused");
            Tail::refusing(&error)
        });
        AuditLog { files, clock: seams.clock.clone(), tail: Mutex::new(tail) }
    }

    /// Appends a line for each act, all with one sync, and returns the number of the first. The lines are on disk when
    /// this returns.
    ///
    /// # Errors
    /// The disk error; none of the acts is recorded. After a failed sync the lines may still be present after a
    /// restart. All further lines are then refused until the store is reopened.
    pub fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        let now = self.clock.now();
        self.tail.lock().append(&self.files, now, acts)
    }

    /// Returns up to `limit` lines after this number for which `wanted` is true.
    ///
    /// # Errors
    /// The disk error. Lines that cannot be parsed are left out; [`crate::Store::check`] reports them.
    pub fn page(
        &self,
        after: u64,
        limit: usize,
        wanted: &dyn Fn(&RecordedAct) -> bool,
    ) -> Result<AuditPage, StoreError> {
        // Lines written from here on lie beyond these lengths, and belong to the next page.
        let sizes = self.tail.lock().sizes.clone();
        let first = sizes.range(..=after.saturating_add(1)).next_back().map_or(0, |(first, _)| *first);
        let (mut lines, mut read) = (Vec::new(), 0);
        for (&first, &bytes) in sizes.range(first..) {
            let file = match self.files.disk.open(&self.files.path(first), OpenMode::Read) {
                Ok(file) => file,
                // The oldest file was removed since the sizes were read.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(StoreError::io("open", &self.files.path(first))(e)),
            };
            let mut inside = Lines::new(file, bytes);
            let mut n = first;
            while let Some(line) = inside.next().map_err(StoreError::io("read", &self.files.path(first)))? {
                read += line.len() as u64;
                if n > after
                    && let Some(line) = RecordedAct::read(n, line)
                    && wanted(&line)
                {
                    lines.push(line);
                }
                if lines.len() >= limit || read >= PAGE_BYTES {
                    return Ok(AuditPage { lines, next: Some(n) });
                }
                n += 1;
            }
        }
        Ok(AuditPage { lines, next: None })
    }

    /// Passes all lines to `sink` in pieces, with the number of the first; used by backups.
    pub(crate) fn copy(&self, sink: &mut LineSink<'_>) -> Result<(), StoreError> {
        // Lines written from here on lie beyond these lengths.
        let sizes = self.tail.lock().sizes.clone();
        for (first, bytes) in sizes {
            let path = self.files.path(first);
            let file = match self.files.disk.open(&path, OpenMode::Read) {
                Ok(file) => file,
                // The oldest file was removed since the sizes were read.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(StoreError::io("open", &path)(e)),
            };
            let mut lines = vec![0; bytes as usize];
            file.read_at(0, &mut lines).map_err(StoreError::io("read", &path))?;
            sink(first, &lines)?;
        }
        Ok(())
    }

    /// Writes lines of another log into the folder of a log that is not open, as a restore does. The caller syncs the
    /// parent folder.
    pub(crate) fn write_copied(disk: &dyn Disk, root: &Path, first: u64, lines: &[u8]) -> Result<(), StoreError> {
        let dir = root.join(FOLDER);
        disk.create_private_dir(&dir).map_err(StoreError::io("create", &dir))?;
        let path = dir.join(format!("{first:016}{EXTENSION}"));
        let file = disk.open(&path, OpenMode::CreatePrivate).map_err(StoreError::io("create", &path))?;
        let written = file.write_at(0, lines).and_then(|()| file.sync()).and_then(|()| disk.sync_dir(&dir));
        written.map_err(StoreError::io("write", &path))
    }

    /// Returns the numbers of the first and last line, and the SHA-256 of the last in hexadecimal; `None` for an empty
    /// log. Kept elsewhere, they prove later that no line was cut off.
    pub fn ends(&self) -> Option<(u64, u64, String)> {
        let tail = self.tail.lock();
        let (first, _) = tail.sizes.first_key_value()?;
        (tail.next > 1).then(|| (*first, tail.next - 1, act::hex(&tail.previous)))
    }

    /// Returns the first place at which the log differs from what was written.
    pub(crate) fn verify(&self) -> Option<Problem> {
        let tail = self.tail.lock();
        match tail.refuses() {
            Some(why) => Some(Problem { path: self.files.dir.clone(), detail: why.to_owned() }),
            None => verify::verify(&self.files, &tail.sizes),
        }
    }
}

impl Files {
    fn path(&self, first: u64) -> PathBuf {
        self.dir.join(format!("{first:016}{EXTENSION}"))
    }

    /// Returns the size of each file, by the number of its first line.
    fn sizes(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        let names = crate::seams::files::names(self.disk.as_ref(), &self.dir)?;
        let firsts = names.iter().filter_map(|name| name.strip_suffix(EXTENSION)?.parse::<u64>().ok());
        let sized = firsts.map(|first| {
            let path = self.path(first);
            let bytes = self.disk.open(&path, OpenMode::Read).and_then(|file| file.len());
            Ok((first, bytes.map_err(StoreError::io("open", &path))?))
        });
        sized.collect()
    }
}
