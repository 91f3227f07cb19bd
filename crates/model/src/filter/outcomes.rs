//! The truth values that a predicate can take over a set of events.

use super::region::Relation;

/// A subset of {true, false, unknown}: the values that a predicate may take for the events of a region.
///
/// Sets err only on the large side, so [`Outcomes::relation`] never promises too much. Three-valued logic is applied
/// value by value, so `NOT` over nulls is correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcomes(u8);

impl Outcomes {
    pub(crate) const TRUE: Outcomes = Outcomes(1);
    pub(crate) const FALSE: Outcomes = Outcomes(2);
    pub(crate) const UNKNOWN: Outcomes = Outcomes(4);
    pub(crate) const TRUE_OR_FALSE: Outcomes = Outcomes(3);
    pub(crate) const ANY: Outcomes = Outcomes(7);

    /// The set with true and false as given.
    pub(crate) fn of(can_be_true: bool, can_be_false: bool) -> Outcomes {
        Outcomes(u8::from(can_be_true) | u8::from(can_be_false) << 1)
    }

    /// Adds unknown if `maybe`.
    pub(crate) fn with_unknown(self, maybe: bool) -> Outcomes {
        if maybe { self.union(Outcomes::UNKNOWN) } else { self }
    }

    pub(crate) fn union(self, other: Outcomes) -> Outcomes {
        Outcomes(self.0 | other.0)
    }

    fn can_be(self, value: Outcomes) -> bool {
        self.0 & value.0 != 0
    }

    pub(crate) fn not(self) -> Outcomes {
        Outcomes::of(self.can_be(Outcomes::FALSE), self.can_be(Outcomes::TRUE))
            .with_unknown(self.can_be(Outcomes::UNKNOWN))
    }

    /// The possible values of `a AND b`, as if the two were independent.
    pub(crate) fn and(self, other: Outcomes) -> Outcomes {
        if self.0 == 0 || other.0 == 0 {
            return Outcomes(0);
        }
        let (t, f, u) = (Outcomes::TRUE, Outcomes::FALSE, Outcomes::UNKNOWN);
        let unknown = self.can_be(u) && (other.can_be(u) || other.can_be(t)) || other.can_be(u) && self.can_be(t);
        Outcomes::of(self.can_be(t) && other.can_be(t), self.can_be(f) || other.can_be(f)).with_unknown(unknown)
    }

    pub(crate) fn or(self, other: Outcomes) -> Outcomes {
        self.not().and(other.not()).not()
    }

    /// The relation for a planner: unknown counts as no match.
    pub(crate) fn relation(self) -> Relation {
        if !self.can_be(Outcomes::TRUE) {
            Relation::None
        } else if self == Outcomes::TRUE {
            Relation::All
        } else {
            Relation::Some
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kleene's truth tables, with `None` for unknown.
    fn kleene_and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
        match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    fn set(values: &[Option<bool>]) -> Outcomes {
        values.iter().fold(Outcomes(0), |set, value| {
            set.union(match value {
                Some(true) => Outcomes::TRUE,
                Some(false) => Outcomes::FALSE,
                None => Outcomes::UNKNOWN,
            })
        })
    }

    #[test]
    fn sets_follow_kleene_value_by_value() {
        let values = [Some(true), Some(false), None];
        let sets: Vec<Vec<Option<bool>>> = (0..8)
            .map(|bits| values.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, v)| *v).collect())
            .collect();
        for a in &sets {
            assert_eq!(set(a).not(), set(&a.iter().map(|v| v.map(|b| !b)).collect::<Vec<_>>()));
            for b in &sets {
                let pairs = || a.iter().flat_map(|x| b.iter().map(move |y| (*x, *y)));
                let and: Vec<_> = pairs().map(|(x, y)| kleene_and(x, y)).collect();
                let or: Vec<_> = pairs().map(|(x, y)| kleene_and(x.map(|v| !v), y.map(|v| !v)).map(|v| !v)).collect();
                assert_eq!(set(a).and(set(b)), set(&and), "{a:?} and {b:?}");
                assert_eq!(set(a).or(set(b)), set(&or), "{a:?} or {b:?}");
            }
        }
    }

    #[test]
    fn unknown_is_no_match() {
        assert_eq!(Outcomes::UNKNOWN.relation(), Relation::None);
        assert_eq!(Outcomes::UNKNOWN.not().relation(), Relation::None);
        assert_eq!(Outcomes::TRUE.with_unknown(true).relation(), Relation::Some);
        assert_eq!(Outcomes::TRUE.relation(), Relation::All);
        assert_eq!(Outcomes::FALSE.not().relation(), Relation::All);
    }
}
