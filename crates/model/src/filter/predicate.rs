//! Predicates: filters bound to a schema, ready to run.

use super::near::Near;
use super::outcomes::Outcomes;
use super::place::BoxTest;
use super::region::{Region, Relation};
use super::temporal;
use super::truth::{Truth, still_open};
use crate::batch::Batch;
use crate::layout::{Layout, Projection};
use crate::schema::Schema;
use crate::time::Interval;
use arrow_buffer::BooleanBuffer;
use std::sync::Arc;

/// A test of events: `bbox`, `datetime`, `near` and CQL2 all become one of these.
///
/// Typed, bound to one [`Schema`] (where it names fields), cheap to clone. Inside, logic is SQL's with three values:
/// a comparison with a null is unknown, and so is its negation; at the end, unknown is no match.
#[derive(Debug, Clone)]
pub struct Predicate(Arc<Node>);

#[derive(Debug)]
enum Node {
    /// Matches everything, or nothing.
    Constant(bool),
    /// All of these; never empty.
    And(Vec<Predicate>),
    /// Any of these; never empty.
    Or(Vec<Predicate>),
    Not(Predicate),
    Bbox(BoxTest),
    /// The primary time shares an instant with the interval.
    Primary(Interval),
    Near(Near),
}

impl Predicate {
    fn new(node: Node) -> Predicate {
        Predicate(Arc::new(node))
    }

    /// Matches every event.
    pub fn all() -> Predicate {
        Predicate::new(Node::Constant(true))
    }

    /// Matches no event.
    pub fn none() -> Predicate {
        Predicate::new(Node::Constant(false))
    }

