//! The write-ahead log of a partition.
//!
//! Files are named by their epoch, `{epoch:016x}.log`, and the epoch is part of each record's checksum. A reused file
//! gets a new name, and records of its former use no longer validate. The name is on disk before anything is written to
//! the file. Records are written where the file already has bytes. So a sync need not write the file's length or block
//! map, which would take two to nine times as long (`docs/decisions` 005 and 015). A new file is extended ahead with
//! zeros, a step at a time. From its second use on it is overwritten in place. Files that a manifest covers are kept as
//! spares, at most two.
//!
//! # A crash, and damage
//! Positions are contiguous across all files. A group of records is written with one call and synced with one. Each
//! record holds the offset up to which the file was synced when it was written. So at the first place without a good
//! record:
//! - a good record further on that was written when this place was already synced means that the place is damaged, not
//!   torn;
//! - a later file that does not continue with the next position means damage as well;
//! - otherwise the tail was being written when power failed. It was not acknowledged to any client, so it is dropped.
//!
//! The head of the newest file reveals missing writes at the very end (`mark.rs`). After each sync a mark records the
//! last acknowledged write. It is on disk with the sync of the next group at the latest. A mark that claims more than
//! was found means damage. So only the last group can be mistaken for a torn one, and only if power failed before the
//! kernel wrote the mark back. That cannot happen after a kill, a start or a clean stop.
//!
//! After a crash the log always continues in a new file, so that a dropped tail can never reappear behind
//! records written later.
//!
//! After a failed sync and a restart without a power loss, the last group is read from the kernel's cache, which
//! considers it written. So a start rewrites it in its place and syncs it before any reader sees it.
//!
//! `NEWEST` reveals that the whole last file is missing: it names the newest file, and is written before that file's
//! first record. Before a newest file that a manifest covers is removed, `NEWEST` is rewritten to name none.

mod mark;
mod newest;
mod open;
mod record;
mod scan;

pub(crate) use record::read_at as read_record;

use crate::error::StoreError;
use crate::seams::Record;
use crate::seams::{AppendError, Disk, DiskFile, LogContents, LogPlace, OpenMode, Removal, WriteLog};
use mark::{HEAD_BYTES, Mark, Slot};
use newest::Newest;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Max spare files kept for reuse.
const SPARES_MAX: usize = 2;
/// A new file grows ahead by its own length, but at most by the size of a full file divided by this.
const STEPS: u64 = 64;
/// Max bytes of memory kept for the next group.
const BUFFER_BYTES: usize = 1 << 20;
/// The log of one partition, ready to be written.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Size at which a file is full.
    file_bytes: u64,
    next_epoch: u64,
    /// Files that hold records, oldest first. The last one is being written if `current` is set.
    files: Vec<LogFile>,
    current: Option<CurrentFile>,
    /// Spare files, named by the epoch of their last use: no epoch is used twice, even if all files are spares.
    spares: Vec<PathBuf>,
    /// The file that `NEWEST` names, if any.
    newest: Option<PathBuf>,
    /// A group as encoded for its file; empty or small between groups.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    last_position: u64,
    bytes: u64,
}

#[derive(Debug)]
struct CurrentFile {
    file: Arc<dyn DiskFile>,
    epoch: u64,
    /// Offset up to which the file is synced.
    offset: u64,
    /// Length of the file.
    len: u64,
    /// Slot for the next mark.
    slot: Slot,
}

impl CurrentFile {
    /// Marks in the file that all writes up to this position are acknowledged. The next sync makes the mark durable.
    fn mark(&mut self, position: u64) -> io::Result<()> {
        let mark = Mark { position, end: self.offset };
        mark.write(self.file.as_ref(), self.epoch, self.slot)?;
        self.slot = self.slot.other();
        Ok(())
    }

    /// Extends the file for a group that ends at `end`, and some way ahead.
    fn grow(&mut self, end: u64, step_max: u64) {
        if end <= self.len {
            return;
        }
        let len = end + self.len.min(step_max);
        // In pieces: a large group must not be in memory a second time, as zeros.
        let zeros = vec![0; BUFFER_BYTES.min((len - self.len) as usize)];
        let mut places = (self.len..len).step_by(BUFFER_BYTES);
        let grown = places.try_for_each(|at| self.file.write_at(at, &zeros[..zeros.len().min((len - at) as usize)]));
        match grown {
            Ok(()) => self.len = len,
            // No room to extend ahead, but the group itself may fit.
            Err(_) => {
                let _ = self.file.set_len(self.len);
                self.len = end;
            }
        }
    }
}

