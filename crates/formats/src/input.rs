//! A bounded buffer over the bytes of an input. Only this module decides how much is held.

use crate::error::{Fault, ReadError};
use crate::options::{ReadOptions, Watch};
use crate::utf16;
use meridian_model::Invalid;
use std::io::{self, Cursor, Read};
use std::ops::Range;

/// Bytes requested from the source at first: most bodies are small, and the buffer is zeroed beforehand.
const FIRST_CHUNK: usize = 4 << 10;
/// Bytes requested from the source at a time once an input has proved long.
const CHUNK: usize = 128 << 10;

/// An input of which at most one record and one chunk are held.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Unread bytes are `buffer[start..end]`.
    start: usize,
    end: usize,
    ended: bool,
    begun: bool,
    chunk: usize,
    /// Number of line ends before the buffer, if they are counted.
    lines: Option<u64>,
    record_bytes: usize,
    watch: Option<Watch>,
}

/// Outcome of a search for the end of a record.
pub(crate) enum RecordEnd {
    /// The record ends before this offset from its start.
    At(usize),
    /// The end is not in the bytes so far; continue at this offset once there are more.
    More(usize),
}

impl Input {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> Input {
        Input {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            ended: false,
            begun: false,
            chunk: FIRST_CHUNK,
            lines: None,
            record_bytes: options.record_bytes,
            watch: options.watch.clone(),
        }
    }

    /// Returns the same input, whose lines are counted.
    pub(crate) fn with_lines(self) -> Input {
        Input { lines: Some(0), ..self }
    }

    /// Returns the line of an offset into a range handed out by this input, from 1, if lines are counted.
    pub(crate) fn line_of(&self, offset: usize) -> Option<u64> {
        Some(self.lines? + 1 + line_ends(&self.buffer[..offset.min(self.end)]))
    }

    /// Returns the line of the next byte, if lines are counted.
    pub(crate) fn line_here(&self) -> Option<u64> {
        self.line_of(self.start)
    }

    /// Returns the bytes of a range handed out by this input; valid until the next call that reads more.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Returns the rest as a source of bytes.
    pub(crate) fn into_read(self) -> impl Read + Send {
        Cursor::new(self.buffer[self.start..self.end].to_vec()).chain(self.source)
    }

