//! Predicates: filters bound to a schema, ready to run.

use super::any::AnyOf;
use super::bind::bind;
use super::booleans::BoolTest;
use super::expr::{ArrayOp, Comparison, Expr};
use super::near::Near;
use super::numbers::{self, Number, NumberSet};
use super::outcomes::Outcomes;
use super::place::{BoxTest, Places, null_rows};
use super::region::{Region, Relation};
use super::spatial::SpatialTest;
use super::temporal::{self, TemporalTest};
use super::texts::{self, List, Pattern, Source as TextSource, Text, TextSet};
use super::truth::{Truth, still_open};
use super::wire::Source;
use crate::batch::Batch;
use crate::error::Invalid;
use crate::layout::{Layout, Projection};
use crate::schema::Schema;
use crate::time::Interval;
use arrow_array::Array;
use arrow_buffer::BooleanBuffer;
use std::sync::Arc;

/// A test of events: `bbox`, `datetime`, `near` and CQL2 all become one of these.
///
/// Typed, bound to one [`Schema`] (where it names fields), cheap to clone. Inside, logic is SQL's with three values:
/// a comparison with a null is unknown, and so is its negation; at the end, unknown is no match.
///
/// It keeps the expression from which it was bound ([`Predicate::to_json`]).
#[derive(Debug, Clone)]
pub struct Predicate {
    node: Arc<Node>,
    /// `None` inside a bound filter: only the whole filter keeps its expression.
    source: Option<Arc<Source>>,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Matches everything, or nothing.
    Constant(bool),
    /// All of these; never empty.
    And(Vec<Predicate>),
    /// Any of these; never empty.
    Or(AnyOf),
    Not(Predicate),
    Bbox(BoxTest),
    /// The primary time shares an instant with the interval.
    Primary(Interval),
    Near(Near),
    /// The geometry against one of the filter.
    Spatial(Box<SpatialTest>),
    /// True, or false, of every event that has a geometry.
    Located(bool),
    Temporal(TemporalTest),
    Number {
        op: Comparison,
        left: Number,
        right: Number,
    },
    NumberIn {
        field: usize,
        set: NumberSet,
    },
    Text {
        op: Comparison,
        left: Text,
        right: Text,
    },
    TextIn {
        value: Text,
        set: TextSet,
    },
    Like {
        value: Text,
        pattern: Pattern,
    },
    Bool(BoolTest),
    Lists {
        op: ArrayOp,
        left: List,
        right: List,
    },
    IsNull(Nullable),
}

/// What may be null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nullable {
    Field(usize),
    Geometry,
}

impl Predicate {
    pub(crate) fn new(node: Node) -> Predicate {
        Predicate { node: Arc::new(node), source: None }
    }

    /// The same, made of an expression.
    fn of(self, source: Option<Source>) -> Predicate {
        Predicate { source: source.map(Arc::new), ..self }
    }

    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    pub(crate) fn constant(value: bool) -> Predicate {
        if value { Predicate::all() } else { Predicate::none() }
    }

    /// Binds a CQL2 filter to a schema. An unknown property, or types that do not go together, come back as a
    /// error that names the property.
    ///
    /// A property is a field by name, the geometry by [`Schema::geometry_name`] (or `geometry`), or the id by
    /// [`Schema::id_name`] (or `id`). FALSE is less than TRUE. A `DATE` is a whole day in UTC. A text next to a time is read as a time. Text is
    /// ordered by Unicode code point. Geometry is planar in degrees and as written: a `BBOX` with `west > east` crosses
    /// the antimeridian, other shapes do not. Of the spatial functions, those other than `S_INTERSECTS` and
    /// `S_DISJOINT` take valid geometries of one kind only.
    pub fn bind(expr: &Expr, schema: &Schema) -> Result<Predicate, Invalid> {
        Ok(bind(expr, schema)?.of(Some(Source::Cql2(expr.clone()))))
    }

    /// Matches every event.
    pub fn all() -> Predicate {
        Predicate::new(Node::Constant(true)).of(Some(Source::And(Vec::new())))
    }

    /// Matches no event.
    pub fn none() -> Predicate {
        Predicate::new(Node::Constant(false)).of(Some(Source::Or(Vec::new())))
    }

