//! Kinds of values seen in a column, as bits.

use crate::options::ReadOptions;
use crate::values::decimal;

pub(crate) const INT: u8 = 1;
pub(crate) const FLOAT: u8 = 2;
pub(crate) const BOOL: u8 = 4;
/// A time with a zone, or of a type that has no zone.
pub(crate) const TIME: u8 = 8;
/// A time without a zone.
pub(crate) const LOCAL_TIME: u8 = 16;
pub(crate) const TEXT: u8 = 32;
pub(crate) const LIST: u8 = 64;
/// A geometry.
pub(crate) const SHAPE: u8 = 128;
/// Both kinds of numbers.
pub(crate) const NUMBERS: u8 = INT | FLOAT;

/// Returns the kind of a text that reads as a number: a text too, if it is an integer too large for the type. Leading
/// zeros or a plus are a code.
pub(super) fn of_number(text: &str, options: &ReadOptions) -> Option<u8> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let is_code = matches!(digits, [b'+', ..] | [b'0', b'0'..=b'9', ..]);
    // What the reader takes, so that it reads each value of a column that is guessed to be of numbers.
    decimal(text, options).filter(|number| number.is_finite() && !is_code)?;
    Some(match digits.iter().all(u8::is_ascii_digit) {
        true if text.parse::<i64>().is_err() => TEXT,
        true => INT,
        false => FLOAT,
    })
}
