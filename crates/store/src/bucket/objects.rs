//! The objects of a partition in a bucket: verified when written, deleted after a grace period.

use super::create::is_lost_answer;
use super::patches::Patches;
use super::pins::Pins;
use super::{Bucket, Put, Upload};
use crate::catalog::sidecars::is_sidecar;
use crate::extents::{Extents, Source};
use crate::manifest::FileEnd;
use crate::seams::{Clock, Object, ObjectWriter, Objects, ReadHint};
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Size of the pieces in which an object is read back.
const PIECE_BYTES: usize = 1 << 20;
/// Max names that wait for their grace period; the next owner finds the rest.
const WAITING_MAX: usize = 100_000;

/// Names to delete once no reader of an older manifest can need them. That is after a grace period, by the clock of
/// this process alone, and once no reader's pin holds such a manifest. Names not deleted when this process ends are
/// found as leftovers by the next owner.
#[derive(Debug)]
pub(crate) struct DeletionQueue {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    wait: Duration,
    pins: Arc<Pins>,
    /// In order of their due times.
    waiting: Mutex<VecDeque<PendingDeletion>>,
}

#[derive(Debug)]
struct PendingDeletion {
    /// In microseconds of the clock's elapsed time.
    due: i64,
    name: String,
    /// The partition's folder in the bucket.
    folder: Arc<str>,
    /// Version of a manifest that does not name it; only older ones may.
    version: u64,
}

impl DeletionQueue {
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        clock: Arc<dyn Clock>,
        wait: Duration,
        pins: Arc<Pins>,
    ) -> DeletionQueue {
        DeletionQueue { bucket, clock, wait, pins, waiting: Mutex::default() }
    }

    /// Deletes an object that the manifest of this version does not name, now or after the grace period.
    fn delete(&self, name: String, folder: &Arc<str>, version: u64) -> io::Result<()> {
        if self.wait.is_zero() {
            return self.bucket.delete(&name);
        }
        let due = self.clock.elapsed().saturating_add(i64::try_from(self.wait.as_micros()).unwrap_or(i64::MAX));
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(PendingDeletion { due, name, folder: folder.clone(), version });
        }
        Ok(())
    }

    fn holds(&self, name: &str) -> bool {
        self.waiting.lock().iter().any(|waiting| waiting.name == name)
    }

    /// Returns the waiting names.
    fn names(&self) -> HashSet<String> {
        self.waiting.lock().iter().map(|waiting| waiting.name.clone()).collect()
    }

    /// Deletes what is due and unused.
    pub(crate) fn tend(&self) {
        if !self.pins.look() {
            return;
        }
        let now = self.clock.elapsed();
        let mut pinned = Vec::new();
        loop {
            // Not under the lock: a call to the bucket may take until its deadline.
            let due = {
                let mut waiting = self.waiting.lock();
                waiting.pop_front_if(|waiting| waiting.due <= now)
            };
            let Some(due) = due else { break };
            let oldest = self.pins.in_use(&due.folder).and_then(|used| used.manifest);
            if oldest.is_some_and(|oldest| oldest < due.version) {
                pinned.push(due);
            } else if let Err(error) = self.bucket.delete(&due.name) {
                // The next owner finds it as a leftover.
                tracing::warn!(object = due.name, %error, "an obsolete object could not be removed");
            }
        }
        // Retried the next time. They stay in front: everything behind them is due later.
        let mut waiting = self.waiting.lock();
        pinned.into_iter().rev().for_each(|one| waiting.push_front(one));
    }
}

/// The objects of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketObjects {
    bucket: Arc<dyn Bucket>,
    /// The partition's folder.
    partition: Arc<str>,
    /// Prefix of the names: `.../segments/`.
    folder: String,
    /// Version of the newest manifest known to this process.
    committed: Arc<AtomicU64>,
    deletions: Arc<DeletionQueue>,
    patches: Arc<Patches>,
    /// Cached pieces of objects; `None` sends each read to the bucket.
    extents: Option<Arc<Extents>>,
    /// Whether rebuilt objects are written under their own names.
    alone: bool,
}

impl BucketObjects {
    /// Creates the objects of the partition in a folder. `committed` is the version of its newest manifest.
    pub(crate) fn new(
        bucket: Arc<dyn Bucket>,
        partition: String,
        committed: Arc<AtomicU64>,
        (deletions, patches): (Arc<DeletionQueue>, Arc<Patches>),
        extents: Option<Arc<Extents>>,
        alone: bool,
    ) -> BucketObjects {
        let folder = format!("{partition}/segments/");
        BucketObjects { bucket, partition: partition.into(), folder, committed, deletions, patches, extents, alone }
    }

    fn object(&self, name: String, bytes: u64, end: Option<FileEnd>) -> Arc<dyn Object> {
        // Sidecars are read once, as a whole.
        let extents = self.extents.as_ref().filter(|_| !is_sidecar(&name));
        let cached = extents.map(|extents| (extents.clone(), extents.source(&name, bytes, end.as_ref())));
        Arc::new(BucketObject { bucket: self.bucket.clone(), name, bytes, end, cached })
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.folder)
    }
}

