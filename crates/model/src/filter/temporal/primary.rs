//! `datetime`: tests of the primary time.

use super::{either, may_lack_time, times};
use crate::batch::Batch;
use crate::filter::outcomes::Outcomes;
use crate::filter::region::Region;
use crate::filter::truth::Truth;
use crate::schema::TimeRole;
use crate::time::Interval;
use arrow_array::Array;

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
            // A null start or end is open; an event with neither has no time.
            (Some(starts), Some(ends)) => {
                let known = either(starts.nulls(), ends.nulls());
                Truth::test_all(rows, known.as_ref(), |i| {
                    (starts.is_null(i) || starts.value(i) <= to) && (ends.is_null(i) || ends.value(i) >= from)
                })
            }
            _ => Truth::unknown(rows),
        },
    }
}

/// The possible results of [`evaluate_primary`] for a region.
pub(crate) fn primary_outcomes(interval: &Interval, region: &dyn Region) -> Outcomes {
    let bounds = region.bounds();
    if bounds.start == 0 && bounds.end == 0 {
        // Either events at exactly that instant, or a collection without time, where every event matches.
        return Outcomes::TRUE_OR_FALSE;
    }
    let touches = bounds.start <= interval.end && interval.start <= bounds.end;
    let within = interval.start <= bounds.start && bounds.end <= interval.end;
    // A region with an event open at both ends looks the same as one with an event without time.
    Outcomes::of(touches, !within).with_unknown(may_lack_time(&bounds))
}
