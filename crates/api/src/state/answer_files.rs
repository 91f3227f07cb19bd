//! Files in which a response is made whose format must be whole before its first byte is sent.
//!
//! Such a file has no name: it is gone once its response has ended, or the process. All of them share a budget of bytes
//! on disk, with a part for each tenant. They leave room on the disk for writes.

use crate::config::ServerConfig;
use meridian_admission::{ByteBudget, ByteShare};
use meridian_backend::Disk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that a share grows by, and its min, which bounds the number of files.
const STEP_BYTES: u64 = 4 << 20;

/// The files of a server.
pub struct AnswerFiles {
    /// The folder that is the server's own; `None`: the system's for temporary files.
    own: Option<PathBuf>,
    disk: Arc<dyn Disk>,
    budget: ByteBudget,
    bytes_max: u64,
    /// Bytes of their disk that they leave free.
    free_min: u64,
}

/// Why a file may not begin or grow.
#[derive(Debug)]
pub enum Overrun {
    /// It would be larger than this, the max for one file in bytes.
    TooLarge(u64),
    /// All of them would be larger than this in bytes, or larger than the tenant's part of it.
    Full(usize),
    /// Less than this, in bytes, would be left free on the disk.
    DiskShort(u64),
    /// The folder cannot be created, or its disk does not say what is free.
    Disk(io::Error),
}

impl AnswerFiles {
    /// Creates the budget, and removes files that a process left: it was killed before it had removed their names.
    pub fn open(config: &ServerConfig, disk: &Arc<dyn Disk>) -> AnswerFiles {
        if let Some(folder) = &config.answer_folder
            && let Err(error) = clear(folder, &**disk)
        {
            tracing::warn!(folder = %folder.display(), %error, "what is left of responses could not be removed");
        }
        AnswerFiles {
            own: config.answer_folder.clone(),
            disk: disk.clone(),
            budget: ByteBudget::new(config.answer_file_bytes_total),
            bytes_max: config.answer_file_bytes_max,
            free_min: config.answer_disk_free_min,
        }
    }

    /// Takes the share of a new file of a tenant. Blocks.
    ///
    /// # Errors
    /// Those of [`FileShare::reach`], and [`Overrun::Disk`] without a folder for it.
    pub fn begin(&self, tenant: &Arc<str>) -> Result<FileShare, Overrun> {
        let mut file = FileShare {
            folder: self.folder().map_err(Overrun::Disk)?,
            disk: self.disk.clone(),
            share: self.budget.of(tenant).empty(),
            bytes_max: self.bytes_max,
            total: self.budget.limit(),
            free_min: self.free_min,
        };
        file.reach(1)?;
        Ok(file)
    }

    /// Returns the folder for a new file.
    fn folder(&self) -> io::Result<PathBuf> {
        let Some(own) = &self.own else { return Ok(std::env::temp_dir()) };
        // With each file: an operator may have removed the folder, or the disk was full before.
        self.disk.create_private_dir(own)?;
        Ok(own.clone())
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
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    share: ByteShare,
    bytes_max: u64,
    /// Max bytes of all files.
    total: usize,
    free_min: u64,
}

impl FileShare {
    /// Returns the folder in which the file is made.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Grows the share to a file of this size. Blocks.
    ///
    /// # Errors
    /// The file is too large, or there is no room beside others, or on the disk.
    pub fn reach(&mut self, bytes: u64) -> Result<(), Overrun> {
        if bytes > self.bytes_max {
            return Err(Overrun::TooLarge(self.bytes_max));
        }
        let whole = bytes.next_multiple_of(STEP_BYTES).min(self.bytes_max.max(STEP_BYTES));
        let (before, whole) = (self.share.bytes(), usize::try_from(whole).unwrap_or(usize::MAX));
        if !self.share.try_grow(whole) {
            return Err(Overrun::Full(self.total));
        }
        match whole.saturating_sub(before) {
            0 => Ok(()),
            more => self.check_disk(more as u64),
        }
    }

    /// Checks that the disk has enough room for another step.
    fn check_disk(&self, more: u64) -> Result<(), Overrun> {
        // Other files may be within a step that they do not have on disk yet. As many as can be made at a time take less
        // of it than the default min.
        let free = self.disk.free_bytes(&self.folder).map_err(Overrun::Disk)?;
        match free.saturating_sub(more) < self.free_min {
            true => Err(Overrun::DiskShort(self.free_min)),
            false => Ok(()),
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
    use meridian_store::seams::MemoryDisk;

    fn files(config: ServerConfig) -> AnswerFiles {
        AnswerFiles::open(&ServerConfig { answer_disk_free_min: 0, ..config }, &Seams::real().disk)
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
        let over = first.reach(2 * STEP_BYTES + 1);
        assert!(matches!(over, Err(Overrun::TooLarge(max)) if max == 2 * STEP_BYTES), "{over:?}");
        first.reach(2 * STEP_BYTES).unwrap();
        assert_eq!(files.held(), 2 * step);
        let second = files.begin(&one).unwrap();
        // The part of the other tenant stays free for it.
        assert!(matches!(files.begin(&one).err(), Some(Overrun::Full(total)) if total == 4 * step));
        let third = files.begin(&other).unwrap();
        drop((first, second, third));
        assert_eq!(files.held(), 0);
    }

    #[test]
    fn files_leave_room_on_their_disk() {
        let (disk, free_min) = (MemoryDisk::volatile(), 10 * STEP_BYTES);
        let config = ServerConfig {
            answer_folder: Some("/data/answers".into()),
            answer_disk_free_min: free_min,
            ..ServerConfig::default()
        };
        let seam: Arc<dyn Disk> = Arc::new(disk.clone());
        let (files, tenant): (_, Arc<str>) = (AnswerFiles::open(&config, &seam), "one".into());
        disk.set_capacity(Some(free_min + 2 * STEP_BYTES));
        let mut file = files.begin(&tenant).unwrap();
        assert_eq!(file.folder(), Path::new("/data/answers"));
        // Nothing of it is on this disk, whose room is therefore set here.
        disk.set_capacity(Some(free_min + STEP_BYTES));
        file.reach(2 * STEP_BYTES).unwrap();
        disk.set_capacity(Some(free_min + STEP_BYTES - 1));
        // Within a step it asks nothing.
        file.reach(2 * STEP_BYTES - 1).unwrap();
        let over = file.reach(2 * STEP_BYTES + 1);
        assert!(matches!(over, Err(Overrun::DiskShort(min)) if min == free_min), "{over:?}");
        assert!(matches!(files.begin(&tenant).err(), Some(Overrun::DiskShort(_))));
        drop(file);
        assert_eq!(files.held(), 0);
        disk.set_capacity(Some(free_min + STEP_BYTES));
        assert!(files.begin(&tenant).is_ok());
    }

    #[test]
    fn what_a_process_left_is_removed_and_an_absent_folder_is_none() {
        let there = tempfile::tempdir().unwrap();
        let own = there.path().join("answers");
        let config = || ServerConfig { answer_folder: Some(own.clone()), ..ServerConfig::default() };
        let disk = Seams::real().disk;
        assert_eq!(files(config()).folder().unwrap(), own);
        let left = own.join("left");
        drop(disk.open(&left, meridian_backend::OpenMode::CreateNew).unwrap());
        drop(files(config()));
        assert_eq!(disk.list(&own).unwrap(), Vec::<String>::new());
        disk.remove_dir(&own).unwrap();
        assert_eq!(files(config()).folder().unwrap(), own);
        assert_eq!(files(ServerConfig::default()).folder().unwrap(), std::env::temp_dir());
    }
}
