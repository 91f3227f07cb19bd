//! The objects of a partition in a bucket: verified when they are written, deleted after a grace.

use super::create::is_lost_answer;
use super::{Bucket, Put, Upload};
use crate::seams::{Clock, Object, ObjectWriter, Objects};
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An object is read back in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;
/// Most names that wait for their grace; those beyond are left to the next owner.
const WAITING_MAX: usize = 100_000;

/// Names to be deleted once no reader of an older manifest can need them.
///
/// Readers in other processes do not tell yet which manifest they read. So every deletion waits for the grace, by the clock of this process
/// alone. What it has not deleted when it ends is found as a leftover by the next owner.
#[derive(Debug)]
pub(crate) struct Grace {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    wait: Duration,
    /// (when it is due, name), oldest first.
    waiting: Mutex<VecDeque<(i64, String)>>,
}

impl Grace {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>, wait: Duration) -> Grace {
        Grace { bucket, clock, wait, waiting: Mutex::default() }
    }

    /// Deletes an object, now or after the grace.
    pub(super) fn delete(&self, name: String) -> io::Result<()> {
        if self.wait.is_zero() {
            return self.bucket.delete(&name);
        }
        let due = self.clock.elapsed().saturating_add(i64::try_from(self.wait.as_micros()).unwrap_or(i64::MAX));
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back((due, name));
        }
        Ok(())
    }

    fn holds(&self, name: &str) -> bool {
        self.waiting.lock().iter().any(|(_, waiting)| waiting == name)
    }

    /// The names that wait.
    fn names(&self) -> HashSet<String> {
        self.waiting.lock().iter().map(|(_, name)| name.clone()).collect()
    }

    /// Deletes what is due.
    pub(crate) fn tend(&self) {
        let now = self.clock.elapsed();
        loop {
            // Not under the lock: a call to the bucket may take its whole deadline.
            let due = {
                let mut waiting = self.waiting.lock();
                waiting.pop_front_if(|(due, _)| *due <= now)
            };
            let Some((_, name)) = due else { return };
            if let Err(error) = self.bucket.delete(&name) {
                // The next owner finds it as a leftover.
                tracing::warn!(object = name, %error, "an obsolete object could not be removed");
            }
        }
    }
}

/// The objects of one partition in a bucket.
#[derive(Debug)]
pub(crate) struct BucketObjects {
    bucket: Arc<dyn Bucket>,
    /// What names begin with: `.../segments/`.
    folder: String,
    grace: Arc<Grace>,
}

impl BucketObjects {
    pub(crate) fn new(bucket: Arc<dyn Bucket>, folder: String, grace: Arc<Grace>) -> BucketObjects {
        BucketObjects { bucket, folder, grace }
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

    fn replace(&self, _: &str) -> io::Result<Box<dyn ObjectWriter>> {
        Err(io::Error::new(ErrorKind::Unsupported, "an object of a bucket is never replaced"))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Object>> {
        let name = self.name(name);
        let bytes = self.bucket.len(&name)?;
        Ok(Arc::new(BucketObject { bucket: self.bucket.clone(), name, bytes }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let waiting = self.grace.names();
        let names = self.bucket.list(&self.folder)?.into_iter().filter(|name| !waiting.contains(name));
        Ok(names.filter_map(|name| Some(name.strip_prefix(&self.folder)?.to_owned())).collect())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let name = self.name(name);
        if self.grace.holds(&name) {
            return Err(ErrorKind::NotFound.into());
        }
        // Deleting what is absent is well for a bucket, and an error for the caller.
        self.bucket.len(&name)?;
        self.grace.delete(name)
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
}

impl Object for BucketObject {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > self.bytes) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if into.is_empty() {
            return Ok(());
        }
        self.bucket.get_range(&self.name, offset, into)
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
        // What stands there decides, whatever was answered: the answer may be lost, or "exists" for this very object. Names are never
        // given twice, so other bytes under this one are another process's mistake.
        match (verify(bucket.as_ref(), &name, bytes, crc), put) {
            (Ok(true), Ok(Put::Created)) => Ok(bytes),
            // The store says that it failed, not that it was slow: an object that can be read may still not be durable.
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

/// Whether an object has this length and checksum.
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
