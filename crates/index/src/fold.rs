//! Totals over slices: plain loops in independent lanes, which the compiler vectorizes.

use crate::summary::{FloatSum, Number, Sum, Summary};
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use meridian_model::FieldColumn;
use std::ops::Range;

/// Number of concurrent sums: enough to hide the latency of an addition.
const LANES: usize = 8;
/// Numbers summed without compensation at a time. A lane adds 128 of them, so that the rounding error stays below 128
/// * 2^-53, some 2e-14, of the sum of magnitudes.
const PLAIN: usize = 1024;

impl Summary {
    /// Summarises some rows of a numeric column; other columns count as having no values.
    pub fn of_rows(column: &FieldColumn<'_>, rows: Range<usize>) -> Summary {
        match column {
            FieldColumn::Int(array) => ints(&array.values()[rows.clone()], nulls_of(*array, rows)),
            FieldColumn::Float(array) => floats(&array.values()[rows.clone()], nulls_of(*array, rows)),
            _ => Summary::INT,
        }
    }
}

/// The nulls of some rows, if there are any.
fn nulls_of(array: &dyn Array, rows: Range<usize>) -> Option<NullBuffer> {
    array.nulls().map(|nulls| nulls.slice(rows.start, rows.len())).filter(|nulls| nulls.null_count() > 0)
}

fn ints(values: &[i64], nulls: Option<NullBuffer>) -> Summary {
    match nulls {
        None => of_ints(values.len() as u64, sum_ints(values), min_int(values), max_int(values)),
        // Copied out, so that columns with nulls use the same vectorized loops.
        Some(nulls) => ints(&nulls.valid_indices().map(|i| values[i]).collect::<Vec<_>>(), None),
    }
}

fn floats(values: &[f64], nulls: Option<NullBuffer>) -> Summary {
    match nulls {
        None => of_floats(values.len() as u64, sum_floats(values), min_float(values), max_float(values)),
        Some(nulls) => floats(&nulls.valid_indices().map(|i| values[i]).collect::<Vec<_>>(), None),
    }
}

/// A summary from its four numbers. The last two are ignored if there are no values.
pub(crate) fn of_ints(count: u64, sum: i128, min: i64, max: i64) -> Summary {
    let some = count > 0;
    Summary { count, sum: Sum::Int(sum), min: some.then_some(Number::Int(min)), max: some.then_some(Number::Int(max)) }
}

/// The same for floats.
pub(crate) fn of_floats(count: u64, sum: FloatSum, min: f64, max: f64) -> Summary {
    let some = count > 0;
    Summary {
        count,
        sum: Sum::Float(sum),
        min: some.then_some(Number::Float(min)),
        max: some.then_some(Number::Float(max)),
    }
}

/// A sum within 1e-13 of the sum of magnitudes.
pub(crate) fn sum_floats(values: &[f64]) -> FloatSum {
    let mut total = FloatSum::default();
    for values in values.chunks(PLAIN) {
        let sum = lanes(values, 0.0, |sum, x| sum + x).iter().sum::<f64>();
        if sum.is_finite() {
            total.add(sum);
        } else {
            // Lanes may overflow although the sum does not, and then disagree about the sign.
            values.iter().for_each(|&x| total.add(x));
        }
    }
    total
}

pub(crate) fn sum_ints(values: &[i64]) -> i128 {
    values.iter().map(|&n| i128::from(n)).sum()
}

pub(crate) fn min_float(values: &[f64]) -> f64 {
    // Not `f64::min`, whose NaN handling takes two more instructions; no stored value is NaN.
    let less = |min, x| if x < min { x } else { min };
    lanes(values, f64::INFINITY, less).into_iter().fold(f64::INFINITY, less)
}

pub(crate) fn max_float(values: &[f64]) -> f64 {
    let greater = |max, x| if x > max { x } else { max };
    lanes(values, f64::NEG_INFINITY, greater).into_iter().fold(f64::NEG_INFINITY, greater)
}

pub(crate) fn min_int(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MAX, i64::min)
}

pub(crate) fn max_int(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MIN, i64::max)
}

/// Folds every eighth value into its own lane.
#[inline]
fn lanes(values: &[f64], first: f64, fold: impl Fn(f64, f64) -> f64) -> [f64; LANES] {
    let mut lanes = [first; LANES];
    let (eights, rest) = values.as_chunks::<LANES>();
    for eight in eights {
        for (lane, &x) in lanes.iter_mut().zip(eight) {
            *lane = fold(*lane, x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = fold(*lane, x);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sum_in_lanes_is_the_sum(
            values in prop::collection::vec((-1e3..1e3f64, -30i32..30).prop_map(|(x, e)| x * 10f64.powi(e)), 0..3000),
        ) {
            let mut exact = FloatSum::default();
            values.iter().for_each(|&x| exact.add(x));
            let magnitude: f64 = values.iter().map(|x| x.abs()).sum();
            prop_assert!((sum_floats(&values).value() - exact.value()).abs() <= 1e-13 * magnitude);
            prop_assert_eq!(min_float(&values), values.iter().copied().fold(f64::INFINITY, f64::min));
            prop_assert_eq!(max_float(&values), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
    }

    #[test]
    fn lanes_that_pass_all_floats_do_not_make_a_sum_that_is_none() {
        // Every eighth value goes to the same lane: one lane exceeds the max float, another the min.
        let mut values = [0.0; 16];
        (values[0], values[8]) = (f64::MAX, f64::MAX);
        (values[1], values[9]) = (-f64::MAX, -f64::MAX);
        assert_eq!(sum_floats(&values).value(), 0.0);
        assert_eq!(sum_floats(&[f64::MAX; 9]).value(), f64::INFINITY);
    }
}
