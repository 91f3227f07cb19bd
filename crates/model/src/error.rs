//! The one error type for invalid input.

use std::fmt::{self, Write};

/// Max bytes kept at each end of a truncated sentence.
const CUT_BYTES: (usize, usize) = (600, 400);
/// Max bytes of a field name.
const FIELD_BYTES: (usize, usize) = (150, 50);

/// Rejected input, with the reason.
///
/// `detail` is a sentence that states the value found and the one expected. `field` names the offending property,
/// parameter or option; `line` counts from 1 in the file or body. Where `line` is the ordinal of an event, `on_line` is
/// its line, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The offending property, parameter or option.
    pub field: Option<String>,
    /// The offending line from 1 (the ordinal of the event in formats without lines).
    pub line: Option<u64>,
    /// The line of an event that is counted by its ordinal, from 1.
    pub on_line: Option<u64>,
    /// The value found and the one expected.
    pub detail: String,
    /// Whether the input is well formed but holds something that this collection cannot store (a height, a given id).
    pub not_kept: bool,
}

impl Invalid {
    /// An error without a field or line yet. Pass details that quote values of any size as `format_args!`, which is
    /// truncated while it is formatted.
    pub fn new(detail: impl fmt::Display) -> Self {
        Invalid { field: None, line: None, on_line: None, detail: cut(detail), not_kept: false }
    }

    /// An error in one field, parameter or option.
    pub fn field(field: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Invalid { field: Some(Abridged::of(field, FIELD_BYTES)), ..Invalid::new(detail) }
    }

    /// A well-formed value in one field that this collection cannot store.
    pub fn not_kept(field: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Invalid { not_kept: true, ..Invalid::field(field, detail) }
    }

    /// The same error with a line number.
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The sentence, with its number in these units instead of lines.
    pub fn counted(&self, unit: &str) -> String {
        match self.line {
            Some(number) if unit != "line" => format!("{unit} {number}: {}", Invalid { line: None, ..self.clone() }),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Invalid {}

/// Formats a sentence for a client and elides its middle if it is long. It may quote megabytes of client input. The
/// end, which states what was expected, is kept. Never buffers more than a few kilobytes.
pub fn cut(sentence: impl fmt::Display) -> String {
    Abridged::of(sentence, CUT_BYTES)
}

/// The first 40 characters of a text, for messages.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// A writer that keeps the beginning and the end of its output.
struct Abridged {
    beginning: String,
    end: String,
    /// Max bytes of the beginning and of the end.
    max: (usize, usize),
    left_out: bool,
}

impl Abridged {
    fn of(text: impl fmt::Display, max: (usize, usize)) -> String {
        let mut cut = Abridged { beginning: String::new(), end: String::new(), max, left_out: false };
        // Formatting into it is infallible.
        let _ = write!(cut, "{text}");
        cut.shorten_end();
        let between = if cut.left_out { " … " } else { "" };
        [&cut.beginning, between, &cut.end].concat()
    }

    fn shorten_end(&mut self) {
        let surplus = self.end.len().saturating_sub(self.max.1);
        if surplus > 0 {
            self.end.drain(..self.end.ceil_char_boundary(surplus));
            self.left_out = true;
        }
    }
}

impl Write for Abridged {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Once the end is non-empty, nothing more goes to the beginning.
        let room = if self.end.is_empty() { self.max.0.saturating_sub(self.beginning.len()) } else { 0 };
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        self.beginning.push_str(first);
        let last = rest.ceil_char_boundary(rest.len().saturating_sub(self.max.1));
        if last > 0 {
            self.left_out = true;
            self.end.clear();
        }
        self.end.push_str(&rest[last..]);
        // Not on every write: values arrive in small pieces.
        if self.end.len() > 4 * self.max.1 {
            self.shorten_end();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sentence_that_quotes_much_keeps_its_beginning_and_its_end() {
        let given = "\\".repeat(1_000_000);
        let invalid = Invalid::field(&given, format_args!("{given:?}: expected a number"));
        assert!(invalid.detail.len() <= 1_010 && invalid.detail.capacity() <= 4_000, "{}", invalid.detail.len());
        assert!(invalid.detail.starts_with("\"\\\\") && invalid.detail.ends_with("\": expected a number"));
        assert!(invalid.field.is_some_and(|field| field.len() <= 210));
        assert_eq!(Invalid::new("short: expected a number").detail, "short: expected a number");
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_the_middle(pieces in prop::collection::vec("[aä…😀]{0,12}", 0..40)) {
            let whole = pieces.concat();
            let shown = std::fmt::from_fn(|f| pieces.iter().try_for_each(|piece| f.write_str(piece)));
            let cut = Abridged::of(shown, (30, 20));
            match cut.split_once(" … ") {
                Some((beginning, end)) => {
                    prop_assert!(whole.starts_with(beginning) && whole.ends_with(end));
                    prop_assert!(beginning.len() + end.len() < whole.len());
                    prop_assert!((27..=30).contains(&beginning.len()) && (17..=20).contains(&end.len()));
                }
                None => prop_assert_eq!(cut, whole),
            }
        }
    }
}
