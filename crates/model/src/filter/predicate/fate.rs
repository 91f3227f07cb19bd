//! The certain outcome for every part of a region, however small: a lower bound of a predicate's work.

use super::{Node, Predicate};
use crate::filter::outcomes::Outcomes;
use crate::filter::region::Region;

/// The outcome for the events of a region, as far as it is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// None of them matches.
    False,
    /// All of them match.
    True,
    /// Each must be tested: no part of the region can be decided as a whole.
    Tested,
    /// Parts of the region may be decided.
    Open,
}

impl Fate {
    fn of(outcomes: Outcomes) -> Fate {
        match outcomes {
            Outcomes::TRUE => Fate::True,
            Outcomes::FALSE => Fate::False,
            _ => Fate::Open,
        }
    }

    fn not(self) -> Fate {
        match self {
            Fate::False => Fate::True,
            Fate::True => Fate::False,
            other => other,
        }
    }

    /// Combines two fates: `decided` in either decides, an open one may become that, and a tested one stays.
    fn with(self, other: Fate, decided: Fate) -> Fate {
        let either = |fate| self == fate || other == fate;
        match () {
            () if either(decided) => decided,
            // Open before tested: the open part may still be decided, and then so is the whole.
            () if either(Fate::Open) => Fate::Open,
            () if either(Fate::Tested) => Fate::Tested,
            () => decided.not(),
        }
    }
}

impl Predicate {
    /// The fate of the events of a region.
    pub fn fate(&self, region: &dyn Region) -> Fate {
        match self.node() {
            Node::And(parts) => parts.iter().fold(Fate::True, |fate, part| fate.with(part.fate(region), Fate::False)),
            // Many alternatives have their own tree, which does not show which of them are open.
            Node::Or(any) if any.is_indexed() => Fate::of(self.outcomes(region)),
            Node::Or(any) => any.parts.iter().fold(Fate::False, |fate, part| fate.with(part.fate(region), Fate::True)),
            Node::Not(inner) => inner.fate(region).not(),
            // Trees hold no summaries for these, at any node.
            Node::Text { .. } | Node::TextIn { .. } | Node::Like { .. } | Node::Bool(_) | Node::Lists { .. } => {
                Fate::Tested
            }
            _ => Fate::of(self.outcomes(region)),
        }
    }
}
