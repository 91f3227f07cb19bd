//! The end of the log: the file that is appended to.
//!
//! Each group of lines is appended with one sync. A failed write leaves bytes that the next write overwrites. After a
//! failed sync the content of the disk is unknown, so lines are refused until the store is reopened.

use super::act::{Act, Line, group};
use super::holders::Shares;
use super::lines::Lines;
use super::{Files, NO_LINE};
use crate::error::StoreError;
use crate::seams::{DiskFile, OpenMode};
use sha2::{Digest, Sha256};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A file that reserves disk space, so that acts can be recorded on a full disk, including acts that free space.
pub(super) const RESERVE: &str = "RESERVE";
const RESERVE_BYTES: usize = 256 << 10;
/// Bytes of lines that are written with one sync. Even with one more line they fit into the max line length that a
/// reader accepts.
const GROUP_BYTES: usize = 24 << 10;

#[derive(Debug)]
pub(super) struct Tail {
    /// Bytes of each file, by the number of its first line.
    pub sizes: BTreeMap<u64, u64>,
    /// Bytes by holder, for the files that were read to compute it.
    pub shares: BTreeMap<u64, Shares>,
    /// The newest file, if it is open.
    file: Option<Arc<dyn DiskFile>>,
    /// The number of the next line.
    pub next: u64,
    /// SHA-256 of the last line.
    pub previous: [u8; 32],
    /// Whether the newest file may end in a partly written line.
    torn: bool,
    /// Why lines are refused.
    refuses: Option<String>,
}

impl Tail {
    /// Finds the last line, and cuts off whatever follows it.
    pub fn open(files: &Files) -> Result<Tail, StoreError> {
        let mut tail = Tail::of(files.sizes()?, None);
        let Some((&newest, _)) = tail.sizes.last_key_value() else { return Ok(tail) };
        // A crash can leave the newest file without a line. Then the last line is in the previous file.
        for (&first, &bytes) in tail.sizes.clone().iter().rev() {
            let (lines, end) = tail.read(files, first, bytes)?;
            if first == newest && end < bytes {
                tail.cut(files, first, end)?;
            }
            if lines > 0 {
                tail.next = first + lines;
                break;
            }
        }
        tail.next = tail.next.max(newest);
        make_reserve(files);
        Ok(tail)
    }

    /// Creates a log that accepts no lines.
    pub fn refusing(error: &StoreError) -> Tail {
        Tail::of(BTreeMap::new(), Some(format!("the audit log cannot be read: {error}")))
    }

    fn of(sizes: BTreeMap<u64, u64>, refuses: Option<String>) -> Tail {
        Tail { sizes, shares: BTreeMap::new(), file: None, next: 1, previous: NO_LINE, torn: false, refuses }
    }

    /// Returns why lines are refused; `None` if they are accepted.
    pub fn refuses(&self) -> Option<&str> {
        self.refuses.as_deref()
    }

    /// Counts the lines of a file and hashes the last; returns where they end.
    fn read(&mut self, files: &Files, first: u64, bytes: u64) -> Result<(u64, u64), StoreError> {
        let path = files.path(first);
        let file = files.disk.open(&path, OpenMode::Read).map_err(StoreError::io("open", &path))?;
        let mut inside = Lines::new(file, bytes);
        let (mut found, mut torn): (_, Option<(u64, u64, [u8; 32])>) = ((0, 0, self.previous), None);
        while let Some(line) = inside.next().map_err(StoreError::io("read", &path))? {
            // No line contains a zero byte. In the last group it marks a sector that did not reach the disk; only lines
            // of that group may follow.
            let torn_here = line.contains(&0);
            torn = match torn {
                Some(_) if torn_here => torn,
                Some((lines, ..)) if group(line).is_some_and(|begin| begin <= first + lines) => torn,
                _ => torn_here.then_some(found),
            };
            let hash = hash(line);
            found = (found.0 + 1, inside.read(), hash);
        }
        let (lines, end, last) = torn.unwrap_or(found);
        self.previous = last;
        Ok((lines, end))
    }

    fn cut(&mut self, files: &Files, first: u64, end: u64) -> Result<(), StoreError> {
        let path = files.path(first);
        tracing::warn!(file = %path.display(), "an audit line that a crash cut short is removed: no act was acknowledged for it");
        let file = files.disk.open(&path, OpenMode::ReadWrite).map_err(StoreError::io("open", &path))?;
        file.set_len(end).and_then(|()| file.sync()).map_err(StoreError::io("cut", &path))?;
        self.sizes.insert(first, end);
        Ok(())
    }

    /// Writes lines for these acts durably, with one sync; returns the number of the first.
    pub fn append(&mut self, files: &Files, now: i64, acts: &[Act]) -> Result<u64, StoreError> {
        let begun = self.sizes.len();
        let first = self.put(files, acts.iter().map(|act| (now, act)))?;
        // A new file was begun: older files may have to be removed.
        if self.sizes.len() > begun
            && let Err(error) = self.trim(files, now)
        {
            tracing::warn!(%error, "the audit log could not make room for new lines, and grows");
        }
        Ok(first)
    }

