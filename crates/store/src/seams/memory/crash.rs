//! The files after a power loss.

use super::folders::move_all;
use super::{Change, NameChange, State, apply};
use crate::seams::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Bytes that a disk writes atomically.
pub(super) const SECTOR: u64 = 512;

/// The effect of a crash on unsynced changes.
pub enum CrashStyle<'a> {
    /// All of them are lost.
    Lose,
    /// Each file keeps a prefix of its writes, the last of them cut at a random byte (a torn write). Each folder keeps
    /// a prefix of its name changes.
    Tear(&'a dyn Random),
    /// Each sector of each write is kept or lost independently, perhaps later ones without earlier ones. Each folder
    /// keeps a prefix of its name changes.
    Scatter(&'a dyn Random),
}

impl State {
    /// Simulates a power failure: see [`super::MemoryDisk::crash`].
    pub(super) fn crash(&mut self, style: &CrashStyle<'_>) {
        self.life += 1;
        self.locks.clear();
        self.faults.clear();
        let pending = std::mem::take(&mut self.pending_names);
        if let CrashStyle::Tear(random) | CrashStyle::Scatter(random) = style {
            self.keep_some_names(pending, *random);
        }
        self.names = self.durable_names.clone();
        self.dirs = self.durable_dirs.clone();
        // The content of a lost folder is lost too.
        let dirs = &self.dirs;
        let reachable = |p: &Path| p.ancestors().skip(1).all(|dir| dirs.contains(dir));
        self.names.retain(|p, _| reachable(p));
        self.durable_names = self.names.clone();
        let kept: BTreeSet<u64> = self.names.values().copied().collect();
        self.nodes.retain(|id, _| kept.contains(id));
        // Files in order of their names, so that one seed always tears the same way.
        for id in self.names.values() {
            let Some(node) = self.nodes.get_mut(id) else { continue };
            node.handles = 0;
            let pending = std::mem::take(&mut node.pending);
            match style {
                CrashStyle::Lose => {}
                CrashStyle::Tear(random) => tear(&mut node.durable, pending, *random),
                CrashStyle::Scatter(random) => scatter(&mut node.durable, pending, &mut || random.next_u64()),
            }
            node.live = node.durable.clone();
        }
    }

    /// Keeps a prefix of each folder's name changes: a journal preserves their order.
    fn keep_some_names(&mut self, pending: Vec<NameChange>, random: &dyn Random) {
        let mut folders: BTreeMap<PathBuf, Vec<NameChange>> = BTreeMap::new();
        for change in pending {
            let folder = change.path().parent().map(Path::to_owned).unwrap_or_default();
            folders.entry(folder).or_default().push(change);
        }
        // A folder comes before its content, so that the name under which the content is found is known.
        let mut lost: Vec<(PathBuf, PathBuf)> = Vec::new();
        for changes in folders.into_values() {
            let kept = random.next_u64() as usize % (changes.len() + 1);
            for (number, change) in changes.into_iter().enumerate() {
                let change = lost.iter().rev().fold(change, |change, (from, to)| change.rebased(to, from));
                if number >= kept {
                    if let NameChange::RenameDir { from, to } = change {
                        lost.push((from, to));
                    }
                    continue;
                }
                match change {
                    NameChange::Set(path, node) => {
                        self.durable_names.insert(path, node);
                    }
                    NameChange::Unset(path) => {
                        self.durable_names.remove(&path);
                    }
                    NameChange::Rename { from, to, node } => {
                        self.durable_names.remove(&from);
                        self.durable_names.insert(to, node);
                    }
                    NameChange::MakeDir(path) => {
                        self.durable_dirs.insert(path);
                    }
                    NameChange::RemoveDir(path) => {
                        self.durable_dirs.retain(|p| !p.starts_with(&path));
                    }
                    NameChange::RenameDir { from, to } => {
                        move_all(&mut self.durable_names, &mut self.durable_dirs, (&from, &to));
                    }
                }
            }
        }
    }
}

fn tear(durable: &mut Vec<u8>, pending: Vec<Change>, random: &dyn Random) {
    let whole = random.next_u64() as usize % (pending.len() + 1);
    for (i, change) in pending.into_iter().enumerate().take(whole + 1) {
        match change {
            Change::Write { offset, mut bytes } if i == whole => {
                bytes.truncate(random.next_u64() as usize % (bytes.len() + 1));
                apply(durable, &Change::Write { offset, bytes });
            }
            Change::Length(_) if i == whole => {}
            change => apply(durable, &change),
        }
    }
}

/// Keeps or loses each sector of each write.
pub(super) fn scatter(durable: &mut Vec<u8>, pending: Vec<Change>, dice: &mut dyn FnMut() -> u64) {
    // Mostly kept, mostly lost, or even: groups that survive except for one sector are as instructive as the reverse.
    let odds = [1, 4, 7][(dice() % 3) as usize];
    for change in pending {
        let Change::Write { offset, bytes } = change else {
            if dice() % 8 < odds {
                apply(durable, &change);
            }
            continue;
        };
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let end = bytes.len().min(at + (SECTOR - place % SECTOR) as usize);
            if dice() % 8 < odds {
                apply(durable, &Change::Write { offset: place, bytes: bytes[at..end].to_vec() });
            }
            at = end;
        }
    }
}
