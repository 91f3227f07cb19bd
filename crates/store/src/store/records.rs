//! Small records that other crates keep in the data folder, each in its own file.

use crate::audit;
use crate::codec::{frame, unframe};
use crate::error::{Problem, StoreError};
use crate::paths::{check_record_name, is_plain};
use crate::seams::files::names;
use crate::seams::files::read_file;
use crate::seams::files::replace_file_as;
use crate::seams::{Disk, OpenMode};
use meridian_model::Invalid;
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"MRDNRECO";
const VERSION: u32 = 1;
/// Suffix of a file that `codec::replace_file` is writing.
const HALF: &str = ".new";
/// Suffix of the folder of copies, after the name of the records' folder.
pub(crate) const COPIES: &str = "-copy";

/// Records that were rewritten from their copies, or the reverse.
pub(crate) type RepairedRecords = Arc<Mutex<Vec<Problem>>>;

/// Records under names of letters, digits, `-` and `_`, in their own folder beside the collections.
///
/// A record is replaced atomically: after a crash it is the old one or the new one. Each has a checksum. An ephemeral
/// store keeps them in memory. They may hold secrets: only the owner of the data folder can read them.
///
/// A record may have a copy in a neighbouring folder. The copy is written after the record and removed before it. So a
/// record without a copy is due to a crash or an older program. A copy without its record is damage: the record is
/// rewritten from it.
#[derive(Debug)]
pub struct Records {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    dir: PathBuf,
    copies: PathBuf,
    mended: RepairedRecords,
    /// Held while a record with a copy is written or removed, so that both change together.
    writing: Mutex<()>,
}

impl Records {
    pub(crate) fn new(disk: Arc<dyn Disk>, root: &Path, name: &str, mended: RepairedRecords) -> Records {
        let (dir, copies) = (root.join(name), root.join(format!("{name}{COPIES}")));
        Records { disk, root: root.to_owned(), dir, copies, mended, writing: Mutex::default() }
    }

    /// Opens records in a folder whose name comes from outside.
    pub(crate) fn named(disk: Arc<dyn Disk>, root: &Path, name: &str) -> Result<Records, StoreError> {
        match is_plain(name) && !["tenants", audit::FOLDER].contains(&name) && !name.ends_with(COPIES) {
            true => Ok(Records::new(disk, root, name, RepairedRecords::default())),
            false => Err(Invalid::new(format!("{name:?} cannot name a folder of records")).into()),
        }
    }

    /// Returns the names of all records, sorted, including records with only a copy left.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = self.names_in(&self.dir)?;
        names.extend(self.names_in(&self.copies)?);
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns the names of the records that have a copy, sorted.
    pub fn copied(&self) -> Result<Vec<String>, StoreError> {
        self.names_in(&self.copies)
    }

    fn names_in(&self, dir: &Path) -> Result<Vec<String>, StoreError> {
        match names(self.disk.as_ref(), dir) {
            Ok(names) => Ok(names.into_iter().filter(|name| !name.ends_with(HALF)).collect()),
            Err(e) => Err(e),
        }
    }

