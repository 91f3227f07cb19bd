//! Files that are whole or not there.

use std::fs::{self, File};
use std::io::{Result, Write};
use std::path::Path;

/// Writes a file beside its place and gives it its name when it is whole: a full disk leaves the old one, or none, but
/// never half of one.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let done = File::create(&partial)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    if done.is_err() {
        // What cannot be removed bears a name that says what it is.
        let _ = fs::remove_file(&partial);
    }
    done
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        write(&path, b"old").unwrap();
        // What is written there finds no room.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("page.html.partial")).unwrap();
        let error = write(&path, b"new").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