fn log_name(epoch: u64) -> String {
    format!("{epoch:016x}.log")
}

impl WriteLog for Log {
    fn replay(&mut self, flushed: u64, _: Option<LogPlace>) -> Result<LogContents, StoreError> {
        // The lock of the data folder has fenced all others.
        let (log, found) = Log::open(&self.disk, &self.dir, self.file_bytes, flushed)?;
        *self = log;
        Ok(LogContents { records: found.records, damage: found.damage, torn_bytes: found.torn_bytes })
    }

    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        self.append_group(records)
    }

    fn release(&mut self, flushed: u64, _: Option<LogPlace>) -> Result<Option<Removal>, StoreError> {
        self.release_files(flushed).map(|()| None)
    }

    /// Returns `None`: no other process reads what is flushed.
    fn oldest(&self, _: u64) -> Option<i64> {
        None
    }

    fn tail_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    /// Makes the last mark durable, so that a start knows of every acknowledged write.
    fn seal(&mut self) -> Result<(), StoreError> {
        match (&self.current, self.files.last()) {
            (Some(current), Some(file)) => current.file.sync().map_err(StoreError::io("sync", &file.path)),
            _ => Ok(()),
        }
    }

    fn verify(&self, flushed: u64, position: u64) -> Vec<StoreError> {
        self.read_again(flushed, position)
    }
}

impl Log {
    /// Creates a log that is not read yet.
    pub(crate) fn closed(disk: &Arc<dyn Disk>, dir: &Path, file_bytes: u64) -> Log {
        Log {
            disk: disk.clone(),
            dir: dir.to_owned(),
            file_bytes,
            next_epoch: 0,
            files: Vec::new(),
            current: None,
            spares: Vec::new(),
            newest: None,
            buffer: Vec::new(),
        }
    }

