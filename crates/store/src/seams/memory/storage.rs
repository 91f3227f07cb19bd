//! Partitions in memory with fault injection: log, catalog and objects of a cluster, without one.
//!
//! Handles of one partition share its state, as processes share a bucket. A call may fail before it takes effect, or
//! after it (a lost acknowledgement). It may also take effect later, long after its writer gave up (a stalled writer).

use crate::error::StoreError;
use crate::manifest::Manifest;
use crate::seams::{
    AppendError, Catalog, CommitError, LogContents, LogPlace, Newest, Object, ObjectWriter, Objects, PartitionStorage,
    Proof, Record, Removal, Storage, WriteLog,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The part of a partition that a call addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seam {
    /// Appends to the log.
    Log,
    /// Commits of manifests.
    Catalog,
    /// Puts of objects.
    Objects,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nothing happens, and the caller gets an error.
    Before,
    /// It takes effect, but the acknowledgement is lost.
    After,
    /// The acknowledgement is lost, and it takes effect at [`MemoryStorage::deliver`], if it still may.
    Stalled,
}

/// Partitions in memory, by folder. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    partitions: Arc<Mutex<BTreeMap<PathBuf, SharedPartition>>>,
}

type SharedPartition = Arc<Mutex<Partition>>;

#[derive(Debug, Default)]
struct Partition {
    /// The writer that may append, as the number of the last replay.
    writer: u64,
    records: Vec<Record>,
    manifest: Option<Manifest>,
    objects: BTreeMap<String, Content>,
    /// Objects deleted since the last sync, which a crash brings back.
    deleted: BTreeMap<String, Content>,
    /// The seam, the number of calls that succeed first, and how the next one fails.
    faults: Vec<(Seam, u64, Failure)>,
    /// Calls that take effect later.
    stalled: Vec<DelayedCall>,
}

#[derive(Debug, Clone)]
struct Content {
    bytes: Arc<Vec<u8>>,
    synced: bool,
}

#[derive(Debug)]
enum DelayedCall {
    Append(u64, Vec<Record>),
    Commit(u64, Box<Manifest>),
    Put(String, Vec<u8>),
}

impl MemoryStorage {
    /// Creates a storage without partitions.
    pub fn new() -> MemoryStorage {
        MemoryStorage::default()
    }

    fn of(&self, dir: &Path) -> SharedPartition {
        self.partitions.lock().entry(dir.to_owned()).or_default().clone()
    }

    fn each(&self, change: impl FnMut(&mut Partition)) {
        let all: Vec<SharedPartition> = self.partitions.lock().values().cloned().collect();
        let mut change = change;
        all.iter().for_each(|partition| change(&mut partition.lock()));
    }

    /// Makes a call of the seam fail, after this many that succeed, in every existing partition.
    pub fn fail(&self, seam: Seam, failure: Failure, after: u64) {
        self.each(|partition| partition.faults.push((seam, after, failure)));
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.each(|partition| partition.faults.clear());
    }

    /// Lets stalled calls take effect, in order, as far as they still may.
    pub fn deliver(&self) {
        self.each(|partition| {
            for call in std::mem::take(&mut partition.stalled) {
                match call {
                    DelayedCall::Append(writer, records) => drop(partition.append(writer, &records)),
                    DelayedCall::Commit(follows, manifest) => drop(partition.commit(follows, &manifest)),
                    DelayedCall::Put(name, bytes) => drop(partition.put(name, bytes)),
                }
            }
        });
    }

    /// Simulates a crash: unsynced data is lost.
    pub fn crash(&self) {
        self.each(|partition| {
            partition.objects.retain(|_, content| content.synced);
            let back = std::mem::take(&mut partition.deleted).into_iter().filter(|(_, content)| content.synced);
            partition.objects.extend(back);
        });
    }
}

