//! Tests on time: `datetime`, CQL2's temporal functions, and comparisons of instants.
//!
//! All are relations between closed intervals, decided by their ends. A `DATE` is a whole day in UTC, from its first to
//! its last microsecond, as in the `datetime` parameter.

mod moment;
mod primary;

pub(crate) use moment::{Edge, Moment, TimeField};
pub(crate) use primary::{evaluate_primary, primary_outcomes};

use super::expr::TemporalOp;
use super::outcomes::Outcomes;
use super::region::Region;
use super::truth::Truth;
use crate::batch::{Batch, FieldColumn};
use crate::bounds::Bounds;
use crate::layout::{Layout, Projection};
use arrow_array::{Array, TimestampMicrosecondArray};
use arrow_buffer::NullBuffer;
use moment::{Ends, Role};

/// The values of a time field.
pub(crate) fn times(batch: &Batch, field: usize) -> Option<&TimestampMicrosecondArray> {
    match batch.field(field) {
        Some(FieldColumn::Time(times)) => Some(times),
        _ => {
            debug_assert!(false, "time field {field} was not read: see Predicate::add_columns");
            None
        }
    }
}

/// Whether some event of a region may have neither a start nor an end: its box is then open at both ends.
fn may_lack_time(bounds: &Bounds) -> bool {
    bounds.start == i64::MIN && bounds.end == i64::MAX
}

/// The rows with a value in at least one of two columns; `None` if all have.
fn either(a: Option<&NullBuffer>, b: Option<&NullBuffer>) -> Option<NullBuffer> {
    Some(NullBuffer::new(a?.inner() | b?.inner()))
}

/// The ends of two intervals, a and b.
#[derive(Debug, Clone, Copy)]
enum End {
    StartA,
    EndA,
    StartB,
    EndB,
}

/// The required order of two ends.
#[derive(Debug, Clone, Copy)]
enum Order {
    Before,
    NotAfter,
    Same,
}

type Rule = (End, Order, End);

/// The required relations between the ends of two intervals (OGC 21-065r2, from ISO 19108 and OWL Time).
fn rules(op: TemporalOp) -> &'static [Rule] {
    use End::{EndA, EndB, StartA, StartB};
    use Order::{Before, NotAfter, Same};
    match op {
        TemporalOp::After => &[(EndB, Before, StartA)],
        TemporalOp::Before => &[(EndA, Before, StartB)],
        TemporalOp::Contains => &[(StartA, Before, StartB), (EndB, Before, EndA)],
        TemporalOp::During => &[(StartB, Before, StartA), (EndA, Before, EndB)],
        TemporalOp::Equals => &[(StartA, Same, StartB), (EndA, Same, EndB)],
        TemporalOp::FinishedBy => &[(StartA, Before, StartB), (EndA, Same, EndB)],
        TemporalOp::Finishes => &[(StartB, Before, StartA), (EndA, Same, EndB)],
        // Disjoint is the negation of this.
        TemporalOp::Intersects | TemporalOp::Disjoint => &[(StartA, NotAfter, EndB), (StartB, NotAfter, EndA)],
        TemporalOp::Meets => &[(EndA, Same, StartB)],
        TemporalOp::MetBy => &[(StartA, Same, EndB)],
        TemporalOp::OverlappedBy => &[(StartB, Before, StartA), (StartA, Before, EndB), (EndB, Before, EndA)],
        TemporalOp::Overlaps => &[(StartA, Before, StartB), (StartB, Before, EndA), (EndA, Before, EndB)],
        TemporalOp::StartedBy => &[(StartA, Same, StartB), (EndB, Before, EndA)],
        TemporalOp::Starts => &[(StartA, Same, StartB), (EndA, Before, EndB)],
    }
}

/// `op(left, right)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemporalTest {
    op: TemporalOp,
    left: Moment,
    right: Moment,
}

impl TemporalTest {
    pub(crate) fn new(op: TemporalOp, left: Moment, right: Moment) -> TemporalTest {
        let instants = !matches!(left, Moment::Span(..)) && !matches!(right, Moment::Span(..));
        // A day equals an instant within it: the same time at a coarser grain.
        let op = if op == TemporalOp::Equals && instants { TemporalOp::Intersects } else { op };
        TemporalTest { op, left, right }
    }

    fn fields(&self) -> impl Iterator<Item = usize> {
        [self.left, self.right].into_iter().flat_map(|moment| {
            let edges = match moment {
                Moment::Property(field) => [Some(field), None],
                Moment::Span(start, end) => [start, end].map(|edge| match edge {
                    Edge::Property(field) => Some(field),
                    Edge::At(_) => None,
                }),
                Moment::Instant(..) => [None, None],
            };
            edges.into_iter().flatten().map(|f| f.field)
        })
    }

