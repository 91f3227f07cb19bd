//! The calls of the store to the disk.

use super::crash::scatter;
use super::faults::{FaultKind, eio};
use super::{Change, MemoryDisk, MemoryFile, MemoryLock, NameChange, Node, State, apply};
use crate::codec::hash;
use crate::seams::{Disk, DiskFile, DiskLock, OpenMode};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl MemoryDisk {
    /// Executes a call by name: records it, and fails it if a fault applies.
    fn call<T>(&self, name: &str, path: &Path, call: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock();
        let result = match state.faults.meet(FaultKind::NameFails, path) {
            Ok(()) => call(&mut state),
            Err(e) => Err(e),
        };
        if self.tracked {
            state.note(name, path, [result.is_ok().into(), 0, 0]);
        }
        result
    }

    fn change_names(&self, state: &mut State, change: NameChange) {
        if self.tracked {
            state.pending_names.push(change);
        }
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.call("open", path, |state| {
            let node = match (mode, state.names.get(path).copied()) {
                (OpenMode::CreateNew, Some(_)) => return Err(ErrorKind::AlreadyExists.into()),
                (OpenMode::Create | OpenMode::CreateNew | OpenMode::CreatePrivate, existing) => {
                    state.changeable()?;
                    if path.parent().is_some_and(|dir| !state.dirs.contains(dir)) {
                        return Err(ErrorKind::NotFound.into());
                    }
                    match existing {
                        Some(id) => {
                            if let Some(node) = state.nodes.get_mut(&id) {
                                node.change(&Change::Length(0));
                                if self.tracked {
                                    node.pending.push(Change::Length(0));
                                }
                            }
                            id
                        }
                        None => {
                            let id = state.next_node;
                            state.next_node += 1;
                            state.nodes.insert(id, Node::default());
                            state.names.insert(path.to_owned(), id);
                            self.change_names(state, NameChange::Set(path.to_owned(), id));
                            id
                        }
                    }
                }
                (OpenMode::ReadWrite, Some(id)) => {
                    state.changeable()?;
                    id
                }
                (OpenMode::Read, Some(id)) => id,
                (_, None) => return Err(ErrorKind::NotFound.into()),
            };
            if let Some(node) = state.nodes.get_mut(&node) {
                node.handles += 1;
            }
            let file = MemoryFile { disk: self.clone(), node, life: state.life, path: path.to_owned() };
            Ok(Arc::new(file) as Arc<dyn DiskFile>)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call("rename", to, |state| {
            state.changeable()?;
            if state.dirs.contains(from) {
                return self.rename_folder(state, from, to);
            }
            let node = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
            let old = state.names.insert(to.to_owned(), node);
            self.change_names(state, NameChange::Rename { from: from.to_owned(), to: to.to_owned(), node });
            old.into_iter().for_each(|old| state.forget_unnamed(old));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call("remove", path, |state| {
            state.changeable()?;
            let id = state.names.remove(path).ok_or(ErrorKind::NotFound)?;
            self.change_names(state, NameChange::Unset(path.to_owned()));
            state.forget_unnamed(id);
            Ok(())
        })
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.call("create_dir", path, |state| {
            for dir in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
                if state.dirs.contains(dir) {
                    continue;
                }
                state.changeable()?;
                state.dirs.insert(dir.to_owned());
                if dir.parent().is_none() || dir.as_os_str().is_empty() {
                    // The root of the disk always exists.
                    state.durable_dirs.insert(dir.to_owned());
                } else {
                    self.change_names(state, NameChange::MakeDir(dir.to_owned()));
                }
            }
            Ok(())
        })
    }

    fn create_private_dir(&self, path: &Path) -> io::Result<()> {
        self.create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call("remove_dir", path, |state| {
            state.changeable()?;
            let full = state.names.keys().chain(state.dirs.iter()).any(|p| p != path && p.starts_with(path));
            if full {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            if !state.dirs.remove(path) {
                return Err(ErrorKind::NotFound.into());
            }
            self.change_names(state, NameChange::RemoveDir(path.to_owned()));
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.call("list", path, |state| {
            if !state.dirs.contains(path) {
                return Err(ErrorKind::NotFound.into());
            }
            let mut names: Vec<String> = state
                .names
                .keys()
                .chain(state.dirs.iter())
                .filter(|p| p.parent() == Some(path))
                .filter_map(|p| p.file_name()?.to_str().map(str::to_owned))
                .collect();
            names.sort();
            Ok(names)
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call("sync_dir", path, |state| {
            state.syncs += 1;
            state.faults.meet(FaultKind::SyncFails, path)?;
            if !state.dirs.contains(path) {
                return Err(ErrorKind::NotFound.into());
            }
            if self.tracked {
                state.sync_names(path);
            }
            Ok(())
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        self.call("lock", path, |state| {
            state.changeable()?;
            if !state.locks.insert(path.to_owned()) {
                return Err(ErrorKind::WouldBlock.into());
            }
            Ok(Box::new(MemoryLock { disk: self.clone(), path: path.to_owned(), life: state.life }) as _)
        })
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.call("free_bytes", path, |state| Ok(state.room()))
    }
}

impl State {
    /// Makes the names in a folder durable.
    fn sync_names(&mut self, path: &Path) {
        let there = self.durable_place(path);
        self.sync_folders(path, &there);
        let inside = |p: &Path| p.parent() == Some(path);
        let inside_there = |p: &Path| p.parent() == Some(&there);
        let place = |p: &Path| p.file_name().map_or_else(|| p.to_owned(), |name| there.join(name));
        let durable = self.durable_names.iter().filter(|(p, _)| inside_there(p)).map(|(_, id)| *id);
        let pending = self.pending_names.iter().filter(|change| inside(change.path())).filter_map(NameChange::node);
        let before: Vec<u64> = durable.chain(pending).collect();
        self.pending_names.retain(|change| !inside(change.path()));
        self.durable_names.retain(|p, _| !inside_there(p));
        self.durable_names.extend(self.names.iter().filter(|(p, _)| inside(p)).map(|(p, id)| (place(p), *id)));
        let dirs: BTreeSet<PathBuf> = self.dirs.iter().filter(|p| inside(p)).map(|p| place(p)).collect();
        let gone: Vec<PathBuf> =
            self.durable_dirs.iter().filter(|p| inside_there(p) && !dirs.contains(*p)).cloned().collect();
        for dir in gone {
            self.durable_dirs.retain(|p| !p.starts_with(&dir));
            self.durable_names.retain(|p, _| !p.starts_with(&dir));
        }
        self.durable_dirs.extend(dirs);
        // Files that a crash can no longer bring back free their space.
        before.into_iter().for_each(|id| self.forget_unnamed(id));
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life
            && let Some(node) = state.nodes.get_mut(&self.node)
        {
            node.handles -= 1;
            state.forget_unnamed(self.node);
        }
    }
}

impl MemoryFile {
    /// Executes a call on the open file: records it with these numbers, and fails it if a fault applies.
    fn call<T>(
        &self,
        name: &str,
        kind: Option<FaultKind>,
        numbers: [u64; 2],
        call: impl FnOnce(&mut State, io::Result<()>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.disk.state.lock();
        if state.life != self.life {
            return Err(eio());
        }
        let fault = kind.map_or(Ok(()), |kind| state.faults.meet(kind, &self.path));
        let result = call(&mut state, fault);
        if self.disk.tracked {
            state.note(name, &self.path, [result.is_ok().into(), numbers[0], numbers[1]]);
        }
        result
    }

    fn change(&self, mut change: Change) -> io::Result<()> {
        let (offset, wanted, digest) = match &change {
            Change::Write { offset, bytes } if self.disk.tracked => {
                (*offset, offset + bytes.len() as u64, hash(0, bytes))
            }
            Change::Write { offset, bytes } => (*offset, offset + bytes.len() as u64, 0),
            Change::Length(bytes) => (*bytes, *bytes, 0),
        };
        self.call("write", Some(FaultKind::WriteFails), [offset, digest], |state, fault| {
            state.changeable()?;
            let length = state.nodes.get(&self.node).map_or(0, |n| n.live.len() as u64);
            let room = state.room();
            let full = if wanted.saturating_sub(length) > room { Err(ErrorKind::StorageFull.into()) } else { Ok(()) };
            let result = fault.and(full);
            let node = state.nodes.get_mut(&self.node).ok_or_else(eio)?;
            if result.is_err() {
                // As on a real disk, a failed write may have written a part.
                let Change::Write { offset, bytes } = &mut change else { return result };
                let fits = length.saturating_sub(*offset).saturating_add(room).min(bytes.len() as u64 / 2);
                bytes.truncate(fits as usize);
            }
            node.change(&change);
            if self.disk.tracked {
                node.pending.push(change);
            }
            result
        })
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.call("read", Some(FaultKind::ReadFails), [offset, into.len() as u64], |state, fault| {
            fault?;
            let node = state.nodes.get(&self.node).ok_or_else(eio)?;
            let bytes = (offset as usize)
                .checked_add(into.len())
                .and_then(|end| node.live.get(offset as usize..end))
                .ok_or(ErrorKind::UnexpectedEof)?;
            into.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Change::Write { offset, bytes: bytes.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        self.call("sync", Some(FaultKind::SyncFails), [0, 0], |state, fault| {
            state.syncs += 1;
            let node = state.nodes.get_mut(&self.node).ok_or_else(eio)?;
            let pending = std::mem::take(&mut node.pending);
            if let Err(e) = fault {
                // As on Linux, the pages are marked clean anyway, and a second sync would claim success.
                if state.dice != 0 {
                    let mut durable = std::mem::take(&mut node.durable);
                    scatter(&mut durable, pending, &mut || state.roll());
                    if let Some(node) = state.nodes.get_mut(&self.node) {
                        node.durable = durable;
                    }
                }
                return Err(e);
            }
            pending.iter().for_each(|change| apply(&mut node.durable, change));
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.call("len", None, [0, 0], |state, _| {
            state.nodes.get(&self.node).map(|n| n.live.len() as u64).ok_or_else(eio)
        })
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(Change::Length(bytes))
    }
}