    /// Returns the unread bytes in the buffer.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first of the available bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Returns whether another byte is available, reading if necessary.
    pub(crate) fn has_more(&mut self) -> Result<bool, Fault> {
        while self.start == self.end {
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads more; returns false at the end of the input.
    pub(crate) fn fill(&mut self) -> Result<bool, Fault> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 && (self.start == self.end || self.buffer.len() - self.end < self.chunk) {
            if let Some(lines) = &mut self.lines {
                *lines += line_ends(&self.buffer[..self.start]);
            }
            // Moved only when the free space is short, so that each byte is copied rarely however small the reads are.
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < self.chunk {
            let bytes = (self.buffer.len() * 2).max(self.end + self.chunk);
            if self.watch.as_ref().is_some_and(|watch| !watch.goes_on_reading(bytes)) {
                return Err(Fault::Stop(ReadError::Stopped));
            }
            self.buffer.resize(bytes, 0);
        }
        // Small at first, as most requests are one event; a large input reaches full chunks within a few reads.
        self.chunk = (self.chunk * 2).min(CHUNK);
        // The first fill waits for the bytes that show an encoding.
        let wanted = if self.begun { 1 } else { utf16::HEAD_BYTES };
        let before = self.end;
        while !self.ended && self.end - before < wanted {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => {
                    let got = got?;
                    self.end += got;
                    self.ended = got == 0;
                }
            }
        }
        if !self.begun {
            self.begun = true;
            self.check_encoding()?;
        }
        Ok(self.end > before)
    }

    /// Skips the byte order mark of UTF-8, and refuses UTF-16.
    fn check_encoding(&mut self) -> Result<(), Fault> {
        let first = self.available();
        if first.starts_with(&[0xef, 0xbb, 0xbf]) {
            self.start += 3;
            return Ok(());
        }
        // A mark tells converters the order of the bytes; without it, the name must.
        let found = utf16::marked(first).map(|_| "UTF-16").or_else(|| utf16::unmarked(first).map(|found| found.name()));
        match found {
            None => Ok(()),
            Some(name) => Err(Fault::stop(Invalid::new(format!("the input is {name}: expected UTF-8")).at_line(1))),
        }
    }

    /// Takes one record. `find` receives the record's bytes so far and the offset to continue from, and returns where
    /// the record ends. At the end of the input, the rest is the record, returned with `true`. `None` if nothing is
    /// left. A record longer than the limit stops the reading, at most one chunk past the limit.
    pub(crate) fn record(
        &mut self,
        line: u64,
        mut find: impl FnMut(&[u8], usize) -> RecordEnd,
    ) -> Result<Option<(Range<usize>, bool)>, Fault> {
        if !self.has_more()? {
            return Ok(None);
        }
        let mut from = 0;
        loop {
            match find(self.available(), from) {
                RecordEnd::At(end) => {
                    if end > self.record_bytes {
                        return Err(self.too_long(line));
                    }
                    let range = self.start..self.start + end;
                    self.start += end;
                    return Ok(Some((range, false)));
                }
                // The search continues where it stopped. Starting over at each fill would be quadratic in the length of
                // a record.
                RecordEnd::More(next) => from = next,
            }
            // Checked before the fill: an input without any line end must not fill the memory.
            if self.available().len() > self.record_bytes {
                return Err(self.too_long(line));
            }
            if !self.fill()? {
                let range = self.start..self.end;
                self.start = self.end;
                return Ok(Some((range, true)));
            }
        }
    }

    /// Takes a number of bytes announced by the format; `None` if nothing is left. An announced length is only waited
    /// for, never allocated. One over the limit of a record stops the reading.
    pub(crate) fn exactly(&mut self, bytes: usize, line: u64, what: &str) -> Result<Option<Range<usize>>, Fault> {
        if bytes > self.record_bytes {
            let detail = format!("{what} of {bytes} bytes is too long: at most {}", self.record_bytes);
            return Err(Fault::stop(Invalid::new(detail).at_line(line)));
        }
        let found =
            self.record(
                line,
                |seen, _| if seen.len() >= bytes { RecordEnd::At(bytes) } else { RecordEnd::More(seen.len()) },
            )?;
        match found {
            Some((_, true)) => Err(cut_off(what, line)),
            found => Ok(found.map(|(range, _)| range)),
        }
    }

    /// Like [`Input::exactly`], for bytes that must exist.
    pub(crate) fn needed(&mut self, bytes: usize, line: u64, what: &str) -> Result<Range<usize>, Fault> {
        if bytes == 0 {
            return Ok(self.start..self.start);
        }
        self.exactly(bytes, line, what)?.ok_or_else(|| cut_off(what, line))
    }

    /// Skips this many bytes without holding them.
    #[cfg(feature = "flatgeobuf")]
    pub(crate) fn skip(&mut self, mut bytes: u64, what: &str) -> Result<(), Fault> {
        while bytes > 0 {
            if !self.has_more()? {
                return Err(cut_off(what, 0));
            }
            let taken = (self.available().len() as u64).min(bytes);
            self.consume(taken as usize);
            bytes -= taken;
        }
        Ok(())
    }

    fn too_long(&self, line: u64) -> Fault {
        Fault::stop(
            Invalid::new(format!(
                "more than {} bytes without an end: a line, row or feature may not be longer",
                self.record_bytes
            ))
            .at_line(line),
        )
    }

    /// Takes one line without its end (`\n` or `\r\n`).
    pub(crate) fn line(&mut self, line: u64) -> Result<Option<Range<usize>>, Fault> {
        let found = self.record(line, |bytes, from| match memchr::memchr(b'\n', &bytes[from..]) {
            Some(at) => RecordEnd::At(from + at + 1),
            None => RecordEnd::More(bytes.len()),
        })?;
        Ok(found.map(|(mut range, _)| {
            for end in [b'\n', b'\r'] {
                if range.end > range.start && self.buffer[range.end - 1] == end {
                    range.end -= 1;
                }
            }
            range
        }))
    }

    /// Skips JSON whitespace and returns the next byte without taking it.
    pub(crate) fn next_byte(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.available().iter().position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
                Some(at) => {
                    self.start += at;
                    return Ok(Some(self.buffer[self.start]));
                }
                None => self.start = self.end,
            }
            if !self.has_more()? {
                return Ok(None);
            }
        }
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn cut_off(what: &str, line: u64) -> Fault {
    let mistake = Invalid::new(format!("the input ends within {what}: was it cut off?"));
    Fault::stop(if line > 0 { mistake.at_line(line) } else { mistake })
}

/// Returns the bytes as text, or the offset at which they stop being UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Invalid> {
    std::str::from_utf8(bytes)
        .map_err(|e| Invalid::new(format!("byte {} is not UTF-8: expected text in UTF-8", e.valid_up_to() + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], limit: usize) -> Result<Vec<String>, Fault> {
        let mut input = Input::new(
            Box::new(Cursor::new(bytes.to_vec())),
            &ReadOptions { record_bytes: limit, ..ReadOptions::default() },
        );
        let mut out = Vec::new();
        while let Some(range) = input.line(out.len() as u64 + 1)? {
            out.push(String::from_utf8_lossy(input.bytes(range)).into_owned());
        }
        Ok(out)
    }

    #[test]
    fn lines_end_in_either_way_and_the_last_needs_no_end() {
        assert_eq!(lines(b"\xef\xbb\xbfa\r\nb\n\nc", 10).unwrap(), ["a", "b", "", "c"]);
        assert!(lines(b"", 10).unwrap().is_empty());
        let many = "some words\n".repeat(100_000);
        assert_eq!(lines(many.as_bytes(), 20).unwrap().len(), 100_000);
    }

    #[test]
    fn a_line_above_the_limit_stops_and_is_not_held() {
        let endless = Box::new(io::repeat(b'x').take(2 << 30));
        let mut input = Input::new(endless, &ReadOptions { record_bytes: 1 << 20, ..ReadOptions::default() });
        let Err(Fault::Stop(error)) = input.line(7) else { panic!("expected a stop") };
        assert_eq!(error.first().unwrap().line, Some(7));
        assert!(input.buffer.len() < 4 << 20, "{} bytes held", input.buffer.len());
    }

    #[test]
    fn other_encodings_are_named() {
        for (bytes, name) in [(&b"\xff\xfea\0b\0"[..], "UTF-16:"), (b"a\0b\0", "UTF-16LE:"), (b"\0a\0\n", "UTF-16BE:")]
        {
            let Err(Fault::Stop(error)) = lines(bytes, 10) else { panic!("expected a stop") };
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
