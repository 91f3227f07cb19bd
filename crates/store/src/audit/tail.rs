//! The end of the log: the file that grows.
//!
//! A line is written behind the existing ones, and synced. A write that fails leaves bytes that the next one replaces.
//! After a failed sync the content of the disk is unknown: no line is taken until the store is opened again.

use super::lines::Lines;
use super::{Files, NO_LINE};
use crate::error::StoreError;
use crate::seams::{DiskFile, OpenMode};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A file that takes up room, so that acts are recorded on a full disk too, including acts that make room.
const RESERVE: &str = "RESERVE";
const RESERVE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Tail {
    /// Bytes of lines of each file, by the number of its first line.
    pub sizes: BTreeMap<u64, u64>,
    /// The newest file, once it is open.
    file: Option<Arc<dyn DiskFile>>,
    /// The number of the next line.
    pub next: u64,
    /// SHA-256 of the last line.
    pub previous: [u8; 32],
    /// The newest file may hold a part of a line that was not written whole.
    torn: bool,
    /// Why no line is taken.
    refuses: Option<String>,
}

impl Tail {
    /// Finds the last line, and cuts off what follows it.
    pub fn open(files: &Files) -> Result<Tail, StoreError> {
        let mut tail =
            Tail { sizes: files.sizes()?, file: None, next: 1, previous: NO_LINE, torn: false, refuses: None };
        let Some((&newest, _)) = tail.sizes.last_key_value() else { return Ok(tail) };
        // A crash can leave the newest without a line: then the last one is in the file before.
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

    /// A log that takes no lines.
    pub fn refusing(error: &StoreError) -> Tail {
        let refuses = Some(format!("the audit log cannot be read: {error}"));
        Tail { sizes: BTreeMap::new(), file: None, next: 1, previous: NO_LINE, torn: false, refuses }
    }

    /// Why no line is taken; `None` if they are.
    pub fn refuses(&self) -> Option<&str> {
        self.refuses.as_deref()
    }

    /// Counts the lines of a file and hashes the last; returns where they end.
    fn read(&mut self, files: &Files, first: u64, bytes: u64) -> Result<(u64, u64), StoreError> {
        let path = files.path(first);
        let file = files.disk.open(&path, OpenMode::Read).map_err(StoreError::io("open", &path))?;
        let mut inside = Lines::new(file, bytes);
        let (mut found, mut torn) = ((0, 0, self.previous), None);
        while let Some(line) = inside.next().map_err(StoreError::io("read", &path))? {
            // No line has a zero byte. In the last one it stands for a piece that did not reach the disk.
            torn = line.contains(&0).then_some(found);
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

    /// Writes a line, durably, and returns its number.
    pub fn append(&mut self, files: &Files, line: &[u8]) -> Result<u64, StoreError> {
        if let Some(why) = &self.refuses {
            return Err(StoreError::Busy(why.clone()));
        }
        let ended = [line, b"\n"].concat();
        let written = match self.write(files, &ended) {
            Err(error) if error.is_full() && spend_reserve(files) => self.write(files, &ended),
            written => written,
        };
        written?;
        let n = self.next;
        (self.next, self.previous) = (n + 1, hash(line));
        self.trim(files);
        Ok(n)
    }

    fn write(&mut self, files: &Files, line: &[u8]) -> Result<(), StoreError> {
        let newest = self.sizes.last_key_value().map(|(first, bytes)| (*first, *bytes));
        let (first, at) = match newest {
            Some((first, bytes)) if bytes == 0 || bytes + line.len() as u64 <= files.file_bytes => (first, bytes),
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
        // A shorter line must not end in remains of the previous one.
        if self.torn && !is_new {
            file.set_len(at).map_err(StoreError::io("cut", &path))?;
        }
        self.torn = false;
        if let Err(e) = file.write_at(at, line) {
            self.torn = file.set_len(at).is_err();
            return Err(StoreError::io("write", &path)(e));
        }
        let synced = file.sync().and_then(|()| if is_new { files.disk.sync_dir(&files.dir) } else { Ok(()) });
        if let Err(e) = synced {
            self.refuse(&e);
            return Err(StoreError::io("sync", &path)(e));
        }
        self.file = Some(file);
        self.sizes.insert(first, at + line.len() as u64);
        if is_new {
            make_reserve(files);
        }
        Ok(())
    }

    fn refuse(&mut self, error: &io::Error) {
        tracing::error!(%error, "the audit log takes no more lines: administrative acts are refused until a restart");
        self.refuses = Some(format!("the audit log takes no lines until a restart has read it: {error}"));
    }

    /// Removes the oldest files until all of them fit.
    fn trim(&mut self, files: &Files) {
        while self.sizes.values().sum::<u64>() > files.bytes_total && self.sizes.len() > 1 {
            let Some((first, _)) = self.sizes.pop_first() else { return };
            if let Err(error) = files.disk.remove(&files.path(first)) {
                tracing::warn!(%error, "an old file of the audit log could not be removed");
            }
        }
    }
}

/// Makes a file, and the folder if it is the first.
fn create(files: &Files, first: u64) -> Result<Arc<dyn DiskFile>, StoreError> {
    let path = files.path(first);
    if files.disk.list(&files.dir).is_err() {
        files.disk.create_private_dir(&files.dir).map_err(StoreError::io("create", &files.dir))?;
        files.disk.sync_dir(&files.root).map_err(StoreError::io("sync", &files.root))?;
    }
    files.disk.open(&path, OpenMode::CreatePrivate).map_err(StoreError::io("create", &path))
}

/// Takes room on the disk. One that cannot be made now is made with the next file.
fn make_reserve(files: &Files) {
    let path = files.dir.join(RESERVE);
    if files.disk.open(&path, OpenMode::Read).and_then(|file| file.len()).is_ok_and(|bytes| bytes > 0) {
        return;
    }
    // Not zeros: a file system may keep those as a hole.
    let made = files.disk.open(&path, OpenMode::CreatePrivate).and_then(|file| {
        file.write_at(0, &vec![b' '; RESERVE_BYTES])?;
        file.sync()
    });
    if let Err(error) = made {
        tracing::warn!(%error, "there is no room for the reserve of the audit log");
        let _ = files.disk.remove(&path);
    }
}

/// Gives the room back; `false` where there is none.
fn spend_reserve(files: &Files) -> bool {
    // Synced, since some file systems free the room of a removed file only then.
    let removed = files.disk.remove(&files.dir.join(RESERVE)).and_then(|()| files.disk.sync_dir(&files.dir));
    removed.is_ok()
}

/// SHA-256 of a line without its end.
pub(super) fn hash(line: &[u8]) -> [u8; 32] {
    Sha256::digest(line).into()
}
