//! A node's summary of a numeric field: count, sum, min and max.

use meridian_model::FieldType;
use std::cmp::Ordering;

/// A value of a numeric field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A value of an integer field.
    Int(i64),
    /// A value of a float field.
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

    /// Compares numbers of one field, or of fields of both types; equal as floats counts as equal.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (a, b) => a.to_f64().partial_cmp(&b.to_f64()).unwrap_or(Ordering::Equal),
        }
    }
}

/// Scale factors of a sum that would otherwise overflow: sums of up to 2^64 numbers stay finite.
const DOWN: f64 = 1.0 / UP;
const UP: f64 = (1u128 << 64) as f64;

/// A compensated running sum of floats (Neumaier 1974).
///
/// The error of `n` terms stays within a unit in the last place of the sum plus `n` times 1e-31 of the sum of
/// magnitudes. That is far within the 1e-12 that Meridian guarantees. Partial sums may overflow: from then on the sum
/// is scaled by a power of two, still within the guarantee. A final sum too large for a float is an infinity.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FloatSum {
    sum: f64,
    lost: f64,
    /// Whether both are scaled by [`DOWN`].
    scaled: bool,
}

impl FloatSum {
    /// The empty sum.
    pub const NONE: FloatSum = FloatSum { sum: 0.0, lost: 0.0, scaled: false };

    /// The sum, its rounding error, and whether both are scaled down: all that another server needs.
    pub fn parts(&self) -> (f64, f64, bool) {
        (self.sum, self.lost, self.scaled)
    }

    /// The inverse of [`FloatSum::parts`]. A NaN counts as unknown.
    pub fn from_parts(sum: f64, lost: f64, scaled: bool) -> FloatSum {
        if sum.is_finite() && lost.is_finite() { FloatSum { sum, lost, scaled } } else { f64::INFINITY.into() }
    }

    /// Adds one number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.add_scaled(if self.scaled { x * DOWN } else { x });
    }

    /// Adds one number with the same scale as the sum.
    #[inline]
    fn add_scaled(&mut self, x: f64) {
        let sum = self.sum + x;
        if sum.is_finite() {
            // Neumaier's correction subtracts from the larger operand first: only that difference is exact.
            self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
            self.sum = sum;
        } else {
            self.overflow(x);
        }
    }

    #[cold]
    fn overflow(&mut self, x: f64) {
        // Once unknown, always unknown.
        if !self.sum.is_finite() {
            return;
        }
        // A second overflow, of a sum already scaled, would need more numbers than a count can hold: it means an
        // operand was infinite.
        if x.is_finite() && !self.scaled {
            self.scale_down();
            self.add_scaled(x * DOWN);
        } else {
            self.sum = f64::INFINITY;
        }
    }

    fn scale_down(&mut self) {
        *self = FloatSum { sum: self.sum * DOWN, lost: self.lost * DOWN, scaled: true };
    }

    /// Whether every number of the sum is known. A tree node keeps its sum as one float, which is unknown if it
    /// overflowed.
    pub fn is_known(&self) -> bool {
        self.sum.is_finite()
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        self.share(1)
    }

    /// The sum divided by a non-zero count; finite whenever the quotient is, even if the sum is not.
    pub fn share(&self, count: u64) -> f64 {
        let sum = if self.sum.is_finite() { self.sum + self.lost } else { self.sum };
        let share = if count == 1 { sum } else { sum / count as f64 };
        if self.scaled { share * UP } else { share }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &FloatSum) {
        if other.scaled && !self.scaled {
            self.scale_down();
        }
        // Both parts: dropping the lost bits at each merge would bring back the error that they compensate.
        for part in [other.sum, other.lost] {
            if other.scaled { self.add_scaled(part) } else { self.add(part) }
        }
    }
}

impl From<f64> for FloatSum {
    fn from(sum: f64) -> Self {
        FloatSum { sum, ..FloatSum::NONE }
    }
}

/// A sum: exact for integers, compensated for floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// A sum of integers; the events of one collection cannot overflow it.
    Int(i128),
    /// A sum of floats.
    Float(FloatSum),
}

impl Sum {
    /// See [`FloatSum::is_known`].
    pub fn is_known(&self) -> bool {
        match self {
            Sum::Int(_) => true,
            Sum::Float(sum) => sum.is_known(),
        }
    }

    /// The sum divided by a non-zero count.
    pub fn share(&self, count: u64) -> f64 {
        match self {
            Sum::Int(n) => *n as f64 / count as f64,
            Sum::Float(sum) => sum.share(count),
        }
    }

    /// The sum as a float; rounded once if it is an integer beyond 2^53.
    pub fn to_f64(&self) -> f64 {
        match self {
            Sum::Int(n) => *n as f64,
            Sum::Float(sum) => sum.value(),
        }
    }
}

/// Count, sum, min and max of the non-null values of a numeric field over some events.
///
/// Counts, min, max and integer sums are exact; a float sum is within 1e-12 of the sum of magnitudes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of non-null values.
    pub count: u64,
    /// Their sum.
    pub sum: Sum,
    /// Their min, if there is a value.
    pub min: Option<Number>,
    /// Their max, if there is a value.
    pub max: Option<Number>,
}

impl Summary {
    /// The empty summary of integers.
    pub const INT: Summary = Summary { count: 0, sum: Sum::Int(0), min: None, max: None };
    /// The empty summary of floats.
    pub const FLOAT: Summary = Summary { count: 0, sum: Sum::Float(FloatSum::NONE), min: None, max: None };

    /// The empty summary of a field of this type; types that are not numeric count as integers.
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

    /// Merges `other`. Integers become floats if only one side has floats.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        match (&mut self.sum, &other.sum) {
            // Never reached by events; summaries of a damaged file may hold any number, and must not panic.
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

    /// Average; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum.share(self.count))
    }
}

/// The number that compares as `wanted` to the other; any is better than none.
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
    fn a_sum_may_pass_all_floats_on_its_way() {
        let max = f64::MAX;
        for (values, total) in [
            (vec![max, max, -max], max),
            (vec![max, max, -max, -max, 3.0], 3.0),
            (vec![-max, -max, max, 1e300], -max + 1e300),
            (vec![max, max], f64::INFINITY),
            (vec![max, max, -max, -max, -max, -max], f64::NEG_INFINITY),
        ] {
            let mut sum = FloatSum::default();
            values.iter().for_each(|&x| sum.add(x));
            let magnitudes: f64 = values.iter().map(|x| x.abs() * DOWN).sum();
            let close =
                |sum: &FloatSum| sum.value() == total || (sum.value() - total).abs() * DOWN <= 1e-12 * magnitudes;
            assert!(close(&sum), "{values:?}: {sum:?}");
            // The same in two halves, in either order.
            for (first, second) in [(0..1, 1..values.len()), (1..values.len(), 0..1)] {
                let part = |range: std::ops::Range<usize>| {
                    values[range].iter().fold(FloatSum::default(), |mut sum, &x| {
                        sum.add(x);
                        sum
                    })
                };
                let mut sum = part(first);
                sum.merge(&part(second));
                assert!(close(&sum), "{values:?} in parts: {sum:?}");
            }
        }
        let mut sum = FloatSum::default();
        (0..4).for_each(|_| sum.add(max));
        assert_eq!((sum.value(), sum.share(4)), (f64::INFINITY, max));
        let mut unknown = FloatSum::from(f64::INFINITY);
        unknown.add(-1.0);
        assert!(!unknown.is_known());
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
