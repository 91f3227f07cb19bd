//! Files and folders readable only by this user, since settings and logs may hold secrets.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Permissions of group and others.
const OTHERS: u32 = 0o077;
const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// Creates a folder, or removes the access of others to an existing one.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    missing_folder(path)?;
    close(&path.metadata()?.permissions(), FOLDER).map_or(Ok(()), |closed| std::fs::set_permissions(path, closed))
}

/// Creates a folder if it is missing. An existing one is left alone, as it may be meant for others.
pub(super) fn missing_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Opens a file; removes the access of others to an existing one.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.mode(FILE).open(path)?;
    match close(&file.metadata()?.permissions(), FILE) {
        Some(closed) => file.set_permissions(closed).map(|()| file),
        None => Ok(file),
    }
}

/// Writes a file, replacing its content.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    open(path, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(text.as_bytes())
}

/// Returns the permissions to set; `None` if others have no access already.
fn close(now: &Permissions, mode: u32) -> Option<Permissions> {
    (now.mode() & OTHERS != 0).then(|| Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_no_rights_to_what_is_made_or_was_there() {
        let world = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let (made, there) = (world.path().join("a/b"), world.path().join("there"));
        std::fs::create_dir(&there).unwrap();
        std::fs::set_permissions(&there, Permissions::from_mode(0o755)).unwrap();
        missing_folder(&there).unwrap();
        assert_eq!(mode(&there), 0o755);
        for path in [&made, &there] {
            folder(path).unwrap();
            assert_eq!(mode(path), FOLDER);
        }
        let (made, there) = (made.join("file"), there.join("file"));
        std::fs::write(&there, "more than before").unwrap();
        std::fs::set_permissions(&there, Permissions::from_mode(0o644)).unwrap();
        for path in [&made, &there] {
            write(path, "text").unwrap();
            assert_eq!((mode(path), std::fs::read_to_string(path).unwrap().as_str()), (FILE, "text"));
        }
    }
}
