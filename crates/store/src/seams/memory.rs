//! A disk in memory that can crash, tear, fill up and rot.

use super::{Disk, DiskFile, DiskLock, OpenMode, Random};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a crash does to writes that were not synced.
pub enum CrashStyle<'a> {
    /// All of them are lost.
    Lose,
    /// Each file keeps some first ones of them, the last of those cut at a random byte (a torn write).
    Tear(&'a dyn Random),
}

/// A fault to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `sync` and `sync_dir` fail with EIO.
    SyncFails,
    /// `read_at` fails with EIO.
    ReadFails,
    /// `write_at` fails with EIO.
    WriteFails,
}

#[derive(Debug)]
struct Fault {
    kind: FaultKind,
    /// Part of the path that the fault applies to.
    path: String,
    /// Calls to let pass first.
    after: u64,
}

/// Content of one file.
#[derive(Debug, Default)]
struct Node {
    /// What a reader sees.
    live: Vec<u8>,
    /// What a crash leaves; not kept on a disk that never crashes.
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    pending: Vec<Change>,
    /// Open files: a file that was removed stays as long as there are any.
    handles: usize,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Debug, Default)]
struct State {
    nodes: HashMap<u64, Node>,
    next_node: u64,
    /// Files by name, as a reader sees them.
    names: BTreeMap<PathBuf, u64>,
    /// Files by name, as a crash leaves them.
    durable_names: BTreeMap<PathBuf, u64>,
    dirs: BTreeSet<PathBuf>,
    durable_dirs: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    faults: Vec<Fault>,
    /// Grows at each crash: files opened before are dead.
    life: u64,
    /// Most bytes that all files together may hold.
    capacity: Option<u64>,
    read_only: bool,
    syncs: u64,
}

/// A disk in memory. Clones share one disk.
///
/// [`MemoryDisk::new`] keeps apart what is synced and what is not, so that [`MemoryDisk::crash`] can discard the
/// rest; [`MemoryDisk::volatile`] does not, and serves collections that are kept in memory only.
#[derive(Debug, Clone)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
    tracked: bool,
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    node: u64,
    life: u64,
    path: PathBuf,
}

#[derive(Debug)]
struct MemoryLock {
    disk: MemoryDisk,
    path: PathBuf,
    life: u64,
}

impl DiskLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.life == self.life {
            state.locks.remove(&self.path);
        }
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        MemoryDisk::new()
    }
}

impl MemoryDisk {
    /// An empty disk that can crash.
    pub fn new() -> Self {
        MemoryDisk { state: Arc::default(), tracked: true }
    }

    /// An empty disk that cannot crash and keeps each byte once.
    pub fn volatile() -> Self {
        MemoryDisk { state: Arc::default(), tracked: false }
    }

    /// Power fails: what was not synced is gone, locks are free, and files opened before answer errors for ever.
    pub fn crash(&self, style: CrashStyle<'_>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.life += 1;
        state.locks.clear();
        state.faults.clear();
        state.names = state.durable_names.clone();
        state.dirs = state.durable_dirs.clone();
        // What lies in a folder that is not there any more is not there either.
        let dirs = &state.dirs;
        let reachable = |p: &Path| p.ancestors().skip(1).all(|dir| dirs.contains(dir));
        state.names.retain(|p, _| reachable(p));
        state.durable_names = state.names.clone();
        let kept: BTreeSet<u64> = state.names.values().copied().collect();
        state.nodes.retain(|id, _| kept.contains(id));
        // Files in the order of their names, so that one seed tears one way.
        for id in state.names.values() {
            let Some(node) = state.nodes.get_mut(id) else { continue };
            node.handles = 0;
            let pending = std::mem::take(&mut node.pending);
            if let CrashStyle::Tear(random) = style {
                let whole = random.next_u64() as usize % (pending.len() + 1);
                for (i, change) in pending.into_iter().enumerate().take(whole + 1) {
                    match change {
                        Change::Write { offset, mut bytes } if i == whole => {
                            bytes.truncate(random.next_u64() as usize % (bytes.len() + 1));
                            apply(&mut node.durable, &Change::Write { offset, bytes });
                        }
                        Change::Length(_) if i == whole => {}
                        change => apply(&mut node.durable, &change),
                    }
                }
            }
            node.live = node.durable.clone();
        }
    }

