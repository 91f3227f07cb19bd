//! Reading the log in a bucket that another process writes: object by object, without a listing and without a fence.

use super::log::{BucketLog, Content, Read};
use crate::error::StoreError;
use crate::seams::{LogPlace, LogReader, Seen};

/// Bytes of objects that a look reads. More is read by the next one.
const LOOK_BYTES: u64 = 32 << 20;

/// A reader of the log of one partition.
#[derive(Debug)]
pub(super) struct BucketReader {
    log: BucketLog,
    /// The next place of the chain; `None`: nothing was read yet.
    at: Option<LogPlace>,
    /// Checksum of the object before it, if that was read.
    follows: Option<u32>,
}

impl BucketReader {
    pub(super) fn new(log: BucketLog) -> BucketReader {
        BucketReader { log, at: None, follows: None }
    }

    /// Reads on, up to the end or a number of bytes. `from`: the place that the manifest names.
    fn read_on(&mut self, from: LogPlace, seen: &mut Seen) -> Result<(), StoreError> {
        // Numbers count on over all epochs. Below the place that the manifest names everything is covered, and may be gone.
        let mut at = match self.at {
            Some(at) if at.number >= from.number => at,
            _ => {
                self.follows = None;
                from
            }
        };
        let mut bytes = 0;
        while bytes < LOOK_BYTES {
            let Some(Read { before, content, crc, bytes: size }) = self.log.read(at)? else {
                seen.is_end = true;
                break;
            };
            // A fence names nothing before it where a manifest covered all of that.
            if before != 0 && self.follows.is_some_and(|follows| follows != before) {
                return Err(self.log.unlinked(at));
            }
            (self.follows, bytes) = (Some(crc), bytes + size);
            at = match content {
                Content::Group(records) => {
                    seen.records.extend(records);
                    at.next()
                }
                Content::Fence(epoch) => LogPlace { epoch, number: at.number + 1 },
            };
            self.at = Some(at);
        }
        Ok(())
    }
}

impl LogReader for BucketReader {
    fn rewind(&mut self) {
        (self.at, self.follows) = (None, None);
    }

    fn look(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<Seen, StoreError> {
        let mut seen = Seen::default();
        let read = self.read_on(from.unwrap_or(LogPlace::FIRST), &mut seen);
        seen.records.retain(|record| record.position > flushed);
        match read {
            // What was read before the failure is not read again; the next look meets the failure.
            Err(error) if seen.records.is_empty() => Err(error),
            _ => Ok(seen),
        }
    }
}
