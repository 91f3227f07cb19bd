//! The write-ahead log of a partition.
//!
//! Files are named by their epoch, `{epoch:016x}.log`, and the epoch goes into the checksum of each record: a file
//! that is used again gets a new name, and what its former use left behind no longer checks out. Records are written
//! where the file has bytes already, so that a sync need not write the file's length or block map (which takes twice to
//! nine times as long, see `docs/decisions` 005 and 015): a file that is new is grown ahead of them by zeros, a step at
//! a time, and overwritten in place from its second use on. Files that a manifest covers are kept as spares, at most two.
//!
//! # A crash, and damage
//! Positions are contiguous over all files. A group of records is written with one call and synced with one; each
//! record says up to where the file was synced when it was written. So at the first place that holds no good record:
//! - a good record further on that was written when this place was synced already: the place is damaged, not torn;
//! - a later file that does not go on with the next position: damaged as well;
//! - otherwise the tail was being written when power failed. Nobody was told that it is stored: it is forgotten.
//!
//! After a crash the log always goes on in a new file, so that a forgotten tail can never come back to life behind
//! records written later.
//!
//! When a sync failed and the process was started again without a loss of power, the last group is read from the kernel's
//! cache, which takes it for written: a start writes it again in its place and syncs it before anybody sees it.
//!
//! That the last file is missing altogether shows in `NEWEST`, which names the newest file and is written before that
//! file's first record, and again before a newest file that a manifest covers is let go: then it names none.

mod record;

pub(crate) use record::{Kind, Record};

use crate::codec::{frame, read_file, replace_file, unframe};
use crate::error::{Problem, StoreError};
use crate::seams::{Disk, DiskFile, OpenMode};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Spare files kept for reuse.
const SPARES_MAX: usize = 2;
/// A new file grows by its length, and by at most this part of a full file, at a time.
const STEPS: u64 = 64;
/// Most bytes of memory kept for the next group.
const BUFFER_BYTES: usize = 1 << 20;
/// File that says which file of the log is the newest.
const NEWEST: &str = "NEWEST";
const NEWEST_MAGIC: &[u8; 8] = b"MRDNNEWE";
const NEWEST_VERSION: u32 = 1;
/// What `NEWEST` says when a manifest covers all records: no file has this epoch.
const NO_EPOCH: u64 = 0;

/// The log of one partition, ready to be written.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Size from which a file is full.
    file_bytes: u64,
    next_epoch: u64,
    /// Files that hold records, oldest first; the last is written to if `current` is there.
    files: Vec<LogFile>,
    current: Option<Current>,
    /// Named by the epoch of their last use: no epoch comes twice, also when all files are spares.
    spares: Vec<PathBuf>,
    /// The file that `NEWEST` names, if it names one.
    newest: Option<PathBuf>,
    /// A group as its file will hold it.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    last_position: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Current {
    file: Arc<dyn DiskFile>,
    epoch: u64,
    /// Everything before is synced.
    offset: u64,
    /// Length of the file.
    len: u64,
}

impl Current {
    /// Grows the file for a group that ends at `end`, and some way ahead.
    fn grow(&mut self, end: u64, step_max: u64) {
        if end <= self.len {
            return;
        }
        let len = end + self.len.min(step_max);
        match self.file.write_at(self.len, &vec![0; (len - self.len) as usize]) {
            Ok(()) => self.len = len,
            // No room to spare: the group itself may fit all the same.
            Err(_) => {
                let _ = self.file.set_len(self.len);
                self.len = end;
            }
        }
    }
}

/// Why an append failed.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Nothing of it is in the log, nor will be: the collection may go on.
    Clean(StoreError),
    /// Nobody knows what is on disk: the collection must take no more.
    Unknown(StoreError),
}

/// What a log held.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Good records in order of position.
    pub(crate) records: Vec<Record>,
    /// Places that are damaged. Records after them are among `records` all the same.
    pub(crate) damage: Vec<StoreError>,
    /// Bytes of tails that were forgotten.
    pub(crate) torn_bytes: u64,
    /// The last group, which may have been written without a sync.
    last_group: Option<Group>,
}

/// Records that were written with one call, as their file holds them.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    offset: u64,
    bytes: Vec<u8>,
}