impl Objects for BucketObjects {
    fn put(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        let name = self.name(name);
        let upload = self.bucket.upload(&name)?;
        Ok(Box::new(BucketWriter { bucket: self.bucket.clone(), name, upload, bytes: 0, crc: 0 }))
    }

    fn replace(&self, name: &str) -> io::Result<Box<dyn ObjectWriter>> {
        if self.alone {
            self.bucket.delete(&self.name(name))?;
            return self.put(name);
        }
        Ok(self.patches.writer(self.name(name)))
    }

    fn is_provisional(&self, name: &str) -> bool {
        self.patches.has(&self.name(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
        let name = self.name(name);
        if let Some(patch) = self.patches.get(&name) {
            return Ok(patch);
        }
        let bytes = self.bucket.len(&name)?;
        Ok(self.object(name, bytes, None))
    }

    fn open_known(&self, name: &str, end: &FileEnd) -> io::Result<Arc<dyn Object>> {
        let full = self.name(name);
        // The manifest does not know where a rebuilt object ends. Without a cache one more read makes no difference.
        if self.extents.is_none() || self.patches.has(&full) {
            return self.open(name);
        }
        Ok(self.object(full, end.bytes, Some(*end)))
    }

    fn load(&self, wanted: &[ReadHint]) {
        if let Some(extents) = &self.extents {
            let names = wanted.iter().map(|ahead| (self.name(&ahead.name), ahead));
            let fresh = names.filter(|(name, _)| !self.patches.has(name));
            let source = |(name, ahead): (String, &ReadHint)| {
                (extents.source(&name, ahead.end.bytes, Some(&ahead.end)), ahead.range.clone())
            };
            extents.load(&fresh.map(source).collect::<Vec<_>>());
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let waiting = self.deletions.names();
        let names = self.bucket.list(&self.folder)?.into_iter().filter(|name| !waiting.contains(name));
        Ok(names.filter_map(|name| Some(name.strip_prefix(&self.folder)?.to_owned())).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let name = self.name(name);
        if self.deletions.holds(&name) {
            return Err(ErrorKind::NotFound.into());
        }
        self.patches.forget(&name);
        // Deleting an absent object succeeds in a bucket, but is an error for the caller.
        self.bucket.len(&name)?;
        self.deletions.delete(name, &self.partition, self.committed.load(Ordering::Acquire))
    }

    fn sync(&self) -> io::Result<()> {
        // Each object is durable once it is finished.
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.bucket.place()).join(self.name(name))
    }
}

#[derive(Debug)]
struct BucketObject {
    bucket: Arc<dyn Bucket>,
    name: String,
    bytes: u64,
    end: Option<FileEnd>,
    cached: Option<(Arc<Extents>, Source)>,
}

impl Object for BucketObject {
    fn end(&self) -> Option<FileEnd> {
        self.end
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn forget(&self, range: Range<u64>) -> bool {
        self.cached.as_ref().is_some_and(|(extents, source)| extents.forget(source, range))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > self.bytes) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if into.is_empty() {
            return Ok(());
        }
        match &self.cached {
            Some((extents, source)) => extents.read(source, offset, into),
            None => self.bucket.get_range(&self.name, offset, into),
        }
    }
}

struct BucketWriter {
    bucket: Arc<dyn Bucket>,
    name: String,
    upload: Box<dyn Upload>,
    bytes: u64,
    crc: u32,
}

impl ObjectWriter for BucketWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.upload.write(bytes)?;
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        let BucketWriter { bucket, name, upload, bytes, crc } = *self;
        let put = upload.finish();
        // The stored object decides, whatever the answer was: it may be lost, or "exists" for this very object. Names
        // are never reused, so other bytes under this one are another process's mistake.
        match (verify(bucket.as_ref(), &name, bytes, crc), put) {
            (Ok(true), Ok(Put::Created)) => Ok(bytes),
            // The store reported a failure, not slowness: a readable object may still not be durable.
            (Ok(true), Err(error)) if !is_lost_answer(&error) => Err(error),
            (Ok(true), _) => bucket.settle(&name).map(|()| bytes),
            (Ok(false), Ok(Put::Exists)) => Err(ErrorKind::AlreadyExists.into()),
            (Ok(false), Ok(Put::Created)) => {
                let detail = format!("{name} does not hold what was written to it");
                Err(io::Error::new(ErrorKind::InvalidData, detail))
            }
            (_, Err(error)) | (Err(error), _) => Err(error),
        }
    }
}

/// Returns true if an object has this length and checksum.
fn verify(bucket: &dyn Bucket, name: &str, bytes: u64, crc: u32) -> io::Result<bool> {
    if bucket.len(name)? != bytes {
        return Ok(false);
    }
    let (mut piece, mut at, mut found) = (vec![0; PIECE_BYTES.min(bytes as usize)], 0, 0);
    while at < bytes {
        let piece = &mut piece[..PIECE_BYTES.min((bytes - at) as usize)];
        bucket.get_range(name, at, piece)?;
        found = crc32c::crc32c_append(found, piece);
        at += piece.len() as u64;
    }
    Ok(found == crc)
}
