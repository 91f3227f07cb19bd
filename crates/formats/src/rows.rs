//! Rows of delimited text: RFC 4180 quoting, or none.

use crate::error::Fault;
use crate::input::{Input, RecordEnd, utf8};
use crate::options::{ReadOptions, Unknown};
use meridian_model::Invalid;
use std::io::Read;
use std::ops::Range;

/// One field of the current row.
#[derive(Debug, Clone)]
struct Span {
    range: Range<usize>,
    /// Whether it was quoted, so that an empty one is an empty text and not a missing value.
    quoted: bool,
    /// Whether the range lies in the scratch text, in which doubled quotes have been undone.
    rewritten: bool,
}

/// Rows of a text, one held at a time.
pub(crate) struct Rows {
    input: Input,
    pub(crate) delimiter: u8,
    quotes: bool,
    /// Line on which the current row begins, from 1.
    line: u64,
    next_line: u64,
    row: Range<usize>,
    /// Whether the current row ended with a line end rather than with the input.
    pub(crate) whole: bool,
    spans: Vec<Span>,
    scratch: String,
}

impl Rows {
    /// Creates rows with a known delimiter.
    pub(crate) fn new(source: Box<dyn Read + Send>, delimiter: u8, quotes: bool, options: &ReadOptions) -> Rows {
        Rows {
            input: Input::new(source, options),
            delimiter,
            quotes,
            line: 0,
            next_line: 1,
            row: 0..0,
            whole: true,
            spans: Vec::new(),
            scratch: String::new(),
        }
    }

    /// Reads the header line of rows, whose delimiter is sniffed unless an option names it; returns the names.
    pub(crate) fn with_header(
        source: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<(Rows, Vec<String>), Fault> {
        let mut rows = Rows::new(source, b',', options.quotes.unwrap_or(true), options);
        if !rows.find()? {
            return Err(Fault::stop(Invalid::new("the input is empty: expected a line of column names").at_line(1)));
        }
        // An unreadable header ends the input: without it no row has a meaning.
        let at_header = |mistake: Invalid| Fault::stop(mistake.at_line(1));
        let header = rows.input.bytes(rows.row.clone());
        rows.delimiter = options.delimiter.unwrap_or_else(|| sniff(header));
        // Few writers quote tab-separated text, and many leave bare quotes in it.
        rows.quotes = options.quotes.unwrap_or(rows.delimiter != b'\t');
        rows.split().map_err(at_header)?;
        let name = |i: usize| if rows.quoted(i) { rows.text(i) } else { rows.text(i).trim() };
        let names = (0..rows.len()).map(|i| name(i).to_owned()).collect();
        Ok((rows, names))
    }

    /// Reads the next non-blank row and splits it; returns false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, Fault> {
        if !self.find()? {
            return Ok(false);
        }
        self.split()?;
        Ok(true)
    }

    /// Returns the line on which the current row begins.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the fields of the current row.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the text of a field, unquoted.
    #[inline]
    pub(crate) fn text(&self, field: usize) -> &str {
        let Some(span) = self.spans.get(field) else { return "" };
        if span.rewritten {
            &self.scratch[span.range.clone()]
        } else {
            // The row was checked to be UTF-8, and fields end at ASCII bytes.
            std::str::from_utf8(self.input.bytes(span.range.clone())).unwrap_or("")
        }
    }

    /// Refuses a value in a column without a name in the header, unless these are left out. Spreadsheets add empty
    /// columns.
    pub(crate) fn check_unnamed(&self, names: &[String], options: &ReadOptions) -> Result<(), Invalid> {
        let valued = |i: &usize| names[*i].is_empty() && !self.text(*i).trim().is_empty();
        match (0..names.len()).find(valued).filter(|_| options.unknown == Unknown::Refuse) {
            None => Ok(()),
            Some(i) => {
                let what = format!("a value in column {}, which has no name in the header", i + 1);
                Err(Invalid::new(format!("{what}: --ignore-unknown leaves it out")))
            }
        }
    }

    /// Returns whether a field was quoted.
    pub(crate) fn quoted(&self, field: usize) -> bool {
        self.spans.get(field).is_some_and(|s| s.quoted)
    }

