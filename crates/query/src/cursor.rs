//! Cursors: the position of an event in the order of a result, and its encoding.
//!
//! ```text
//! cursor: 0 | key u128 | seq u64                             natural order
//!         1 | distance f64 | seq u64 | given u64             by distance
//!         2 | count u8 | values | seq u64                    by fields
//! value:  0 | 1, i64 | 2, f64 | 3, u8 | 4, length u16, text  null, integer or time, float, boolean, text
//! ```
//!
//! all little-endian. Page tokens and queries on the wire carry these bytes.

use meridian_index::Key;
use meridian_model::Seq;
use std::cmp::Ordering;

/// A sort value in a [`Cursor`]: the compared part, not always the whole value.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    /// Null; after all others, in both directions.
    Null,
    /// An integer, or a time in microseconds since 1970.
    Int(i64),
    /// A float.
    Float(f64),
    /// False before true.
    Bool(bool),
    /// At most [`crate::TEXT_BYTES_COMPARED`] bytes of a text or id.
    Text(Vec<u8>),
}

/// The position of an event in the order of a result; a page begins after one.
#[derive(Debug, Clone, PartialEq)]
pub enum Cursor {
    /// In natural order.
    Natural {
        /// Key of the event.
        key: Key,
        /// Its sequence number.
        seq: Seq,
    },
    /// By distance.
    Near {
        /// Distance of the event in metres.
        distance_m: f64,
        /// Its sequence number.
        seq: Seq,
        /// Events returned on earlier pages, for orders that end after the nearest k.
        given: u64,
    },
    /// By fields.
    Fields {
        /// Value of each sort key.
        values: Vec<SortValue>,
        /// Sequence number of the event.
        seq: Seq,
    },
}

impl Cursor {
    /// Sequence number of the event.
    pub fn seq(&self) -> Seq {
        match self {
            Cursor::Natural { seq, .. } | Cursor::Near { seq, .. } | Cursor::Fields { seq, .. } => *seq,
        }
    }

    /// The encoded cursor, as carried by page tokens.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    /// Decodes the output of [`Cursor::to_bytes`]; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Cursor> {
        let mut reader = Reader(bytes);
        // No trailing bytes: a longer cursor was written by another version.
        reader.cursor().filter(|_| reader.0.is_empty())
    }

    /// Compares two events of one result. Bit i of `descending` is set if sort key i descends.
    pub(crate) fn compare(&self, other: &Cursor, descending: u16) -> Ordering {
        let place = match (self, other) {
            (Cursor::Natural { key: a, .. }, Cursor::Natural { key: b, .. }) => a.cmp(b),
            (Cursor::Near { distance_m: a, .. }, Cursor::Near { distance_m: b, .. }) => a.total_cmp(b),
            (Cursor::Fields { values: a, .. }, Cursor::Fields { values: b, .. }) => compare_values(a, b, descending),
            // One result has one order: unreachable.
            _ => Ordering::Equal,
        };
        // The sequence number makes the order total: without it, equal events could repeat or vanish between pages.
        place.then_with(|| self.seq().cmp(&other.seq()))
    }

    /// Appends the cursor's bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Cursor::Natural { key, seq } => {
                out.push(0);
                out.extend_from_slice(&key.0.to_le_bytes());
                out.extend_from_slice(&seq.0.to_le_bytes());
            }
            Cursor::Near { distance_m, seq, given } => {
                out.push(1);
                out.extend_from_slice(&distance_m.to_le_bytes());
                out.extend_from_slice(&seq.0.to_le_bytes());
                out.extend_from_slice(&given.to_le_bytes());
            }
            Cursor::Fields { values, seq } => {
                out.push(2);
                out.push(values.len().min(255) as u8);
                values.iter().take(255).for_each(|v| put_value(out, v));
                out.extend_from_slice(&seq.0.to_le_bytes());
            }
        }
    }
}

/// Compares the values of all sort keys of two events.
pub(crate) fn compare_values(a: &[SortValue], b: &[SortValue], descending: u16) -> Ordering {
    let mut orders = a.iter().zip(b).enumerate().map(|(i, (a, b))| compare(a, b, descending >> i & 1 == 1));
    orders.find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal)
}

