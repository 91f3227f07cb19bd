//! Ranges of time units: the period that each segment covers.
//!
//! A range is dyadic: `2^level` time units, beginning at a multiple of that length. Two ranges are either disjoint or
//! nested. So segments of one period can be merged, and none straddles two ranges.

use meridian_index::{CLASS_NOWHERE, Key};
use meridian_model::Schema;
use serde::{Deserialize, Serialize};

/// Buckets are numbered from -2^39, see `meridian_index::Key`.
const BUCKET_BIAS: i64 = 1 << 39;
/// Time units per bucket, by class of duration, see `meridian_index::Grid`.
const UNITS_PER_BUCKET: [i64; 5] = [1, 1, 16, 256, 256];

/// Returns the first time unit of a key's bucket; 0 in collections without time.
pub(crate) fn bin_of(schema: &Schema, key: Key) -> i64 {
    if !schema.has_time() {
        return 0;
    }
    let class = key.class();
    let duration = if class >= CLASS_NOWHERE { class - CLASS_NOWHERE } else { class >> 4 };
    // Events without a place are in buckets of one unit, whatever their duration.
    let scale = if class >= CLASS_NOWHERE { 1 } else { UNITS_PER_BUCKET[usize::from(duration.min(4))] };
    (key.bucket() as i64 - BUCKET_BIAS).saturating_mul(scale)
}

/// Time units `first << level .. (first + 1) << level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) level: u8,
    pub(crate) index: i64,
}

impl Range {
    /// Returns the smallest range that holds both units.
    pub(crate) fn covering(first: i64, last: i64) -> Range {
        let level = (0..63u8).find(|level| first >> level == last >> level);
        match level {
            Some(level) => Range { level, index: first >> level },
            // The two units lie on both sides of 1970, where no power of two spans zero.
            None => Range::ALL,
        }
    }

    /// All of time. Units before and after 1970 share no dyadic range, so this one contains both.
    pub(crate) const ALL: Range = Range { level: 63, index: 0 };

    pub(crate) fn holds(&self, other: &Range) -> bool {
        *self == Range::ALL || (other.level <= self.level && other.index >> (self.level - other.level) == self.index)
    }

    /// Returns the two halves, in order of time; `None` for a single unit.
    fn halves(&self) -> Option<[Range; 2]> {
        if *self == Range::ALL {
            return Some([Range { level: 62, index: -1 }, Range { level: 62, index: 0 }]);
        }
        let level = self.level.checked_sub(1)?;
        Some([Range { level, index: self.index * 2 }, Range { level, index: self.index * 2 + 1 }])
    }

    pub(crate) fn has(&self, bin: i64) -> bool {
        *self == Range::ALL || bin >> self.level == self.index
    }
}

/// Cuts rows, given as sorted (time unit, count), into ranges. A range is halved while both halves keep at least
/// `rows_min` rows. A half without rows is dropped.
pub(crate) fn cut(bins: &[(i64, u64)], rows_min: u64) -> Vec<Range> {
    let (Some((first, _)), Some((last, _))) = (bins.first(), bins.last()) else { return Vec::new() };
    let mut open = vec![Range::covering(*first, *last)];
    let mut done = Vec::new();
    while let Some(range) = open.pop() {
        let rows = |half: &Range| {
            let from = bins.partition_point(|(bin, _)| !half.has(*bin) && *bin < first_of(half));
            bins[from..].iter().take_while(|(bin, _)| half.has(*bin)).map(|(_, n)| n).sum::<u64>()
        };
        match range.halves() {
            Some([a, b]) => match (rows(&a), rows(&b)) {
                // An empty half costs no segment: the range shrinks towards the rows.
                (0, _) => open.push(b),
                (_, 0) => open.push(a),
                (m, n) if m >= rows_min && n >= rows_min => open.extend([b, a]),
                _ => done.push(range),
            },
            None => done.push(range),
        }
    }
    done
}

fn first_of(range: &Range) -> i64 {
    if *range == Range::ALL { i64::MIN } else { range.index << range.level }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_index::Grid;
    use meridian_model::{Bounds, Field, FieldType, GeometryType, TimeRole};

    #[test]
    fn ranges_are_halved_where_both_halves_are_large() {
        assert_eq!(cut(&[], 10), []);
        assert_eq!(cut(&[(5, 100)], 10), [Range { level: 0, index: 5 }]);
        let cut_two = cut(&[(4, 100), (5, 100)], 10);
        assert_eq!(cut_two, [Range { level: 0, index: 4 }, Range { level: 0, index: 5 }]);
        // One late event stays with the rest.
        assert_eq!(cut(&[(4, 1), (5, 100)], 10), [Range { level: 1, index: 2 }]);
        // Both sides of 1970.
        assert_eq!(cut(&[(-1, 3), (0, 100)], 10), [Range::ALL]);
        let sides = cut(&[(-1, 30), (0, 100)], 10);
        assert_eq!(sides, [Range { level: 0, index: -1 }, Range { level: 0, index: 0 }]);
    }

    #[test]
    fn every_unit_falls_into_one_range() {
        let bins: Vec<(i64, u64)> = (-50i64..200).map(|bin| (bin * 3, 1 + (bin.unsigned_abs() * 7919) % 50)).collect();
        for rows_min in [1, 100, 1_000, 1_000_000] {
            let ranges = cut(&bins, rows_min);
            for (bin, _) in &bins {
                assert_eq!(ranges.iter().filter(|r| r.has(*bin)).count(), 1, "{bin} in {ranges:?}");
            }
        }
        assert!(Range::ALL.holds(&Range { level: 3, index: -4 }));
        assert!(Range { level: 3, index: -1 }.holds(&Range { level: 0, index: -8 }));
        assert!(!Range { level: 3, index: -1 }.holds(&Range { level: 0, index: 0 }));
    }

    #[test]
    fn the_unit_of_a_key_is_where_the_grid_put_it() {
        let field = |name: &str| Field { name: name.into(), kind: FieldType::Time, required: false, title: None };
        let schema = Schema {
            fields: vec![field("a"), field("b")],
            geometry: Some(GeometryType::Any),
            time: TimeRole::Interval { start: 0, end: 1 },
            ..Schema::default()
        };
        let grid = Grid::of(&schema);
        let unit = schema.time_unit_us;
        for start in [-900 * unit, -unit, 0, 5 * unit + 3, 12_345 * unit] {
            for length in [0, 1, unit / 2, 3 * unit, 40 * unit, 5_000 * unit] {
                for place in [Bounds::EMPTY, Bounds::point(3.0, 4.0, 0)] {
                    let bounds = Bounds { start, end: start + length, ..place };
                    let bin = bin_of(&schema, grid.key(&bounds));
                    let at = if place.is_nowhere() { start } else { start + length / 2 };
                    let off = grid.bin(at) - bin;
                    assert!((0..256).contains(&off), "{off} units off for {bounds:?}");
                    assert!(length > 0 || off == 0);
                }
            }
        }
    }
}
