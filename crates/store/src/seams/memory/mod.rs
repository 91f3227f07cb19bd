//! A disk in memory that can crash, tear, fill up and rot.
//!
//! Content and names exist twice: as seen by readers, and as after a crash. A change reaches the first at once and is
//! queued; a sync applies the queue to the second. A crash applies none or a part of the queue, and readers then see
//! the second.

mod calls;
mod crash;
mod faults;
mod folders;
mod storage;

pub use crash::CrashStyle;
pub use faults::FaultKind;
pub use storage::{Failure, MemoryStorage, Seam};

use super::DiskLock;
use crate::codec::hash;
use faults::Faults;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Content of one file.
#[derive(Debug, Default)]
struct Node {
    /// The content as seen by readers.
    live: Vec<u8>,
    /// The content after a crash; not kept on a disk that never crashes.
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    pending: Vec<Change>,
    /// Bits that were flipped and not overwritten since.
    flipped: Vec<u64>,
    /// Number of open handles: a removed file stays while there are any.
    handles: usize,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

/// A change of names in one folder.
#[derive(Debug, Clone)]
enum NameChange {
    Set(PathBuf, u64),
    Unset(PathBuf),
    Rename { from: PathBuf, to: PathBuf, node: u64 },
    MakeDir(PathBuf),
    RemoveDir(PathBuf),
    RenameDir { from: PathBuf, to: PathBuf },
}

impl NameChange {
    fn path(&self) -> &Path {
        match self {
            NameChange::Set(path, _) | NameChange::Unset(path) => path,
            NameChange::MakeDir(path) | NameChange::RemoveDir(path) => path,
            NameChange::Rename { to, .. } | NameChange::RenameDir { to, .. } => to,
        }
    }

    fn node(&self) -> Option<u64> {
        match self {
            NameChange::Set(_, node) | NameChange::Rename { node, .. } => Some(*node),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    nodes: HashMap<u64, Node>,
    next_node: u64,
    /// Files by name, as seen by readers.
    names: BTreeMap<PathBuf, u64>,
    /// Files by name, as after a crash.
    durable_names: BTreeMap<PathBuf, u64>,
    dirs: BTreeSet<PathBuf>,
    durable_dirs: BTreeSet<PathBuf>,
    /// Name changes that `sync_dir` has not made durable, in order.
    pending_names: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    faults: Faults,
    /// Incremented at each crash: handles opened before are dead.
    life: u64,
    /// Max bytes of all files together.
    capacity: Option<u64>,
    read_only: bool,
    syncs: u64,
    /// State of the random generator that decides which part of a failed sync reached the disk; 0 for none of it.
    dice: u64,
    /// Hash of every call so far and its outcome.
    trace: u64,
}

/// A disk in memory. Clones share one disk.
///
/// [`MemoryDisk::new`] separates synced from unsynced data, so that [`MemoryDisk::crash`] can discard the rest.
/// [`MemoryDisk::volatile`] does not, and serves collections that are kept in memory only.
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
        // A lock of an earlier life was already released by the crash, and another process may hold it now.
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
    /// Creates an empty disk that can crash.
    pub fn new() -> Self {
        MemoryDisk { state: Arc::default(), tracked: true }
    }

    /// Creates an empty disk that cannot crash and keeps each byte once.
    pub fn volatile() -> Self {
        MemoryDisk { state: Arc::default(), tracked: false }
    }

    /// Creates an empty disk that can crash, and on which a failed sync may have written some of its sectors.
    pub fn seeded(seed: u64) -> Self {
        let disk = MemoryDisk::new();
        disk.state.lock().dice = seed.max(1);
        disk
    }

    /// Simulates a power failure: `style` decides what happens to unsynced data. Locks are released, and files opened
    /// before return errors from then on.
    pub fn crash(&self, style: CrashStyle<'_>) {
        self.state.lock().crash(&style);
    }

    /// Makes calls fail for files whose path contains `path`, after letting `after` such calls pass.
    pub fn inject(&self, kind: FaultKind, path: &str, after: u64) {
        self.inject_times(kind, path, after, u64::MAX);
    }

    /// Does the same for this many calls only: later ones succeed.
    pub fn inject_times(&self, kind: FaultKind, path: &str, after: u64, times: u64) {
        self.state.lock().faults.add(kind, path, after, times);
    }

    /// Removes all injected faults.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Sets the capacity in bytes; writes beyond it return ENOSPC. `None` removes the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Makes every change fail with EROFS, or no longer.
    pub fn set_read_only(&self, read_only: bool) {
        self.state.lock().read_only = read_only;
    }

    /// Flips one bit of a file, both as seen by readers and as after a crash.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = *state.names.get(path).ok_or(ErrorKind::NotFound)?;
        let node = state.nodes.get_mut(&id).ok_or(ErrorKind::NotFound)?;
        node.flip(bit);
        node.flipped.push(bit);
        Ok(())
    }

