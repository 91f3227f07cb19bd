//! Sequence numbers: the order in which events became durable.

use crate::error::Invalid;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An event's place in its partition's log, as 64 bits divided by a [`SeqLayout`].
///
/// A snapshot of one partition is a `Seq`: it shows every event whose number is not larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// The layout of the bits of a [`Seq`]. A collection never changes its layout.
///
/// The position is always the high 40 bits (a trillion batches). Numbers of one partition therefore keep the order of
/// its log in every layout. An id generated from a number never depends on the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SeqLayout {
    /// One partition: 40 bits of position, 24 of ordinal (16.7 million events a batch).
    #[default]
    Embedded,
    /// Up to 256 partitions: 40 bits of position, 8 of partition, 16 of ordinal (65,536 events a batch).
    Partitioned,
}

/// Bits of a [`Seq`] that count the events of a batch in [`SeqLayout::Embedded`].
pub const ORDINAL_BITS: u32 = SeqLayout::Embedded.ordinal_bits();

/// Max number of events in a batch of [`SeqLayout::Embedded`].
pub const BATCH_EVENTS_MAX: usize = SeqLayout::Embedded.batch_events_max();

/// Bits of a [`Seq`] that hold the position, in every layout.
pub const POSITION_BITS: u32 = 40;

impl SeqLayout {
    /// The layout of a collection of `partitions` partitions.
    pub const fn of(partitions: usize) -> SeqLayout {
        if partitions > 1 { SeqLayout::Partitioned } else { SeqLayout::Embedded }
    }

    /// Number of bits for the event's ordinal in a batch: the low ones.
    pub const fn ordinal_bits(self) -> u32 {
        64 - POSITION_BITS - self.partition_bits()
    }

    /// Number of bits for the partition, between position and ordinal.
    pub const fn partition_bits(self) -> u32 {
        match self {
            SeqLayout::Embedded => 0,
            SeqLayout::Partitioned => 8,
        }
    }

    /// Max number of partitions of a collection.
    pub const fn partitions_max(self) -> usize {
        1 << self.partition_bits()
    }

    /// Max number of events that share one position.
    pub const fn batch_events_max(self) -> usize {
        1 << self.ordinal_bits()
    }

    /// The number of the `ordinal`-th event (from 0) of the batch at `position` of a partition.
    pub const fn seq(self, position: u64, partition: u8, ordinal: usize) -> Seq {
        debug_assert!(position < 1 << POSITION_BITS && (partition as usize) < self.partitions_max());
        debug_assert!(ordinal < self.batch_events_max());
        Seq(position << (64 - POSITION_BITS) | (partition as u64) << self.ordinal_bits() | ordinal as u64)
    }

    /// The largest possible number of the batch at `position` of a partition: the snapshot that shows all of it.
    pub const fn end_of(self, position: u64, partition: u8) -> Seq {
        self.seq(position, partition, self.batch_events_max() - 1)
    }

    /// The partition of a number; 0 if the layout has only one.
    pub const fn partition(self, seq: Seq) -> u8 {
        (seq.0 >> self.ordinal_bits()) as u8 & (self.partitions_max() - 1) as u8
    }

    /// The ordinal of a number in its batch.
    pub const fn ordinal(self, seq: Seq) -> usize {
        seq.0 as usize & (self.batch_events_max() - 1)
    }

    /// The name in a collection's record: `embedded` or `partitioned`.
    pub const fn name(self) -> &'static str {
        match self {
            SeqLayout::Embedded => "embedded",
            SeqLayout::Partitioned => "partitioned",
        }
    }

    /// Parses the output of [`SeqLayout::name`].
    pub fn from_name(name: &str) -> Result<SeqLayout, Invalid> {
        [SeqLayout::Embedded, SeqLayout::Partitioned].into_iter().find(|layout| layout.name() == name).ok_or_else(
            || {
                let detail = format!("{name:?} is not a layout of sequence numbers: expected embedded or partitioned");
                Invalid::field("seq_layout", detail)
            },
        )
    }
}

/// The partition of a key, such as an id, among `partitions`. It never changes: an event is looked up where it was
/// written.
pub fn partition_of(key: &[u8], partitions: usize) -> usize {
    // FNV-1a, whose high bits are poor, and the finalizer of MurmurHash3.
    let mut hash = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    hash ^= hash >> 33;
    ((u128::from(hash) * partitions as u128) >> 64) as usize
}

/// Assigns numbers to the events of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbering {
    /// Layout of the numbers.
    pub layout: SeqLayout,
    /// The partition.
    pub partition: u8,
}

