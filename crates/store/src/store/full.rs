//! Detects a full disk by its own errors.
//!
//! A [`WatchedDisk`] forwards every call and records which file found no space. The record is cleared once a trial
//! finds space again, so no client's write is needed for that.

use crate::error::is_full;
use crate::seams::{Disk, DiskFile, DiskLock, OpenMode};
use parking_lot::Mutex;
use std::io::{self};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that must fit for the disk not to be full: a small write, the marks of its log file and a manifest.
const TRIAL_BYTES: usize = 256 << 10;

/// The last file that found no space, until there is some.
#[derive(Debug, Default)]
pub(crate) struct FullDisk(Mutex<Option<PathBuf>>);

impl FullDisk {
    fn note<T>(&self, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(is_full) {
            *self.0.lock() = Some(path.to_owned());
        }
        result
    }

    /// Returns true if a file found no space, and no trial has found space since then.
    pub(crate) fn is_noted(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Returns the file that found no space, if there still is none, by writing the file `trial`.
    pub(crate) fn still(&self, disk: &dyn Disk, trial: &Path) -> Option<PathBuf> {
        let mut noted = self.0.lock();
        noted.as_ref()?;
        let fits = disk.open(trial, OpenMode::Create).and_then(|file| file.write_at(0, &vec![0; TRIAL_BYTES])).is_ok();
        // A trial file left behind is replaced by the next one.
        let _ = disk.remove(trial);
        if fits {
            *noted = None;
        }
        noted.clone()
    }
}

/// A disk that records when it is full.
#[derive(Debug)]
pub(crate) struct WatchedDisk {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) full: Arc<FullDisk>,
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    full: Arc<FullDisk>,
}

impl Disk for WatchedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.full.note(path, self.disk.open(path, mode))?;
        if mode == OpenMode::Read {
            return Ok(file);
        }
        Ok(Arc::new(WatchedFile { file, path: path.to_owned(), full: self.full.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.full.note(to, self.disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.full.note(path, self.disk.create_dir(path))
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.full.note(path, self.disk.create_private_dir(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.full.note(path, self.disk.sync_dir(path))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.full.note(path, self.disk.lock(path))
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }
}

impl DiskFile for WatchedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.full.note(&self.path, self.file.write_at(offset, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.full.note(&self.path, self.file.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.full.note(&self.path, self.file.set_len(bytes))
    }
}
