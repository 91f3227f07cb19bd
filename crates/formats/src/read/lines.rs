//! One JSON value per record: NDJSON (one per line) and GeoJSON text sequences (RFC 8142).

use super::document::placed;
use super::feature::FeatureSetter;
use super::{Records, Step, json_or_text};
use crate::error::Fault;
use crate::input::{Input, RecordEnd, utf8};
use crate::options::ReadOptions;
use crate::report::{SharedUnread, Unread};
use crate::survey::EventNotes;
use meridian_model::{BatchBuilder, Invalid, Schema};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

/// The byte before each record of a sequence.
const SEPARATOR: u8 = 0x1e;
/// Marks a line that a converter could not convert; the reason follows. No JSON begins with this byte. In lines that
/// are the input itself it means nothing.
pub(super) const FAULT: char = '\u{15}';

/// How the records of an input are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// One a line, counted by lines.
    Lines,
    /// A text sequence, counted by records. Whether these follow separators is known after the first byte.
    Sequence { separated: Option<bool> },
}

/// Features or flat objects, one a line or after each separator.
pub(crate) struct Lines {
    input: Input,
    setter: FeatureSetter,
    framing: Framing,
    /// Whether the lines come from a converter, which may mark them.
    is_converted: bool,
    /// What the converter did not take.
    unread: SharedUnread,
    /// The last line, or record of a sequence, from 1.
    line: u64,
    /// Position in the input of the last record read.
    last: Range<usize>,
}

impl Lines {
    pub(crate) fn ndjson(source: Box<dyn Read + Send>, schema: Arc<Schema>, options: &ReadOptions) -> Lines {
        let input = Input::new(source, options);
        let setter = FeatureSetter::new(schema, options);
        let unread = SharedUnread::default();
        Lines { input, setter, framing: Framing::Lines, is_converted: false, unread, line: 0, last: 0..0 }
    }

    /// Reads the lines that a converter of another format makes.
    pub(crate) fn converted(
        source: Box<dyn Read + Send>,
        unread: SharedUnread,
        schema: Arc<Schema>,
        options: &ReadOptions,
    ) -> Lines {
        Lines { is_converted: true, unread, ..Lines::ndjson(source, schema, options) }
    }

    /// Reads a text sequence; one without separators is read line by line, as several programs write it.
    pub(crate) fn sequence(source: Box<dyn Read + Send>, schema: Arc<Schema>, options: &ReadOptions) -> Lines {
        let lines = Lines::ndjson(source, schema, options);
        Lines { input: lines.input.with_lines(), framing: Framing::Sequence { separated: None }, ..lines }
    }
}

impl Records for Lines {
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault> {
        match next_text(&mut self.input, &mut self.framing, &mut self.line)? {
            None => Ok(Step::End),
            Some(range) => {
                self.last = range.clone();
                let text = record(self.input.bytes(range.clone()), self.is_converted);
                let set = text.and_then(|text| self.setter.object(text, builder));
                set.map(|()| Step::Event).map_err(|mistake| placed(mistake.into(), &self.input, range))
            }
        }
    }

    fn line(&self) -> u64 {
        self.line
    }

    fn noted(&mut self) -> EventNotes {
        self.setter.survey.take()
    }

    fn unread(&self) -> Unread {
        self.unread.get()
    }

    fn raw(&self) -> Option<String> {
        Some(json_or_text(self.input.bytes(self.last.clone())))
    }
}

/// Returns the text of a record; the reason of a converter in place of one is an error.
pub(crate) fn record(bytes: &[u8], is_converted: bool) -> Result<&str, Invalid> {
    let text = utf8(bytes)?;
    let reason = text.strip_prefix(FAULT).filter(|_| is_converted);
    reason.map_or(Ok(text), |reason| Err(Invalid::new(reason)))
}

/// Returns the next record that is not blank; counts lines, or records in a sequence.
pub(crate) fn next_text(
    input: &mut Input,
    framing: &mut Framing,
    line: &mut u64,
) -> Result<Option<Range<usize>>, Fault> {
    if *framing == (Framing::Sequence { separated: None }) {
        *framing = Framing::Sequence { separated: Some(input.next_byte()? == Some(SEPARATOR)) };
    }
    loop {
        let range = if *framing == (Framing::Sequence { separated: Some(true) }) {
            // RFC 8142 allows consecutive separators; a record is the text between two.
            while input.next_byte()? == Some(SEPARATOR) {
                input.consume(1);
            }
            input
                .record(*line + 1, |bytes, from| match memchr::memchr(SEPARATOR, &bytes[from..]) {
                    Some(at) => RecordEnd::At(from + at),
                    None => RecordEnd::More(bytes.len()),
                })?
                .map(|(range, _)| range)
        } else {
            input.line(*line + 1)?
        };
        let Some(range) = range else { return Ok(None) };
        let is_blank = input.bytes(range.clone()).trim_ascii().is_empty();
        // A blank line is a line, and no record.
        *line += u64::from(!is_blank || *framing == Framing::Lines);
        if !is_blank {
            return Ok(Some(range));
        }
    }
}