    /// Writes records and syncs: they are durable when this returns `Ok`.
    fn append_group(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        if self.next_epoch == 0 {
            // The existing files were not read, so their positions would be assigned again.
            return Err(AppendError::Clean(StoreError::Closed));
        }
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(0) };
        let bytes: usize = records.iter().map(Record::stored_len).sum();
        let full = self.file_bytes + HEAD_BYTES;
        if self.current.as_ref().is_some_and(|c| c.offset > HEAD_BYTES && c.offset + bytes as u64 > full) {
            // A file is changed only between groups, so that a group never spans two files and one sync covers it.
            self.current = None;
        }
        // A file is marked and named before its first record, so that a start detects if it is missing.
        if self.current.is_none() {
            self.current = Some(self.next_file(first.position - 1).map_err(AppendError::Clean)?);
        }
        let (Some(current), Some(file)) = (self.current.as_mut(), self.files.last_mut()) else { return Ok(0) };
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.reserve_exact(bytes);
        for record in records {
            // All records of a group carry the same synced offset, by which recovery distinguishes a torn group from
            // damage.
            record.encode(current.epoch, current.offset, &mut buffer);
        }
        current.grow(current.offset + bytes as u64, self.file_bytes / STEPS);
        if let Err(e) = current.file.write_at(current.offset, &buffer) {
            let error = StoreError::io("write", &file.path)(e);
            // Complete records of the group may have reached the file: they are cut off, which needs no space on a full
            // disk. The next group goes to a new file. The cut decides the outcome: once the records are certainly
            // gone, the collection continues.
            let cleaned = current.file.set_len(current.offset).and_then(|()| current.file.sync());
            let untouched = current.file.len().is_ok_and(|len| len <= current.offset);
            self.current = None;
            return Err(match cleaned {
                Ok(()) => AppendError::Clean(error),
                Err(_) if untouched => AppendError::Clean(error),
                Err(_) => AppendError::Unknown(error),
            });
        }
        // Only now are the records acknowledged. When a sync fails, the kernel may have written some of them, and the
        // next sync may succeed without writing the rest. So the outcome stays unknown.
        if let Err(e) = current.file.sync() {
            let error = StoreError::io("sync", &file.path)(e);
            self.current = None;
            return Err(AppendError::Unknown(error));
        }
        // The offset advances only after the sync, since later records claim that it is synced.
        current.offset += buffer.len() as u64;
        file.last_position = last.position;
        file.bytes += buffer.len() as u64;
        let written = buffer.len() as u64;
        // A large buffer is freed now: the next write, which would reuse it, may never come.
        if buffer.capacity() <= BUFFER_BYTES {
            self.buffer = buffer;
        }
        if current.mark(last.position).is_err() {
            // The group is durable anyway. The next group goes to a new file, whose first mark covers this one.
            self.current = None;
        }
        Ok(written)
    }

    /// Begins a file: a spare under a new name, or a new one. Writes up to `acknowledged` are in earlier files.
    fn next_file(&mut self, acknowledged: u64) -> Result<CurrentFile, StoreError> {
        let epoch = self.next_epoch;
        // The epoch is not incremented until the file is synced: a failed attempt reuses its name.
        let path = self.dir.join(log_name(epoch));
        let file = match self.spares.pop() {
            Some(spare) => {
                self.disk.rename(&spare, &path).map_err(StoreError::io("rename", &spare))?;
                self.disk.open(&path, OpenMode::ReadWrite).map_err(StoreError::io("open", &path))?
            }
            None => self.disk.open(&path, OpenMode::Create).map_err(StoreError::io("create", &path))?,
        };
        // The name must be durable before anything is written under it. Otherwise a crash could restore a spare's
        // former name, and its former records would look damaged. It must also be durable before `NEWEST` refers to it,
        // or a crash would look like a lost file.
        self.disk.sync_dir(&self.dir).map_err(StoreError::io("sync", &self.dir))?;
        // Its marks are on disk before it is named: from then on a file without a mark is damaged.
        let mark = Mark { position: acknowledged, end: HEAD_BYTES };
        file.write_at(0, &mark.head(epoch)).map_err(StoreError::io("write", &path))?;
        file.sync().map_err(StoreError::io("sync", &path))?;
        let len = file.len().map_err(StoreError::io("measure", &path))?;
        self.next_epoch += 1;
        newest::write(self.disk.as_ref(), &self.dir, Newest { epoch: Some(epoch), head: HEAD_BYTES })?;
        self.newest = Some(path.clone());
        self.files.push(LogFile { path, last_position: 0, bytes: 0 });
        Ok(CurrentFile { file, epoch, offset: HEAD_BYTES, len, slot: Slot::First })
    }

    /// Removes files whose records are all covered by a manifest: a start then reads none of them.
    fn release_files(&mut self, flushed: u64) -> Result<(), StoreError> {
        let mut result = Ok(());
        for file in std::mem::take(&mut self.files) {
            // A new file holds no record yet, and the next group goes there.
            let fresh = file.bytes == 0 && self.current.is_some() && self.newest.as_ref() == Some(&file.path);
            // In order of age, and none after a failure: a gap between kept files would look like a lost file.
            if file.last_position <= flushed && !fresh && result.is_ok() {
                result = self.let_go(&file.path);
                if result.is_ok() {
                    continue;
                }
            }
            self.files.push(file);
        }
        result
    }

    /// Records that no file of the log in `dir` is needed any more, because a manifest covers all its records. No
    /// process may have the log open.
    pub(crate) fn cover(disk: &dyn Disk, dir: &Path) -> Result<(), StoreError> {
        newest::write(disk, dir, Newest { epoch: None, head: 0 })
    }

    /// Makes a file a spare, or removes it.
    fn let_go(&mut self, path: &Path) -> Result<(), StoreError> {
        if self.newest.as_deref() == Some(path) {
            // The next write goes to a new file.
            self.current = None;
            newest::write(self.disk.as_ref(), &self.dir, Newest { epoch: None, head: 0 })?;
            self.newest = None;
        }
        if self.spares.len() >= SPARES_MAX {
            return self.disk.remove(path).map_err(StoreError::io("remove", path));
        }
        // Reused files have their blocks already, so a sync writes no metadata.
        let spare = path.with_extension("spare");
        self.disk.rename(path, &spare).map_err(StoreError::io("rename", path))?;
        self.spares.push(spare);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
