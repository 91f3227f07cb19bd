//! The folder that holds a backup.

use super::{Backup, COPY_BYTES, ERROR, FILES, LISTING, checksum};
use crate::error::StoreError;
use crate::seams::files::read_file;
use crate::seams::files::replace_file_as;
use crate::seams::{Disk, DiskLock, OpenMode};
use meridian_model::Invalid;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK: &str = "LOCK";
/// Max bytes of the listing and of an error's text.
const LISTING_BYTES_MAX: u64 = 256 << 20;

/// A locked folder that holds, or will hold, a backup.
#[derive(Debug)]
pub struct BackupFolder {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    _lock: Box<dyn DiskLock>,
}

/// The outcome of a backup.
#[derive(Debug, Clone)]
pub struct BackupOutcome {
    /// The current content of the folder.
    pub backup: Backup,
    /// Number of files that were sent; all others were already present.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

impl BackupFolder {
    /// Opens a folder for a backup. It must be new, empty, or hold a complete or incomplete backup.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] for a folder with other content, [`StoreError::InUse`], [`StoreError::Io`].
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<BackupFolder, StoreError> {
        let (there, new) = match disk.list(dir) {
            Ok(names) => (names, false),
            Err(e) if e.kind() == ErrorKind::NotFound => (Vec::new(), true),
            Err(e) => return Err(StoreError::io("list", dir)(e)),
        };
        let ours = |name: &str| [FILES, LISTING, LOCK, "lost+found"].contains(&name) || name == "BACKUP.new";
        if let Some(other) = there.iter().find(|name| !ours(name)) {
            let detail =
                format!("{} holds {other:?}, which is no part of a backup: name a new or empty folder", dir.display());
            return Err(Invalid::new(detail).into());
        }
        let files = dir.join(FILES);
        // Saved searches contain the secrets of their webhooks.
        for folder in new.then_some(dir).into_iter().chain([files.as_path()]) {
            disk.create_private_dir(folder).map_err(StoreError::io("create", folder))?;
        }
        let above = dir.parent().filter(|a| !a.as_os_str().is_empty());
        for folder in above.into_iter().chain([dir]) {
            disk.sync_dir(folder).map_err(StoreError::io("sync", folder))?;
        }
        let path = dir.join(LOCK);
        let lock = disk.lock(&path).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => {
                StoreError::Busy(format!("another backup or restore is at work in {}", dir.display()))
            }
            _ => StoreError::io("lock", &path)(e),
        })?;
        Ok(BackupFolder { disk, dir: dir.to_owned(), _lock: lock })
    }

    /// Returns the intact files with their checksums; these need not be sent again. Reads all files. A file that
    /// differs from the listing is left out, so it is sent again.
    pub fn have(&self) -> Result<BTreeMap<String, u32>, StoreError> {
        let known: BTreeMap<String, (u64, u32)> = match read_listing(self.disk.as_ref(), &self.dir) {
            Ok(backup) => backup.files().map(|f| (f.stored.clone(), (f.bytes, f.crc32c))).collect(),
            Err(StoreError::NewerFormat { path, found, supported }) => {
                return Err(StoreError::NewerFormat { path, found, supported });
            }
            // No listing, or a damaged one that the new one replaces.
            Err(_) => BTreeMap::new(),
        };
        let files = self.dir.join(FILES);
        let mut have = BTreeMap::new();
        for name in self.disk.list(&files).map_err(StoreError::io("list", &files))? {
            // Only a file that was received completely has a name without this suffix.
            if name.ends_with(".new") {
                continue;
            }
            // Read in full: only this detects rot in an old backup, so that the file is sent again.
            let found = checksum_of(self.disk.as_ref(), &files.join(&name), &mut |_| Ok(()))?;
            if known.get(&name).is_none_or(|expected| *expected == found) {
                have.insert(name, found.1);
            }
        }
        Ok(have)
    }

    /// Receives what [`crate::Store::backup`] sends, given this folder's `have`. It becomes the folder's backup once
    /// everything is present and synced; until then an older backup stays valid. `progress` receives the bytes
    /// received.
    ///
    /// # Errors
    /// [`StoreError::Busy`] with the server's reason if it stopped early, [`StoreError::Corrupt`] on a checksum
    /// mismatch, [`StoreError::Io`].
    pub fn receive(&self, input: &mut dyn Read, progress: &mut dyn FnMut(u64)) -> Result<BackupOutcome, StoreError> {
        let came =
            |e: std::io::Error| StoreError::Io { action: "receive the rest for", path: self.dir.clone(), source: e };
        let files = self.dir.join(FILES);
        let mut fresh: BTreeMap<String, u32> = BTreeMap::new();
        let mut bytes = 0;
        let mut archive = tar::Archive::new(input);
        // Raw, because the library would read extensions such as long names into memory; here they are ordinary
        // entries.
        let mut entries = archive.entries().map_err(came)?.raw(true);
        let listing = loop {
            let Some(entry) = entries.next() else {
                return Err(StoreError::corrupt(&self.dir.join(LISTING), "it did not come with the files"));
            };
            let mut entry = entry.map_err(came)?;
            let (head, size) = (entry.header(), entry.size());
            let name = String::from_utf8_lossy(&head.path_bytes()).into_owned();
            match name.strip_prefix("files/").filter(|_| head.entry_type().is_file()) {
                Some(file) if is_plain(file) => {
                    let crc = self.receive_file(&mut entry, &files.join(file), size, progress)?;
                    fresh.insert(file.to_owned(), crc);
                    bytes += size;
                }
                None if (name == LISTING || name == ERROR) && size <= LISTING_BYTES_MAX => {
                    let mut content = vec![0; size as usize];
                    entry.read_exact(&mut content).map_err(came)?;
                    if name == ERROR {
                        return Err(StoreError::Busy(format!("broken off: {}", String::from_utf8_lossy(&content))));
                    }
                    break content;
                }
                _ => {
                    return Err(StoreError::corrupt(
                        &self.dir,
                        format!("{name:?} came with it, and is no part of a backup"),
                    ));
                }
            }
        };
        let path = self.dir.join(LISTING);
        let backup = Backup::decode(&path, &listing)?;
        for file in backup.files() {
            let stored = files.join(&file.stored);
            if let Some(crc) = fresh.get(&file.stored) {
                checksum(&stored, *crc, file.crc32c)?;
            }
            // Files that were not sent again are checked too: they may have been removed since `have`.
            let there = self.disk.open(&stored, OpenMode::Read).and_then(|f| f.len());
            if there.map_err(StoreError::io("open", &stored))? != file.bytes {
                return Err(StoreError::corrupt(&stored, "it has another length than the backup says"));
            }
        }
        // Files before the listing: an installed listing names only durable files.
        self.disk.sync_dir(&files).map_err(StoreError::io("sync", &files))?;
        replace_file_as(OpenMode::CreatePrivate, self.disk.as_ref(), &path, &listing)?;
        // After the listing: until it is in place, the older backup needs these files.
        self.sweep(&backup);
        Ok(BackupOutcome { backup, files: fresh.len() as u64, bytes })
    }

    /// Writes a file under a temporary name, syncs it and renames it. Returns its checksum.
    fn receive_file(
        &self,
        input: &mut dyn Read,
        path: &Path,
        bytes: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u32, StoreError> {
        let beside = path.with_added_extension("new");
        let file = self.disk.open(&beside, OpenMode::CreatePrivate).map_err(StoreError::io("create", &beside))?;
        let mut buffer = vec![0; COPY_BYTES];
        let (mut at, mut crc) = (0, 0);
        while at < bytes {
            let take = buffer.len().min((bytes - at) as usize);
            input.read_exact(&mut buffer[..take]).map_err(StoreError::io("receive the rest of", path))?;
            crc = crc32c::crc32c_append(crc, &buffer[..take]);
            file.write_at(at, &buffer[..take]).map_err(StoreError::io("write", &beside))?;
            at += take as u64;
            progress(take as u64);
        }
        // Synced before the rename: a final name in this folder means a complete file.
        file.sync().map_err(StoreError::io("sync", &beside))?;
        self.disk.rename(&beside, path).map_err(StoreError::io("rename", &beside))?;
        Ok(crc)
    }

    /// Removes files that no longer belong to a backup.
    fn sweep(&self, backup: &Backup) {
        let named: BTreeSet<&str> = backup.files().map(|file| file.stored.as_str()).collect();
        let files = self.dir.join(FILES);
        for name in self.disk.list(&files).unwrap_or_default() {
            let path = files.join(&name);
            if !named.contains(name.as_str())
                && let Err(e) = self.disk.remove(&path)
            {
                tracing::warn!(path = %path.display(), error = %e, "could not remove a file that is not needed any more");
            }
        }
    }
}