    /// Returns a record; `None` if no record has this name. A damaged or missing one is rewritten from its copy, which
    /// [`crate::Store::problems`] reports.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it differs from what was written, [`StoreError::NewerFormat`], or the error of the
    /// disk.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.read(&self.dir, name);
        let wrong = match &found {
            Ok(None) => Problem { path: self.path(name)?, detail: "it is missing".to_owned() },
            Err(e) if e.is_damage() => Problem::of(e),
            _ => return found,
        };
        // Under the lock, the copy that is read next cannot be in the middle of its own replacement.
        let _writing = self.writing.lock();
        let Ok(Some(copy)) = self.read(&self.copies, name) else { return found };
        self.write(&self.dir, name, &copy)?;
        self.note(wrong.and("it is rewritten from its copy"));
        Ok(Some(copy))
    }

    /// Returns the names of records rewritten from their copies since the store was opened, and why.
    pub fn mended(&self) -> Vec<(String, String)> {
        let mended = self.mended.lock();
        let of_record = |problem: &Problem| {
            let name = problem.path.strip_prefix(&self.dir).ok()?.to_str()?.to_owned();
            Some((name, problem.detail.clone()))
        };
        mended.iter().filter_map(of_record).collect()
    }

    fn note(&self, mended: Problem) {
        tracing::error!(path = %mended.path.display(), detail = mended.detail, "a record was damaged");
        self.mended.lock().push(mended);
    }

    fn read(&self, dir: &Path, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = place(dir, name)?;
        match read_file(self.disk.as_ref(), &path) {
            Ok(bytes) => unframe(&path, MAGIC, VERSION, &bytes).map(|content| Some(content.to_vec())),
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Makes a folder of an older version private.
    pub(crate) fn keep_private(&self) {
        for dir in [&self.dir, &self.copies] {
            if self.disk.list(dir).is_ok()
                && let Err(error) = self.disk.create_private_dir(dir)
            {
                tracing::warn!(folder = %dir.display(), %error, "others may be able to read a folder that holds secrets");
            }
        }
    }

    /// Creates or replaces a record. It is durable when this returns.
    pub fn put(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        self.write(&self.dir, name, content)
    }

    /// Writes a record like [`Records::put`], with a copy: damage to one of the two is repaired from the other.
    pub fn put_twice(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        self.write(&self.dir, name, content)?;
        self.write_copy(name, content);
        Ok(())
    }

    /// Creates the missing copy of a record, if the record still exists.
    pub fn copy(&self, name: &str) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        if let Some(content) = self.read(&self.dir, name)? {
            self.write_copy(name, &content);
        }
        Ok(())
    }

    /// Writes the copy of a record. Only the record counts: a copy that cannot be written is created later.
    fn write_copy(&self, name: &str, content: &[u8]) {
        if let Err(error) = self.write(&self.copies, name, content) {
            tracing::warn!(%error, "the copy of a record was not written");
        }
    }

    fn write(&self, dir: &Path, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = place(dir, name)?;
        let bytes = frame(MAGIC, VERSION, content);
        // Private: records hold secrets of webhooks.
        let write = || replace_file_as(OpenMode::CreatePrivate, self.disk.as_ref(), &path, &bytes);
        match write() {
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                // The first record creates the folder.
                self.disk.create_private_dir(dir).map_err(StoreError::io("create", dir))?;
                self.disk.sync_dir(&self.root).map_err(StoreError::io("sync", &self.root))?;
                write()
            }
            written => written,
        }
    }

    /// Removes a record, durably; an absent one is not an error.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let _writing = self.writing.lock();
        // A crash in between leaves the record, and no caller was told otherwise.
        for dir in [&self.copies, &self.dir] {
            let path = place(dir, name)?;
            match self.disk.remove(&path) {
                Ok(()) => self.disk.sync_dir(dir).map_err(StoreError::io("sync", dir))?,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(StoreError::io("remove", &path)(e)),
            }
        }
        Ok(())
    }

    /// Reads all records and their copies, and returns damaged ones; repairs are recorded.
    pub(crate) fn verify(&self) -> Vec<Problem> {
        let names = match self.names() {
            Ok(names) => names,
            Err(e) => return vec![Problem::of(&e)],
        };
        let mut problems = Vec::new();
        for name in &names {
            match self.get(name) {
                Ok(Some(content)) => problems.extend(self.verify_copy(name, &content)),
                Ok(None) => {}
                Err(e) => problems.push(Problem::of(&e)),
            }
        }
        problems
    }

    /// Rewrites a copy that is damaged or differs.
    fn verify_copy(&self, name: &str, content: &[u8]) -> Option<Problem> {
        let wrong = match self.read(&self.copies, name) {
            Ok(None) => return None,
            Ok(Some(copy)) if copy == content => return None,
            Ok(Some(_)) => Problem { path: self.copies.join(name), detail: "it is not that of its record".to_owned() },
            Err(e) if e.is_damage() => Problem::of(&e),
            Err(e) => return Some(Problem::of(&e)),
        };
        if let Err(e) = self.copy(name) {
            return Some(Problem::of(&e));
        }
        self.note(wrong.and("it is rewritten from the record"));
        None
    }

    fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        place(&self.dir, name)
    }
}

fn place(dir: &Path, name: &str) -> Result<PathBuf, StoreError> {
    check_record_name(name).map(|()| dir.join(name))
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
        let records = Records::new(disk.clone(), root, "saved", RepairedRecords::default());
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

    #[test]
    fn a_record_that_is_kept_twice_is_mended_and_a_crash_between_the_two_is_no_damage() {
        let disk = Arc::new(MemoryDisk::new());
        let root = Path::new("/data");
        disk.create_dir(root).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let mended = RepairedRecords::default();
        let records = Records::new(disk.clone(), root, "saved", mended.clone());
        records.put_twice("a", b"one").unwrap();
        let (record, copy) = (root.join("saved/a"), root.join("saved-copy/a"));
        let said = |path: &Path| {
            let said = std::mem::take(&mut *mended.lock());
            said.iter().any(|problem| problem.path == path && problem.detail.contains("rewritten"))
        };
        for harm in [None, Some(vec![0; 20])] {
            for path in [&record, &copy] {
                let good = disk.vanish(path).unwrap();
                if let Some(bad) = &harm {
                    disk.put(path, bad.clone());
                }
                assert_eq!(records.names().unwrap(), ["a"]);
                assert_eq!(records.get("a").unwrap().as_deref(), Some(&b"one"[..]));
                assert_eq!(records.verify(), []);
                // A record without a copy is what a crash leaves.
                assert_eq!(said(path), path == &record || harm.is_some());
                records.copy("a").unwrap();
                assert_eq!(disk.vanish(path).unwrap(), good);
                disk.put(path, good);
            }
        }
        assert_eq!(records.copied().unwrap(), ["a"]);
        // A crash in between leaves a record whose removal was not reported to any caller.
        disk.vanish(&copy).unwrap();
        assert_eq!((records.verify(), said(&record), records.names().unwrap()), (vec![], false, vec!["a".to_owned()]));
        records.remove("a").unwrap();
        records.copy("a").unwrap();
        disk.crash(CrashStyle::Lose);
        assert_eq!((records.names().unwrap(), records.get("a").unwrap()), (vec![], None));
    }
}
