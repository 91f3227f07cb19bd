//! Construction of predicates: tests, and AND, OR and NOT of them.

use super::{Node, Predicate};
use crate::bounds::Bounds;
use crate::error::Invalid;
use crate::filter::any::AnyOf;
use crate::filter::bind::bind;
use crate::filter::expr::Expr;
use crate::filter::near::Near;
use crate::filter::place::BoxTest;
use crate::filter::wire::Source;
use crate::schema::Schema;
use crate::time::Interval;
use std::sync::Arc;

impl Predicate {
    pub(crate) fn constant(value: bool) -> Predicate {
        if value { Predicate::all() } else { Predicate::none() }
    }

    /// Binds a CQL2 filter to a schema. An unknown property or incompatible types yield an error that names the
    /// property.
    ///
    /// A property is a field by name, the geometry by [`Schema::geometry_name`] (or `geometry`), or the id by
    /// [`Schema::id_name`] (or `id`). FALSE is less than TRUE. A `DATE` is a whole day in UTC. A text compared with a
    /// time is parsed as a time. Text is ordered by Unicode code point. Geometry is planar in degrees and as written:
    /// a `BBOX` with `west > east` crosses the antimeridian, other shapes do not. Spatial functions other than
    /// `S_INTERSECTS` and `S_DISJOINT` take valid geometries of one kind only.
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

    /// Matches what all of these match; everything if empty.
    pub fn and(parts: Vec<Predicate>) -> Predicate {
        let source = sources(&parts, Source::And);
        if parts.iter().any(Predicate::is_none) {
            return Predicate::none_within(parts).of(source);
        }
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part.node() {
                Node::Constant(true) => {}
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

    /// Matches no event, within the time of these parts: it bounds the windows of an aggregate, also of no events.
    fn none_within(parts: Vec<Predicate>) -> Predicate {
        let Bounds { start, end, .. } = Predicate::new(Node::And(parts)).reach();
        let time = Predicate::interval(Interval { start, end });
        if time.is_all() { Predicate::none() } else { Predicate::new(Node::And(vec![Predicate::none(), time])) }
    }

    /// Matches what any of these matches; nothing if empty.
    pub fn or(parts: Vec<Predicate>) -> Predicate {
        let source = sources(&parts, Source::Or);
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part.node() {
                _ if part.is_none() => {}
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
            Node::Constant(true) => Predicate::none(),
            _ if self.is_none() => Predicate::all(),
            // Double negation cancels, in three-valued logic too.
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

    /// Matches events whose geometry shares a point with the box in degrees, edges included.
    ///
    /// `west > east` crosses the antimeridian. Otherwise longitudes are compared as written. A box that ends at 180
    /// does not contain a point at -180, as in PostGIS and other planar systems. A box that crosses contains both. An
    /// event without geometry never matches.
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

    /// Matches events at most `radius_m` metres from a place in degrees, over the globe ([`crate::sphere`]). For
    /// shapes the nearest point counts ([`crate::filter::globe`]). An event without geometry never matches.
    pub fn near(lon: f64, lat: f64, radius_m: f64) -> Predicate {
        Predicate::new(Node::Near(Near::new(lon, lat, radius_m))).of(Some(Source::Near([lon, lat, radius_m])))
    }

    /// Matches events that have a geometry.
    pub fn located() -> Predicate {
        Predicate::new(Node::Located(true)).of(Some(Source::Located))
    }

    /// Number of rows to test at a time, so that a test takes well under a millisecond. A query can be cancelled or
    /// preempted only between tests.
    pub fn rows_at_once(&self) -> usize {
        (16_384 / self.cost().max(1) as usize).clamp(1, 4096)
    }

    /// Estimated cost per row, to order the parts of AND and OR.
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

/// The combined expression of the parts, if each has one.
fn sources(parts: &[Predicate], join: fn(Vec<Arc<Source>>) -> Source) -> Option<Source> {
    parts.iter().map(|part| part.source().cloned()).collect::<Option<Vec<_>>>().map(join)
}
