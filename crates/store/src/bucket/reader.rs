//! Reads the log in a bucket while another process writes it: object by object, without listing and without fencing.

use super::log::{BucketLog, Content, ReadObject};
use crate::error::StoreError;
use crate::seams::{LogPlace, LogPoll, LogReader};

/// Bytes of objects read by one poll; the next one reads on.
const LOOK_BYTES: u64 = 32 << 20;

/// A reader of the log of one partition.
#[derive(Debug)]
pub(super) struct BucketReader {
    log: BucketLog,
    /// The next place of the chain; `None` before the first read.
    at: Option<LogPlace>,
    /// Checksum of the previous object, if it was read.
    follows: Option<u32>,
}

impl BucketReader {
    pub(super) fn new(log: BucketLog) -> BucketReader {
        BucketReader { log, at: None, follows: None }
    }

    /// Reads on, up to the end or a number of bytes. `from` is the place that the manifest names.
    fn read_on(&mut self, from: LogPlace, seen: &mut LogPoll) -> Result<(), StoreError> {
        // Numbers continue across epochs. Everything below the place that the manifest names is covered, and may be
        // gone.
        let mut at = match self.at {
            Some(at) if at.number >= from.number => at,
            _ => {
                self.follows = None;
                from
            }
        };
        let mut bytes = 0;
        while bytes < LOOK_BYTES {
            let Some(ReadObject { before, content, crc, bytes: size }) = self.log.read(at)? else {
                seen.is_end = true;
                break;
            };
            // A fence names no previous object if a manifest covered everything before it.
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

    fn look(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogPoll, StoreError> {
        let mut seen = LogPoll::default();
        let read = self.read_on(from.unwrap_or(LogPlace::FIRST), &mut seen);
        seen.records.retain(|record| record.position > flushed);
        match read {
            // Records read before the failure are not read again; the next poll reports the failure.
            Err(error) if seen.records.is_empty() => Err(error),
            _ => Ok(seen),
        }
    }
}
