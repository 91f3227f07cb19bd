//! The lines of a file, read in pieces.

use crate::seams::DiskFile;
use std::io;
use std::sync::Arc;

/// Bytes read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Reads the lines of a file up to a length.
pub(super) struct Lines {
    file: Arc<dyn DiskFile>,
    /// Offset of the next piece; the field below is the end of the last one.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Start of the unread part of the buffer.
    start: usize,
}

impl Lines {
    pub fn new(file: Arc<dyn DiskFile>, end: u64) -> Lines {
        Lines { file, at: 0, end, buffer: Vec::new(), start: 0 }
    }

    /// Returns the next line without its line ending; `None` if no complete line is left.
    ///
    /// # Errors
    /// Disk errors, or `InvalidData` for a line that exceeds the max length of a log line.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut from = self.start;
        loop {
            if let Some(length) = self.buffer[from..].iter().position(|byte| *byte == b'\n') {
                let line = self.start..from + length;
                self.start = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            if self.buffer.len() - self.start >= PIECE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is longer than any that was written"));
            }
            if self.at == self.end {
                return Ok(None);
            }
            self.buffer.drain(..self.start);
            (self.start, from) = (0, self.buffer.len());
            let take = PIECE_BYTES.min(usize::try_from(self.end - self.at).unwrap_or(PIECE_BYTES));
            self.buffer.resize(from + take, 0);
            self.file.read_at(self.at, &mut self.buffer[from..])?;
            self.at += take as u64;
        }
    }

    /// Returns the bytes of the lines returned so far, including line endings.
    pub fn read(&self) -> u64 {
        self.at - (self.buffer.len() - self.start) as u64
    }
}
