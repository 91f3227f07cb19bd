//! What a node knows of a numeric field: count, sum, least and greatest.

use meridian_model::FieldType;
use std::cmp::Ordering;

/// A value of a numeric field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of an integer field.
    Int(i64),
    /// Of a float field.
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }

    /// Orders numbers of one field, or of fields of both types; equal as floats is equal.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (a, b) => a.to_f64().partial_cmp(&b.to_f64()).unwrap_or(Ordering::Equal),
        }
    }
}

/// A running sum of floats that keeps what rounding loses (Neumaier 1974).
///
/// The error of `n` terms stays within a unit in the last place of the sum plus `n` times 1e-31 of the sum
/// of magnitudes, far inside the 1e-12 that Meridian promises. A sum too great for a float becomes an
/// infinity and stays there.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FloatSum {
    sum: f64,
    lost: f64,
}

impl FloatSum {
    /// Adds one number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        if sum.is_finite() {
            self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
            self.sum = sum;
        } else if self.sum.is_finite() {
            self.sum = sum;
        }
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }

    /// Adds the sum of other numbers.
    pub fn merge(&mut self, other: &FloatSum) {
        self.add(other.sum);
        self.add(other.lost);
    }
}

impl From<f64> for FloatSum {
    fn from(sum: f64) -> Self {
        FloatSum { sum, lost: 0.0 }
    }
}

/// A sum: exact for integers, compensated for floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// Of integers: no number of events in one collection overflows it.
    Int(i128),
    /// Of floats.
    Float(FloatSum),
}

impl Sum {
    /// The sum as a float; rounded once where it is an integer beyond 2^53.
    pub fn to_f64(&self) -> f64 {
        match self {
            Sum::Int(n) => *n as f64,
            Sum::Float(sum) => sum.value(),
        }
    }
}

/// Count, sum, least and greatest of the non-null values of a numeric field over some events.
///
/// Counts, least, greatest and integer sums are exact; a float sum is within 1e-12 of the sum of magnitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of non-null values.
    pub count: u64,
    /// Their sum.
    pub sum: Sum,
    /// The least of them, if there is one.
    pub min: Option<Number>,
    /// The greatest of them, if there is one.
    pub max: Option<Number>,
}

impl Summary {
    /// Of no integers.
    pub const INT: Summary = Summary { count: 0, sum: Sum::Int(0), min: None, max: None };
    /// Of no floats.
    pub const FLOAT: Summary =
        Summary { count: 0, sum: Sum::Float(FloatSum { sum: 0.0, lost: 0.0 }), min: None, max: None };

    /// Of no values of a field of this type; types that are not numeric count as integers.
    pub fn empty(kind: FieldType) -> Summary {
        if kind == FieldType::Float { Summary::FLOAT } else { Summary::INT }
    }

    /// Counts one value.
    pub fn add(&mut self, value: Number) {
        let sum = match value {
            Number::Int(n) => Sum::Int(n.into()),
            Number::Float(x) => Sum::Float(x.into()),
        };
        self.merge(&Summary { count: 1, sum, min: Some(value), max: Some(value) });
    }

    /// Counts the events of `other` too. Integers become floats where only one side is of floats.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        match (&mut self.sum, &other.sum) {
            (Sum::Int(mine), Sum::Int(theirs)) => *mine = mine.saturating_add(*theirs),
            (Sum::Float(mine), Sum::Float(theirs)) => mine.merge(theirs),
            (Sum::Float(mine), Sum::Int(_)) => mine.add(other.sum.to_f64()),
            (Sum::Int(mine), Sum::Float(theirs)) => {
                let mut sum = *theirs;
                sum.add(*mine as f64);
                self.sum = Sum::Float(sum);
            }
        }
        self.min = pick(self.min, other.min, Ordering::Less);
        self.max = pick(self.max, other.max, Ordering::Greater);
    }

    /// Average; `None` of no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.to_f64() / self.count as f64)
    }
}

/// The one that is `wanted` of the other; any is better than none.
fn pick(mine: Option<Number>, theirs: Option<Number>, wanted: Ordering) -> Option<Number> {
    match (mine, theirs) {
        (Some(a), Some(b)) => Some(if b.compare(a) == wanted { b } else { a }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_sum_keeps_what_rounding_loses() {
        let mut sum = FloatSum::default();
        for x in [1.0, 1e100, 1.0, -1e100] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 2.0);
        let mut parts = FloatSum::from(1e100);
        parts.merge(&FloatSum::from(1.0));
        parts.merge(&FloatSum::from(-1e100));
        assert_eq!(parts.value(), 1.0);
    }

    #[test]
    fn a_sum_beyond_all_floats_is_infinite_and_never_nan() {
        let mut sum = FloatSum::default();
        for x in [f64::MAX, f64::MAX, -f64::MAX, -f64::MAX, -f64::MAX, -f64::MAX] {
            sum.add(x);
        }
        assert_eq!(sum.value(), f64::INFINITY);
    }

    #[test]
    fn integer_sums_pass_sixty_four_bits() {
        let mut total = Summary::INT;
        for n in [i64::MAX, i64::MAX, i64::MIN, i64::MAX] {
            total.add(Number::Int(n));
        }
        assert_eq!(total.sum, Sum::Int(3 * i128::from(i64::MAX) + i128::from(i64::MIN)));
        assert_eq!((total.min, total.max), (Some(Number::Int(i64::MIN)), Some(Number::Int(i64::MAX))));
        assert_eq!(total.count, 4);
    }
}
