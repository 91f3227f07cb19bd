//! Reductions to one value: over rows with nulls, and over nodes.

use crate::summary::FloatSum;
use arrow_buffer::NullBuffer;
use std::ops::Range;

/// Calls `take` with each non-null value.
#[inline]
pub(super) fn each<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, rows: Range<usize>, mut take: impl FnMut(T)) {
    match nulls {
        None => values[rows].iter().for_each(|&v| take(v)),
        Some(nulls) => rows.filter(|&row| nulls.is_valid(row)).for_each(|row| take(values[row])),
    }
}

pub(super) fn valid(nulls: Option<&NullBuffer>, rows: Range<usize>) -> u32 {
    match nulls {
        None => rows.len() as u32,
        Some(nulls) => rows.filter(|&row| nulls.is_valid(row)).count() as u32,
    }
}

pub(super) fn min_of(values: &[f64], nulls: Option<&NullBuffer>, rows: Range<usize>) -> f64 {
    let mut min = f64::INFINITY;
    each(values, nulls, rows, |x| min = if x < min { x } else { min });
    min
}

pub(super) fn max_of(values: &[f64], nulls: Option<&NullBuffer>, rows: Range<usize>) -> f64 {
    let mut max = f64::NEG_INFINITY;
    each(values, nulls, rows, |x| max = if x > max { x } else { max });
    max
}

pub(super) fn min_f64(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(super) fn max_f64(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub(super) fn min_i64(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MAX, i64::min)
}

pub(super) fn max_i64(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MIN, i64::max)
}

pub(super) fn sum_u32(values: &[u32]) -> u32 {
    values.iter().sum()
}

pub(super) fn sum_i128(values: &[i128]) -> i128 {
    values.iter().sum()
}

pub(super) fn sum_f64(values: &[f64]) -> f64 {
    let mut total = FloatSum::default();
    values.iter().for_each(|&x| total.add(x));
    total.value()
}
