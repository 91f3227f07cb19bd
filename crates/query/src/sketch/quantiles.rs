//! Quantiles: the counts of all values up to a bound of distinct ones, then of buckets of values.
//!
//! A bucket holds the floats with the same sign, exponent and first bits of the fraction. So its width is bounded
//! relative to its values, as in the log-linear histogram of HdrHistogram. The memory limit, with coarsening by
//! halves, is from UDDSketch (Epicoco et al., 2020). The level depends only on the values: it is the finest at which
//! they fill few enough buckets.

use super::bytes::{Malformed, Reader};
use crate::function::{FunctionValue, Percent};
use crate::hash::NumberHasher;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Max distinct values that are counted individually.
pub(super) const VALUES_MAX: usize = 4096;
/// Max buckets beyond that.
const BUCKETS_MAX: usize = 4096;
/// Fraction bits of the finest buckets: the error is half of 2^-9, or 0.1%.
const FRACTION_BITS_MAX: u8 = 9;
/// Fraction bits of a float.
const FRACTION_BITS: u8 = 52;
/// Memory of an entry of the map.
const ENTRY_BYTES: usize = 32;

type Counts = HashMap<i64, u64, BuildHasherDefault<NumberHasher>>;

/// The values of a numeric field in one group.
#[derive(Debug, Clone)]
pub(crate) struct Quantiles {
    is_int: bool,
    /// Fraction bits of the buckets; `None` while values are counted individually.
    level: Option<u8>,
    counts: Counts,
    count: u64,
    /// As keys of values; meaningless if there is no value.
    min: i64,
    max: i64,
}