    /// The constant result, if no property is involved.
    pub(crate) fn constant(&self) -> Option<Outcomes> {
        self.fields().next().is_none().then(|| self.outcomes_within(&Bounds::EMPTY))
    }

    pub(crate) fn add_columns(&self, layout: &Layout, projection: &mut Projection) {
        self.fields().for_each(|field| projection.add(layout.field(field)));
    }

    pub(crate) fn evaluate(&self, batch: &Batch) -> Truth {
        let rows = batch.rows();
        if self.fields().any(|field| times(batch, field).is_none()) {
            return Truth::unknown(rows);
        }
        // Two comparisons per row, which the compiler vectorizes.
        if let Some(truth) = self.evaluate_range(batch) {
            return truth;
        }
        let (left, right) = (Ends::of(&self.left, batch), Ends::of(&self.right, batch));
        let nulls = NullBuffer::union(left.unknown.as_ref(), right.unknown.as_ref());
        let rules = rules(self.op);
        let truth = Truth::test_all(rows, nulls.as_ref(), |i| {
            let (a, b) = (left.at(i), right.at(i));
            let end = |end: End| match end {
                End::StartA => a.0,
                End::EndA => a.1,
                End::StartB => b.0,
                End::EndB => b.1,
            };
            rules.iter().all(|&(x, order, y)| match order {
                Order::Before => end(x) < end(y),
                Order::NotAfter => end(x) <= end(y),
                Order::Same => end(x) == end(y),
            })
        });
        if self.op == TemporalOp::Disjoint { truth.not() } else { truth }
    }

    /// Common tests of a property against a literal, as one range of instants (for Disjoint, the excluded range).
    fn range(&self) -> Option<(TimeField, i64, i64)> {
        let (Moment::Property(property), Moment::Instant(first, last) | Moment::Span(Edge::At(first), Edge::At(last))) =
            (self.left, self.right)
        else {
            return None;
        };
        let (from, to) = match self.op {
            // Times lie far from the ends of 64 bits; nothing lies beyond an open end.
            TemporalOp::After => (last.checked_add(1)?, i64::MAX),
            TemporalOp::Before => (i64::MIN, first.checked_sub(1)?),
            TemporalOp::Intersects | TemporalOp::Disjoint => (first, last),
            TemporalOp::During => (first.checked_add(1)?, last.checked_sub(1)?),
            _ => return None,
        };
        Some((property, from, to))
    }

    /// An interval that the primary time of every matching event touches.
    pub(crate) fn reach(&self) -> Option<(i64, i64)> {
        let (property, from, to) = self.range()?;
        (property.role != Role::Other && self.op != TemporalOp::Disjoint).then_some((from, to))
    }

    /// The same for every event that does not match.
    pub(crate) fn reach_of_contrary(&self) -> Option<(i64, i64)> {
        let (property, from, to) = self.range()?;
        match self.op {
            _ if property.role == Role::Other => None,
            TemporalOp::After => Some((i64::MIN, from.checked_sub(1)?)),
            TemporalOp::Before => Some((to.checked_add(1)?, i64::MAX)),
            TemporalOp::Disjoint => Some((from, to)),
            _ => None,
        }
    }

    fn evaluate_range(&self, batch: &Batch) -> Option<Truth> {
        let (property, from, to) = self.range()?;
        let column = times(batch, property.field)?;
        let values = column.values();
        let truth = Truth::test_all(batch.rows(), column.nulls(), |i| (values[i] >= from) & (values[i] <= to));
        Some(if self.op == TemporalOp::Disjoint { truth.not() } else { truth })
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        self.outcomes_within(&region.bounds())
    }

    fn outcomes_within(&self, bounds: &Bounds) -> Outcomes {
        let ((start_a, end_a), unknown_a) = self.left.ranges(bounds);
        let ((start_b, end_b), unknown_b) = self.right.ranges(bounds);
        let end = |end: End| match end {
            End::StartA => start_a,
            End::EndA => end_a,
            End::StartB => start_b,
            End::EndB => end_b,
        };
        let all = rules(self.op).iter().fold(Outcomes::TRUE, |all, &(x, order, y)| {
            let (x, y) = (end(x), end(y));
            all.and(match order {
                // Each end may lie anywhere in its range, so both outcomes are possible unless the ranges exclude one.
                Order::Before => Outcomes::of(x.low < y.high, x.high >= y.low),
                Order::NotAfter => Outcomes::of(x.low <= y.high, x.high > y.low),
                Order::Same => {
                    let one = x.low == x.high && y.low == y.high && x.low == y.low;
                    Outcomes::of(x.low <= y.high && y.low <= x.high, !one)
                }
            })
        });
        let outcomes = if self.op == TemporalOp::Disjoint { all.not() } else { all };
        outcomes.with_unknown(unknown_a || unknown_b)
    }
}