impl Numbering {
    /// The number of the `ordinal`-th event (from 0) of the batch at `position`.
    pub const fn seq(self, position: u64, ordinal: usize) -> Seq {
        self.layout.seq(position, self.partition, ordinal)
    }

    /// The ordinal of a number in the batch at `position`; `None` if it belongs to another batch or partition.
    pub fn ordinal_at(self, position: u64, seq: Seq) -> Option<usize> {
        let is_here = seq.position() == position && self.layout.partition(seq) == self.partition;
        is_here.then_some(self.layout.ordinal(seq))
    }
}

/// Crockford's alphabet in lower case: no i, l, o, u, so that an id survives being read aloud.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Seq {
    /// The number of the `ordinal`-th event (from 0) of the batch at `position`, in [`SeqLayout::Embedded`].
    pub const fn new(position: u64, ordinal: usize) -> Seq {
        SeqLayout::Embedded.seq(position, 0, ordinal)
    }

    /// The largest possible number of the batch at `position`, in [`SeqLayout::Embedded`].
    pub const fn end_of(position: u64) -> Seq {
        SeqLayout::Embedded.end_of(position, 0)
    }

    /// Position of the batch in its partition's log, in every layout.
    pub const fn position(self) -> u64 {
        self.0 >> (64 - POSITION_BITS)
    }

    /// The generated id of an event that came without one: 13 digits of base 32, in order of `Seq`.
    pub fn to_id(self) -> String {
        (0..13).rev().map(|i| DIGITS[(self.0 >> (5 * i) & 31) as usize] as char).collect()
    }

    /// Parses the output of [`Seq::to_id`].
    pub fn from_id(id: &str) -> Result<Seq, Invalid> {
        let wrong = || {
            Invalid::field("id", format_args!("{id:?} is not an id that Meridian made: expected 13 digits of base 32"))
        };
        if id.len() != 13 {
            return Err(wrong());
        }
        let mut number: u64 = 0;
        for (i, byte) in id.bytes().enumerate() {
            // Case-insensitive, as people type ids; the letters that look like digits are not in the alphabet.
            let digit = DIGITS.iter().position(|&d| d == byte.to_ascii_lowercase()).ok_or_else(wrong)? as u64;
            // 13 digits hold 65 bits. A first digit above 15 would overflow, and two ids would denote the same
            // number.
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
    use proptest::prelude::*;

    const LAYOUTS: [SeqLayout; 2] = [SeqLayout::Embedded, SeqLayout::Partitioned];

    proptest! {
        #[test]
        fn numbers_come_apart_into_what_they_were_made_of(
            layout in prop::sample::select(LAYOUTS.to_vec()),
            (position, other) in (0u64..1 << POSITION_BITS, 0u64..1 << POSITION_BITS),
            (partition, ordinal) in (any::<u8>(), any::<usize>()),
        ) {
            let (partition, ordinal) = (partition % layout.partitions_max().min(255) as u8, ordinal % layout.batch_events_max());
            let seq = layout.seq(position, partition, ordinal);
            prop_assert_eq!((seq.position(), layout.partition(seq), layout.ordinal(seq)), (position, partition, ordinal));
            prop_assert_eq!(Seq::from_id(&seq.to_id()), Ok(seq));
            // A snapshot at a position shows the events up to it, and none after.
            prop_assert_eq!(seq <= layout.end_of(other, partition), position <= other);
        }
    }

    #[test]
    fn layouts_fill_the_64_bits_and_keep_their_names() {
        for layout in LAYOUTS {
            assert_eq!(POSITION_BITS + layout.partition_bits() + layout.ordinal_bits(), 64);
            assert_eq!(SeqLayout::from_name(layout.name()), Ok(layout));
            let last = layout.end_of((1 << POSITION_BITS) - 1, (layout.partitions_max() - 1) as u8);
            assert_eq!(last, Seq(u64::MAX));
        }
        assert!(SeqLayout::from_name("Embedded").is_err());
        assert_eq!(Seq::new(3, 5), Seq(3 << 24 | 5));
        assert_eq!(SeqLayout::Partitioned.seq(3, 2, 5), Seq(3 << 24 | 2 << 16 | 5));
    }

    #[test]
    fn keys_keep_their_partitions_and_are_spread() {
        // Pinned: another value would look for stored events in the wrong partition.
        let of = |key: &str| partition_of(key.as_bytes(), 256);
        assert_eq!([of(""), of("a"), of("ship-1"), of("ship-2")], [239, 130, 20, 145]);
        for partitions in [1, 2, 3, 4, 7, 256] {
            let mut counts = vec![0; partitions];
            for n in 0..partitions * 1_000 {
                counts[partition_of(format!("key {n}").as_bytes(), partitions)] += 1;
            }
            assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
        }
    }

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