    /// Finds the bytes of the next non-blank row.
    fn find(&mut self) -> Result<bool, Fault> {
        loop {
            self.line = self.next_line;
            let mut quoted = self.quotes.then(|| QuotedEnd::new(self.delimiter));
            let found = self.input.record(self.line, |bytes, from| match &mut quoted {
                // Without a quote in sight the first line end is the end.
                Some(slow) if slow.begun || memchr::memchr(b'"', until_line_end(bytes)).is_some() => slow.follow(bytes),
                _ => match memchr::memchr(b'\n', &bytes[from..]) {
                    Some(at) => RecordEnd::At(from + at + 1),
                    None => RecordEnd::More(bytes.len()),
                },
            })?;
            let Some((mut row, _)) = found else { return Ok(false) };
            let bytes = self.input.bytes(row.clone());
            // A quoted field may hold line ends, so a row counts all of its lines. Errors then name the line that an
            // editor shows.
            self.next_line += match bytes.last() {
                Some(b'\n') => memchr::memchr_iter(b'\n', bytes).count() as u64,
                _ => 1,
            };
            self.whole = bytes.ends_with(b"\n");
            if self.whole {
                row.end -= 1;
            }
            // After the line end, if any: the last row may end with the input.
            if self.input.bytes(row.clone()).ends_with(b"\r") {
                row.end -= 1;
            }
            if !row.is_empty() {
                self.row = row;
                return Ok(true);
            }
        }
    }

    fn split(&mut self) -> Result<(), Invalid> {
        self.spans.clear();
        self.scratch.clear();
        let bytes = self.input.bytes(self.row.clone());
        let text = utf8(bytes)?;
        let base = self.row.start;
        // The common row has no quotes: its fields are split by a vectorised search, and nothing is copied.
        if !self.quotes || memchr::memchr(b'"', bytes).is_none() {
            let mut from = 0;
            let ends = memchr::memchr_iter(self.delimiter, bytes).chain([bytes.len()]);
            self.spans.extend(ends.map(|to| {
                let range = base + from..base + to;
                from = to + 1;
                Span { range, quoted: false, rewritten: false }
            }));
            return Ok(());
        }
        let mut from = 0;
        loop {
            let quoted = bytes.get(from) == Some(&b'"');
            let (span, end) = if quoted {
                quoted_field(text, from, base, &mut self.scratch)
                    .map_err(|what| Invalid::new(format!("field {}: {what}", self.spans.len() + 1)))?
            } else {
                let end = memchr::memchr(self.delimiter, &bytes[from..]).map_or(bytes.len(), |at| from + at);
                (Span { range: base + from..base + end, quoted: false, rewritten: false }, end)
            };
            self.spans.push(span);
            match bytes.get(end) {
                None => return Ok(()),
                Some(&byte) if byte == self.delimiter => from = end + 1,
                Some(_) => {
                    let field = self.spans.len();
                    return Err(Invalid::new(format!("field {field}: something follows the closing quote")));
                }
            }
        }
    }
}

/// Reads a field in quotes that begins at `from`; returns it and its end.
fn quoted_field(text: &str, from: usize, base: usize, scratch: &mut String) -> Result<(Span, usize), &'static str> {
    let bytes = text.as_bytes();
    let (mut at, mut plain) = (from + 1, from + 1);
    let start = scratch.len();
    loop {
        let Some(quote) = memchr::memchr(b'"', &bytes[at..]).map(|i| at + i) else {
            return Err("the quote is not closed: was the row cut off?");
        };
        // A doubled quote is one quote (RFC 4180). Only a field that has one is rewritten into the scratch text.
        if bytes.get(quote + 1) == Some(&b'"') {
            scratch.push_str(&text[plain..=quote]);
            at = quote + 2;
            plain = at;
            continue;
        }
        let span = if plain == from + 1 {
            Span { range: base + plain..base + quote, quoted: true, rewritten: false }
        } else {
            scratch.push_str(&text[plain..quote]);
            Span { range: start..scratch.len(), quoted: true, rewritten: true }
        };
        return Ok((span, quote + 1));
    }
}

fn until_line_end(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(b'\n', bytes).unwrap_or(bytes.len())]
}

