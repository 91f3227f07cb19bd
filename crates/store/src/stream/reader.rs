//! Reads the log in a stream that another process writes: message by message, without an owner record.

use super::message::{Header, Kind, records_of};
use super::{Stream, Streams};
use crate::error::StoreError;
use crate::seams::Record;
use crate::seams::{LogPlace, LogPoll, LogReader};
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Messages read at a time; the next constant is the bytes after which a poll ends. The next poll reads on.
const WINDOW: u64 = 32;
const LOOK_BYTES: usize = 32 << 20;

/// A reader of the log of one partition.
#[derive(Debug)]
pub(crate) struct StreamReader {
    streams: Arc<dyn Streams>,
    /// The prefix of the stream names of all generations.
    prefix: String,
    /// The stream of the generation being read, once it was opened.
    stream: Option<(u64, Arc<dyn Stream>)>,
    /// The number of the next message; 0 for the first one that exists.
    next: u64,
    /// A group whose end has not been read yet.
    open: Option<(Header, Vec<u8>)>,
}

impl StreamReader {
    /// Creates a reader for the log in streams whose names begin with `prefix`.
    pub(crate) fn new(streams: Arc<dyn Streams>, prefix: String) -> StreamReader {
        StreamReader { streams, prefix, stream: None, next: 0, open: None }
    }

    fn path(&self, generation: u64) -> PathBuf {
        Path::new(&self.streams.place()).join(format!("{}{generation}", self.prefix))
    }

    fn failed(&self, generation: u64) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = self.path(generation);
        move |source| StoreError::Io { action: "read", path, source }
    }

    /// Returns the stream of a generation.
    fn stream(&mut self, generation: u64) -> Result<Arc<dyn Stream>, StoreError> {
        if let Some((opened, stream)) = &self.stream
            && *opened == generation
        {
            return Ok(stream.clone());
        }
        self.rewind();
        let name = format!("{}{generation}", self.prefix);
        let stream = self.streams.open(&name).map_err(self.failed(generation))?;
        let stream = stream.ok_or_else(|| self.failed(generation)(io::ErrorKind::NotFound.into()))?;
        self.stream = Some((generation, stream.clone()));
        Ok(stream)
    }

    /// Reads on, up to the end or a number of bytes.
    fn read_on(&mut self, generation: u64, seen: &mut LogPoll) -> Result<(), StoreError> {
        let stream = self.stream(generation)?;
        let bounds = stream.bounds().map_err(self.failed(generation))?;
        let mut bytes = 0;
        if self.next < bounds.first {
            // Earlier messages are purged.
            (self.next, self.open) = (bounds.first, None);
        }
        while self.next <= bounds.last && bytes < LOOK_BYTES {
            let to = bounds.last.min(self.next.saturating_add(WINDOW - 1));
            let mut messages: Vec<(u64, Bytes)> = Vec::new();
            let mut each = |number, message| messages.push((number, message));
            stream.read(self.next, to, &mut each).map_err(self.failed(generation))?;
            // One more than the last, so that messages missing at the end are found as well.
            for (number, message) in
                messages.into_iter().map(|(number, message)| (number, Some(message))).chain([(to + 1, None)])
            {
                if number > self.next {
                    // A read may be stale. A message that it leaves out is purged only if it cannot be read on its own.
                    if stream.get(number - 1).map_err(self.failed(generation))?.is_some() {
                        return Ok(());
                    }
                    (self.next, self.open) = (number, None);
                }
                let Some(message) = message else { break };
                bytes += message.len();
                let taken = self.take(generation, &message, &mut seen.records);
                taken.map_err(|why| {
                    StoreError::corrupt(&self.path(generation).join(format!("message {number}")), why)
                })?;
                self.next = number + 1;
            }
        }
        seen.is_end = self.next > bounds.last;
        Ok(())
    }

    /// Processes the next message; adds the records of a group that it ends.
    fn take(&mut self, generation: u64, message: &[u8], records: &mut Vec<Record>) -> Result<(), String> {
        let (header, part) = Header::of(message)?;
        if u64::from(header.generation) != generation {
            return Err(format!("it is of generation {}, in the stream of {generation}", header.generation));
        }
        let open = self.open.take();
        let content = match header.kind {
            // An incomplete group was never acknowledged.
            Kind::Owner => return Ok(()),
            Kind::Chunk | Kind::End if header.chunk == 0 => part.to_vec(),
            Kind::Chunk | Kind::End => match open {
                Some((before, mut content)) if before.group == header.group && before.chunk + 1 == header.chunk => {
                    content.extend_from_slice(part);
                    content
                }
                // Its first chunks are gone, because a manifest covers it.
                _ => return Ok(()),
            },
        };
        match header.kind {
            Kind::End => records.extend(records_of(&header, &content)?),
            _ => self.open = Some((header, content)),
        }
        Ok(())
    }
}

impl LogReader for StreamReader {
    fn rewind(&mut self) {
        (self.next, self.open) = (0, None);
    }

    fn look(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogPoll, StoreError> {
        let mut seen = LogPoll::default();
        let read = self.read_on(from.unwrap_or(LogPlace::FIRST).epoch, &mut seen);
        seen.records.retain(|record| record.position > flushed);
        match read {
            // Records read before the failure are not read again; the next poll reports the failure.
            Err(error) if seen.records.is_empty() => Err(error),
            _ => Ok(seen),
        }
    }
}