impl Group {
    /// Writes it again in its place and syncs it: what only the kernel's cache held is on disk then.
    fn write_again(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        let file = disk.open(&self.path, OpenMode::ReadWrite).map_err(StoreError::io("open", &self.path))?;
        file.write_at(self.offset, &self.bytes).map_err(StoreError::io("write", &self.path))?;
        file.sync().map_err(StoreError::io("sync", &self.path))
    }
}

fn log_name(epoch: u64) -> String {
    format!("{epoch:016x}.log")
}

impl Log {
    /// Reads the log in `dir`, which exists, and gets it ready to be written; records up to `flushed` are left out.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        file_bytes: u64,
        flushed: u64,
    ) -> Result<(Log, Recovered), StoreError> {
        let (mut log, mut found) = Log::read(disk, dir, file_bytes, flushed)?;
        if let Some(Err(e)) = found.last_group.take().map(|group| group.write_again(disk.as_ref())) {
            found.damage.push(e);
        }
        if found.damage.is_empty() {
            log.release(flushed)?;
        }
        Ok((log, found))
    }

    /// Reads the log again and says what is damaged; `position` is that of the newest write.
    pub(crate) fn verify(&self, flushed: u64, position: u64) -> Vec<StoreError> {
        let mut damage = match Log::read(&self.disk, &self.dir, self.file_bytes, flushed) {
            Ok((_, found)) if found.damage.is_empty() => {
                let last = found.records.last().map_or(flushed, |r| r.position);
                let newest = self.newest.as_ref().unwrap_or(&self.dir);
                let lost = || StoreError::corrupt(newest, format!("writes {} to {position} do not read", last + 1));
                (last < position).then(lost).into_iter().collect()
            }
            Ok((_, found)) => found.damage,
            Err(e) => vec![e],
        };
        damage.dedup_by_key(|e| e.to_string());
        damage
    }

    /// Reads what is there and changes nothing.
    fn read(disk: &Arc<dyn Disk>, dir: &Path, file_bytes: u64, flushed: u64) -> Result<(Log, Recovered), StoreError> {
        let mut log = Log {
            disk: disk.clone(),
            dir: dir.to_owned(),
            file_bytes,
            next_epoch: 1,
            files: Vec::new(),
            current: None,
            spares: Vec::new(),
            newest: None,
            buffer: Vec::new(),
        };
        let mut found = Recovered::default();
        // Where the last file read ended, if not at its very end, for the verdict that the next file makes.
        let mut open_end: Option<(PathBuf, usize)> = None;
        let mut last_position: Option<u64> = None;
        for name in disk.list(dir).map_err(StoreError::io("list", dir))? {
            let path = dir.join(&name);
            if let Some(epoch) = name.strip_suffix(".spare").and_then(|n| u64::from_str_radix(n, 16).ok()) {
                log.next_epoch = log.next_epoch.max(epoch + 1);
                log.spares.push(path);
                continue;
            }
            let Some(epoch) = name.strip_suffix(".log").and_then(|n| u64::from_str_radix(n, 16).ok()) else {
                continue;
            };
            log.next_epoch = log.next_epoch.max(epoch + 1);
            let bytes = match read_file(disk.as_ref(), &path) {
                Ok(bytes) => bytes,
                Err(e) => {
                    found.damage.push(e);
                    continue;
                }
            };
            let scan = scan(&path, &bytes, epoch, flushed);
            if let Some((first, _)) = scan.positions {
                // The first records kept need not begin at 1, and of what is flushed some may be gone already.
                let from = last_position.map_or(0, |p| p + 1).max(flushed + 1);
                if first > from || last_position.is_some_and(|last| first <= last) {
                    let (path, at) = open_end.take().unwrap_or((path.clone(), 0));
                    let detail = if first < from {
                        format!("the write {first} stands in it and in a file before it")
                    } else {
                        format!("writes {from} to {} are missing; the record at byte {at} does not read", first - 1)
                    };
                    found.damage.push(StoreError::corrupt(&path, detail));
                }
            }
            if let Some((_, last)) = scan.positions {
                last_position = Some(last.max(last_position.unwrap_or(0)));
                open_end = Some((path.clone(), scan.end));
                // Records that a manifest covers are in segments, which were synced.
                found.last_group = (!scan.records.is_empty()).then(|| {
                    let group = bytes.get(scan.synced as usize..scan.end).unwrap_or_default().to_vec();
                    Group { path: path.clone(), offset: scan.synced, bytes: group }
                });
            }
            found.damage.extend(scan.damage);
            found.torn_bytes += scan.torn_bytes;
            log.files.push(LogFile { path, last_position: last_position.unwrap_or(0), bytes: scan.bytes });
            found.records.extend(scan.records);
        }
        log.find_newest(&mut found);
        found.records.sort_by_key(|r| r.position);
        found.records.dedup_by_key(|r| r.position);
        Ok((log, found))
    }

    /// Whether the newest file is there. Records filtered out by `flushed` count as well.
    fn find_newest(&mut self, found: &mut Recovered) {
        let path = self.dir.join(NEWEST);
        let missing =
            |path: &Path, what: &str| StoreError::corrupt(path, format!("{what}: the last writes may be missing"));
        match read_newest(self.disk.as_ref(), &path) {
            Ok(Some(NO_EPOCH)) => {}
            Ok(Some(epoch)) => {
                let newest = self.dir.join(log_name(epoch));
                let unread = |e: &StoreError| Problem::of(e).path == newest;
                let there = self.files.iter().any(|f| f.path == newest);
                if !there && !found.damage.iter().any(unread) {
                    found.damage.push(missing(&newest, "the newest file of the log is not there"));
                }
                self.newest = there.then_some(newest);
            }
            Ok(None) if self.files.iter().all(|f| f.bytes == 0) => {}
            Ok(None) => found.damage.push(missing(&path, "it is not there, and it names the newest file of the log")),
            Err(e) => found.damage.push(e),
        }
    }

    /// Bytes of records that a restart would read.
    pub(crate) fn tail_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    /// Writes records and syncs: when this answers `Ok`, they are durable.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        let Some(last) = records.last() else { return Ok(0) };
        let bytes: usize = records.iter().map(Record::stored_len).sum();
        if self.current.as_ref().is_some_and(|c| c.offset > 0 && c.offset + bytes as u64 > self.file_bytes) {
            self.current = None;
        }
        if self.current.is_none() {
            self.current = Some(self.next_file().map_err(AppendError::Clean)?);
        }
        let (Some(current), Some(file)) = (self.current.as_mut(), self.files.last_mut()) else { return Ok(0) };
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.shrink_to(BUFFER_BYTES);
        buffer.reserve(bytes);
        for record in records {
            record.encode(current.epoch, current.offset, buffer);
        }
        current.grow(current.offset + bytes as u64, self.file_bytes / STEPS);
        if let Err(e) = current.file.write_at(current.offset, buffer) {
            let error = StoreError::io("write", &file.path)(e);
            // Whole records of the group may have reached the file: they are cut off, which takes no room on a disk
            // that is full. The next group goes to a new file.
            let cleaned = current.file.set_len(current.offset).and_then(|()| current.file.sync());
            let untouched = current.file.len().is_ok_and(|len| len <= current.offset);
            self.current = None;
            return Err(match cleaned {
                Ok(()) => AppendError::Clean(error),
                Err(_) if untouched => AppendError::Clean(error),
                Err(_) => AppendError::Unknown(error),
            });
        }
        if let Err(e) = current.file.sync() {
            let error = StoreError::io("sync", &file.path)(e);
            self.current = None;
            return Err(AppendError::Unknown(error));
        }
        current.offset += buffer.len() as u64;
        file.last_position = last.position;
        file.bytes += buffer.len() as u64;
        Ok(buffer.len() as u64)
    }

    /// Starts a file: a spare under a new name, or a new one.
    fn next_file(&mut self) -> Result<Current, StoreError> {
        let epoch = self.next_epoch;
        let path = self.dir.join(log_name(epoch));
        let file = match self.spares.pop() {
            Some(spare) => {
                self.disk.rename(&spare, &path).map_err(StoreError::io("rename", &spare))?;
                self.disk.open(&path, OpenMode::ReadWrite).map_err(StoreError::io("open", &path))?
            }
            None => self.disk.open(&path, OpenMode::Create).map_err(StoreError::io("create", &path))?,
        };
        let len = file.len().map_err(StoreError::io("measure", &path))?;
        self.next_epoch += 1;
        self.disk.sync_dir(&self.dir).map_err(StoreError::io("sync", &self.dir))?;
        self.name_newest(epoch)?;
        self.newest = Some(path.clone());
        self.files.push(LogFile { path, last_position: 0, bytes: 0 });
        Ok(Current { file, epoch, offset: 0, len })
    }

    fn name_newest(&self, epoch: u64) -> Result<(), StoreError> {
        let newest = frame(NEWEST_MAGIC, NEWEST_VERSION, &epoch.to_le_bytes());
        replace_file(self.disk.as_ref(), &self.dir.join(NEWEST), &newest)
    }

    /// Lets go of files whose records are all covered by a manifest: a start then reads nothing of them.
    pub(crate) fn release(&mut self, flushed: u64) -> Result<(), StoreError> {
        let mut result = Ok(());
        for file in std::mem::take(&mut self.files) {
            let fresh = file.bytes == 0 && self.current.is_some() && self.newest.as_ref() == Some(&file.path);
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

    /// Makes a file a spare, or removes it.
    fn let_go(&mut self, path: &Path) -> Result<(), StoreError> {
        if self.newest.as_deref() == Some(path) {
            // What is written next goes to a file of its own.
            self.current = None;
            self.name_newest(NO_EPOCH)?;
            self.newest = None;
        }
        if self.spares.len() >= SPARES_MAX {
            return self.disk.remove(path).map_err(StoreError::io("remove", path));
        }
        let spare = path.with_extension("spare");
        self.disk.rename(path, &spare).map_err(StoreError::io("rename", path))?;
        self.spares.push(spare);
        Ok(())
    }
}

/// The epoch that `NEWEST` names; `None` if there is no such file.
fn read_newest(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, StoreError> {
    let bytes = match read_file(disk, path) {
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let content = unframe(path, NEWEST_MAGIC, NEWEST_VERSION, &bytes)?;
    let epoch = content.try_into().map_err(|_| StoreError::corrupt(path, "it is not eight bytes long"))?;
    Ok(Some(u64::from_le_bytes(epoch)))
}

struct Scan {
    /// Good records that no manifest covers.
    records: Vec<Record>,
    /// The first and the last position among all good ones.
    positions: Option<(u64, u64)>,
    /// Bytes of all good ones.
    bytes: u64,
    /// Where the good records at the front end.
    end: usize,
    /// Up to where the file was synced when the last record was written.
    synced: u64,
    damage: Vec<StoreError>,
    torn_bytes: u64,
}

/// Reads the records of one file, and keeps those after `flushed`.
fn scan(path: &Path, bytes: &[u8], epoch: u64, flushed: u64) -> Scan {
    let mut scan =
        Scan { records: Vec::new(), positions: None, bytes: 0, end: 0, synced: 0, damage: Vec::new(), torn_bytes: 0 };
    let mut at = 0;
    let mut sound = true;
    loop {
        while let Some(stored) = record::read_at(bytes, at, epoch) {
            scan.synced = stored.synced;
            scan.positions = Some((scan.positions.map_or(stored.position, |(first, _)| first), stored.position));
            if stored.position > flushed {
                scan.records.push(stored.to_record());
            }
            scan.bytes += stored.stored_len() as u64;
            at += stored.stored_len();
        }
        if sound {
            scan.end = at;
        }
        // The next header of this epoch that was written when this place was synced already.
        let bad = at;
        let mut later = (at + 8..bytes.len()).step_by(8).filter_map(|place| {
            let (_, synced) = record::header_at(bytes, place, epoch)?;
            Some((place, synced))
        });
        let torn_from = later.clone().next();
        match later.find(|(_, synced)| *synced > bad as u64) {
            Some((place, _)) => {
                sound = false;
                scan.damage.push(StoreError::corrupt(
                    path,
                    format!("the record at byte {bad} does not read, while the one at byte {place} does"),
                ));
                at = place;
            }
            None => {
                if torn_from.is_some() || record::header_at(bytes, bad, epoch).is_some() {
                    scan.torn_bytes = (bytes.len() - bad) as u64;
                }
                return scan;
            }
        }
    }
}

#[cfg(test)]
mod tests;
