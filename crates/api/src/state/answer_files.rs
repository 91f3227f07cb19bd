//! Files in which a response is made whose format must be whole before its first byte is sent.
//!
//! Such a file has no name: it is gone once its response has ended, or the process. All of them share a budget of bytes
//! on disk, with a part for each tenant.

use crate::config::ServerConfig;
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::Disk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that a share grows by, and has at least. The least bounds the number of files.
const STEP_BYTES: u64 = 4 << 20;

/// The files of a server.
pub struct AnswerFiles {
    /// The folder that is the server's own; `None`: the system's for temporary files.
    own: Option<PathBuf>,
    budget: ByteBudget,
    bytes_max: u64,
}

/// Why a file may not grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// It would be larger than this, the max for one file in bytes.
    TooLarge(u64),
    /// All of them would be larger than this in bytes, or larger than the tenant's part of it.
    Full(usize),
}

impl AnswerFiles {
    /// Creates the budget, and removes files that a process left: it was killed before it had removed their names.
    pub fn open(config: &ServerConfig, disk: &dyn Disk) -> AnswerFiles {
        if let Some(folder) = &config.answer_folder
            && let Err(error) = clear(folder, disk)
        {
            tracing::warn!(folder = %folder.display(), %error, "what is left of responses could not be removed");
        }
        AnswerFiles {
            own: config.answer_folder.clone(),
            budget: ByteBudget::new(config.answer_file_bytes_total),
            bytes_max: config.answer_file_bytes_max,
        }
    }

    /// Returns the folder for a new file. Blocks.
    ///
    /// # Errors
    /// The disk's, if the folder is the server's own and cannot be created.
    pub fn folder(&self, disk: &dyn Disk) -> io::Result<PathBuf> {
        let Some(own) = &self.own else { return Ok(std::env::temp_dir()) };
        // With each file: an operator may have removed the folder, or the disk was full before.
        disk.create_private_dir(own)?;
        Ok(own.clone())
    }

    /// Takes the share of a new file of a tenant.
    ///
    /// # Errors
    /// Those of [`FileShare::reach`].
    pub fn begin(&self, tenant: &Arc<str>) -> Result<FileShare, Overrun> {
        let (share, total) = (self.budget.of(tenant).empty(), self.budget.limit());
        let mut file = FileShare { share, bytes_max: self.bytes_max, total };
        file.reach(1)?;
        Ok(file)
    }

    /// Guarantees each tenant its part.
    pub fn guarantee(&self, weights: impl IntoIterator<Item = (Arc<str>, u32)>) {
        self.budget.guarantee(weights);
    }

    /// Returns the bytes of all files.
    pub fn held(&self) -> usize {
        self.budget.held()
    }
}

/// The bytes of one file, returned to the budget when dropped.
pub struct FileShare {
    share: ByteShare,
    bytes_max: u64,
    /// Max bytes of all files.
    total: usize,
}

impl FileShare {
    /// Grows the share to a file of this size.
    ///
    /// # Errors
    /// The file is too large, or there is no room beside others.
    pub fn reach(&mut self, bytes: u64) -> Result<(), Overrun> {
        if bytes > self.bytes_max {
            return Err(Overrun::TooLarge(self.bytes_max));
        }
        let whole = bytes.next_multiple_of(STEP_BYTES).min(self.bytes_max.max(STEP_BYTES));
        match self.share.try_grow(usize::try_from(whole).unwrap_or(usize::MAX)) {
            true => Ok(()),
            false => Err(Overrun::Full(self.total)),
        }
    }
}

/// Removes all files of a folder, if it exists.
fn clear(folder: &Path, disk: &dyn Disk) -> io::Result<()> {
    let names = match disk.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names?,
    };
    names.iter().try_for_each(|name| disk.remove(&folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_backend::Seams;

    fn files(config: ServerConfig) -> AnswerFiles {
        AnswerFiles::open(&config, &*Seams::real().disk)
    }

    #[test]
    fn files_grow_up_to_their_max_and_to_that_of_all() {
        let step = STEP_BYTES as usize;
        let config = ServerConfig {
            answer_file_bytes_max: 2 * STEP_BYTES,
            answer_file_bytes_total: 4 * step,
            ..ServerConfig::default()
        };
        let (files, one, other): (_, Arc<str>, Arc<str>) = (files(config), "one".into(), "other".into());
        files.guarantee([(one.clone(), 1), (other.clone(), 1)]);
        let mut first = files.begin(&one).unwrap();
        assert_eq!(first.reach(2 * STEP_BYTES + 1), Err(Overrun::TooLarge(2 * STEP_BYTES)));
        assert_eq!((first.reach(2 * STEP_BYTES), files.held()), (Ok(()), 2 * step));
        let second = files.begin(&one).unwrap();
        // The part of the other tenant stays free for it.
        assert_eq!(files.begin(&one).err(), Some(Overrun::Full(4 * step)));
        let third = files.begin(&other).unwrap();
        drop((first, second, third));
        assert_eq!(files.held(), 0);
    }

    #[test]
    fn what_a_process_left_is_removed_and_an_absent_folder_is_none() {
        let there = tempfile::tempdir().unwrap();
        let own = there.path().join("answers");
        let config = || ServerConfig { answer_folder: Some(own.clone()), ..ServerConfig::default() };
        let disk = Seams::real().disk;
        assert_eq!(files(config()).folder(&*disk).unwrap(), own);
        let left = own.join("left");
        drop(disk.open(&left, meridian_backend::OpenMode::CreateNew).unwrap());
        drop(files(config()));
        assert_eq!(disk.list(&own).unwrap(), Vec::<String>::new());
        disk.remove_dir(&own).unwrap();
        assert_eq!(files(config()).folder(&*disk).unwrap(), own);
        assert_eq!(files(ServerConfig::default()).folder(&*disk).unwrap(), std::env::temp_dir());
    }
}
