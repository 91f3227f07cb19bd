//! The view that a predicate has of a node of a tree, and the resulting relation.

use crate::bounds::Bounds;

/// Relation of a set of events to a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Surely no event of the set matches.
    None,
    /// Some may match; each must be tested.
    Some,
    /// Surely every event of the set matches.
    All,
}

/// A set of events, known only by bounds: a node of a tree, a segment, a memory tree.
pub trait Region {
    /// The union of the boxes of the events ([`crate::Batch::bounds`]); it may be larger, never smaller.
    ///
    /// A nowhere box ([`Bounds::is_nowhere`]) says that no event of the set has a geometry. So a tree built
    /// without geometry must say [`Bounds::WORLD`] and override [`Region::some_nowhere`].
    fn bounds(&self) -> Bounds;

    /// The range of a numeric field (index into [`crate::Schema::fields`]); `None` if it is not known.
    fn field_range(&self, field: usize) -> Option<FieldRange>;

    /// Whether some event of the set may lack a geometry. The default is right for sets that hold either only
    /// events with a geometry or only events without one. A region that mixes the two must override it.
    fn some_nowhere(&self) -> bool {
        self.bounds().is_nowhere()
    }
}

/// Where the values of a numeric field lie in a [`Region`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldRange {
    /// Not above any value: an integer that no float equals is rounded down.
    pub min: f64,
    /// Not below any value: rounded up likewise. `min > max` says that there is no value at all.
    pub max: f64,
    /// Whether some event may have no value.
    pub nulls: bool,
}

impl FieldRange {
    /// The range of a field that is null in every event.
    pub const EMPTY: FieldRange = FieldRange { min: f64::INFINITY, max: f64::NEG_INFINITY, nulls: true };

    /// The smallest range of floats that holds the integers `min..=max`.
    pub fn of_ints(min: i64, max: i64, nulls: bool) -> FieldRange {
        FieldRange { min: float_below(min), max: float_above(max), nulls }
    }
}

/// The max float that is not above an integer.
pub fn float_below(n: i64) -> f64 {
    let x = n as f64;
    // Beyond 2^53 the cast rounds to nearest, in either direction; i128 holds every cast result exactly.
    if x as i128 > i128::from(n) { x.next_down() } else { x }
}

/// The min float that is not below an integer.
pub fn float_above(n: i64) -> f64 {
    let x = n as f64;
    if (x as i128) < i128::from(n) { x.next_up() } else { x }
}
