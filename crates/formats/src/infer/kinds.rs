//! Kinds of values seen in a column, as bits.

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
