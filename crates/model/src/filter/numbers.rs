//! Comparisons of numbers, exact between integers and floats.

use super::expr::Comparison;
use super::outcomes::Outcomes;
use super::region::{FieldRange, Region, float_above, float_below};
use super::truth::Truth;
use crate::batch::{Batch, FieldColumn};
use arrow_array::{Array, Float64Array, Int64Array};
use arrow_buffer::NullBuffer;
use std::cmp::Ordering;

/// A numeric operand: a field or a literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Field(usize),
    Int(i64),
    Float(f64),
}

/// One value, stored as an integer or a float. Floats are finite.
#[derive(Debug, Clone, Copy)]
enum Value {
    Int(i64),
    Float(f64),
}

/// Compares exactly, without rounding the integer to a float.
fn compare(a: Value, b: Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Value::Int(a), Value::Float(b)) => compare_int_float(a, b),
        (Value::Float(a), Value::Int(b)) => compare_int_float(b, a).reverse(),
    }
}

pub(crate) fn compare_int_float(n: i64, x: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2^63
    if x >= LIMIT {
        Ordering::Less
    } else if x < -LIMIT {
        Ordering::Greater
    } else {
        // An `i64` beyond 2^53 loses bits as a float, so split the float instead: its whole part fits, and the
        // fraction breaks ties.
        let whole = x.trunc();
        n.cmp(&(whole as i64)).then(0.0f64.partial_cmp(&(x - whole)).unwrap_or(Ordering::Equal))
    }
}

/// Compares two literals; `None` if one is a field.
pub(crate) fn compare_literals(a: Number, b: Number) -> Option<Ordering> {
    let value = |number| match number {
        Number::Int(n) => Some(Value::Int(n)),
        Number::Float(x) => Some(Value::Float(x)),
        Number::Field(_) => None,
    };
    Some(compare(value(a)?, value(b)?))
}

