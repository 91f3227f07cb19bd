//! Sequence numbers: the order in which events became durable.

use crate::error::Invalid;
use std::fmt;

/// One event's place in its partition's log: the position of its batch and its ordinal in that batch.
///
/// 40 bits of position (a trillion batches) above 24 bits of ordinal (16.7 million events a batch).
/// A snapshot is a `Seq`: it shows every event whose number is not greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

/// Bits of a [`Seq`] that count events within a batch.
pub const ORDINAL_BITS: u32 = 24;

/// Most events that one batch may hold.
pub const BATCH_EVENTS_MAX: usize = 1 << ORDINAL_BITS;

/// Crockford's alphabet in lower case: no i, l, o, u, so that an id survives being read aloud.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Seq {
    /// The number of the `ordinal`-th event (from 0) of the batch at `position`.
    pub fn new(position: u64, ordinal: usize) -> Seq {
        debug_assert!(ordinal < BATCH_EVENTS_MAX && position < 1 << (64 - ORDINAL_BITS));
        Seq(position << ORDINAL_BITS | ordinal as u64)
    }

    /// The greatest number that the batch at `position` can give: the snapshot that shows all of it.
    pub fn end_of(position: u64) -> Seq {
        Seq::new(position, BATCH_EVENTS_MAX - 1)
    }

    /// Position of the batch in the log.
    pub fn position(self) -> u64 {
        self.0 >> ORDINAL_BITS
    }

    /// The id made for an event that came without one: 13 digits of base 32, in order of `Seq`.
    pub fn to_id(self) -> String {
        (0..13).rev().map(|i| DIGITS[(self.0 >> (5 * i) & 31) as usize] as char).collect()
    }

    /// Reads what [`Seq::to_id`] wrote.
    pub fn from_id(id: &str) -> Result<Seq, Invalid> {
        let wrong =
            || Invalid::field("id", format!("{id:?} is not an id that Meridian made: expected 13 digits of base 32"));
        if id.len() != 13 {
            return Err(wrong());
        }
        let mut number: u64 = 0;
        for (i, byte) in id.bytes().enumerate() {
            let digit = DIGITS.iter().position(|&d| d == byte.to_ascii_lowercase()).ok_or_else(wrong)? as u64;
            if i == 0 && digit > 15 {
                return Err(wrong());
            }
            number = number << 5 | digit;
        }
        Ok(Seq(number))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_order_and_come_back() {
        let numbers = [0, 1, 31, 32, 1 << 24, u64::MAX - 1, u64::MAX];
        for pair in numbers.windows(2) {
            assert!(Seq(pair[0]).to_id() < Seq(pair[1]).to_id());
        }
        for n in numbers {
            assert_eq!(Seq::from_id(&Seq(n).to_id()), Ok(Seq(n)));
        }
        assert!(Seq::from_id("zzzzzzzzzzzzz").is_err());
        assert!(Seq::from_id("").is_err());
    }
}