/// Compares two values of one key; nulls last in both directions.
pub(crate) fn compare(a: &SortValue, b: &SortValue, descending: bool) -> Ordering {
    use SortValue::*;
    let order = match (a, b) {
        (Null, Null) => return Ordering::Equal,
        (Null, _) => return Ordering::Greater,
        (_, Null) => return Ordering::Less,
        (Int(a), Int(b)) => a.cmp(b),
        (Float(a), Float(b)) => float_order(*a, *b),
        (Bool(a), Bool(b)) => a.cmp(b),
        (Text(a), Text(b)) => a.cmp(b),
        // Only a forged token compares values of two types; any order will do.
        _ => rank(a).cmp(&rank(b)),
    };
    if descending { order.reverse() } else { order }
}

fn rank(value: &SortValue) -> u8 {
    match value {
        SortValue::Null => 0,
        SortValue::Int(_) => 1,
        SortValue::Float(_) => 2,
        SortValue::Bool(_) => 3,
        SortValue::Text(_) => 4,
    }
}

/// Numbers are never NaN; -0 is 0.
pub(crate) fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn put_value(out: &mut Vec<u8>, value: &SortValue) {
    match value {
        SortValue::Null => out.push(0),
        SortValue::Int(n) => {
            out.push(1);
            out.extend_from_slice(&n.to_le_bytes());
        }
        SortValue::Float(x) => {
            out.push(2);
            out.extend_from_slice(&x.to_le_bytes());
        }
        SortValue::Bool(b) => out.extend([3, u8::from(*b)]),
        SortValue::Text(text) => {
            let text = &text[..text.len().min(usize::from(u16::MAX))];
            out.push(4);
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
}

/// Reads values from the front of a byte slice; returns `None` if it is too short.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        // Every read is bounded: these bytes come from clients.
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn float(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes).filter(|x| !x.is_nan())
    }

    /// Reads the output of [`Cursor::put`].
    pub(crate) fn cursor(&mut self) -> Option<Cursor> {
        Some(match self.u8()? {
            0 => Cursor::Natural { key: Key(self.array().map(u128::from_le_bytes)?), seq: Seq(self.u64()?) },
            1 => Cursor::Near { distance_m: self.float()?, seq: Seq(self.u64()?), given: self.u64()? },
            2 => {
                let count = self.u8()?;
                let values = (0..count).map(|_| self.value()).collect::<Option<Vec<_>>>()?;
                Cursor::Fields { values, seq: Seq(self.u64()?) }
            }
            _ => return None,
        })
    }

    fn value(&mut self) -> Option<SortValue> {
        Some(match self.u8()? {
            0 => SortValue::Null,
            1 => SortValue::Int(self.array().map(i64::from_le_bytes)?),
            2 => SortValue::Float(self.float()?),
            3 => SortValue::Bool(self.u8()? != 0),
            4 => {
                let length = self.u16()?;
                SortValue::Text(self.bytes(usize::from(length))?.to_vec())
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = SortValue> {
        prop_oneof![
            Just(SortValue::Null),
            any::<i64>().prop_map(SortValue::Int),
            prop::num::f64::NORMAL.prop_map(SortValue::Float),
            any::<bool>().prop_map(SortValue::Bool),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(SortValue::Text),
        ]
    }

    pub(crate) fn cursors() -> impl Strategy<Value = Cursor> {
        prop_oneof![
            (any::<u128>(), any::<u64>()).prop_map(|(k, s)| Cursor::Natural { key: Key(k), seq: Seq(s) }),
            (0.0..2e7f64, any::<u64>(), any::<u64>()).prop_map(|(distance_m, s, given)| Cursor::Near {
                distance_m,
                seq: Seq(s),
                given
            }),
            (prop::collection::vec(values(), 0..8), any::<u64>())
                .prop_map(|(values, s)| Cursor::Fields { values, seq: Seq(s) }),
        ]
    }
}