    /// Makes calls fail for files whose path contains `path`, after letting `after` such calls pass.
    pub fn inject(&self, kind: FaultKind, path: &str, after: u64) {
        self.state.lock().faults.push(Fault { kind, path: path.to_owned(), after });
    }

    /// Takes all injected faults away.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Sets how many bytes fit; writes past it answer ENOSPC. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Makes every change fail with EROFS, or no longer.
    pub fn set_read_only(&self, read_only: bool) {
        self.state.lock().read_only = read_only;
    }

    /// Turns one bit of a file over, in what readers see and in what a crash leaves.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        let node = state.nodes.get_mut(&id).ok_or(ErrorKind::NotFound)?;
        let (byte, mask) = ((bit / 8) as usize, 1u8 << (bit % 8));
        for content in [&mut node.live, &mut node.durable] {
            if let Some(b) = content.get_mut(byte) {
                *b ^= mask;
            }
        }
        Ok(())
    }

    /// Every file and its length.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        state.names.iter().map(|(p, id)| (p.clone(), state.nodes.get(id).map_or(0, |n| n.live.len() as u64))).collect()
    }

    /// How many times `sync` and `sync_dir` were called.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes } => {
            let end = *offset as usize + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*offset as usize..end].copy_from_slice(bytes);
        }
        Change::Length(bytes) => content.resize(*bytes as usize, 0),
    }
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

impl State {
    fn fault(&mut self, kind: FaultKind, path: &Path) -> io::Result<()> {
        let path = path.to_string_lossy();
        for fault in self.faults.iter_mut().filter(|f| f.kind == kind && path.contains(&f.path)) {
            if fault.after == 0 {
                return Err(eio());
            }
            fault.after -= 1;
        }
        Ok(())
    }

