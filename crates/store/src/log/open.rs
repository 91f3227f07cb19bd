//! Opens a log: reads the content of its files, and detects missing writes.

use super::mark::{HEAD_BYTES, Mark, Slot};
use super::newest::{self, Newest};
use super::scan::scan;
use super::{Log, LogFile, log_name};
use crate::error::{Problem, StoreError};
use crate::seams::Record;
use crate::seams::files::read_file;
use crate::seams::{Disk, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The content of a log.
#[derive(Debug, Default)]
pub(crate) struct RecoveredLog {
    /// Good records in order of position.
    pub(crate) records: Vec<Record>,
    /// Damaged places. `records` also includes records after them.
    pub(crate) damage: Vec<StoreError>,
    /// Bytes of torn tails that were dropped.
    pub(crate) torn_bytes: u64,
    /// The last write that any mark records as acknowledged.
    pub(crate) claimed: u64,
    /// Whether the end of the acknowledged writes is unknown: the newest file, its name or its marks are gone.
    pub(crate) end_unknown: bool,
    /// The last group, which may have been written without a sync.
    last_group: Option<Group>,
}

impl RecoveredLog {
    /// Returns the position of the last good record, or of the last one that a manifest covers.
    fn last(&self, flushed: u64) -> u64 {
        self.records.last().map_or(flushed, |r| r.position)
    }

    /// Returns the known gaps of acknowledged writes after `flushed` without a readable record: first and last position
    /// of each.
    pub(crate) fn gaps(&self, flushed: u64) -> Vec<(u64, u64)> {
        let (mut gaps, mut next) = (Vec::new(), flushed + 1);
        let positions = self.records.iter().map(|record| record.position);
        for position in positions.chain((self.claimed >= next).then_some(self.claimed + 1)) {
            if position > next {
                gaps.push((next, position - 1));
            }
            next = next.max(position + 1);
        }
        gaps
    }
}

/// Records written with one call, as encoded in their file.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    epoch: u64,
    offset: u64,
    bytes: Vec<u8>,
    /// The mark to write once the group is synced, and its slot. `None` if the mark exists, or the file has no marks.
    mark: Option<(Mark, Slot)>,
}

impl Group {
    /// Rewrites the group in its place, syncs it and marks it, so that content that was only in the kernel's cache is
    /// on disk.
    fn write_again(&self, disk: &dyn Disk) -> Result<(), StoreError> {
        let file = disk.open(&self.path, OpenMode::ReadWrite).map_err(StoreError::io("open", &self.path))?;
        file.write_at(self.offset, &self.bytes).map_err(StoreError::io("write", &self.path))?;
        file.sync().map_err(StoreError::io("sync", &self.path))?;
        let Some((mark, slot)) = self.mark else { return Ok(()) };
        mark.write(file.as_ref(), self.epoch, slot).map_err(StoreError::io("write", &self.path))?;
        file.sync().map_err(StoreError::io("sync", &self.path))
    }
}

/// The result for the files read so far.
#[derive(Debug, Default)]
struct RecoveryState {
    found: RecoveredLog,
    /// End of the previous file, and its epoch. The next file with records decides whether that end is torn or damaged.
    open_end: Option<(PathBuf, usize, u64)>,
    last_position: Option<u64>,
    /// The newer mark of the file that `NEWEST` names.
    mark: Option<Mark>,
}

