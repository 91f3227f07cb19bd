//! The data folder of a standby, which may become the owner of a bucket.

use super::folder::{CANDIDATE, LOCK, check_marker, lock, make_root, unwritable};
use crate::error::StoreError;
use crate::options::Options;
use crate::seams::{DiskLock, Seams};

/// A folder that no other candidate has. The store itself is opened at the takeover, and closed when the collections
/// are lost.
#[derive(Debug)]
pub struct Candidate {
    _lock: Box<dyn DiskLock>,
}

impl Candidate {
    /// Checks and locks the folder, so that problems are found before a takeover.
    ///
    /// # Errors
    /// [`StoreError::InUse`] for the folder of another process, [`StoreError::ReadOnly`], [`StoreError::Invalid`] for a
    /// folder that is not Meridian's, [`StoreError::NewerFormat`], or the error of the disk.
    pub fn enter(options: &Options, seams: &Seams) -> Result<Candidate, StoreError> {
        let (disk, root) = (seams.disk.as_ref(), options.data.as_path());
        make_root(disk, root).map_err(|e| unwritable(root, e))?;
        // Before the other lock: a process that tries another candidate's folder must not hold that one while the other
        // takes over.
        let candidate = Candidate { _lock: lock(disk, root, CANDIDATE)? };
        // Only for a moment: a server that has the folder open holds it, and this process does from its takeover on.
        let opened = lock(disk, root, LOCK)?;
        check_marker(seams, root).map_err(|e| unwritable(root, e))?;
        drop(opened);
        Ok(candidate)
    }
}
