//! Tests on time.

use super::outcomes::Outcomes;
use super::region::Region;
use super::truth::Truth;
use crate::batch::{Batch, FieldColumn};
use crate::schema::TimeRole;
use crate::time::Interval;
use arrow_array::{Array, TimestampMicrosecondArray};

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

/// `datetime`: events whose primary time shares an instant with the interval.
pub(crate) fn evaluate_primary(interval: &Interval, batch: &Batch) -> Truth {
    let rows = batch.rows();
    let Interval { start: from, end: to } = *interval;
    match batch.schema().time {
        TimeRole::None => Truth::constant(true, rows),
        TimeRole::Instant(field) => match times(batch, field) {
            None => Truth::unknown(rows),
            Some(times) => {
                let values = times.values();
                Truth::test_all(rows, times.nulls(), |i| (values[i] >= from) & (values[i] <= to))
            }
        },
        TimeRole::Interval { start, end } => match (times(batch, start), times(batch, end)) {
            // A null start or end is open, so nothing is unknown.
            (Some(starts), Some(ends)) => Truth::test_all(rows, None, |i| {
                (starts.is_null(i) || starts.value(i) <= to) && (ends.is_null(i) || ends.value(i) >= from)
            }),
            _ => Truth::unknown(rows),
        },
    }
}

/// What [`evaluate_primary`] can say of a region.
pub(crate) fn primary_outcomes(interval: &Interval, region: &dyn Region) -> Outcomes {
    let bounds = region.bounds();
    if bounds.start == 0 && bounds.end == 0 {
        // Either events at that very instant, or a collection without time, of which every event matches.
        return Outcomes::TRUE_OR_FALSE;
    }
    let touches = bounds.start <= interval.end && interval.start <= bounds.end;
    let within = interval.start <= bounds.start && bounds.end <= interval.end;
    Outcomes::of(touches, !within)
}