    /// Flips back every flipped bit that was not overwritten since.
    pub fn unflip(&self) {
        for node in self.state.lock().nodes.values_mut() {
            for bit in std::mem::take(&mut node.flipped) {
                node.flip(bit);
            }
        }
    }

    /// Makes flipped bits permanent: [`MemoryDisk::unflip`] no longer restores them.
    pub fn keep_flipped(&self) {
        self.state.lock().nodes.values_mut().for_each(|node| node.flipped.clear());
    }

    /// Removes a file permanently, as if it had never been written, and returns its content.
    pub fn vanish(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock();
        let id = state.names.remove(path).ok_or(ErrorKind::NotFound)?;
        let bytes = state.nodes.get(&id).map_or_else(Vec::new, |node| node.live.clone());
        state.durable_names.remove(path);
        state.pending_names.retain(|change| change.node() != Some(id) && change.path() != path);
        state.forget_unnamed(id);
        Ok(bytes)
    }

    /// Writes a file durably, independent of faults.
    pub fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        let id = state.next_node;
        state.next_node += 1;
        state.nodes.insert(id, Node { durable: bytes.clone(), live: bytes, ..Node::default() });
        state.names.insert(path.to_owned(), id);
        state.durable_names.insert(path.to_owned(), id);
    }

    /// Returns a hash of every call so far and its outcome: two runs with the same calls have the same hash.
    pub fn trace(&self) -> u64 {
        self.state.lock().trace
    }

    /// Returns every file and its length.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state.lock();
        state.names.iter().map(|(p, id)| (p.clone(), state.nodes.get(id).map_or(0, |n| n.live.len() as u64))).collect()
    }

    /// Returns how many times `sync` and `sync_dir` were called.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }
}

impl Node {
    fn flip(&mut self, bit: u64) {
        let (byte, mask) = ((bit / 8) as usize, 1u8 << (bit % 8));
        for content in [&mut self.live, &mut self.durable] {
            if let Some(b) = content.get_mut(byte) {
                *b ^= mask;
            }
        }
    }

    /// Applies a change to what readers see.
    fn change(&mut self, change: &Change) {
        apply(&mut self.live, change);
        self.flipped.retain(|bit| match change {
            Change::Write { offset, bytes } => !(*offset..offset + bytes.len() as u64).contains(&(bit / 8)),
            Change::Length(bytes) => bit / 8 < *bytes,
        });
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

impl State {
    /// Adds a call to the trace.
    fn note(&mut self, call: &str, path: &Path, numbers: [u64; 3]) {
        let mut bytes = call.as_bytes().to_vec();
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        numbers.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        self.trace = hash(self.trace, &bytes);
    }

    fn roll(&mut self) -> u64 {
        self.dice = hash(self.dice, b"dice").max(1);
        self.dice
    }

    fn changeable(&self) -> io::Result<()> {
        if self.read_only { Err(ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// Returns the free bytes.
    fn room(&self) -> u64 {
        let used = || self.nodes.values().map(|n| n.live.len() as u64).sum::<u64>();
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(used()))
    }

    fn forget_unnamed(&mut self, id: u64) {
        let pending = self.pending_names.iter().filter_map(NameChange::node);
        let named = self.names.values().chain(self.durable_names.values()).copied().chain(pending).any(|n| n == id);
        if !named && self.nodes.get(&id).is_some_and(|node| node.handles == 0) {
            self.nodes.remove(&id);
        }
    }
}
