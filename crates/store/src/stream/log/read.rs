//! Reads a stream, from its first message to its last.

use super::{StreamLog, number_of};
use crate::error::StoreError;
use crate::seams::LogContents;
use crate::stream::Stream;
use crate::stream::chain::{Chain, End};
use bytes::Bytes;
use std::io;

/// Max gaps of a read that are checked one by one: more gaps are not explained by a missing batch.
const GAPS_MAX: usize = 64;

impl StreamLog {
    /// Reads a stream once; returns what was found, and where it ends.
    pub(super) fn read(
        &self,
        stream: &dyn Stream,
        flushed: u64,
        new: bool,
    ) -> Result<(u64, LogContents, End), StoreError> {
        let bounds = stream.bounds().map_err(self.failed("read"))?;
        let mut chain = Chain::new(&self.path(), number_of(self.generation)?, flushed);
        if bounds.first <= bounds.last {
            // The next number to come, and the last one of each gap: anything that another process has purged meanwhile
            // is before it.
            let (mut next, mut left_out) = (bounds.first, Vec::new());
            let mut take = |sequence: u64, message: Bytes| {
                if sequence > next && left_out.len() < GAPS_MAX {
                    left_out.push(sequence - 1);
                }
                next = sequence + 1;
                chain.take(sequence, &message);
            };
            stream.read(bounds.first, bounds.last, &mut take).map_err(self.failed("read"))?;
            // A read may be stale. Messages that it leaves out would be taken for lost, and a fence would follow before
            // its end.
            for number in left_out.into_iter().chain((next <= bounds.last).then_some(bounds.last)) {
                if stream.get(number).map_err(self.failed("read"))?.is_some() {
                    let detail = format!("message {number} is there, and was not read: try again later");
                    return Err(self.failed("read")(io::Error::new(io::ErrorKind::TimedOut, detail)));
                }
            }
        }
        let (found, end) = chain.end(new, bounds.last > 0);
        Ok((bounds.last, found, end))
    }

    /// Accepts the loss of missing records, if the operator has decided so.
    pub(super) fn settle(&self, mut found: LogContents) -> LogContents {
        if self.accept_loss {
            for damage in found.damage.drain(..) {
                tracing::warn!(%damage, "given up, as cluster.nats.accept_loss says");
            }
        }
        found
    }
}
