//! The attributes of a Shapefile: a dBASE table.

use super::encoding::TextEncoding;
use crate::error::Fault;
use crate::input::Input;
use crate::options::Unknown;
use crate::read::table::{Cell, Kind, Row};
use crate::reference::convert;
use crate::values::blame;
use meridian_model::Invalid;
use meridian_model::civil::{civil_from_days, days_from_civil};
use meridian_model::error::shorten;
use std::borrow::Cow;

/// Bytes of the header and of the description of a field.
const HEADER_BYTES: usize = 32;
const FIELD_BYTES: usize = 32;
/// Max bytes of the name of a field.
const NAME_BYTES: usize = 10;

/// Records, one at a time.
pub(super) struct Dbf {
    input: Input,
    fields: Vec<Field>,
    /// Names of the fields that are left out, as their types are not kept.
    pub(super) left_out: Vec<String>,
    encoding: TextEncoding,
    record_bytes: usize,
    records: u64,
    ordinal: u64,
    record: Vec<u8>,
}

/// Outcome of taking a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordStatus {
    Kept,
    /// Marked as deleted and still in the file: neither it nor its shape counts.
    Deleted,
    End,
}

/// A column: its name and type, and its location in a record.
struct Field {
    name: String,
    kind: Kind,
    from: usize,
    bytes: usize,
}

impl Dbf {
    /// Reads the header; `encoding` is the text of the `.cpg` file, `unknown` the treatment of types that are not kept.
    pub(super) fn open(mut input: Input, encoding: Option<&str>, unknown: Unknown) -> Result<Dbf, Fault> {
        let what = "the header of the .dbf file";
        let stop = |detail: &str| Fault::stop(Invalid::new(detail));
        let header = input.needed(HEADER_BYTES, 1, what)?;
        let header = input.bytes(header);
        let records = u64::from(u32::from_le_bytes([header[4], header[5], header[6], header[7]]));
        let header_bytes = usize::from(u16::from_le_bytes([header[8], header[9]]));
        let record_bytes = usize::from(u16::from_le_bytes([header[10], header[11]]));
        let language = header[29];
        if header_bytes < HEADER_BYTES + 1 || record_bytes == 0 {
            return Err(stop("not a .dbf file: its header has no fields"));
        }
        let rest = input.needed(header_bytes - HEADER_BYTES, 1, what)?;
        let encoding = TextEncoding::of(encoding, language);
        let (mut fields, mut left_out) = (Vec::new(), Vec::new());
        // The first byte of a record marks it as deleted or not.
        let mut from = 1;
        for field in input.bytes(rest).chunks_exact(FIELD_BYTES) {
            if field[0] == 0x0d {
                break;
            }
            let name = field[..11].split(|b| *b == 0).next().unwrap_or_default();
            let name = encoding.text(name, name.len() >= NAME_BYTES).map_err(Fault::stop)?.trim().to_owned();
            let (bytes, decimals) = (usize::from(field[16]), field[17]);
            let kind = match field[11] {
                b'C' => Kind::Text,
                // Integers of more digits than 64 bits hold are read as floats.
                b'N' if decimals == 0 && bytes <= 18 => Kind::Int,
                b'N' | b'F' => Kind::Float,
                b'L' => Kind::Bool,
                b'D' => Kind::Date,
                _ if unknown == Unknown::Ignore => {
                    left_out.push(name);
                    from += bytes;
                    continue;
                }
                other => {
                    let what = format!("a column of dBASE type {:?} is not supported", char::from(other));
                    let detail = format!("{what}: --ignore-unknown leaves it out, or {}", convert());
                    return Err(Fault::stop(Invalid::field(shorten(&name), detail)));
                }
            };
            fields.push(Field { name, kind, from, bytes });
            from += bytes;
        }
        if from > record_bytes {
            return Err(stop("the .dbf file is damaged: its fields are wider than its records"));
        }
        Ok(Dbf { input, fields, left_out, encoding, record_bytes, records, ordinal: 0, record: Vec::new() })
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = (String, Kind)> {
        self.fields.iter().map(|field| (field.name.clone(), field.kind))
    }

    /// Takes the next record.
    pub(super) fn take(&mut self) -> Result<RecordStatus, Fault> {
        if self.ordinal == self.records {
            return Ok(RecordStatus::End);
        }
        self.ordinal += 1;
        let record = self.input.needed(self.record_bytes, self.ordinal, "a record of the .dbf file")?;
        self.record.clear();
        self.record.extend_from_slice(self.input.bytes(record));
        Ok(if self.record.first() == Some(&b'*') { RecordStatus::Deleted } else { RecordStatus::Kept })
    }

    /// Puts the last record taken into a row, from this column on.
    pub(super) fn set(&self, row: &mut Row, first: usize) -> Result<(), Invalid> {
        for (i, field) in self.fields.iter().enumerate() {
            let bytes = self.record.get(field.from..field.from + field.bytes).unwrap_or_default();
            let put = |text: Cow<'_, str>| match cell(field.kind, &text)? {
                Some(cell) => row.set(first + i, cell),
                None => Ok(()),
            };
            self.text(bytes).and_then(put).map_err(|e| blame(e, &field.name))?;
        }
        Ok(())
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, str>, Invalid> {
        let end = bytes.iter().rposition(|b| !matches!(b, b' ' | 0)).map_or(0, |at| at + 1);
        self.encoding.text(&bytes[..end], end == bytes.len())
    }
}

/// Parses a value from its text; `None` if empty.
fn cell(kind: Kind, text: &str) -> Result<Option<Cell<'_>>, Invalid> {
    let bare = text.trim();
    let wrong = |expected: &str| Invalid::new(format!("{:?} where {expected} was expected", shorten(bare)));
    // A number too wide for its field is written as asterisks; in a text they are what they seem.
    if bare.is_empty() || kind != Kind::Text && bare.bytes().all(|b| b == b'*') {
        return Ok(None);
    }
    Ok(Some(match kind {
        Kind::Int => match bare.parse::<i64>() {
            Ok(n) => Cell::Int(n),
            Err(_) => return Err(wrong("an integer")),
        },
        Kind::Float => Cell::Float(crate::values::float(bare).ok_or_else(|| wrong("a number"))?),
        Kind::Bool => match bare {
            "T" | "t" | "Y" | "y" => Cell::Bool(true),
            "F" | "f" | "N" | "n" => Cell::Bool(false),
            "?" => return Ok(None),
            _ => return Err(wrong("T or F")),
        },
        Kind::Date => match day(bare) {
            Some(Some(day)) => Cell::Date(day),
            Some(None) => return Ok(None),
            None => return Err(wrong("a day as yyyyMMdd")),
        },
        _ => Cell::Text(text),
    }))
}

/// Returns days since 1970 for `yyyyMMdd`; `Some(None)` for eight zeros, which are no day.
fn day(text: &str) -> Option<Option<i32>> {
    if text.len() != 8 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if text == "00000000" {
        return Some(None);
    }
    let (year, month, day) = (text[..4].parse().ok()?, text[4..6].parse().ok()?, text[6..].parse().ok()?);
    let days = days_from_civil(year, month, day);
    // A day that does not exist is converted to a different one.
    (civil_from_days(days) == (year, month, day)).then(|| i32::try_from(days).ok())
}
