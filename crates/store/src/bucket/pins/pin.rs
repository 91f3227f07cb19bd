//! The pin of this process, as a reader writes it.

use super::{FOLDER, MAGIC, PinContent, VERSION, ttl_us};
use crate::bucket::ScanServerStatus;
use crate::bucket::create::{CreateOutcome, create};
use crate::codec::frame;
use crate::error::StoreError;
use crate::seams::Bucket;
use crate::seams::Clock;
use meridian_model::policy::pins::InUse;
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

/// A reader renews its pin after this fraction of its lifetime.
const RENEW_PART: i64 = 3;
/// Max numbers of earlier pins that a reader remembers to delete.
const OLD_MAX: usize = 64;

/// Returns what a scan server currently is and has to do.
pub(crate) type Announcement = Arc<dyn Fn() -> ScanServerStatus + Send + Sync>;

/// The pin of this process.
pub(crate) struct Pin {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    /// Prefix of the names: `pins/{reader}/`.
    folder: String,
    reader: u64,
    announcement: OnceLock<Announcement>,
    /// Time until which it holds, in microseconds of the clock's elapsed time.
    until: Arc<AtomicI64>,
    written: Mutex<PinState>,
}

#[derive(Debug)]
struct PinState {
    number: u64,
    /// Numbers of pins that may exist.
    there: Vec<u64>,
    /// When the next renewal is due.
    due: i64,
    /// Whether the reader has released the pin; it writes no other.
    released: bool,
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pin").field("folder", &self.folder).field("written", &self.written).finish_non_exhaustive()
    }
}

impl Pin {
    /// Creates the pin of a reader, not written yet. `reader` is random: no other start of a process has it.
    pub(crate) fn new(bucket: Arc<dyn Bucket>, clock: Arc<dyn Clock>, reader: u64) -> Pin {
        Pin {
            bucket,
            clock,
            folder: format!("{FOLDER}{reader:016x}/"),
            reader,
            announcement: OnceLock::new(),
            until: Arc::new(AtomicI64::new(i64::MIN)),
            written: Mutex::new(PinState { number: 0, there: Vec::new(), due: i64::MIN, released: false }),
        }
    }

    /// Returns the number of the reader.
    pub(crate) fn reader(&self) -> u64 {
        self.reader
    }

    /// Makes the pin announce its process to gateways from now on. Only the first call counts.
    pub(crate) fn announce(&self, announcement: Announcement) {
        let mut written = self.written.lock();
        if self.announcement.set(announcement).is_ok() {
            written.due = i64::MIN;
        }
    }

    /// Returns the time until which the pin holds, in microseconds of the clock's elapsed time.
    pub(crate) fn until(&self) -> Arc<AtomicI64> {
        self.until.clone()
    }

    /// Renews the pin if due, with the result of `in_use`.
    ///
    /// # Errors
    /// Errors of the bucket: the pin then holds for as long as it did before.
    pub(crate) fn renew(&self, in_use: impl FnOnce() -> Vec<InUse>) -> Result<(), StoreError> {
        let mut written = self.written.lock();
        // Before anything is written: the owner counts from later.
        let begun = self.clock.elapsed();
        if begun < written.due || written.released {
            return Ok(());
        }
        // Whatever the outcome, no other pin gets this number.
        written.number += 1;
        let number = written.number;
        let name = self.name(number);
        let said = PinContent { in_use: in_use(), serves: self.announcement.get().map(|announcement| announcement()) };
        let path = Path::new(&self.bucket.place()).join(&name);
        let json = serde_json::to_vec(&said.into_form()).map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
        written.there.push(number);
        // Applies while the bucket does not answer too: the owner deletes the rest.
        let over = written.there.len().saturating_sub(OLD_MAX);
        written.there.drain(..over);
        match create(self.bucket.as_ref(), self.clock.as_ref(), &name, &frame(MAGIC, VERSION, &json)) {
            Ok(CreateOutcome::Ours) => {}
            Ok(CreateOutcome::Theirs(_)) => return Err(StoreError::corrupt(&path, "another process wrote it")),
            Err(failure) => return Err(StoreError::io("create", &path)(failure.into_error())),
        }
        written.due = begun.saturating_add(ttl_us() / RENEW_PART);
        self.until.store(begun.saturating_add(ttl_us()), Ordering::Release);
        // Failed deletes are retried; the owner deletes the pin in the end.
        written.there.retain(|there| *there == number || self.bucket.delete(&self.name(*there)).is_err());
        Ok(())
    }

    /// Releases everything permanently.
    pub(crate) fn release(&self) {
        let there = {
            let mut written = self.written.lock();
            written.released = true;
            std::mem::take(&mut written.there)
        };
        self.until.store(i64::MIN, Ordering::Release);
        // A pin that remains counts until it expires. Stops at the first failure, so only one call waits for a bucket
        // that does not answer.
        let _ = there.into_iter().rev().try_for_each(|number| self.bucket.delete(&self.name(number)));
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number:016x}", self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::MemoryBucket;
    use crate::seams::ManualClock;

    #[test]
    fn a_reader_without_the_bucket_remembers_few_numbers() {
        let (bucket, clock) = (MemoryBucket::new(), Arc::new(ManualClock::new(0)));
        let pin = Pin::new(Arc::new(bucket.clone()), clock.clone(), 1);
        bucket.cut(true);
        for _ in 0..2 * OLD_MAX {
            assert!(pin.renew(Vec::new).is_err());
        }
        assert!(pin.written.lock().there.len() <= OLD_MAX);
        bucket.cut(false);
        pin.renew(Vec::new).unwrap();
        let there = bucket.objects().iter().filter(|(name, _)| name.starts_with(FOLDER)).count();
        assert_eq!(there, 1);
    }
}
