//! A predicate's view of a tree node, and the resulting relation.

use crate::bounds::Bounds;

/// Relation of a set of events to a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Certainly no event of the set matches.
    None,
    /// Some events may match; each must be tested.
    Some,
    /// Certainly every event of the set matches.
    All,
}

/// A set of events known only by bounds: a tree node, a segment, a memory tree.
pub trait Region {
    /// The union of the boxes of the events ([`crate::Batch::bounds`]); it may be larger, never smaller.
    ///
    /// A nowhere box ([`Bounds::is_nowhere`]) means that no event of the set has a geometry. So a tree built without
    /// geometry must return [`Bounds::WORLD`] and override [`Region::some_nowhere`].
    fn bounds(&self) -> Bounds;

    /// The range of a numeric field (index into [`crate::Schema::fields`]); `None` if unknown.
    fn field_range(&self, field: usize) -> Option<FieldRange>;

    /// Whether some event of the set may lack a geometry. The default is correct for sets in which either all events
    /// or no events have one. A region that mixes the two must override it.
    fn some_nowhere(&self) -> bool {
        self.bounds().is_nowhere()
    }
}

/// Range of the values of a numeric field in a [`Region`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldRange {
    /// Lower bound of the values; an integer that no float equals is rounded down.
    pub min: f64,
    /// Upper bound of the values, rounded up likewise. `min > max` means that there is no value.
    pub max: f64,
    /// Whether some event may have no value.
    pub nulls: bool,
}

impl FieldRange {
    /// The range of a field that is null in every event.
    pub const EMPTY: FieldRange = FieldRange { min: f64::INFINITY, max: f64::NEG_INFINITY, nulls: true };

    /// The smallest range of floats that contains the integers `min..=max`.
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
