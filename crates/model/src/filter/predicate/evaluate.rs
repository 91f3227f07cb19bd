//! Evaluation of a predicate for rows and regions, and the columns that it reads.

use super::{Node, Nullable, Predicate};
use crate::batch::Batch;
use crate::filter::any::AnyOf;
use crate::filter::numbers::{self, Number};
use crate::filter::outcomes::Outcomes;
use crate::filter::place::{Places, null_rows};
use crate::filter::region::{Region, Relation};
use crate::filter::temporal::{self};
use crate::filter::texts::{self, List};
use crate::filter::truth::{Truth, still_open};
use crate::layout::{Layout, Projection};
use crate::schema::Schema;
use arrow_array::Array;
use arrow_buffer::BooleanBuffer;

impl Predicate {
    /// Adds the columns that [`Predicate::evaluate`] reads.
    pub fn add_columns(&self, layout: &Layout, schema: &Schema, projection: &mut Projection) {
        match self.node() {
            Node::Constant(_) => {}
            Node::And(parts) | Node::Or(AnyOf { parts, .. }) => {
                parts.iter().for_each(|p| p.add_columns(layout, schema, projection));
            }
            Node::Not(inner) => inner.add_columns(layout, schema, projection),
            Node::Bbox(_) | Node::Near(_) | Node::Spatial(_) => projection.add_geometry(layout),
            Node::Primary(_) => projection.add_time(layout, schema),
            // Boxes are null exactly where the geometry is, and far smaller to read than shapes.
            Node::Located(_) | Node::IsNull(Nullable::Geometry) => projection.add_boxes(layout),
            Node::Temporal(test) => test.add_columns(layout, projection),
            Node::Number { left, right, .. } => {
                for number in [left, right] {
                    if let Number::Field(field) = number {
                        projection.add(layout.field(*field));
                    }
                }
            }
            Node::Text { left, right, .. } => {
                [left, right].into_iter().for_each(|text| text.add_columns(layout, projection));
            }
            Node::TextIn { value, .. } | Node::Like { value, .. } => value.add_columns(layout, projection),
            Node::NumberIn { field, .. } | Node::IsNull(Nullable::Field(field)) => projection.add(layout.field(*field)),
            Node::Bool(test) => test.fields().for_each(|field| projection.add(layout.field(field))),
            Node::Lists { left, right, .. } => {
                for list in [left, right] {
                    if let List::Field(field) = list {
                        projection.add(layout.field(*field));
                    }
                }
            }
        }
    }

    /// Tests every row; the columns of [`Predicate::add_columns`] must have been read.
    pub fn evaluate(&self, batch: &Batch) -> BooleanBuffer {
        self.truth(batch, None).yes
    }

    /// Tests only the `open` rows; the others do not match.
    pub fn evaluate_open(&self, batch: &Batch, open: &BooleanBuffer) -> BooleanBuffer {
        &self.truth(batch, Some(open)).yes & open
    }

    /// Relation of the events of a region to this predicate. [`Relation::None`] and [`Relation::All`] are certain.
    pub fn relation(&self, region: &dyn Region) -> Relation {
        self.outcomes(region).relation()
    }

    /// The result for each row. Rows that are not `open` are already decided and may get any result.
    pub(crate) fn truth(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        match self.node() {
            Node::Constant(value) => Truth::constant(*value, batch.rows()),
            Node::And(parts) => {
                let mut truth = Truth::constant(true, batch.rows());
                for part in parts {
                    // A false row stays false. An unknown one may still become false, and a NOT above distinguishes
                    // the two.
                    let rest = still_open(open, &truth.falses());
                    truth = truth.and(part.truth(batch, Some(&rest)));
                }
                truth
            }
            Node::Or(any) => any.truth(batch, open),
            Node::Not(inner) => inner.truth(batch, open).not(),
            Node::Bbox(test) => test.evaluate(batch, open),
            Node::Primary(interval) => temporal::evaluate_primary(interval, batch),
            Node::Near(near) => near.evaluate(batch, open),
            Node::Spatial(test) => test.evaluate(batch, open),
            Node::Located(value) => Places::of(batch).constant(*value, batch.rows()),
            Node::Temporal(test) => test.evaluate(batch),
            Node::Number { op, left, right } => numbers::evaluate(*op, *left, *right, batch),
            Node::NumberIn { field, set } => set.evaluate(*field, batch),
            Node::Text { op, left, right } => texts::evaluate(*op, left, right, batch, open),
            Node::TextIn { value, set } => texts::evaluate_in(value, set, batch, open),
            Node::Like { value, pattern } => texts::evaluate_like(value, pattern, batch, open),
            Node::Bool(test) => test.evaluate(batch).unwrap_or_else(|| not_read(batch)),
            Node::Lists { op, left, right } => texts::evaluate_lists(*op, left, right, batch, open),
            Node::IsNull(Nullable::Geometry) => Places::of(batch).is_null(batch.rows()),
            Node::IsNull(Nullable::Field(field)) => match batch.column(batch.layout().field(*field)) {
                Some(column) => null_rows(column.nulls(), batch.rows()),
                None => not_read(batch),
            },
        }
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        match self.node() {
            Node::Constant(value) => Outcomes::of(*value, !*value),
            Node::And(parts) => parts.iter().fold(Outcomes::TRUE, |o, p| o.and(p.outcomes(region))),
            Node::Or(any) => any.outcomes(region),
            Node::Not(inner) => inner.outcomes(region).not(),
            Node::Bbox(test) => test.outcomes(region),
            Node::Primary(interval) => temporal::primary_outcomes(interval, region),
            Node::Near(near) => near.outcomes(region),
            Node::Spatial(test) => test.outcomes(region),
            // As in SQL, a test of a missing geometry is unknown, and so is its negation.
            Node::Located(_) if region.bounds().is_nowhere() => Outcomes::UNKNOWN,
            Node::Located(value) => Outcomes::of(*value, !*value).with_unknown(region.some_nowhere()),
            Node::Temporal(test) => test.outcomes(region),
            Node::Number { op, left, right } => numbers::outcomes(*op, *left, *right, region),
            Node::NumberIn { field, set } => set.outcomes(*field, region),
            Node::IsNull(Nullable::Geometry) if region.bounds().is_nowhere() => Outcomes::TRUE,
            Node::IsNull(Nullable::Geometry) => Outcomes::of(region.some_nowhere(), true),
            Node::IsNull(Nullable::Field(field)) => match region.field_range(*field) {
                // An empty range means that no event of the region has a value.
                Some(range) => Outcomes::of(range.nulls, range.min <= range.max),
                None => Outcomes::TRUE_OR_FALSE,
            },
            // Tree nodes summarise numbers only.
            Node::Text { .. } | Node::TextIn { .. } | Node::Like { .. } | Node::Bool(_) | Node::Lists { .. } => {
                Outcomes::ANY
            }
        }
    }
}

/// A column that the caller should have read: the result is unknown.
fn not_read(batch: &Batch) -> Truth {
    debug_assert!(false, "a column was not read: see Predicate::add_columns");
    Truth::unknown(batch.rows())
}
