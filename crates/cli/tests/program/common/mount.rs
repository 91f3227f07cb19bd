//! File systems of a test, which need root.

use std::path::Path;
use std::process::{Command, Stdio};

/// A file system mounted on a folder; unmounted when dropped.
pub struct Mount(tempfile::TempDir);

impl Mount {
    /// Returns `None`, with a visible message, if mounting is not allowed.
    pub fn new(args: &[&str]) -> Option<Mount> {
        let folder = tempfile::tempdir().unwrap();
        if let Err(why) = quietly(Command::new("mount").args(args).arg(folder.path())) {
            eprintln!(
                "\n*** NOT TESTED ON A REAL DISK: mount {args:?} is not possible here ({why}). The store's simulator and \
                 its tests of faults, over a disk in memory, must do. ***\n"
            );
            return None;
        }
        Some(Mount(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Runs a command; returns why it failed, if so.
pub fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}
