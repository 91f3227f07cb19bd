//! Maps the key of an event to its row. Keys are hashes of client-supplied ids, or sequence numbers if ids are
//! generated.

use crate::codec::mix;
use crate::codec::{Reader, put_u32, put_u64};

/// Filter bits per key: with six probes inside one line of 512 bits, about 1 absent key in 100 passes.
const FILTER_BITS_PER_KEY: usize = 12;
const FILTER_PROBES: u32 = 6;
const LINE_WORDS: usize = 8;

/// A blocked Bloom filter (Putze, Sanders and Singler 2007): all probes of a key fall into one cache line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// Builds the filter of some hashes.
    pub(crate) fn of(hashes: impl ExactSizeIterator<Item = u64>) -> Filter {
        let lines = (hashes.len() * FILTER_BITS_PER_KEY).div_ceil(64 * LINE_WORDS).max(1);
        let mut words = vec![0; lines * LINE_WORDS];
        for hash in hashes {
            let line = line_of(hash, lines);
            for bit in probes(hash) {
                words[line * LINE_WORDS + (bit / 64) as usize] |= 1 << (bit % 64);
            }
        }
        Filter { words }
    }

    /// Returns true if the key may be present; false is certain.
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let lines = self.words.len() / LINE_WORDS;
        lines == 0 || {
            let line = line_of(hash, lines);
            probes(hash).all(|bit| self.words[line * LINE_WORDS + (bit / 64) as usize] >> (bit % 64) & 1 == 1)
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        self.words.iter().for_each(|w| put_u64(&mut bytes, *w));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Filter, String> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || words.is_empty() || words.len() % LINE_WORDS != 0 {
            return Err(format!("a filter of {} bytes", bytes.len()));
        }
        Ok(Filter { words: words.iter().map(|w| u64::from_le_bytes(*w)).collect() })
    }
}

fn line_of(hash: u64, lines: usize) -> usize {
    // Multiplies and uses the high bits instead of a modulo, which is several times slower. The probes mix the hash
    // again to be independent of them.
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

/// Returns the bits within a line. The high bits of the hash chose the line, so these come from a mix of it.
fn probes(hash: u64) -> impl Iterator<Item = u32> {
    let mut bits = mix(hash ^ 0x5851_f42d_4c95_7f2d);
    (0..FILTER_PROBES).map(move |_| {
        let bit = (bits & 511) as u32;
        bits >>= 9;
        bit
    })
}

/// Number of keys in a page of a sidecar.
pub(crate) const PAGE_KEYS: usize = 4096;

/// Sorted pairs of key and row.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRows {
    pub(crate) keys: Vec<u64>,
    pub(crate) rows: Vec<u32>,
}

impl KeyRows {
    /// Sorts the keys of rows `0..keys.len()`.
    pub(crate) fn of(keys: impl Iterator<Item = u64>) -> KeyRows {
        let mut pairs: Vec<(u64, u32)> = keys.zip(0..).collect();
        pairs.sort_unstable();
        KeyRows { keys: pairs.iter().map(|p| p.0).collect(), rows: pairs.iter().map(|p| p.1).collect() }
    }

    /// Returns the rows with this key, in order.
    pub(crate) fn rows_of(&self, key: u64) -> &[u32] {
        let from = self.keys.partition_point(|k| *k < key);
        let len = self.keys[from..].iter().take_while(|k| **k == key).count();
        &self.rows[from..from + len]
    }

    /// Encodes a page: number of pairs, keys, rows.
    pub(crate) fn encode_page(&self, pairs: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + pairs.len() * 12);
        put_u32(&mut bytes, pairs.len() as u32);
        self.keys[pairs.clone()].iter().for_each(|k| put_u64(&mut bytes, *k));
        self.rows[pairs].iter().for_each(|r| put_u32(&mut bytes, *r));
        bytes
    }

    /// Decodes a page; keys must ascend.
    pub(crate) fn decode_page(bytes: &[u8]) -> Result<KeyRows, String> {
        let mut reader = Reader::new(bytes);
        let count = reader.u32()? as usize;
        if count > PAGE_KEYS {
            return Err(format!("a page of {count} keys"));
        }
        let keys = (0..count).map(|_| reader.u64()).collect::<Result<Vec<_>, _>>()?;
        let rows = (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        if !keys.is_sorted() {
            return Err("keys out of order".to_owned());
        }
        Ok(KeyRows { keys, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::hash;

    #[test]
    fn the_filter_holds_what_was_put_in_and_little_else() {
        let hashes: Vec<u64> = (0..10_000u64).map(|i| hash(7, &i.to_le_bytes())).collect();
        let filter = Filter::decode(&Filter::of(hashes.iter().copied()).encode()).unwrap();
        assert!(hashes.iter().all(|h| filter.may_hold(*h)));
        let false_hits = (10_000..110_000u64).filter(|i| filter.may_hold(hash(7, &i.to_le_bytes()))).count();
        assert!(false_hits < 3_000, "{false_hits} of 100000");
    }

    #[test]
    fn rows_are_found_by_key() {
        let index = KeyRows::of([5u64, 3, 5, 9].into_iter());
        assert_eq!(index.rows_of(5), [0, 2]);
        assert_eq!(index.rows_of(9), [3]);
        assert!(index.rows_of(4).is_empty());
        let page = KeyRows::decode_page(&index.encode_page(1..4)).unwrap();
        assert_eq!(page.rows_of(5), [0, 2]);
        assert!(KeyRows::decode_page(&index.encode_page(1..4)[..20]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn pages_are_read_as_written_and_no_harmed_page_is_out_of_order(
            keys in proptest::collection::vec(0..40u64, 1..60),
            harm in proptest::option::of((proptest::prelude::any::<proptest::sample::Index>(), 1..=255u8)),
        ) {
            let index = KeyRows::of(keys.iter().copied());
            let mut bytes = index.encode_page(0..keys.len());
            if let Some((at, bits)) = harm {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                if let Ok(page) = KeyRows::decode_page(&bytes) {
                    proptest::prop_assert!(page.keys.is_sorted() && page.keys.len() == page.rows.len());
                }
                return Ok(());
            }
            let page = KeyRows::decode_page(&bytes).unwrap();
            for key in 0..41 {
                let rows: Vec<u32> = (0..).zip(&keys).filter(|(_, k)| **k == key).map(|(row, _)| row).collect();
                proptest::prop_assert_eq!(page.rows_of(key), rows);
            }
        }
    }
}
