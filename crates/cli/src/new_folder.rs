//! A data folder that is not there yet: it is made with its first collection.

use crate::failure::Failure;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Returns whether anything is at the path of a data folder. If not, checks that the folder can be made, so that the
/// error comes before an input is read.
pub fn is_there(path: &Path) -> Result<bool, Failure> {
    let exists = |folder: &Path| folder.try_exists().map_err(|e| unusable(path, &e));
    if exists(path)? {
        return Ok(true);
    }
    let mut top = path;
    // The last ancestor of a relative path is empty, and stands for the working folder.
    for folder in path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty()) {
        if exists(folder)? {
            break;
        }
        top = folder;
    }
    if top.is_symlink() {
        let detail = format!("{} is a link to a folder that is not there", top.display());
        return Err(unusable(path, &io::Error::new(ErrorKind::NotFound, detail)));
    }
    // Made and removed: rights alone do not tell what a file system refuses.
    match std::fs::create_dir(top) {
        Ok(()) => {
            // Another process may use it already. Then it stays.
            let _ = std::fs::remove_dir(top);
            Ok(false)
        }
        // Another process made it meanwhile.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(unusable(path, &e)),
    }
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    let expected = "expected a folder, or a path where one can be made";
    Failure::Refused(format!("--data: {} cannot be used: {error}: {expected}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_leaves_nothing() {
        let there = tempfile::tempdir().unwrap();
        assert!(is_there(there.path()).unwrap());
        assert!(!is_there(&there.path().join("a/b")).unwrap());
        assert!(!there.path().join("a").exists());
    }

    #[test]
    fn a_link_to_nothing_and_a_path_below_a_file_are_refused() {
        let there = tempfile::tempdir().unwrap();
        let (link, file) = (there.path().join("link"), there.path().join("file"));
        std::os::unix::fs::symlink(there.path().join("none"), &link).unwrap();
        std::fs::write(&file, "x").unwrap();
        let refused = is_there(&link.join("data")).unwrap_err();
        assert!(refused.to_string().contains("is a link to a folder that is not there"), "{refused}");
        assert!(is_there(&file.join("data")).is_err());
    }
}
