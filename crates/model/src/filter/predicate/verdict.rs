//! The certain outcome for every part of a region, however small: a lower bound of a predicate's work.

use super::{Node, Predicate};
use crate::filter::outcomes::Outcomes;
use crate::filter::region::Region;

/// What a predicate is for the events of a region, as far as that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionVerdict {
    /// None of them matches.
    False,
    /// All of them match.
    True,
    /// Each must be tested: no part of the region can be decided as a whole.
    Tested,
    /// Parts of the region may be decided.
    Open,
}

impl RegionVerdict {
    fn of(outcomes: Outcomes) -> RegionVerdict {
        match outcomes {
            Outcomes::TRUE => RegionVerdict::True,
            Outcomes::FALSE => RegionVerdict::False,
            _ => RegionVerdict::Open,
        }
    }

    fn not(self) -> RegionVerdict {
        match self {
            RegionVerdict::False => RegionVerdict::True,
            RegionVerdict::True => RegionVerdict::False,
            other => other,
        }
    }

    /// Combines two verdicts: `decided` in either decides, an open one may become that, and a tested one stays.
    fn with(self, other: RegionVerdict, decided: RegionVerdict) -> RegionVerdict {
        let either = |verdict| self == verdict || other == verdict;
        match () {
            () if either(decided) => decided,
            // Open before tested: the open part may still be decided, and then so is the whole.
            () if either(RegionVerdict::Open) => RegionVerdict::Open,
            () if either(RegionVerdict::Tested) => RegionVerdict::Tested,
            () => decided.not(),
        }
    }
}

impl Predicate {
    /// The verdict on the events of a region.
    pub fn verdict(&self, region: &dyn Region) -> RegionVerdict {
        match self.node() {
            Node::And(parts) => parts
                .iter()
                .fold(RegionVerdict::True, |verdict, part| verdict.with(part.verdict(region), RegionVerdict::False)),
            // Many alternatives have their own tree, which does not show which of them are open.
            Node::Or(any) if any.is_indexed() => RegionVerdict::of(self.outcomes(region)),
            Node::Or(any) => any
                .parts
                .iter()
                .fold(RegionVerdict::False, |verdict, part| verdict.with(part.verdict(region), RegionVerdict::True)),
            Node::Not(inner) => inner.verdict(region).not(),
            // Trees hold no summaries for these, at any node.
            Node::Text { .. } | Node::TextIn { .. } | Node::Like { .. } | Node::Bool(_) | Node::Lists { .. } => {
                RegionVerdict::Tested
            }
            _ => RegionVerdict::of(self.outcomes(region)),
        }
    }
}