impl Storage for MemoryStorage {
    fn partition(&self, dir: &Path, _: u64) -> PartitionStorage {
        let (state, dir) = (self.of(dir), dir.to_owned());
        PartitionStorage {
            log: Box::new(MemoryLog { state: state.clone(), writer: 0 }),
            catalog: Arc::new(MemoryCatalog(state.clone())),
            objects: Arc::new(MemoryObjects { state, dir }),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Partition {
    /// Returns how the next call of a seam fails, if it does.
    fn fault(&mut self, seam: Seam) -> Option<Failure> {
        let at = self.faults.iter().position(|(of, _, _)| *of == seam)?;
        match &mut self.faults[at].1 {
            0 => Some(self.faults.remove(at).2),
            left => {
                *left -= 1;
                None
            }
        }
    }

    fn append(&mut self, writer: u64, records: &[Record]) -> Result<u64, AppendError> {
        if writer != self.writer || writer == 0 {
            return Err(AppendError::Fenced(StoreError::Fenced("another process writes the log now".to_owned())));
        }
        let last = self.records.last().map_or(0, |record| record.position);
        if records.iter().map(|record| record.position).try_fold(last, |a, b| (a < b).then_some(b)).is_none() {
            return Err(AppendError::Clean(error("append to")));
        }
        self.records.extend_from_slice(records);
        Ok(records.iter().map(bytes_of).sum())
    }

    fn commit(&mut self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        let newest = self.manifest.as_ref().map_or(0, Manifest::version);
        // Compared and swapped under one lock, like create-if-absent in a bucket.
        if newest != follows || manifest.version() <= follows {
            return Err(CommitError::Stale { newest });
        }
        self.manifest = Some(manifest.clone());
        Ok(1)
    }

    fn put(&mut self, name: String, bytes: Vec<u8>) -> io::Result<()> {
        if self.objects.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.objects.insert(name, Content { bytes: Arc::new(bytes), synced: false });
        Ok(())
    }
}

fn bytes_of(record: &Record) -> u64 {
    (record.key.len() + record.body.len()) as u64
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn error(action: &'static str) -> StoreError {
    StoreError::Io { action, path: PathBuf::from("memory"), source: eio() }
}

#[derive(Debug)]
struct MemoryLog {
    state: SharedPartition,
    /// Number assigned by the last replay; 0 before the first.
    writer: u64,
}

impl WriteLog for MemoryLog {
    fn replay(&mut self, flushed: u64, _: Option<LogPlace>) -> Result<LogContents, StoreError> {
        let mut state = self.state.lock();
        // From here on the appends of every earlier writer are refused, including those in flight.
        state.writer += 1;
        self.writer = state.writer;
        let records = state.records.iter().filter(|record| record.position > flushed).cloned().collect();
        Ok(LogContents { records, ..LogContents::default() })
    }

    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        let mut state = self.state.lock();
        match state.fault(Seam::Log) {
            None => state.append(self.writer, records),
            Some(Failure::Before) => Err(AppendError::Clean(error("append to"))),
            Some(Failure::After) => {
                state.append(self.writer, records)?;
                Err(AppendError::Unknown(error("append to")))
            }
            Some(Failure::Stalled) => {
                state.stalled.push(DelayedCall::Append(self.writer, records.to_vec()));
                Err(AppendError::Unknown(error("append to")))
            }
        }
    }

    fn release(&mut self, flushed: u64, _: Option<LogPlace>) -> Result<Option<Removal>, StoreError> {
        let mut state = self.state.lock();
        if state.writer == self.writer {
            // The last record stays, because it shows which positions were assigned.
            let last = state.records.last().map_or(0, |record| record.position);
            state.records.retain(|record| record.position > flushed || record.position == last);
        }
        Ok(None)
    }

    fn oldest(&self, flushed: u64) -> Option<i64> {
        let state = self.state.lock();
        state.records.iter().filter(|record| record.position > flushed).map(|record| record.time).min()
    }

    fn tail_bytes(&self) -> u64 {
        self.state.lock().records.iter().map(bytes_of).sum()
    }
}

#[derive(Debug)]
struct MemoryCatalog(SharedPartition);

impl Catalog for MemoryCatalog {
    fn newest(&self) -> Result<Option<Newest>, StoreError> {
        let newest = |manifest: Manifest| Newest { manifest, proof: Proof::Newest { behind: false } };
        Ok(self.0.lock().manifest.clone().map(newest))
    }

    fn commit(&self, follows: u64, manifest: &Manifest) -> Result<u64, CommitError> {
        let mut state = self.0.lock();
        match state.fault(Seam::Catalog) {
            None => state.commit(follows, manifest),
            Some(Failure::Before) => Err(CommitError::Clean(error("commit to"))),
            Some(Failure::After) => {
                state.commit(follows, manifest)?;
                Err(CommitError::Unknown(error("commit to")))
            }
            Some(Failure::Stalled) => {
                state.stalled.push(DelayedCall::Commit(follows, Box::new(manifest.clone())));
                Err(CommitError::Unknown(error("commit to")))
            }
        }
    }
}

#[derive(Debug)]
struct MemoryObjects {
    state: SharedPartition,
    dir: PathBuf,
}

impl Objects for MemoryObjects {
    fn put(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        if self.state.lock().objects.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(Box::new(MemoryWriter {
            state: self.state.clone(),
            name: name.to_owned(),
            bytes: Vec::new(),
            replace: false,
        }))
    }

    fn replace(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        Ok(Box::new(MemoryWriter {
            state: self.state.clone(),
            name: name.to_owned(),
            bytes: Vec::new(),
            replace: true,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
        let state = self.state.lock();
        let content = state.objects.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(MemoryObject(content.bytes.clone())))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state.lock().objects.keys().cloned().collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        let content = state.objects.remove(name).ok_or(ErrorKind::NotFound)?;
        state.deleted.insert(name.to_owned(), content);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.objects.values_mut().for_each(|content| content.synced = true);
        state.deleted.clear();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join("segments").join(name)
    }
}

struct MemoryWriter {
    state: SharedPartition,
    name: String,
    bytes: Vec<u8>,
    replace: bool,
}

impl ObjectWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        let MemoryWriter { state, name, bytes, replace } = *self;
        let (mut state, len) = (state.lock(), bytes.len() as u64);
        if replace {
            state.objects.insert(name, Content { bytes: Arc::new(bytes), synced: false });
            return Ok(len);
        }
        match state.fault(Seam::Objects) {
            None => state.put(name, bytes).map(|()| len),
            Some(Failure::Before) => Err(eio()),
            Some(Failure::After) => state.put(name, bytes).and(Err(eio())),
            Some(Failure::Stalled) => {
                state.stalled.push(DelayedCall::Put(name, bytes));
                Err(eio())
            }
        }
    }
}

#[derive(Debug)]
struct MemoryObject(Arc<Vec<u8>>);

impl Object for MemoryObject {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset as usize + into.len();
        let bytes = self.0.get(offset as usize..end).ok_or(ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}
