//! Files and folders that are either complete or absent.

use crate::error::{LabError, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name and renames it when complete. A full disk leaves the old file, or none, but
/// never half of one.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let partial = partial(path);
    let done = File::create(&partial)
        // Synced before the rename: otherwise a power loss could leave the new name with an empty file.
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    if done.is_err() {
        // A leftover that cannot be removed has a name that identifies it.
        let _ = fs::remove_file(&partial);
    }
    done
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_else(|| "results".as_ref()).to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// A folder under construction, next to its final place. Dropped before [`NewFolder::finish`], it leaves nothing.
#[derive(Debug)]
pub struct NewFolder {
    place: PathBuf,
    partial: PathBuf,
}

impl NewFolder {
    /// Begins a folder at `place`, which must not exist yet (or be empty).
    pub fn create(place: &Path) -> Result<NewFolder> {
        if place.is_file() || fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some()) {
            let shown = place.display();
            return Err(LabError::scenario(format!("{shown}: is there already: expected a new folder for results")));
        }
        let folder = NewFolder { place: place.to_owned(), partial: partial(place) };
        // The leftovers of a killed run are useless.
        if folder.partial.exists() {
            fs::remove_dir_all(&folder.partial).map_err(|e| broken(&folder.partial, &e))?;
        }
        fs::create_dir_all(&folder.partial).map_err(|e| broken(&folder.partial, &e))?;
        Ok(folder)
    }

    /// Returns the temporary location of its files.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.partial.join(name);
        fs::write(&path, bytes).map_err(|e| broken(&path, &e))
    }

    /// Writes a file into it as JSON.
    pub fn json(&self, name: &str, value: &impl serde::Serialize) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(value).map_err(|e| LabError::results(format!("{name}: {e}")))?;
        text.push(b'\n');
        self.write(name, &text)
    }

    /// Gives it its name, which only a complete folder ever has.
    pub fn finish(self) -> Result<()> {
        // An empty folder that the user made: `create` has refused any other.
        if self.place.exists() {
            fs::remove_dir(&self.place).map_err(|e| broken(&self.place, &e))?;
        }
        fs::rename(&self.partial, &self.place).map_err(|e| broken(&self.place, &e))
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // After `finish` the temporary name no longer exists. A failure here can be neither reported nor harmful.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// Returns the error for results that cannot be written.
pub fn broken(path: &Path, error: &dyn std::fmt::Display) -> LabError {
    LabError::results(format!("{}: results cannot be written: {error}", path.display()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        write(&path, b"old").unwrap();
        // Writes to it fail for lack of space.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("page.html.partial")).unwrap();
        let error = write(&path, b"new").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