/// A search for the end of a row whose quotes may contain line ends.
struct QuotedEnd {
    delimiter: u8,
    at: usize,
    begun: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// Distinguishes, after a quote in a quoted field, its end from the first of two quotes.
    Quote,
}

impl QuotedEnd {
    fn new(delimiter: u8) -> QuotedEnd {
        QuotedEnd { delimiter, at: 0, begun: false, state: State::FieldStart }
    }

    fn follow(&mut self, bytes: &[u8]) -> RecordEnd {
        self.begun = true;
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            self.state = match (self.state, byte) {
                (State::Quoted, b'"') => State::Quote,
                (State::Quoted, _) => {
                    let skip = memchr::memchr(b'"', &bytes[self.at..]).unwrap_or(bytes.len() - self.at);
                    self.at += skip;
                    continue;
                }
                (_, b'\n') => return RecordEnd::At(self.at + 1),
                (State::FieldStart | State::Quote, b'"') => State::Quoted,
                (_, b) if b == self.delimiter => State::FieldStart,
                _ => State::Plain,
            };
            self.at += 1;
        }
        RecordEnd::More(bytes.len())
    }
}

/// Returns the likeliest delimiter of a table by its first line: the most frequent one outside quotes.
pub fn sniff(header: &[u8]) -> u8 {
    let mut best = (0, b',');
    for delimiter in [b',', b'\t', b';', b'|'] {
        let mut in_quotes = false;
        let count = header
            .iter()
            .filter(|&&b| {
                // A quoted column name may contain the delimiter of another dialect.
                in_quotes ^= b == b'"';
                b == delimiter && !in_quotes
            })
            .count();
        if count > best.0 {
            best = (count, delimiter);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn read(text: &[u8], limit: usize) -> Result<Vec<(u64, Vec<String>)>, Fault> {
        let options = ReadOptions { record_bytes: limit, ..ReadOptions::default() };
        let mut rows = Rows::new(Box::new(Cursor::new(text.to_vec())), b',', true, &options);
        let mut out = Vec::new();
        while rows.next()? {
            out.push((rows.line(), (0..rows.len()).map(|i| rows.text(i).to_owned()).collect()));
        }
        Ok(out)
    }

    #[test]
    fn quotes_hold_delimiters_quotes_and_line_ends() {
        let rows = read(b"a,\"b,\"\"c\"\"\r\nd\",\r\n\r\n\"\",5\" pipe,x\nlast", 100).unwrap();
        let expected = [(1, vec!["a", "b,\"c\"\r\nd", ""]), (4, vec!["", "5\" pipe", "x"]), (5, vec!["last"])];
        assert_eq!(rows.len(), 3);
        for ((line, row), (l, r)) in rows.iter().zip(expected) {
            assert_eq!((*line, row.iter().map(String::as_str).collect::<Vec<_>>()), (l, r));
        }
    }

    #[test]
    fn broken_quotes_are_mistakes() {
        for text in ["a,\"b", "a,\"b\"c,d\n", "\"\"\""] {
            assert!(matches!(read(text.as_bytes(), 100), Err(Fault::Event(_))), "{text}");
        }
        let endless = format!("a,\"{}", "b\n".repeat(1000));
        assert!(matches!(read(endless.as_bytes(), 100), Err(Fault::Stop(_))));
    }

    #[test]
    fn delimiters_are_sniffed() {
        for (header, expected) in
            [("a,b;c,d", b','), ("a\tb", b'\t'), ("\"a,b,c\";d", b';'), ("a|b|c,d", b'|'), ("alone", b',')]
        {
            assert_eq!(sniff(header.as_bytes()), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_by_the_rules_reads_back(table in prop::collection::vec(prop::collection::vec("[a-c\",\n\r é]{0,6}", 2..4), 1..6)) {
            let line = |row: &Vec<String>| {
                let fields: Vec<_> = row.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
                fields.join(",") + "\r\n"
            };
            let text: String = table.iter().map(line).collect();
            let rows: Vec<_> = read(text.as_bytes(), 1000).unwrap().into_iter().map(|r| r.1).collect();
            prop_assert_eq!(rows, table);
        }
    }
}