    fn changeable(&self) -> io::Result<()> {
        if self.read_only { Err(ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// Bytes that still fit.
    fn room(&self) -> u64 {
        let used = || self.nodes.values().map(|n| n.live.len() as u64).sum::<u64>();
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(used()))
    }

    fn forget_unnamed(&mut self, id: u64) {
        let named = self.names.values().chain(self.durable_names.values()).any(|n| *n == id);
        if !named && self.nodes.get(&id).is_some_and(|node| node.handles == 0) {
            self.nodes.remove(&id);
        }
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

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        let node = match (mode, state.names.get(path).copied()) {
            (OpenMode::Create, existing) => {
                state.changeable()?;
                if path.parent().is_some_and(|dir| !state.dirs.contains(dir)) {
                    return Err(ErrorKind::NotFound.into());
                }
                match existing {
                    Some(id) => {
                        if let Some(node) = state.nodes.get_mut(&id) {
                            node.live.clear();
                            node.pending.push(Change::Length(0));
                        }
                        id
                    }
                    None => {
                        let id = state.next_node;
                        state.next_node += 1;
                        state.nodes.insert(id, Node::default());
                        state.names.insert(path.to_owned(), id);
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
        Ok(Arc::new(MemoryFile { disk: self.clone(), node, life: state.life, path: path.to_owned() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.changeable()?;
        let id = state.names.remove(from).ok_or(ErrorKind::NotFound)?;
        if let Some(old) = state.names.insert(to.to_owned(), id) {
            state.forget_unnamed(old);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.changeable()?;
        let id = state.names.remove(path).ok_or(ErrorKind::NotFound)?;
        state.forget_unnamed(id);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        for dir in path.ancestors() {
            if !state.dirs.contains(dir) {
                state.changeable()?;
                state.dirs.insert(dir.to_owned());
                // The root of the disk always was.
                if dir.parent().is_none() || dir.as_os_str().is_empty() {
                    state.durable_dirs.insert(dir.to_owned());
                }
            }
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.changeable()?;
        let full = state.names.keys().chain(state.dirs.iter()).any(|p| p != path && p.starts_with(path));
        if full {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        if state.dirs.remove(path) { Ok(()) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
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
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.syncs += 1;
        state.fault(FaultKind::SyncFails, path)?;
        if !state.dirs.contains(path) {
            return Err(ErrorKind::NotFound.into());
        }
        if !self.tracked {
            return Ok(());
        }
        let state = &mut *state;
        let inside = |p: &Path| p.parent() == Some(path);
        state.durable_names.retain(|p, _| !inside(p));
        state.durable_names.extend(state.names.iter().filter(|(p, _)| inside(p)).map(|(p, id)| (p.clone(), *id)));
        let gone: Vec<PathBuf> =
            state.durable_dirs.iter().filter(|p| inside(p) && !state.dirs.contains(*p)).cloned().collect();
        for dir in gone {
            state.durable_dirs.retain(|p| !p.starts_with(&dir));
            state.durable_names.retain(|p, _| !p.starts_with(&dir));
        }
        state.durable_dirs.extend(state.dirs.iter().filter(|p| inside(p)).cloned());
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut state = self.state.lock();
        state.changeable()?;
        if !state.locks.insert(path.to_owned()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemoryLock { disk: self.clone(), path: path.to_owned(), life: state.life }))
    }
}

impl MemoryFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.life != self.life {
            return Err(eio());
        }
        state.changeable()?;
        let fault = state.fault(FaultKind::WriteFails, &self.path);
        let length = state.nodes.get(&self.node).map_or(0, |n| n.live.len() as u64);
        let wanted = match &change {
            Change::Write { offset, bytes } => offset + bytes.len() as u64,
            Change::Length(bytes) => *bytes,
        };
        let room = state.room();
        let full = if wanted.saturating_sub(length) > room { Err(ErrorKind::StorageFull.into()) } else { Ok(()) };
        let result = fault.and(full);
        let node = state.nodes.get_mut(&self.node).ok_or_else(eio)?;
        let mut change = change;
        if result.is_err() {
            // As on a real disk: a write that fails may have got some of the way.
            let Change::Write { offset, bytes } = &mut change else { return result };
            let fits = length.saturating_sub(*offset).saturating_add(room).min(bytes.len() as u64 / 2);
            bytes.truncate(fits as usize);
        }
        apply(&mut node.live, &change);
        if self.disk.tracked {
            node.pending.push(change);
        }
        result
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.life != self.life {
            return Err(eio());
        }
        state.fault(FaultKind::ReadFails, &self.path)?;
        let node = state.nodes.get(&self.node).ok_or_else(eio)?;
        let bytes = (offset as usize)
            .checked_add(into.len())
            .and_then(|end| node.live.get(offset as usize..end))
            .ok_or(ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Change::Write { offset, bytes: bytes.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if state.life != self.life {
            return Err(eio());
        }
        state.syncs += 1;
        if let Err(e) = state.fault(FaultKind::SyncFails, &self.path) {
            // As on Linux: the pages are marked clean all the same, and a second sync would claim success.
            if let Some(node) = state.nodes.get_mut(&self.node) {
                node.pending.clear();
            }
            return Err(e);
        }
        let node = state.nodes.get_mut(&self.node).ok_or_else(eio)?;
        for change in std::mem::take(&mut node.pending) {
            apply(&mut node.durable, &change);
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state.lock();
        if state.life != self.life {
            return Err(eio());
        }
        state.nodes.get(&self.node).map(|n| n.live.len() as u64).ok_or_else(eio)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(Change::Length(bytes))
    }
}