    /// Writes lines for these acts and times, and returns the number of the first.
    pub fn put<A: Borrow<Act>>(
        &mut self,
        files: &Files,
        acts: impl Iterator<Item = (i64, A)>,
    ) -> Result<u64, StoreError> {
        if let Some(why) = &self.refuses {
            return Err(StoreError::Busy(why.clone()));
        }
        let first = self.next;
        let (mut n, mut previous, mut lines) = (first, self.previous, Vec::new());
        for (time, act) in acts {
            let line = Line { n, time, act: act.borrow(), previous, group: self.next }.encode()?;
            (n, previous) = (n + 1, hash(&line));
            lines.extend_from_slice(&line);
            lines.push(b'\n');
            if lines.len() >= GROUP_BYTES {
                self.commit(files, &lines, (n, previous))?;
                lines.clear();
            }
        }
        if !lines.is_empty() {
            self.commit(files, &lines, (n, previous))?;
        }
        Ok(first)
    }

    /// Writes a group of lines. Afterwards `next` and `last` are the next number and the hash of the last line.
    fn commit(&mut self, files: &Files, lines: &[u8], (next, last): (u64, [u8; 32])) -> Result<(), StoreError> {
        let written = match self.write(files, lines) {
            Err(error) if error.is_full() && spend_reserve(files) => self.write(files, lines),
            written => written,
        };
        written?;
        (self.next, self.previous) = (next, last);
        Ok(())
    }

    fn write(&mut self, files: &Files, lines: &[u8]) -> Result<(), StoreError> {
        let newest = self.sizes.last_key_value().map(|(first, bytes)| (*first, *bytes));
        let (first, at) = match newest {
            Some((first, bytes)) if bytes == 0 || bytes + lines.len() as u64 <= files.file_bytes => (first, bytes),
            _ => (self.next, 0),
        };
        let (path, is_new) = (files.path(first), at == 0);
        let file = match &self.file {
            Some(file) if !is_new => file.clone(),
            _ if is_new => {
                self.file = None;
                create(files, first)?
            }
            _ => files.disk.open(&path, OpenMode::ReadWrite).map_err(StoreError::io("open", &path))?,
        };
        // A shorter line must not end in the remains of the previous attempt.
        if self.torn && !is_new {
            file.set_len(at).map_err(StoreError::io("cut", &path))?;
        }
        self.torn = false;
        if let Err(e) = file.write_at(at, lines) {
            self.torn = file.set_len(at).is_err();
            return Err(StoreError::io("write", &path)(e));
        }
        let synced = file.sync().and_then(|()| if is_new { files.disk.sync_dir(&files.dir) } else { Ok(()) });
        if let Err(e) = synced {
            self.refuse(&e);
            return Err(StoreError::io("sync", &path)(e));
        }
        self.file = Some(file);
        self.sizes.insert(first, at + lines.len() as u64);
        if is_new {
            make_reserve(files);
        }
        Ok(())
    }

    fn refuse(&mut self, error: &io::Error) {
        tracing::error!(%error, "the audit log takes no more lines: administrative acts are refused until a restart");
        self.refuses = Some(format!("the audit log takes no lines until a restart has read it: {error}"));
    }
}

/// Creates a file, and the folder with the first file.
fn create(files: &Files, first: u64) -> Result<Arc<dyn DiskFile>, StoreError> {
    let path = files.path(first);
    if files.disk.list(&files.dir).is_err() {
        files.disk.create_private_dir(&files.dir).map_err(StoreError::io("create", &files.dir))?;
        files.disk.sync_dir(&files.root).map_err(StoreError::io("sync", &files.root))?;
    }
    files.disk.open(&path, OpenMode::CreatePrivate).map_err(StoreError::io("create", &path))
}

/// Reserves disk space. A failure is retried with the next file.
fn make_reserve(files: &Files) {
    let path = files.dir.join(RESERVE);
    if files.disk.open(&path, OpenMode::Read).and_then(|file| file.len()).is_ok_and(|bytes| bytes > 0) {
        return;
    }
    // Not zeros: a file system may store those as a hole.
    let made = files.disk.open(&path, OpenMode::CreatePrivate).and_then(|file| {
        file.write_at(0, &vec![b' '; RESERVE_BYTES])?;
        file.sync()
    });
    if let Err(error) = made {
        tracing::warn!(%error, "there is no room for the reserve of the audit log");
        let _ = files.disk.remove(&path);
    }
}

/// Releases the reserved space; false if there is none.
fn spend_reserve(files: &Files) -> bool {
    // Synced, because some file systems free the space of a removed file only then.
    let removed = files.disk.remove(&files.dir.join(RESERVE)).and_then(|()| files.disk.sync_dir(&files.dir));
    removed.is_ok()
}

/// Returns the SHA-256 of a line without its line ending.
pub(super) fn hash(line: &[u8]) -> [u8; 32] {
    Sha256::digest(line).into()
}
