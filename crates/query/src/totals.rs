//! Running totals of a numeric field, by group.

use crate::function::{Function, FunctionValue};
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use meridian_index::{FloatSum, Number, Sum, Summary};
use meridian_model::{FieldColumn, FieldType};
use std::ops::Range;

/// Running totals of a field of integers in one group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ints {
    pub(crate) count: u64,
    pub(crate) sum: i128,
    /// Meaningless if there is no value.
    pub(crate) min: i64,
    pub(crate) max: i64,
}

/// Running totals of a field of floats in one group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floats {
    pub(crate) count: u64,
    pub(crate) sum: FloatSum,
    /// Meaningless if there is no value.
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Ints {
    pub(crate) const NONE: Ints = Ints { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };

    #[inline]
    fn add(&mut self, n: i64) {
        self.count += 1;
        // 128 bits cannot overflow: it would take 2^64 values.
        self.sum += i128::from(n);
        self.min = self.min.min(n);
        self.max = self.max.max(n);
    }

    fn add_all(&mut self, summary: &Summary) {
        self.count += summary.count;
        if let (Sum::Int(sum), Some(Number::Int(min)), Some(Number::Int(max))) = (summary.sum, summary.min, summary.max)
        {
            self.sum += sum;
            self.min = self.min.min(min);
            self.max = self.max.max(max);
        }
    }

    fn merge(&mut self, other: &Ints) {
        self.count = self.count.saturating_add(other.count);
        // Saturating, since a partial result may come from another server, and an invalid one must not panic.
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Floats {
    fn add_all(&mut self, summary: &Summary) {
        self.count += summary.count;
        if let (Sum::Float(sum), Some(min), Some(max)) = (summary.sum, summary.min, summary.max) {
            self.sum.merge(&sum);
            self.min = self.min.min(min.to_f64());
            self.max = self.max.max(max.to_f64());
        }
    }

    fn merge(&mut self, other: &Floats) {
        self.count = self.count.saturating_add(other.count);
        self.sum.merge(&other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn none() -> Floats {
        Floats { count: 0, sum: FloatSum::default(), min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Adds at most 64 values. So few are summed without compensation: the loss is below 64 * 2^-53 of the sum of
    /// their magnitudes, and the guarantee is 1e-12.
    fn add_few(&mut self, values: impl Iterator<Item = f64> + Clone) {
        let sum: f64 = values.clone().sum();
        // The plain sum of a few values may overflow although the compensated one does not.
        if !sum.is_finite() {
            return values.for_each(|x| self.add(x));
        }
        self.sum.add(sum);
        for x in values {
            self.count += 1;
            self.min = if x < self.min { x } else { self.min };
            self.max = if x > self.max { x } else { self.max };
        }
    }

    #[inline]
    fn add(&mut self, x: f64) {
        self.count += 1;
        self.sum.add(x);
        self.min = if x < self.min { x } else { self.min };
        self.max = if x > self.max { x } else { self.max };
    }
}

/// The values of a block whose bit is set.
fn rows_of<T: Copy>(mut bits: u64, values: &[T]) -> impl Iterator<Item = T> + Clone {
    std::iter::from_fn(move || {
        let value = *values.get(bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(value)
    })
}

/// A bit for each row of a block that has a value.
fn valid(nulls: Option<&NullBuffer>, block: &Range<usize>) -> u64 {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => u64::MAX,
        Some(nulls) => block.clone().enumerate().fold(0, |bits, (i, row)| bits | u64::from(nulls.is_valid(row)) << i),
    }
}

/// Running totals of one field, by the number of the group.
#[derive(Debug)]
pub(crate) enum Totals {
    Ints(Vec<Ints>),
    Floats(Vec<Floats>),
}

impl Totals {
    pub(crate) fn of(kind: FieldType) -> Totals {
        match kind {
            FieldType::Int => Totals::Ints(Vec::new()),
            _ => Totals::Floats(Vec::new()),
        }
    }

    /// Those of a number of groups.
    pub(crate) fn of_groups(kind: FieldType, groups: usize) -> Totals {
        let mut totals = Totals::of(kind);
        (0..groups).for_each(|_| totals.push());
        totals
    }

    /// Makes room for one more group.
    pub(crate) fn push(&mut self) {
        match self {
            Totals::Ints(totals) => totals.push(Ints::NONE),
            Totals::Floats(totals) => totals.push(Floats::none()),
        }
    }

    /// Adds a node's summary.
    pub(crate) fn add_all(&mut self, group: u32, summary: &Summary) {
        match self {
            Totals::Ints(totals) => totals[group as usize].add_all(summary),
            Totals::Floats(totals) => totals[group as usize].add_all(summary),
        }
    }

    /// Adds rows of one group among at most 64 consecutive ones: those whose bit is set, lowest bit first.
    pub(crate) fn add_block(&mut self, group: u32, column: &FieldColumn<'_>, block: &Range<usize>, bits: u64) {
        match (self, column) {
            (Totals::Ints(totals), FieldColumn::Int(column)) => {
                let bits = bits & valid(column.nulls(), block);
                rows_of(bits, &column.values()[block.clone()]).for_each(|n| totals[group as usize].add(n));
            }
            (Totals::Floats(totals), FieldColumn::Float(column)) => {
                let bits = bits & valid(column.nulls(), block);
                totals[group as usize].add_few(rows_of(bits, &column.values()[block.clone()]));
            }
            _ => {}
        }
    }

    /// Adds rows, each to its group.
    pub(crate) fn add_rows(&mut self, rows: &[u32], groups: &[u32], column: &FieldColumn<'_>) {
        let rows = rows.iter().zip(groups).map(|(&row, &group)| (row as usize, group as usize));
        match (self, column) {
            (Totals::Ints(totals), FieldColumn::Int(column)) => {
                let no_nulls = column.null_count() == 0;
                for (row, group) in rows.filter(|(row, _)| no_nulls || column.is_valid(*row)) {
                    totals[group].add(column.value(row));
                }
            }
            (Totals::Floats(totals), FieldColumn::Float(column)) => {
                let no_nulls = column.null_count() == 0;
                for (row, group) in rows.filter(|(row, _)| no_nulls || column.is_valid(*row)) {
                    totals[group].add(column.value(row));
                }
            }
            _ => {}
        }
    }

    /// Adds a group of another slice of the same query.
    pub(crate) fn merge(&mut self, group: usize, others: &Totals, other: usize) {
        match (self, others) {
            (Totals::Ints(mine), Totals::Ints(others)) => mine[group].merge(&others[other]),
            (Totals::Floats(mine), Totals::Floats(others)) => mine[group].merge(&others[other]),
            _ => {}
        }
    }

    /// The value of a function of the field.
    pub(crate) fn value(&self, function: &Function, group: usize) -> FunctionValue {
        let (count, sum, min, max) = match self {
            Totals::Ints(totals) => {
                let t = &totals[group];
                (t.count, Sum::Int(t.sum), FunctionValue::Int(t.min.into()), FunctionValue::Int(t.max.into()))
            }
            Totals::Floats(totals) => {
                let t = &totals[group];
                (t.count, Sum::Float(t.sum), FunctionValue::Float(t.min), FunctionValue::Float(t.max))
            }
        };
        let value = match function {
            Function::Count | Function::CountOf(_) => FunctionValue::Int(count.into()),
            _ if count == 0 => FunctionValue::Null,
            Function::Sum(_) => match sum {
                Sum::Int(sum) => FunctionValue::Int(sum),
                Sum::Float(sum) => FunctionValue::Float(sum.value()),
            },
            Function::Min(_) => min,
            Function::Max(_) => max,
            Function::Avg(_) => FunctionValue::Float(sum.share(count)),
            // Totals hold no individual values.
            Function::Percentile(..) | Function::Distinct(_) | Function::Top(..) => FunctionValue::Null,
        };
        match value {
            // A sum beyond the range of floats is unknown, in every format.
            FunctionValue::Float(x) if !x.is_finite() => FunctionValue::Null,
            value => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_no_float_holds_is_no_value_and_its_average_is_one() {
        for sign in [1.0, -1.0] {
            let mut floats = Floats::none();
            (0..3).for_each(|_| floats.add(sign * 1.5e308));
            let totals = Totals::Floats(vec![floats]);
            let value = |function| totals.value(&function, 0);
            assert_eq!(value(Function::Sum(0)), FunctionValue::Null);
            assert_eq!(value(Function::Avg(0)), FunctionValue::Float(sign * 1.5e308));
        }
    }
}
