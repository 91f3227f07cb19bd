//! The one error type for invalid input.

use std::fmt;

/// Input that is refused, with the reason.
///
/// `detail` is a sentence that says what was found and what was expected. `field` names the property,
/// parameter or option to blame; `line` counts from 1 in the file or body that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The property, parameter or option to blame.
    pub field: Option<String>,
    /// The line (or, in formats without lines, the ordinal of the event) to blame, from 1.
    pub line: Option<u64>,
    /// The value found and the one expected.
    pub detail: String,
    /// Whether the input is well formed, but has something that this collection cannot keep (a height, a given id).
    pub not_kept: bool,
}

impl Invalid {
    /// An error without a field or line yet.
    pub fn new(detail: impl Into<String>) -> Self {
        Invalid { field: None, line: None, detail: detail.into(), not_kept: false }
    }

    /// An error in one field, parameter or option.
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Invalid { field: Some(field.into()), ..Invalid::new(detail) }
    }

    /// A well-formed value in one field that this collection cannot keep.
    pub fn not_kept(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Invalid { not_kept: true, ..Invalid::field(field, detail) }
    }

    /// The same error, on this line.
    pub fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
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