    /// Matches what all of these match; everything, if there are none.
    pub fn and(parts: Vec<Predicate>) -> Predicate {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &*part.0 {
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
                // Cheap tests first: what they turn down, the dear ones need not look at.
                flat.sort_by_key(Predicate::cost);
                Predicate::new(Node::And(flat))
            }
        }
    }

    /// Matches what any of these matches; nothing, if there are none.
    pub fn or(parts: Vec<Predicate>) -> Predicate {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &*part.0 {
                Node::Constant(false) => {}
                Node::Constant(true) => return part,
                Node::Or(inner) => flat.extend(inner.iter().cloned()),
                _ => flat.push(part),
            }
        }
        match flat.len() {
            0 => Predicate::none(),
            1 => flat.remove(0),
            _ => {
                flat.sort_by_key(Predicate::cost);
                Predicate::new(Node::Or(flat))
            }
        }
    }

    /// Matches what this surely does not match: what is unknown stays unknown.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Predicate {
        match &*self.0 {
            Node::Constant(value) => Predicate::new(Node::Constant(!value)),
            Node::Not(inner) => inner.clone(),
            _ => Predicate::new(Node::Not(self)),
        }
    }

    /// Matches events whose geometry shares a point with the box, given in degrees; edges belong to it.
    ///
    /// `west > east` crosses the antimeridian. Otherwise longitudes are compared as they are written: a box that
    /// ends at 180 does not hold a point at -180, as in PostGIS and other planar systems, while a box that crosses
    /// holds both. An event without geometry never matches.
    pub fn bbox(west: f64, south: f64, east: f64, north: f64) -> Predicate {
        Predicate::new(Node::Bbox(BoxTest::new([west, south, east, north])))
    }

    /// Matches events whose primary time shares an instant with the interval, ends included; in a collection
    /// without time, every event. A null start or end of an event is open.
    pub fn interval(interval: Interval) -> Predicate {
        if interval == Interval::ALWAYS { Predicate::all() } else { Predicate::new(Node::Primary(interval)) }
    }

    /// Matches events at most `radius_m` metres from a place in degrees, over the globe ([`crate::sphere`]); of a
    /// shape the nearest point counts ([`super::globe`]). An event without geometry never matches.
    pub fn near(lon: f64, lat: f64, radius_m: f64) -> Predicate {
        Predicate::new(Node::Near(Near::new(lon, lat, radius_m)))
    }

    /// Whether this matches every event, whatever it holds.
    pub fn is_all(&self) -> bool {
        matches!(*self.0, Node::Constant(true))
    }

    /// Whether this matches no event, whatever it holds.
    pub fn is_none(&self) -> bool {
        matches!(*self.0, Node::Constant(false))
    }

    /// The ids that an event must have one of to match, sorted; `None` if other events may match too.
    pub fn ids(&self) -> Option<Vec<String>> {
        match &*self.0 {
            Node::Constant(false) => Some(Vec::new()),
            Node::And(parts) => parts.iter().filter_map(Predicate::ids).min_by_key(Vec::len),
            Node::Or(parts) => {
                let mut ids = parts.iter().map(Predicate::ids).collect::<Option<Vec<_>>>()?.concat();
                ids.sort_unstable();
                ids.dedup();
                Some(ids)
            }
            _ => None,
        }
    }

    /// Adds the columns that [`Predicate::evaluate`] reads.
    pub fn add_columns(&self, layout: &Layout, schema: &Schema, projection: &mut Projection) {
        match &*self.0 {
            Node::Constant(_) => {}
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().for_each(|p| p.add_columns(layout, schema, projection));
            }
            Node::Not(inner) => inner.add_columns(layout, schema, projection),
            Node::Bbox(_) | Node::Near(_) => projection.add_geometry(layout),
            Node::Primary(_) => projection.add_time(layout, schema),
        }
    }

    /// Tests every row; the columns of [`Predicate::add_columns`] must have been read.
    pub fn evaluate(&self, batch: &Batch) -> BooleanBuffer {
        self.truth(batch, None).yes
    }

    /// How the events of a region stand to this: an answer other than [`Relation::Some`] is a promise.
    pub fn relation(&self, region: &dyn Region) -> Relation {
        self.outcomes(region).relation()
    }

    /// What this says of each row. Rows that are not `open` are decided already and may come out as anything.
    fn truth(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        match &*self.0 {
            Node::Constant(value) => Truth::constant(*value, batch.rows()),
            Node::And(parts) => {
                let mut truth = Truth::constant(true, batch.rows());
                for part in parts {
                    let rest = still_open(open, &truth.falses());
                    truth = truth.and(part.truth(batch, Some(&rest)));
                }
                truth
            }
            Node::Or(parts) => {
                let mut truth = Truth::constant(false, batch.rows());
                for part in parts {
                    let rest = still_open(open, &truth.yes);
                    truth = truth.or(part.truth(batch, Some(&rest)));
                }
                truth
            }
            Node::Not(inner) => inner.truth(batch, open).not(),
            Node::Bbox(test) => test.evaluate(batch, open),
            Node::Primary(interval) => temporal::evaluate_primary(interval, batch),
            Node::Near(near) => near.evaluate(batch, open),
        }
    }

    fn outcomes(&self, region: &dyn Region) -> Outcomes {
        match &*self.0 {
            Node::Constant(value) => Outcomes::of(*value, !*value),
            Node::And(parts) => parts.iter().fold(Outcomes::TRUE, |o, p| o.and(p.outcomes(region))),
            Node::Or(parts) => parts.iter().fold(Outcomes::FALSE, |o, p| o.or(p.outcomes(region))),
            Node::Not(inner) => inner.outcomes(region).not(),
            Node::Bbox(test) => test.outcomes(region),
            Node::Primary(interval) => temporal::primary_outcomes(interval, region),
            Node::Near(near) => near.outcomes(region),
        }
    }

    /// A guess of what testing a row costs, to order the parts of AND and OR.
    fn cost(&self) -> u32 {
        match &*self.0 {
            Node::Constant(_) => 0,
            Node::And(parts) | Node::Or(parts) => parts.iter().map(Predicate::cost).fold(0, u32::saturating_add),
            Node::Not(inner) => inner.cost(),
            Node::Primary(_) => 1,
            Node::Bbox(_) => 2,
            Node::Near(_) => 20,
        }
    }
}
