//! Renames of folders: the content moves along, durable or not.
//!
//! A disk stores a folder apart from its name. Here content is stored by path. While a new name of a folder is not
//! durable, a crash may leave its content under the old one. So content made durable meanwhile is kept under the old
//! one too.

use super::{MemoryDisk, NameChange, State};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Returns a path at or below `from`, moved to `to`.
pub(super) fn rebased(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(from).ok()?;
    Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
}

/// Moves everything at and below `from`.
pub(super) fn move_all(names: &mut BTreeMap<PathBuf, u64>, dirs: &mut BTreeSet<PathBuf>, (from, to): (&Path, &Path)) {
    names.retain(|path, _| !path.starts_with(to));
    dirs.retain(|path| !path.starts_with(to));
    let place = |path: PathBuf| rebased(&path, from, to).unwrap_or(path);
    *names = std::mem::take(names).into_iter().map(|(path, node)| (place(path), node)).collect();
    *dirs = std::mem::take(dirs).into_iter().map(place).collect();
}

impl NameChange {
    /// Returns the same change below a renamed folder.
    pub(super) fn rebased(self, from: &Path, to: &Path) -> NameChange {
        let place = |path: PathBuf| rebased(&path, from, to).unwrap_or(path);
        match self {
            NameChange::Set(path, node) => NameChange::Set(place(path), node),
            NameChange::Unset(path) => NameChange::Unset(place(path)),
            NameChange::Rename { from, to, node } => NameChange::Rename { from: place(from), to: place(to), node },
            NameChange::MakeDir(path) => NameChange::MakeDir(place(path)),
            NameChange::RemoveDir(path) => NameChange::RemoveDir(place(path)),
            NameChange::RenameDir { from, to } => NameChange::RenameDir { from: place(from), to: place(to) },
        }
    }
}

impl MemoryDisk {
    /// Renames a folder within its parent.
    pub(super) fn rename_folder(&self, state: &mut State, from: &Path, to: &Path) -> io::Result<()> {
        if from.parent() != to.parent() {
            return Err(ErrorKind::Unsupported.into());
        }
        let inside = |path: &&PathBuf| path.starts_with(to) && path.as_path() != to;
        if state.names.contains_key(to) || state.names.keys().chain(&state.dirs).any(|path| inside(&path)) {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        move_all(&mut state.names, &mut state.dirs, (from, to));
        if self.tracked {
            // Changes of the folder's own name are kept: they precede this one.
            let below = |change: &NameChange| change.path().starts_with(from) && change.path() != from;
            let moved = |change: NameChange| if below(&change) { change.rebased(from, to) } else { change };
            state.pending_names = std::mem::take(&mut state.pending_names).into_iter().map(moved).collect();
            state.pending_names.push(NameChange::RenameDir { from: from.to_owned(), to: to.to_owned() });
        }
        Ok(())
    }
}

impl State {
    /// Returns where a crash would leave the durable content of a folder, while new folder names are not durable.
    pub(super) fn durable_place(&self, folder: &Path) -> PathBuf {
        self.pending_names.iter().rev().fold(folder.to_owned(), |place, change| match change {
            NameChange::RenameDir { from, to } => rebased(&place, to, from).unwrap_or(place),
            _ => place,
        })
    }

    /// Makes the new names of folders in a folder durable; a crash leaves that folder at `there`.
    pub(super) fn sync_folders(&mut self, path: &Path, there: &Path) {
        let at = |folder: &Path| folder.file_name().map(|name| there.join(name));
        let renames: Vec<(PathBuf, PathBuf)> = self
            .pending_names
            .iter()
            .filter(|change| change.path().parent() == Some(path))
            .filter_map(|change| match change {
                NameChange::RenameDir { from, to } => Some((at(from)?, at(to)?)),
                _ => None,
            })
            .collect();
        for (from, to) in renames {
            move_all(&mut self.durable_names, &mut self.durable_dirs, (&from, &to));
        }
    }
}