/// The values of a numeric operand over a batch.
enum Values<'a> {
    Ints(&'a Int64Array),
    Floats(&'a Float64Array),
    One(Value),
    NotRead,
}

impl<'a> Values<'a> {
    fn of(number: Number, batch: &'a Batch) -> Values<'a> {
        match number {
            Number::Int(n) => Values::One(Value::Int(n)),
            Number::Float(x) => Values::One(Value::Float(x)),
            Number::Field(field) => match batch.field(field) {
                Some(FieldColumn::Int(column)) => Values::Ints(column),
                Some(FieldColumn::Float(column)) => Values::Floats(column),
                _ => {
                    debug_assert!(false, "numeric field {field} was not read: see Predicate::add_columns");
                    Values::NotRead
                }
            },
        }
    }

    #[inline]
    fn at(&self, row: usize) -> Value {
        match self {
            Values::Ints(column) => Value::Int(column.value(row)),
            Values::Floats(column) => Value::Float(column.value(row)),
            Values::One(value) => *value,
            Values::NotRead => Value::Int(0),
        }
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Values::Ints(column) => column.nulls(),
            Values::Floats(column) => column.nulls(),
            Values::One(_) | Values::NotRead => None,
        }
    }
}

/// `left op right` for every row.
pub(crate) fn evaluate(op: Comparison, left: Number, right: Number, batch: &Batch) -> Truth {
    let rows = batch.rows();
    let (left, right) = (Values::of(left, batch), Values::of(right, batch));
    match (&left, &right) {
        (Values::NotRead, _) | (_, Values::NotRead) => Truth::unknown(rows),
        (Values::Ints(column), Values::One(Value::Int(n))) => scan(op, column.values(), *n, column.nulls()),
        (Values::Floats(column), Values::One(Value::Float(x))) => scan(op, column.values(), *x, column.nulls()),
        // An integer below 2^53 is exact as a float.
        (Values::Floats(column), Values::One(Value::Int(n))) if n.unsigned_abs() <= 1 << 53 => {
            scan(op, column.values(), *n as f64, column.nulls())
        }
        _ => {
            let nulls = NullBuffer::union(left.nulls(), right.nulls());
            Truth::test_all(rows, nulls.as_ref(), |i| op.holds(compare(left.at(i), right.at(i))))
        }
    }
}

/// `values op literal`, with the choice of operator hoisted out of the loop.
fn scan<T: Copy + PartialOrd>(op: Comparison, values: &[T], literal: T, nulls: Option<&NullBuffer>) -> Truth {
    let rows = values.len();
    match op {
        Comparison::Eq => Truth::test_all(rows, nulls, |i| values[i] == literal),
        Comparison::Ne => Truth::test_all(rows, nulls, |i| values[i] != literal),
        Comparison::Lt => Truth::test_all(rows, nulls, |i| values[i] < literal),
        Comparison::Le => Truth::test_all(rows, nulls, |i| values[i] <= literal),
        Comparison::Gt => Truth::test_all(rows, nulls, |i| values[i] > literal),
        Comparison::Ge => Truth::test_all(rows, nulls, |i| values[i] >= literal),
    }
}

fn range(number: Number, region: &dyn Region) -> Option<FieldRange> {
    match number {
        Number::Field(field) => region.field_range(field),
        Number::Int(n) => Some(FieldRange::of_ints(n, n, false)),
        Number::Float(x) => Some(FieldRange { min: x, max: x, nulls: false }),
    }
}

/// The possible results of [`evaluate`] for a region.
pub(crate) fn outcomes(op: Comparison, left: Number, right: Number, region: &dyn Region) -> Outcomes {
    let (Some(a), Some(b)) = (range(left, region), range(right, region)) else {
        return Outcomes::ANY;
    };
    // An empty range: all values are null.
    if a.min > a.max || b.min > b.max {
        return Outcomes::UNKNOWN;
    }
    let (less, greater) = (a.min < b.max, a.max > b.min);
    // Overlapping ranges may hold an equal pair; only the rows can tell.
    let equal = a.min <= b.max && b.min <= a.max;
    let outcomes = match op {
        Comparison::Eq => Outcomes::of(equal, less || greater),
        Comparison::Ne => Outcomes::of(less || greater, equal),
        Comparison::Lt => Outcomes::of(less, equal || greater),
        Comparison::Le => Outcomes::of(less || equal, greater),
        Comparison::Gt => Outcomes::of(greater, equal || less),
        Comparison::Ge => Outcomes::of(greater || equal, less),
    };
    outcomes.with_unknown(a.nulls || b.nulls)
}

/// The literals of an `IN` in the field's type, sorted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NumberSet {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl NumberSet {
    /// The literals that a field of integers, or else of floats, can equal.
    pub(crate) fn new(of_ints: bool, numbers: &[Number]) -> NumberSet {
        if of_ints {
            // A literal with a fraction equals no integer, and is dropped.
            let whole = |x: f64| (compare_int_float(x as i64, x) == Ordering::Equal).then_some(x as i64);
            let mut ints: Vec<i64> = numbers
                .iter()
                .filter_map(|n| match n {
                    Number::Int(n) => Some(*n),
                    Number::Float(x) => whole(*x),
                    Number::Field(_) => None,
                })
                .collect();
            ints.sort_unstable();
            ints.dedup();
            NumberSet::Ints(ints)
        } else {
            let mut floats: Vec<f64> = numbers
                .iter()
                .filter_map(|n| match n {
                    Number::Int(n) => (compare_int_float(*n, *n as f64) == Ordering::Equal).then_some(*n as f64),
                    // Zero has two equal forms; keep one.
                    Number::Float(x) => Some(*x + 0.0),
                    Number::Field(_) => None,
                })
                .collect();
            floats.sort_unstable_by(f64::total_cmp);
            floats.dedup();
            NumberSet::Floats(floats)
        }
    }

    pub(crate) fn evaluate(&self, field: usize, batch: &Batch) -> Truth {
        match (self, batch.field(field)) {
            (NumberSet::Ints(set), Some(FieldColumn::Int(column))) => {
                Truth::test_all(batch.rows(), column.nulls(), |i| set.binary_search(&column.value(i)).is_ok())
            }
            (NumberSet::Floats(set), Some(FieldColumn::Float(column))) => {
                Truth::test_all(batch.rows(), column.nulls(), |i| {
                    set.binary_search_by(|x| x.total_cmp(&(column.value(i) + 0.0))).is_ok()
                })
            }
            _ => {
                debug_assert!(false, "numeric field {field} was not read: see Predicate::add_columns");
                Truth::unknown(batch.rows())
            }
        }
    }

    pub(crate) fn outcomes(&self, field: usize, region: &dyn Region) -> Outcomes {
        let Some(range) = region.field_range(field) else {
            return Outcomes::ANY;
        };
        if range.min > range.max {
            return Outcomes::UNKNOWN;
        }
        let can_equal = match self {
            // The range of integers is stored in floats, rounded outwards. Each literal is rounded the same way, so
            // that no match is excluded.
            NumberSet::Ints(set) => set.iter().any(|n| range.min <= float_above(*n) && float_below(*n) <= range.max),
            NumberSet::Floats(set) => set.iter().any(|x| range.min <= *x && *x <= range.max),
        };
        let surely = range.min == range.max
            && match self {
                NumberSet::Ints(set) => set.iter().any(|n| compare_int_float(*n, range.min) == Ordering::Equal),
                NumberSet::Floats(set) => set.contains(&range.min),
            };
        Outcomes::of(can_equal, !surely).with_unknown(range.nulls)
    }
}
