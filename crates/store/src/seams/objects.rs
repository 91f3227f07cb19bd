//! Objects: the immutable files of a partition, by name.

use super::{Disk, DiskFile, OpenMode};
use crate::manifest::FileEnd;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The immutable files of one partition: segments, archives and sidecars. On disk a folder, in a cluster a prefix of a
/// bucket.
///
/// # Contract
/// - **Create-only.** [`Objects::put`] fails with [`io::ErrorKind::AlreadyExists`] if the name is taken. Of concurrent
///   puts of one name at most one finishes, so the content under a name never changes.
/// - **All or nothing.** A reader that opens a name after [`ObjectWriter::finish`] returned finds every byte. Before
///   that the name may be absent, short, or only listed; an unfinished put may leave it taken.
/// - **Durable after `sync`.** Anything finished before [`Objects::sync`] returned survives a crash. A manifest may
///   name it only then.
/// - **Errors do not reveal the outcome.** A failed put may have taken effect. Its name is never used again; nothing
///   refers to it, so maintenance removes it as a leftover.
/// - **Open objects.** Deleting an open name is a bug in the caller if the implementation has no open files (a bucket).
///   The store deletes only what no snapshot of the process pins (`part/removal.rs`).
/// - `delete` of an absent name is an error of kind [`io::ErrorKind::NotFound`], and changes nothing.
pub trait Objects: Send + Sync + std::fmt::Debug {
    /// Begins an object under a free name.
    fn put(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>>;

    /// Begins an object that atomically replaces the one of this name when it is finished.
    ///
    /// Only for objects that can be rebuilt from others, such as the index of a segment: both contents serve the same
    /// results.
    ///
    /// If objects are never replaced (in a bucket), only this process sees the replacement: see
    /// [`Objects::is_provisional`].
    fn replace(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>>;

    /// Returns true if only this process sees the replacement under this name, and only until it ends. Its content
    /// should then be rewritten under another name.
    fn is_provisional(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Opens an object for reading.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>>;

    /// Opens an object whose end is known; the implementation may rely on that instead of querying the storage. Then
    /// only a read may notice that the object does not exist.
    fn open_known(&self, name: &str, end: &FileEnd) -> io::Result<Arc<dyn Object>> {
        let _ = end;
        self.open(name)
    }

    /// Prefetches ranges of objects concurrently, if reads are slow; only a hint. Objects whose end is unknown are left
    /// out.
    fn load(&self, wanted: &[ReadHint]) {
        let _ = wanted;
    }

    /// Returns all names, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Removes an object.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes everything durable that was finished or deleted before.
    fn sync(&self) -> io::Result<()>;

    /// Returns the name of an object in messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A range of an object that will be read soon.
#[derive(Debug, Clone)]
pub struct ReadHint {
    /// Name of the object.
    pub name: String,
    /// Its end.
    pub end: FileEnd,
    /// Its bytes.
    pub range: Range<u64>,
}

/// An open object: its bytes never change.
pub trait Object: Send + Sync + std::fmt::Debug {
    /// Returns the end that was given when it was opened, and is in use.
    fn end(&self) -> Option<FileEnd> {
        None
    }

    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Returns true if it is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Drops cached copies of damaged bytes. Returns false if nothing is cached, so that another read would find the
    /// same.
    fn forget(&self, range: Range<u64>) -> bool {
        let _ = range;
        false
    }

    /// Fills `into` from `offset`; an object that is too short is an error of kind [`io::ErrorKind::UnexpectedEof`].
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// An object being written. Dropping it before [`ObjectWriter::finish`] may leave its name taken.
pub trait ObjectWriter: Send {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the object readable and its content durable. Returns its length. The name is durable after
    /// [`Objects::sync`].
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

/// Objects in a folder.
#[derive(Debug, Clone)]
pub struct DiskObjects {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

/// Bytes after which an object being written is synced, as it will be at its end. A journaling file system makes a sync
/// of one file wait for the data of others, so a large object would hold up every group of writes to the log meanwhile.
const SYNC_BYTES: u64 = 8 << 20;
/// Suffix of a file being written to replace another.
pub(crate) const HALF: &str = ".new";

impl DiskObjects {
    /// Opens the objects in an existing folder.
    pub fn new(disk: Arc<dyn Disk>, dir: impl Into<PathBuf>) -> DiskObjects {
        DiskObjects { disk, dir: dir.into() }
    }
}

impl Objects for DiskObjects {
    fn put(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        let file = self.disk.open(&self.dir.join(name), OpenMode::CreateNew)?;
        Ok(Box::new(DiskWriter::new(file, None)))
    }

    fn replace(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        // Written under a temporary name: until it is complete, readers find the old content.
        let beside = self.dir.join(format!("{name}{HALF}"));
        let file = self.disk.open(&beside, OpenMode::Create)?;
        Ok(Box::new(DiskWriter::new(file, Some((self.disk.clone(), beside, self.dir.join(name))))))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
        Ok(Arc::new(DiskObject(self.disk.open(&self.dir.join(name), OpenMode::Read)?)))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list(&self.dir)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&self.dir.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync_dir(&self.dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

#[derive(Debug)]
struct DiskObject(Arc<dyn DiskFile>);

impl Object for DiskObject {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }
}

struct DiskWriter {
    file: Arc<dyn DiskFile>,
    offset: u64,
    /// Bytes that are synced.
    synced: u64,
    /// The rename that gives the complete file its name: disk, from, to.
    rename: Option<(Arc<dyn Disk>, PathBuf, PathBuf)>,
}

impl DiskWriter {
    fn new(file: Arc<dyn DiskFile>, rename: Option<(Arc<dyn Disk>, PathBuf, PathBuf)>) -> DiskWriter {
        DiskWriter { file, offset: 0, synced: 0, rename }
    }
}

impl ObjectWriter for DiskWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(self.offset, bytes)?;
        self.offset += bytes.len() as u64;
        if self.offset - self.synced >= SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        // Content first: a name must never lead to bytes that a crash takes back.
        self.file.sync()?;
        if let Some((disk, from, to)) = &self.rename {
            disk.rename(from, to)?;
        }
        Ok(self.offset)
    }
}

/// Writes an object in one call.
pub(crate) fn put_all(objects: &dyn Objects, name: &str, bytes: &[u8]) -> io::Result<u64> {
    let mut writer = objects.put(name)?;
    writer.write(bytes)?;
    writer.finish()
}

/// Reads a complete object.
pub(crate) fn read_all(objects: &dyn Objects, name: &str) -> io::Result<Vec<u8>> {
    let object = objects.open(name)?;
    let mut bytes = vec![0; object.len()? as usize];
    object.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Returns the folder of objects within that of a partition.
pub(crate) fn folder(partition: &Path) -> PathBuf {
    partition.join("segments")
}
