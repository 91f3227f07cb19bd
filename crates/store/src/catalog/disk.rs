//! The catalog in the folder of a partition: the manifest, and a copy that proves it is the newest.
//!
//! The copy is replaced after the manifest, so it is never newer, unless an earlier manifest was put back in place of
//! the newest. The lock of the data folder keeps other writers out between the comparison and the swap.

use crate::codec::FRAME_BYTES;
use crate::error::{Problem, StoreError};
use crate::manifest::{FIRST_FILE, Manifest};
use crate::seams::files::read_file;
use crate::seams::files::replace_file;
use crate::seams::{Catalog, CommitError, Disk, Newest, OpenMode, Proof};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the manifest in the folder of its partition.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// Name of its copy. Older programs do not write it.
pub(crate) const COPY: &str = "MANIFEST.copy";
/// Name of the manifest once the collection is dropped: from then on the folder may be cleared.
pub(crate) const DROPPED: &str = "DROPPED";

/// The first bytes of a manifest's file, including its checksum; `None` if the file does not exist.
type Head = Option<[u8; FRAME_BYTES]>;

/// The manifest and its copy in a folder.
#[derive(Debug)]
pub struct DiskCatalog {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Version of the newest manifest and the frame of its file, once a manifest was read or committed.
    known: Mutex<Option<(u64, Head)>>,
}

impl DiskCatalog {
    /// Opens the catalog in the folder of a partition.
    pub fn new(disk: Arc<dyn Disk>, dir: impl Into<PathBuf>) -> DiskCatalog {
        DiskCatalog { disk, dir: dir.into(), known: Mutex::new(None) }
    }

    /// Reads the frame of the manifest's file.
    fn head(&self) -> Result<Head, StoreError> {
        let path = self.dir.join(MANIFEST);
        let file = match self.disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::io("open", &path)(e)),
        };
        // The frame's checksum identifies the content: comparing it detects another writer without parsing the
        // manifest.
        let mut head = [0; FRAME_BYTES];
        file.read_at(0, &mut head).map_err(StoreError::io("read", &path))?;
        Ok(Some(head))
    }

    /// Returns the version of the manifest in the folder.
    fn standing(&self) -> Result<Option<u64>, StoreError> {
        let head = self.head()?;
        if head.is_none() {
            return Ok(None);
        }
        if let Some((version, known)) = *self.known.lock()
            && known == head
        {
            return Ok(Some(version));
        }
        match read_manifest(self.disk.as_ref(), &self.dir.join(MANIFEST)) {
            Ok(manifest) => Ok(Some(manifest.version())),
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl Catalog for DiskCatalog {
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        match read_newest(self.disk.as_ref(), &self.dir) {
            Ok(newest) => {
                *self.known.lock() = self.head().ok().map(|head| (newest.manifest.version(), head));
                Ok(Some(newest))
            }
            Err(StoreError::Io { source, path, .. })
                if source.kind() == ErrorKind::NotFound && path == self.dir.join(MANIFEST) =>
            {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    fn commit(&self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        // A missing file was not replaced by another writer: the commit writes it again.
        let newest = self.standing().map_err(CommitError::Clean)?.unwrap_or(follows);
        if newest != follows {
            return Err(CommitError::Stale { newest });
        }
        match write(manifest, self.disk.as_ref(), &self.dir) {
            Ok(bytes) => {
                // Read back rather than computed, so that the next commit compares with the actual content of the
                // folder.
                *self.known.lock() = self.head().ok().map(|head| (manifest.version(), head));
                Ok(bytes)
            }
            Err(error) => {
                // The new manifest may be in place, and it is unknown which one would survive a crash: the rename may
                // not be on disk yet.
                *self.known.lock() = None;
                match self.standing() {
                    Ok(found) if found.unwrap_or(0) == follows => Err(CommitError::Clean(error)),
                    _ => Err(CommitError::Unknown(error)),
                }
            }
        }
    }

    fn confirm(&self, manifest: &Manifest) -> Result<(), StoreError> {
        let path = self.dir.join(COPY);
        replace_file(self.disk.as_ref(), &path, &manifest.encode(&path)?)
    }
}

/// Reads a manifest under any name.
pub(crate) fn read_manifest(disk: &dyn Disk, path: &Path) -> Result<Manifest, StoreError> {
    Manifest::decode(path, &read_file(disk, path)?)
}

/// Reads the manifest in `dir`, with what its copy proves.
///
/// # Errors
/// [`StoreError::Corrupt`] if the manifest is damaged or older than its copy.
pub(crate) fn read_newest(disk: &dyn Disk, dir: &Path) -> Result<Newest, StoreError> {
    let mut manifest = read_manifest(disk, &dir.join(MANIFEST))?;
    let copied = std::mem::replace(&mut manifest.copied, true);
    let path = dir.join(COPY);
    let bad = |detail: &str| Proof::Bad(Problem { path: path.clone(), detail: detail.to_owned() });
    let proof = match read_manifest(disk, &path) {
        // The seed is random for each collection, so it identifies a copy from another collection.
        Ok(copy) if copy.seed != manifest.seed => bad("it is that of another collection"),
        Ok(copy) if copy.next_file > manifest.next_file => {
            let detail = format!(
                "it is older than its copy {COPY} ({} files were numbered where the copy says {}): \
                 an earlier manifest was put in its place",
                manifest.next_file, copy.next_file
            );
            return Err(StoreError::corrupt(&dir.join(MANIFEST), detail));
        }
        // A crash between the two writes leaves an older copy, which is not damage.
        Ok(copy) => Proof::Newest { behind: copy != manifest },
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => match copied {
            true if manifest.next_file <= FIRST_FILE => Proof::First,
            true => bad("it is missing"),
            false => Proof::Never,
        },
        Err(e) => Proof::Bad(Problem::of(&e)),
    };
    Ok(Newest { manifest, proof })
}

/// Replaces the manifest and then its copy, durably. Returns the length of both.
///
/// Only the manifest counts. If its copy cannot be written, that is retried with the next manifest and at the next
/// start.
pub(crate) fn write(manifest: &Manifest, disk: &dyn Disk, dir: &Path) -> Result<u64, StoreError> {
    let path = dir.join(MANIFEST);
    let bytes = manifest.encode(&path)?;
    // The manifest first: a crash between the two leaves an older copy, which a start can distinguish from a
    // rollback.
    replace_file(disk, &path, &bytes)?;
    if let Err(e) = replace_file(disk, &dir.join(COPY), &bytes) {
        tracing::warn!(collection = %manifest.collection, error = %e, "the copy of a manifest was not written");
    }
    Ok(2 * bytes.len() as u64)
}