/// Returns true for a plain file name, as backups have; a path could lead elsewhere.
fn is_plain(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    !name.is_empty() && !name.starts_with('.') && !name.ends_with(".new") && name.bytes().all(good)
}

/// Reads the listing of a folder's backup.
pub(super) fn read_listing(disk: &dyn Disk, dir: &Path) -> Result<Backup, StoreError> {
    let path = dir.join(LISTING);
    match read_file(disk, &path) {
        Ok(bytes) => Backup::decode(&path, &bytes),
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let detail = format!(
                "{} holds no backup: there is no file {LISTING} in it, which is written when all else is there",
                dir.display()
            );
            Err(Invalid::new(detail).into())
        }
        Err(e) => Err(e),
    }
}

/// Returns length and checksum of a file, and passes its bytes to `sink`.
pub(super) fn checksum_of(
    disk: &dyn Disk,
    path: &Path,
    sink: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>,
) -> Result<(u64, u32), StoreError> {
    let file = disk.open(path, OpenMode::Read).map_err(StoreError::io("open", path))?;
    let bytes = file.len().map_err(StoreError::io("read", path))?;
    let mut buffer = vec![0; COPY_BYTES];
    let (mut at, mut crc) = (0, 0);
    while at < bytes {
        let take = buffer.len().min((bytes - at) as usize);
        file.read_at(at, &mut buffer[..take]).map_err(StoreError::io("read", path))?;
        crc = crc32c::crc32c_append(crc, &buffer[..take]);
        sink(&buffer[..take])?;
        at += take as u64;
    }
    Ok((bytes, crc))
}
