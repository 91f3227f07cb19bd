//! A disk on which no segment is written or read while its gate is closed.

use meridian_store::seams::{Disk, DiskFile, DiskLock, MemoryDisk, OpenMode};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A disk on which no segment is written or read while the gate is closed.
#[derive(Debug, Clone)]
pub struct Gated {
    disk: MemoryDisk,
    pub gate: Arc<Gate>,
}

impl Gated {
    pub fn new() -> Gated {
        Gated { disk: MemoryDisk::new(), gate: Arc::default() }
    }
}

/// Initially closed.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    pub waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        drop(self.changed.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }
}

/// A segment's file.
#[derive(Debug)]
struct GatedFile {
    file: Arc<dyn DiskFile>,
    gate: Arc<Gate>,
}

impl DiskFile for GatedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.gate.pass();
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}

impl Disk for Gated {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        if !path.extension().is_some_and(|e| e == "segment" || e == "rows") {
            return self.disk.open(path, mode);
        }
        if matches!(mode, OpenMode::Create | OpenMode::CreateNew) {
            self.gate.pass();
        }
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(GatedFile { file, gate: self.gate.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_private_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_bytes(path)
    }
}