impl Log {
    /// Reads the log in `dir`, which exists, and prepares it for writing. Records up to `flushed` are left out.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        file_bytes: u64,
        flushed: u64,
    ) -> Result<(Log, RecoveredLog), StoreError> {
        let (mut log, mut found) = Log::read(disk, dir, file_bytes, flushed)?;
        if let Some(mut group) = found.last_group.take() {
            // A mark that claims more than was found must stay: it proves the loss.
            group.mark = group.mark.filter(|_| found.damage.is_empty());
            // Before any record is shown: after a failed sync the kernel may hold this group in clean pages. A reader
            // must not see events that a power loss can still remove.
            found.damage.extend(group.write_again(disk.as_ref()).err());
        }
        // With damage nothing is removed: a repair reads whatever exists.
        if found.damage.is_empty() {
            log.release_files(flushed)?;
        }
        Ok((log, found))
    }

    /// Rereads the log and returns its damage; `position` is that of the newest write.
    pub(super) fn read_again(&self, flushed: u64, position: u64) -> Vec<StoreError> {
        let mut damage = match Log::read(&self.disk, &self.dir, self.file_bytes, flushed) {
            Ok((_, found)) if found.damage.is_empty() => {
                let last = found.last(flushed);
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

    /// Reads the log and changes nothing.
    fn read(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        file_bytes: u64,
        flushed: u64,
    ) -> Result<(Log, RecoveredLog), StoreError> {
        let mut log = Log { next_epoch: 1, ..Log::closed(disk, dir, file_bytes) };
        let newest = newest::read(disk.as_ref(), dir);
        let mut reading = RecoveryState::default();
        for name in disk.list(dir).map_err(StoreError::io("list", dir))? {
            let path = dir.join(&name);
            if let Some(epoch) = name.strip_suffix(".spare").and_then(|n| u64::from_str_radix(n, 16).ok()) {
                // Spares count as well: reusing an epoch would make old records valid again.
                log.next_epoch = log.next_epoch.max(epoch + 1);
                log.spares.push(path);
                continue;
            }
            let Some(epoch) = name.strip_suffix(".log").and_then(|n| u64::from_str_radix(n, 16).ok()) else {
                continue;
            };
            log.next_epoch = log.next_epoch.max(epoch + 1);
            let named = newest.as_ref().ok().copied().flatten().filter(|newest| newest.epoch == Some(epoch));
            match read_file(disk.as_ref(), &path) {
                Ok(bytes) => log.files.push(reading.file(path, &bytes, epoch, flushed, named)),
                // Other files are still read: a repair needs every record that exists.
                Err(e) => reading.found.damage.push(e),
            }
        }
        let RecoveryState { mut found, mark, .. } = reading;
        found.records.sort_by_key(|r| r.position);
        // A reused file may hold a record twice: the original, and the copy written again.
        found.records.dedup_by_key(|r| r.position);
        log.find_newest(newest, mark, flushed, &mut found);
        if !found.damage.is_empty() {
            // With damage the end of the log is uncertain, so nothing is reported as a harmless torn tail.
            found.torn_bytes = 0;
        }
        Ok((log, found))
    }

    /// Checks that the newest file exists and holds everything that its mark acknowledges. Records that `flushed`
    /// covers count as well.
    fn find_newest(
        &mut self,
        newest: Result<Option<Newest>, StoreError>,
        mark: Option<Mark>,
        flushed: u64,
        found: &mut RecoveredLog,
    ) {
        let path = newest::path(&self.dir);
        let missing =
            |path: &Path, what: &str| StoreError::corrupt(path, format!("{what}: the last writes may be missing"));
        match newest {
            Ok(Some(Newest { epoch: None, .. })) => {}
            Ok(Some(Newest { epoch: Some(epoch), head })) => {
                let newest = self.dir.join(log_name(epoch));
                let unread = |e: &StoreError| Problem::of(e).path == newest;
                let there = self.files.iter().any(|f| f.path == newest);
                if !there && !found.damage.iter().any(unread) {
                    found.damage.push(missing(&newest, "the newest file of the log is not there"));
                }
                if there && head > 0 {
                    found.damage.extend(self.falls_short(&newest, mark, found.last(flushed)));
                }
                found.end_unknown = !there || head > 0 && mark.is_none();
                self.newest = there.then_some(newest);
            }
            // A new collection has no `NEWEST` until its first record.
            Ok(None) if self.files.iter().all(|f| f.bytes == 0) => {}
            Ok(None) => {
                found.damage.push(missing(&path, "it is not there, and it names the newest file of the log"));
                found.end_unknown = true;
            }
            Err(e) => {
                found.damage.push(e);
                found.end_unknown = true;
            }
        }
    }

    /// Reports acknowledged writes that are missing, by the newest file's mark.
    fn falls_short(&self, newest: &Path, mark: Option<Mark>, last: u64) -> Option<StoreError> {
        let Some(mark) = mark else {
            // Both were synced before the file was named, and a power loss tears only one of them.
            let detail = format!("neither of its marks reads: writes from {} on may be missing", last + 1);
            return Some(StoreError::corrupt(newest, detail));
        };
        let missing = || {
            let (from, to, end) = (last + 1, mark.position, mark.end);
            format!("writes {from} to {to} were acknowledged and are missing: its records go up to byte {end}")
        };
        (last < mark.position).then(|| StoreError::corrupt(newest, missing()))
    }
}

impl RecoveryState {
    /// Reads one file, the successor of those read before. `named` is the content of `NEWEST` if it names this file.
    fn file(&mut self, path: PathBuf, bytes: &[u8], epoch: u64, flushed: u64, named: Option<Newest>) -> LogFile {
        let marks = Mark::newest(bytes, epoch);
        self.found.claimed = self.found.claimed.max(marks.map_or(0, |(mark, _)| mark.position));
        if named.is_some() {
            self.mark = marks.map(|(mark, _)| mark);
        }
        // If the marks of an older file are unreadable, its first record proves that everything before it was synced:
        // damage.
        let head = marks.map(|_| HEAD_BYTES).or(named.map(|newest| newest.head)).unwrap_or(0);
        let scan = scan(&path, bytes, epoch, flushed, head as usize);
        if let Some((first, last)) = scan.positions {
            let front = (scan.end as u64 <= head).then_some(scan.end);
            self.goes_on((&path, epoch), front, first, flushed);
            self.last_position = Some(last.max(self.last_position.unwrap_or(0)));
            // Records that a manifest covers are in segments, which were synced.
            self.found.last_group = (!scan.records.is_empty()).then(|| {
                // The last group starts where the file was synced when its records were written. Clamped to what was
                // read: the offset comes from a record, and must not cause a write past the content.
                let offset = scan.synced.max(head).min(scan.end as u64);
                let bytes = bytes.get(offset as usize..scan.end).unwrap_or_default().to_vec();
                let mark = Mark { position: last, end: scan.end as u64 };
                let newer = |(old, slot)| (mark > old).then_some((mark, slot));
                Group { path: path.clone(), epoch, offset, bytes, mark: marks.and_then(newer) }
            });
        }
        self.open_end = Some((path.clone(), scan.end, epoch));
        self.found.damage.extend(scan.damage);
        self.found.torn_bytes += scan.torn_bytes;
        self.found.records.extend(scan.records);
        LogFile { path, last_position: self.last_position.unwrap_or(0), bytes: scan.bytes }
    }

    /// Returns true if the first record of a file continues where the previous file ended. `front` is where its records
    /// begin, if the file is unreadable there.
    fn goes_on(&mut self, (path, epoch): (&Path, u64), front: Option<usize>, first: u64, flushed: u64) {
        // The first records kept need not begin at 1, and some flushed records may be gone already.
        let from = self.last_position.map_or(0, |p| p + 1).max(flushed + 1);
        if first <= from && self.last_position.is_none_or(|last| first > last) {
            return;
        }
        let missing = format!("writes {from} to {} are missing", first.saturating_sub(1));
        let (path, detail) = match self.open_end.take() {
            _ if first < from => (path.to_owned(), format!("the write {first} is in it and in an earlier file")),
            Some((before, at, of)) if front.is_none() && of + 1 == epoch => {
                (before, format!("{missing}; the record at byte {at} does not read"))
            }
            // Epochs are contiguous from 1 on.
            _ if front.is_none() && epoch > 1 => {
                (path.with_file_name(log_name(epoch - 1)), format!("{missing}; it is not there"))
            }
            _ => {
                let at = front.unwrap_or_default();
                (path.to_owned(), format!("{missing}; the record at byte {at} does not read"))
            }
        };
        self.found.damage.push(StoreError::corrupt(&path, detail));
    }
}
