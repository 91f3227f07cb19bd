//! Times in a filter: ranges of their ends over a region and over the rows of a batch.

use super::{either, may_lack_time, times};
use crate::batch::Batch;
use crate::bounds::Bounds;
use crate::schema::TimeRole;
use arrow_array::{Array, TimestampMicrosecondArray};
use arrow_buffer::NullBuffer;

/// A time field of a filter, and its role in the collection's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeField {
    pub(crate) field: usize,
    pub(super) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Instant,
    Start,
    End,
    Other,
}

impl TimeField {
    pub(crate) fn new(field: usize, time: TimeRole) -> TimeField {
        let role = match time {
            TimeRole::Instant(instant) if instant == field => Role::Instant,
            TimeRole::Interval { start, .. } if start == field => Role::Start,
            TimeRole::Interval { end, .. } if end == field => Role::End,
            _ => Role::Other,
        };
        TimeField { field, role }
    }
}

/// A time in a filter. Every time is an interval with both ends included; an instant starts and ends at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    /// A property; unknown if it is null.
    Property(TimeField),
    /// From one end to another. A null property is an open end, unless the other end is open too: a span without any
    /// end is unknown.
    Span(Edge, Edge),
    /// A literal instant, or a literal day, which is an instant at a coarser grain.
    Instant(i64, i64),
}

/// Start or end of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Edge {
    Property(TimeField),
    At(i64),
}

impl Edge {
    /// Whether the span may lack this end.
    pub(crate) fn may_be_open(&self) -> bool {
        match self {
            Edge::Property(field) => field.role != Role::Instant,
            Edge::At(t) => *t == i64::MIN || *t == i64::MAX,
        }
    }

    /// The rows of a batch that have this end: `Some(None)` if all have, `None` if no row has.
    fn known<'a>(&self, batch: &'a Batch) -> Option<Option<&'a NullBuffer>> {
        match self {
            Edge::Property(field) => Some(times(batch, field.field).and_then(|column| column.nulls())),
            Edge::At(_) if self.may_be_open() => None,
            Edge::At(_) => Some(None),
        }
    }
}

/// Min and max of an end over a region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Moment {
    /// Ranges of start and end over a region of these bounds, and whether the moment may be unknown.
    pub(super) fn ranges(&self, bounds: &Bounds) -> ((Range, Range), bool) {
        let always = Range { low: i64::MIN, high: i64::MAX };
        let role = Range { low: bounds.start, high: bounds.end };
        match self {
            Moment::Property(TimeField { role: Role::Instant, .. }) => ((role, role), false),
            // Bounds hold open ends as extremes, so they do not reveal nulls.
            Moment::Property(TimeField { role: Role::Start | Role::End, .. }) => ((role, role), true),
            Moment::Property(TimeField { role: Role::Other, .. }) => ((always, always), true),
            Moment::Instant(first, last) => {
                ((Range { low: *first, high: *first }, Range { low: *last, high: *last }), false)
            }
            Moment::Span(start, end) => {
                // Bounds show an open end only for a field of the same role.
                let range = |edge: &Edge, own: Role| match edge {
                    Edge::At(t) => Range { low: *t, high: *t },
                    Edge::Property(field) if field.role == own || field.role == Role::Instant => role,
                    Edge::Property(_) => always,
                };
                let own = |edge: &Edge, own: Role| match edge {
                    Edge::Property(field) => field.role == own,
                    Edge::At(_) => false,
                };
                let unknown = match (start.may_be_open(), end.may_be_open()) {
                    (true, true) if own(start, Role::Start) && own(end, Role::End) => may_lack_time(bounds),
                    (true, true) => !matches!((start, end), (Edge::At(_), Edge::At(_))),
                    _ => false,
                };
                ((range(start, Role::Start), range(end, Role::End)), unknown)
            }
        }
    }
}

/// Start and end of a moment over a batch.
pub(super) struct Ends<'a> {
    start: EndValues<'a>,
    end: EndValues<'a>,
    /// Rows where the moment is unknown.
    pub(super) unknown: Option<NullBuffer>,
}

enum EndValues<'a> {
    Column(&'a TimestampMicrosecondArray, i64),
    One(i64),
}

impl EndValues<'_> {
    pub(super) fn at(&self, row: usize) -> i64 {
        match self {
            EndValues::Column(column, open) if column.is_null(row) => *open,
            EndValues::Column(column, _) => column.value(row),
            EndValues::One(t) => *t,
        }
    }
}

impl<'a> Ends<'a> {
    pub(super) fn of(moment: &Moment, batch: &'a Batch) -> Ends<'a> {
        let values = |field: &TimeField, open: i64| match times(batch, field.field) {
            Some(column) => EndValues::Column(column, open),
            None => EndValues::One(open),
        };
        let edge = |edge: &Edge, open: i64| match edge {
            Edge::Property(field) => values(field, open),
            Edge::At(t) => EndValues::One(*t),
        };
        match moment {
            Moment::Property(field) => Ends {
                start: values(field, 0),
                end: values(field, 0),
                unknown: times(batch, field.field).and_then(|c| c.nulls().cloned()),
            },
            Moment::Span(start, end) => {
                let unknown = match (start.known(batch), end.known(batch)) {
                    (Some(starts), Some(ends)) => either(starts, ends),
                    // The other end is open in every row, or both are: `'..', '..'` is all of time, stated
                    // explicitly.
                    (known, None) | (None, known) => known.flatten().cloned(),
                };
                Ends { start: edge(start, i64::MIN), end: edge(end, i64::MAX), unknown }
            }
            Moment::Instant(first, last) => {
                Ends { start: EndValues::One(*first), end: EndValues::One(*last), unknown: None }
            }
        }
    }

    pub(super) fn at(&self, row: usize) -> (i64, i64) {
        (self.start.at(row), self.end.at(row))
    }
}
