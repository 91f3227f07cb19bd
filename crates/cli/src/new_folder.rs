//! A data folder that is not there yet: made with its first collection, and removed again if that one is refused.

use crate::failure::Failure;
use meridian_store::Store;
use std::io;
use std::path::{Path, PathBuf};

/// A data folder to be made, at a path where there is nothing.
pub struct NewFolder {
    path: PathBuf,
    /// Its missing parents, from below.
    parents: Vec<PathBuf>,
}

impl NewFolder {
    /// Returns `None` if something is at the path.
    pub fn at(path: &Path) -> Result<Option<NewFolder>, Failure> {
        let is_there = |folder: &Path| folder.try_exists().map_err(|e| unusable(path, &e));
        if is_there(path)? {
            return Ok(None);
        }
        let mut parents = Vec::new();
        // The last ancestor of a relative path is empty, and stands for the working folder.
        for folder in path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty()) {
            if is_there(folder)? {
                break;
            }
            parents.push(folder.to_owned());
        }
        Ok(Some(NewFolder { path: path.to_owned(), parents }))
    }

    /// Checks that the folder can be made, so that the error comes before an input is read.
    pub fn expect_can_be_made(&self) -> Result<(), Failure> {
        let top = self.parents.last().unwrap_or(&self.path);
        if top.is_symlink() {
            let detail = format!("{} is a link to a folder that is not there", top.display());
            return Err(unusable(&self.path, &io::Error::new(io::ErrorKind::NotFound, detail)));
        }
        // Made and removed: rights alone do not tell what a file system refuses.
        std::fs::create_dir(top).and_then(|()| std::fs::remove_dir(top)).map_err(|e| unusable(&self.path, &e))
    }

    /// Removes the folder that this store made, and its parents, unless a collection is in it. Returns its path. The
    /// open store holds the lock, so no other process works in the folder.
    pub fn remove(self, store: &Store) -> PathBuf {
        // What cannot be removed is an empty data folder, which the next command takes.
        if store.collections().is_empty() && std::fs::remove_dir_all(&self.path).is_ok() {
            // A parent with other content stays.
            let _ = self.parents.iter().try_for_each(std::fs::remove_dir);
        }
        self.path
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let expected = "expected a folder, or a path where one can be made";
    Failure::Refused(format!("--data: {} cannot be used: {error}: {expected}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::Options;
    use meridian_store::seams::Seams;

    #[test]
    fn a_folder_is_removed_with_the_parents_that_were_made_with_it() {
        let there = tempfile::tempdir().unwrap();
        let path = there.path().join("a/b");
        let new = NewFolder::at(&path).unwrap().unwrap();
        new.expect_can_be_made().unwrap();
        assert!(!there.path().join("a").exists(), "the check leaves nothing");
        let store = Store::open(Options::at(&path), Seams::real()).unwrap();
        assert!(NewFolder::at(&path).unwrap().is_none());
        assert_eq!(new.remove(&store), path);
        assert!(there.path().exists() && !there.path().join("a").exists());
    }

    #[test]
    fn a_link_to_nothing_and_a_path_below_a_file_are_refused() {
        let there = tempfile::tempdir().unwrap();
        let (link, file) = (there.path().join("link"), there.path().join("file"));
        std::os::unix::fs::symlink(there.path().join("none"), &link).unwrap();
        std::fs::write(&file, "x").unwrap();
        let refused = NewFolder::at(&link.join("data")).unwrap().unwrap().expect_can_be_made().unwrap_err();
        assert!(refused.to_string().contains("is a link to a folder that is not there"), "{refused}");
        assert!(NewFolder::at(&file.join("data")).is_err());
    }
}
