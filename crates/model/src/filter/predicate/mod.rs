//! Predicates: filters bound to a schema, ready to run.

mod build;
mod evaluate;
mod verdict;

pub use verdict::RegionVerdict;

use super::any::AnyOf;
use super::booleans::BoolTest;
use super::expr::{ArrayOp, Comparison};
use super::like::Pattern;
use super::near::Near;
use super::numbers::{Number, NumberSet};
use super::place::BoxTest;
use super::spatial::SpatialTest;
use super::temporal::TemporalTest;
use super::texts::{List, Source as TextSource, Text, TextSet};
use super::wire::Source;
use crate::time::Interval;
use std::sync::Arc;

/// A test of events: `bbox`, `datetime`, `near` and CQL2 all become one of these.
///
/// Typed, bound to one [`Schema`](crate::Schema) if it names fields, and cheap to clone. Logic is three-valued as in
/// SQL: a comparison with a null is unknown, and so is its negation. In the end, unknown is no match.
///
/// It keeps its source expression ([`Predicate::to_json`]).
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
    /// A test of the geometry against one of the filter.
    Spatial(Box<SpatialTest>),
    /// True (or false) for every event that has a geometry.
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

/// The parts of a predicate whose values may be null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Nullable {
    Field(usize),
    Geometry,
}

impl Predicate {
    pub(crate) fn new(node: Node) -> Predicate {
        Predicate { node: Arc::new(node), source: None }
    }

    /// The same predicate with a source expression.
    fn of(self, source: Option<Source>) -> Predicate {
        Predicate { source: source.map(Arc::new), ..self }
    }

    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// Whether this matches every event.
    pub fn is_all(&self) -> bool {
        matches!(*self.node, Node::Constant(true))
    }

    /// The interval, if the primary time is the only condition; [`Interval::ALWAYS`] if there is no condition at all.
    pub fn as_interval(&self) -> Option<Interval> {
        match *self.node {
            Node::Constant(true) => Some(Interval::ALWAYS),
            Node::Primary(interval) => Some(interval),
            _ => None,
        }
    }

    /// Whether this matches no event.
    pub fn is_none(&self) -> bool {
        match self.node() {
            Node::Constant(value) => !value,
            // Beside its time: see `none_within`.
            Node::And(parts) => parts.first().is_some_and(Predicate::is_none),
            _ => false,
        }
    }

    /// The ids of all events that can match, sorted; `None` if other events may match too.
    pub fn ids(&self) -> Option<Vec<String>> {
        match self.node() {
            Node::Constant(false) => Some(Vec::new()),
            Node::Text { op: Comparison::Eq, left: Text { source: TextSource::Id, fold: false }, right } => {
                // Folded ids are not stored, so a key lookup would not find them.
                right.literal().filter(|_| !right.fold).map(|id| vec![id.into_owned()])
            }
            Node::TextIn { value: Text { source: TextSource::Id, fold: false }, set } => {
                let mut ids: Vec<String> = set.iter().cloned().collect();
                ids.sort_unstable();
                Some(ids)
            }
            // Any part's ids cover all matches; the shortest list means the fewest lookups.
            Node::And(parts) => parts.iter().filter_map(Predicate::ids).min_by_key(Vec::len),
            Node::Or(any) => {
                // One alternative without ids may match any event, so the ids of the others bound nothing.
                let mut ids = any.parts.iter().map(Predicate::ids).collect::<Option<Vec<_>>>()?.concat();
                ids.sort_unstable();
                ids.dedup();
                Some(ids)
            }
            _ => None,
        }
    }

    /// Whether this refers to the id. If ids are generated, the batch must then carry their sequence numbers:
    /// [`Batch::with_seqs`](crate::Batch::with_seqs).
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
}
