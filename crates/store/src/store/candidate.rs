//! The data folder of a process that may become the owner of a bucket, while it stands by.

use super::folder::{CANDIDATE, LOCK, check_marker, lock, make_root, unwritable};
use crate::error::StoreError;
use crate::options::Options;
use crate::seams::{DiskLock, Seams};

/// A folder that no other candidate has. The store itself is opened at the takeover, and closed when the collections are lost.
#[derive(Debug)]
pub struct Candidate {
    _lock: Box<dyn DiskLock>,
}

impl Candidate {
    /// Checks the folder and takes it: what a takeover would be refused for is found before.
    ///
    /// # Errors
    /// [`StoreError::InUse`] of the folder of another process, [`StoreError::ReadOnly`], [`StoreError::Invalid`] of a folder that is not
    /// Meridian's, [`StoreError::NewerFormat`], or what the disk said.
    pub fn enter(options: &Options, seams: &Seams) -> Result<Candidate, StoreError> {
        let (disk, root) = (seams.disk.as_ref(), options.data.as_path());
        make_root(disk, root).map_err(|e| unwritable(root, e))?;
        // Before the other lock: one that tries the folder of another candidate must not hold that while the other takes over.
        let candidate = Candidate { _lock: lock(disk, root, CANDIDATE)? };
        // For a moment: a server that has the folder open holds it, and this process does from its takeover on.
        let opened = lock(disk, root, LOCK)?;
        check_marker(seams, root).map_err(|e| unwritable(root, e))?;
        drop(opened);
        Ok(candidate)
    }
}