    /// Matches what all of these match; everything, if there are none.
    pub fn and(parts: Vec<Predicate>) -> Predicate {
        let source = sources(&parts, Source::And);
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part.node() {
                Node::Constant(true) => {}
                Node::Constant(false) => return part,
                Node::And(inner) => flat.extend(inner.iter().cloned()),
                _ => flat.push(part),
            }
        }
        match flat.len() {
            0 => Predicate::all(),
            1 => flat.remove(0),
            _ => {
                // Cheap tests first: expensive tests skip the rows that these rule out.
                flat.sort_by_key(Predicate::cost);
                Predicate::new(Node::And(flat)).of(source)
            }
        }
    }

    /// Matches what any of these matches; nothing, if there are none.
    pub fn or(parts: Vec<Predicate>) -> Predicate {
        let source = sources(&parts, Source::Or);
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part.node() {
                Node::Constant(false) => {}
                Node::Constant(true) => return part,
                Node::Or(inner) => flat.extend(inner.parts.iter().cloned()),
                _ => flat.push(part),
            }
        }
        match flat.len() {
            0 => Predicate::none(),
            1 => flat.remove(0),
            _ => {
                flat.sort_by_key(Predicate::cost);
                Predicate::new(Node::Or(AnyOf::new(flat))).of(source)
            }
        }
    }

    /// Matches the events for which this is false; unknown stays unknown.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Predicate {
        let source = self.source.clone().map(Source::Not);
        match self.node() {
            Node::Constant(value) => Predicate::constant(!value),
            Node::Not(inner) => inner.clone().of(source),
            _ => Predicate::new(Node::Not(self.plain())).of(source),
        }
    }

    /// The same with [`AnyOf::plain`] alternatives, which distinguish false from unknown.
    fn plain(&self) -> Predicate {
        let all = |parts: &[Predicate]| parts.iter().map(Predicate::plain).collect();
        match self.node() {
            Node::And(parts) => Predicate::new(Node::And(all(parts))),
            Node::Or(any) => Predicate::new(Node::Or(AnyOf::plain(all(&any.parts)))),
            // Operands of NOT are plain already, and other nodes have no alternatives.
            _ => self.clone(),
        }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Matches events whose geometry shares a point with the box, given in degrees; edges belong to it.
    ///
    /// `west > east` crosses the antimeridian. Otherwise longitudes are compared as they are written: a box that
    /// ends at 180 does not hold a point at -180, as in PostGIS and other planar systems, while a box that crosses
    /// holds both. An event without geometry never matches.
    pub fn bbox(west: f64, south: f64, east: f64, north: f64) -> Predicate {
        let sides = [west, south, east, north];
        Predicate::new(Node::Bbox(BoxTest::new(sides))).of(Some(Source::Bbox(sides)))
    }

    /// Matches events whose primary time shares an instant with the interval, ends included; in a collection
    /// without time, every event. A null start or end of an event is open; an event with neither has no time and does
    /// not match.
    pub fn interval(interval: Interval) -> Predicate {
        if interval == Interval::ALWAYS {
            return Predicate::all();
        }
        Predicate::new(Node::Primary(interval)).of(Some(Source::Time(interval)))
    }

    /// Matches events at most `radius_m` metres from a place in degrees, over the globe ([`crate::sphere`]); of a
    /// shape the nearest point counts ([`super::globe`]). An event without geometry never matches.
    pub fn near(lon: f64, lat: f64, radius_m: f64) -> Predicate {
        Predicate::new(Node::Near(Near::new(lon, lat, radius_m))).of(Some(Source::Near([lon, lat, radius_m])))
    }

    /// Matches events that have a geometry.
    pub fn located() -> Predicate {
        Predicate::new(Node::Located(true)).of(Some(Source::Located))
    }

    /// Whether this matches every event, whatever it holds.
    pub fn is_all(&self) -> bool {
        matches!(*self.node, Node::Constant(true))
    }

    /// The interval, if this has no other condition than the primary time; [`Interval::ALWAYS`] if it has none at all.
    pub fn as_interval(&self) -> Option<Interval> {
        match *self.node {
            Node::Constant(true) => Some(Interval::ALWAYS),
            Node::Primary(interval) => Some(interval),
            _ => None,
        }
    }

    /// Whether this matches no event, whatever it holds.
    pub fn is_none(&self) -> bool {
        matches!(*self.node, Node::Constant(false))
    }

    /// The ids that an event must have one of to match, sorted; `None` if other events may match too.
    pub fn ids(&self) -> Option<Vec<String>> {
        match self.node() {
            Node::Constant(false) => Some(Vec::new()),
            Node::Text { op: Comparison::Eq, left: Text { source: TextSource::Id, fold: false }, right } => {
                right.literal().filter(|_| !right.fold).map(|id| vec![id.into_owned()])
            }
            Node::TextIn { value: Text { source: TextSource::Id, fold: false }, set } => {
                let mut ids: Vec<String> = set.iter().cloned().collect();
                ids.sort_unstable();
                Some(ids)
            }
            // Any part's ids contain the matches; the shortest list is the fewest lookups.
            Node::And(parts) => parts.iter().filter_map(Predicate::ids).min_by_key(Vec::len),
            Node::Or(any) => {
                // One alternative without ids may match any event, and then the ids of the others bound nothing.
                let mut ids = any.parts.iter().map(Predicate::ids).collect::<Option<Vec<_>>>()?.concat();
                ids.sort_unstable();
                ids.dedup();
                Some(ids)
            }
            _ => None,
        }
    }

    /// Whether this speaks of the id. Where ids are made, the batch must then carry the sequence numbers that they are
    /// made from: [`Batch::with_seqs`].
    pub fn reads_id(&self) -> bool {
        let is_id = |text: &Text| text.source == TextSource::Id;
        match self.node() {
            Node::And(parts) | Node::Or(AnyOf { parts, .. }) => parts.iter().any(Predicate::reads_id),
            Node::Not(inner) => inner.reads_id(),
            Node::Text { left, right, .. } => is_id(left) || is_id(right),
            Node::TextIn { value, .. } | Node::Like { value, .. } => is_id(value),
            _ => false,
        }
    }

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

    /// Tests the rows of `open` alone: the others do not match.
    pub fn evaluate_open(&self, batch: &Batch, open: &BooleanBuffer) -> BooleanBuffer {
        &self.truth(batch, Some(open)).yes & open
    }

    /// Relation of the events of a region to this. [`Relation::None`] and [`Relation::All`] are certain.
    pub fn relation(&self, region: &dyn Region) -> Relation {
        self.outcomes(region).relation()
    }

    /// What this says of each row. Rows that are not `open` are decided already and may come out as anything.
    pub(crate) fn truth(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        match self.node() {
            Node::Constant(value) => Truth::constant(*value, batch.rows()),
            Node::And(parts) => {
                let mut truth = Truth::constant(true, batch.rows());
                for part in parts {
                    // A row that is false already stays false. One that is unknown may still become false, and NOT above
                    // tells the two apart.
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
            // As in SQL: a test of a missing geometry is unknown, also in its negation.
            Node::Located(_) if region.bounds().is_nowhere() => Outcomes::UNKNOWN,
            Node::Located(value) => Outcomes::of(*value, !*value).with_unknown(region.some_nowhere()),
            Node::Temporal(test) => test.outcomes(region),
            Node::Number { op, left, right } => numbers::outcomes(*op, *left, *right, region),
            Node::NumberIn { field, set } => set.outcomes(*field, region),
            Node::IsNull(Nullable::Geometry) if region.bounds().is_nowhere() => Outcomes::TRUE,
            Node::IsNull(Nullable::Geometry) => Outcomes::of(region.some_nowhere(), true),
            Node::IsNull(Nullable::Field(field)) => match region.field_range(*field) {
                Some(range) => Outcomes::of(range.nulls, range.min <= range.max),
                None => Outcomes::TRUE_OR_FALSE,
            },
            // The tree's nodes summarise numbers only.
            Node::Text { .. } | Node::TextIn { .. } | Node::Like { .. } | Node::Bool(_) | Node::Lists { .. } => {
                Outcomes::ANY
            }
        }
    }

    /// A guess of what testing a row costs, to order the parts of AND and OR.
    fn cost(&self) -> u32 {
        match self.node() {
            Node::Constant(_) => 0,
            Node::And(parts) | Node::Or(AnyOf { parts, .. }) => {
                parts.iter().map(Predicate::cost).fold(0, u32::saturating_add)
            }
            Node::Not(inner) => inner.cost(),
            Node::Primary(_) => 1,
            Node::Bbox(_) => 2,
            Node::Located(_) | Node::IsNull(_) | Node::Bool(_) => 1,
            Node::Number { .. } => 2,
            Node::Temporal(_) => 3,
            Node::NumberIn { .. } => 5,
            Node::Text { .. } => 8,
            Node::TextIn { .. } => 15,
            Node::Near(_) | Node::Like { .. } => 20,
            Node::Lists { .. } => 40,
            Node::Spatial(_) => 60,
        }
    }
}

/// The combined expression of parts, if each has one.
fn sources(parts: &[Predicate], join: fn(Vec<Arc<Source>>) -> Source) -> Option<Source> {
    parts.iter().map(|part| part.source().cloned()).collect::<Option<Vec<_>>>().map(join)
}

/// A column that the caller should have read: nothing is known of it.
fn not_read(batch: &Batch) -> Truth {
    debug_assert!(false, "a column was not read: see Predicate::add_columns");
    Truth::unknown(batch.rows())
}