/// An integer for a float that preserves the order; 0 for both zeros.
fn key_of(x: f64) -> i64 {
    let magnitude = (x.to_bits() & (u64::MAX >> 1)) as i64;
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

fn float_of(key: i64) -> f64 {
    let magnitude = f64::from_bits(key.unsigned_abs());
    if key < 0 { -magnitude } else { magnitude }
}

/// The bucket of a float at a level. Subnormal numbers share the last bucket before those of larger numbers; it is
/// that of 0 if a bucket is a whole power of two.
fn bucket_of(x: f64, level: u8) -> i64 {
    let key = key_of(x);
    if key != 0 && x.abs() < f64::MIN_POSITIVE {
        return ((1 << level) - 1) * key.signum();
    }
    (key.abs() >> (FRACTION_BITS - level)) * key.signum()
}

/// Whether a bucket may hold subnormal numbers.
fn is_tiny(bucket: i64, level: u8) -> bool {
    bucket.abs() < 1 << level && (bucket != 0 || level == 0)
}

/// The float in the middle of a bucket; 0 for subnormal numbers.
fn middle_of(bucket: i64, level: u8) -> f64 {
    if bucket.abs() < 1 << level {
        return 0.0;
    }
    let shift = FRACTION_BITS - level;
    let from = float_of(bucket.abs() << shift);
    // The width follows from the exponent: the next bucket may lie beyond the largest float.
    let width = float_of((bucket.abs() >> level) << FRACTION_BITS) / f64::from(1u32 << level);
    (from + width / 2.0).copysign(bucket as f64)
}

/// The integer in the middle of a bucket.
fn middle_int_of(bucket: i64, level: u8) -> i128 {
    if bucket == 0 {
        return 0;
    }
    let from = float_of(bucket.abs() << (FRACTION_BITS - level));
    let width = float_of((bucket.abs() >> level) << FRACTION_BITS) / f64::from(1u32 << level);
    // For integers only, which have at most 19 digits.
    let (first, last) = (from.ceil() as i128, (from + width).ceil() as i128 - 1);
    (first + (last - first).max(0) / 2) * i128::from(bucket.signum())
}

impl Quantiles {
    pub(super) fn none(is_int: bool) -> Quantiles {
        Quantiles { is_int, level: None, counts: Counts::default(), count: 0, min: i64::MAX, max: i64::MIN }
    }

    pub(super) fn add_int(&mut self, n: i64) {
        self.add(n, 1);
    }

    pub(super) fn add_float(&mut self, x: f64) {
        self.add(key_of(x), 1);
    }

    /// Counts a value by its key.
    fn add(&mut self, key: i64, times: u64) {
        (self.min, self.max) = (self.min.min(key), self.max.max(key));
        self.count = self.count.saturating_add(times);
        let place = self.level.map_or(key, |level| bucket_of(self.value_of(key), level));
        self.put(place, times);
    }

    fn put(&mut self, place: i64, times: u64) {
        let count = self.counts.entry(place).or_default();
        *count = count.saturating_add(times);
        while self.counts.len() > self.level.map_or(VALUES_MAX, |_| BUCKETS_MAX) {
            self.coarsen();
        }
    }

    fn value_of(&self, key: i64) -> f64 {
        if self.is_int { key as f64 } else { float_of(key) }
    }

    /// The next coarser level: buckets of values, then buckets of twice the width.
    fn coarsen(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        let level = self.level.map_or(FRACTION_BITS_MAX, |level| level.saturating_sub(1));
        for (place, times) in counts {
            let place = match self.level {
                None => bucket_of(self.value_of(place), level),
                // Halving the magnitude drops the last bit of the fraction.
                Some(before) => (place.abs() >> (before - level)) * place.signum(),
            };
            let count = self.counts.entry(place).or_default();
            *count = count.saturating_add(times);
        }
        self.level = Some(level);
    }

    pub(super) fn merge(&mut self, other: &Quantiles) {
        if other.count == 0 {
            return;
        }
        // To the coarser level first. It is never coarser than both together require.
        while level_rank(self.level) > level_rank(other.level) {
            self.coarsen();
        }
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.count = self.count.saturating_add(other.count);
        for (&place, &times) in &other.counts {
            let place = match (self.level, other.level) {
                (None, _) => place,
                (Some(level), None) => bucket_of(other.value_of(place), level),
                (Some(level), Some(finer)) => (place.abs() >> finer.saturating_sub(level)) * place.signum(),
            };
            let count = self.counts.entry(place).or_default();
            *count = count.saturating_add(times);
        }
        while self.counts.len() > self.level.map_or(VALUES_MAX, |_| BUCKETS_MAX) {
            self.coarsen();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.counts.capacity() * ENTRY_BYTES
    }

    /// The smallest value not exceeded by at least this fraction of the values, and its max relative error.
    pub(super) fn percentile(&self, percent: Percent) -> (FunctionValue, f64) {
        if self.count == 0 {
            return (FunctionValue::Null, 0.0);
        }
        let rank = percent.rank(self.count);
        let mut places: Vec<(i64, u64)> = self.counts.iter().map(|(place, count)| (*place, *count)).collect();
        places.sort_unstable();
        let mut below = 0u64;
        let place = places.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank
        });
        let Some(&(place, _)) = place.or(places.last()) else { return (FunctionValue::Null, 0.0) };
        match (self.level, self.is_int) {
            (None, true) => (FunctionValue::Int(place.into()), 0.0),
            (None, false) => (FunctionValue::Float(float_of(place)), 0.0),
            (Some(level), true) => {
                let middle = middle_int_of(place, level).clamp(self.min.into(), self.max.into());
                (FunctionValue::Int(middle), error_of(level))
            }
            (Some(level), false) => {
                let middle = middle_of(place, level).clamp(float_of(self.min), float_of(self.max));
                // Relatively, no value except 0 is nearer to all of the tiny ones.
                (FunctionValue::Float(middle), if is_tiny(place, level) { 1.0 } else { error_of(level) })
            }
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut places: Vec<(i64, u64)> = self.counts.iter().map(|(place, count)| (*place, *count)).collect();
        places.sort_unstable();
        out.push(self.level.unwrap_or(u8::MAX));
        for number in [self.min, self.max] {
            out.extend(number.to_le_bytes());
        }
        out.extend((places.len() as u32).to_le_bytes());
        for (place, count) in places {
            out.extend(place.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
    }

    pub(super) fn decode(is_int: bool, bytes: &[u8]) -> Result<Quantiles, Malformed> {
        let mut reader = Reader(bytes);
        let level = match reader.byte()? {
            u8::MAX => None,
            level @ 0..=FRACTION_BITS_MAX => Some(level),
            _ => return Err(Malformed),
        };
        let (min, max) = (reader.i64()?, reader.i64()?);
        let mut all = Quantiles { is_int, level, counts: Counts::default(), count: 0, min, max };
        for _ in 0..reader.entries(level.map_or(VALUES_MAX, |_| BUCKETS_MAX))? {
            let (place, count) = (reader.i64()?, reader.u64()?);
            // Keys beyond every float would appear as infinite.
            let is_place = match level {
                None if is_int => true,
                None => float_of(place).is_finite() && place != i64::MIN,
                Some(level) => place != i64::MIN && place.abs() < (0x7ff << level),
            };
            if !is_place || count == 0 || all.counts.insert(place, count).is_some() {
                return Err(Malformed);
            }
            all.count = all.count.saturating_add(count);
        }
        let is_range = is_int || [min, max].iter().all(|end| *end != i64::MIN && float_of(*end).is_finite());
        if all.count > 0 && (min > max || !is_range) {
            return Err(Malformed);
        }
        reader.end().map(|()| all)
    }
}

/// Finer levels rank higher.
fn level_rank(level: Option<u8>) -> u8 {
    level.unwrap_or(u8::MAX)
}

/// The max relative distance of a value of a bucket from its middle.
fn error_of(level: u8) -> f64 {
    0.5 / f64::from(1u32 << level)
}
