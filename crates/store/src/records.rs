//! Small records that others keep in the data folder, each a file of its own.

use crate::codec::{frame, read_file, replace_file_as, unframe};
use crate::error::{Problem, StoreError};
use crate::seams::{Disk, OpenMode};
use meridian_model::Invalid;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MRDNRECO";
const VERSION: u32 = 1;
/// What `codec::replace_file` puts after the name of a file that it is writing.
const HALF: &str = ".new";

/// Records under names of letters, digits, `-` and `_`, in a folder of their own beside the collections.
///
/// A record is replaced as a whole: after a crash it is the old one or the new one. Each has a checksum. An ephemeral store
/// keeps them in memory. They may hold secrets: nobody but the owner of the data folder can read them.
#[derive(Debug)]
pub struct Records {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    dir: PathBuf,
}

impl Records {
    pub(crate) fn new(disk: Arc<dyn Disk>, root: &Path, name: &str) -> Records {
        Records { disk, root: root.to_owned(), dir: root.join(name) }
    }

    /// The same for a folder whose name comes from outside.
    pub(crate) fn named(disk: Arc<dyn Disk>, root: &Path, name: &str) -> Result<Records, StoreError> {
        match is_plain(name) && name != "tenants" {
            true => Ok(Records::new(disk, root, name)),
            false => Err(Invalid::new(format!("{name:?} cannot name a folder of records")).into()),
        }
    }

    /// Names of all records, sorted.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        match self.disk.list(&self.dir) {
            Ok(names) => Ok(names.into_iter().filter(|name| !name.ends_with(HALF)).collect()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(StoreError::io("list", &self.dir)(e)),
        }
    }

    /// A record; `None` if there is none of this name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is not what was written, [`StoreError::NewerFormat`], or what the disk said.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(name)?;
        match read_file(self.disk.as_ref(), &path) {
            Ok(bytes) => unframe(&path, MAGIC, VERSION, &bytes).map(|content| Some(content.to_vec())),
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Keeps others out of a folder that an older version made.
    pub(crate) fn keep_private(&self) {
        if self.disk.list(&self.dir).is_ok()
            && let Err(error) = self.disk.create_private_dir(&self.dir)
        {
            tracing::warn!(folder = %self.dir.display(), %error, "others may be able to read a folder that holds secrets");
        }
    }

    /// Writes a record, or replaces it. It is durable when this returns.
    pub fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path(name)?;
        let bytes = frame(MAGIC, VERSION, content);
        let write = || replace_file_as(OpenMode::CreatePrivate, self.disk.as_ref(), &path, &bytes);
        match write() {
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                // The first record makes the folder.
                self.disk.create_private_dir(&self.dir).map_err(StoreError::io("create", &self.dir))?;
                self.disk.sync_dir(&self.root).map_err(StoreError::io("sync", &self.root))?;
                write()
            }
            written => written,
        }
    }

    /// Removes a record, durably; one that is not there is well.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name)?;
        match self.disk.remove(&path) {
            Ok(()) => self.disk.sync_dir(&self.dir).map_err(StoreError::io("sync", &self.dir)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(StoreError::io("remove", &path)(e)),
        }
    }

    /// Reads all of them, and lists those that are damaged.
    pub(crate) fn verify(&self) -> Vec<Problem> {
        let names = match self.names() {
            Ok(names) => names,
            Err(e) => return vec![Problem::of(&e)],
        };
        names.iter().filter_map(|name| self.get(name).err()).map(|e| Problem::of(&e)).collect()
    }

    fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        if !is_plain(name) {
            return Err(
                Invalid::new(format!("{name:?} cannot name a record: expected letters, digits, - and _")).into()
            );
        }
        Ok(self.dir.join(name))
    }
}

/// Whether it is letters, digits, `-` and `_`, and not too many.
fn is_plain(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=128).contains(&name.len()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::{CrashStyle, MemoryDisk};

    #[test]
    fn a_record_survives_a_crash_whole_and_damage_is_named() {
        let disk = Arc::new(MemoryDisk::new());
        let root = Path::new("/data");
        disk.create_dir(root).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let records = Records::new(disk.clone(), root, "saved");
        assert_eq!((records.names().unwrap(), records.get("a").unwrap()), (Vec::new(), None));
        records.put("a", b"one").unwrap();
        records.put("b-2", b"other").unwrap();
        records.put("a", b"two").unwrap();
        disk.crash(CrashStyle::Lose);
        assert_eq!(records.names().unwrap(), ["a", "b-2"]);
        assert_eq!(records.get("a").unwrap().as_deref(), Some(&b"two"[..]));
        records.remove("b-2").unwrap();
        records.remove("b-2").unwrap();
        disk.crash(CrashStyle::Lose);
        assert_eq!(records.names().unwrap(), ["a"]);
        assert!(records.verify().is_empty());
        let file = disk.open(&root.join("saved/a"), crate::seams::OpenMode::ReadWrite).unwrap();
        file.write_at(17, b"X").unwrap();
        let error = records.get("a").unwrap_err().to_string();
        assert!(error.contains("saved/a") && error.contains("checksum"), "{error}");
        assert_eq!(records.verify().len(), 1);
        assert!(records.put("../a", b"").is_err() && records.put("", b"").is_err());
    }
}
