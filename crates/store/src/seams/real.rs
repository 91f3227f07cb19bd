//! The machine's file system.
#![allow(clippy::disallowed_methods, reason = "the seam itself")]

use super::{Disk, DiskFile, DiskLock, OpenMode};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// Permissions of files that only their owner may read; the next constant is that of folders.
const OWNER_FILE: u32 = 0o600;
const OWNER_FOLDER: u32 = 0o700;

/// The machine's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "held, never read: closing the file gives the lock back")] File);

impl DiskLock for RealLock {}

/// Checks that a path is that of a file. A pipe gives its content once, and an open of one waits until another process
/// opens it.
///
/// # Errors
/// A sentence with what was expected, or the error of the file system.
pub fn expect_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path)?.file_type().is_file() {
        true => Ok(()),
        false => Err(not_a_file()),
    }
}

/// Returns the error for a path that is not that of a file.
pub fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "expected a file, and not a pipe, a socket, a folder or a device")
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        match mode {
            OpenMode::CreatePrivate => {
                // Truncating an existing file would keep its permissions, so it is removed first.
                match std::fs::remove_file(path) {
                    Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                    _ => options.read(true).write(true).create_new(true).mode(OWNER_FILE),
                }
            }
            OpenMode::Read => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
            OpenMode::Create => options.read(true).write(true).create(true).truncate(true),
        };
        if matches!(mode, OpenMode::Read | OpenMode::ReadWrite | OpenMode::Create) {
            match expect_file(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && mode == OpenMode::Create => {}
                checked => checked?,
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)?;
        }
        match DirBuilder::new().mode(OWNER_FOLDER).create(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::set_permissions(path, Permissions::from_mode(OWNER_FOLDER))
            }
            made => made,
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            // The store never writes a name that is not UTF-8.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let of = rustix::fs::statvfs(path)?;
        // Some file systems without a disk report no size at all.
        Ok(if of.f_blocks == 0 { u64::MAX } else { of.f_bavail.saturating_mul(of.f_frsize) })
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_are_those_of_the_file_system_of_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let free = RealDisk.free_bytes(folder.path()).unwrap();
        assert!(free > 0 && free < u64::MAX, "{free}");
        let absent = RealDisk.free_bytes(&folder.path().join("absent"));
        assert_eq!(absent.unwrap_err().kind(), io::ErrorKind::NotFound);
        // A file system of no size.
        #[cfg(target_os = "linux")]
        assert_eq!(RealDisk.free_bytes(Path::new("/proc")).unwrap(), u64::MAX);
    }
}
