//! Predicates made of boxes and times alone, as plain numbers, for loops that test neighbouring nodes and rows
//! together.

use super::predicate::{Node, Predicate};
use super::region::Relation;
use crate::planar::{Sides, box_in_box, boxes_touch};
use crate::time::Interval;

/// The conditions of a predicate with at most one `bbox` and one test of the primary time.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceTimeFilter {
    /// West, south, east and north in degrees: one box, or two on either side of the antimeridian. `None` matches
    /// anywhere, including events without geometry.
    pub boxes: Option<Vec<[f64; 4]>>,
    /// Interval that must share an instant with the primary time, ends included.
    pub interval: Interval,
}

impl SpaceTimeFilter {
    /// Relation of events within a box and an interval to this filter.
    #[inline]
    pub fn relation(&self, sides: Sides, start: i64, end: i64) -> Relation {
        let Interval { start: from, end: to } = self.interval;
        let (mut touches, mut within) = ((start <= to) & (from <= end), (from <= start) & (end <= to));
        if let Some(boxes) = &self.boxes {
            touches &= boxes.iter().any(|b| boxes_touch(b, &sides));
            within &= boxes.iter().any(|b| box_in_box(b, &sides));
        }
        match (touches, within) {
            (false, _) => Relation::None,
            (true, true) => Relation::All,
            (true, false) => Relation::Some,
        }
    }

    /// Bit mask of the first 64 points that match, lowest bit first. The bit of a missing point is unspecified.
    #[inline]
    pub fn points(&self, lon: &[f64], lat: &[f64]) -> u64 {
        let Some(boxes) = &self.boxes else { return u64::MAX };
        boxes.iter().fold(0, |found, [w, s, e, n]| {
            // `&` and not `&&`: four branchless comparisons are faster than one with a branch.
            found | bits(lon.iter().zip(lat), |(x, y)| (*x >= *w) & (*x <= *e) & (*y >= *s) & (*y <= *n))
        })
    }

    /// The same mask for instants.
    #[inline]
    pub fn instants(&self, times: &[i64]) -> u64 {
        let Interval { start, end } = self.interval;
        if self.interval == Interval::ALWAYS { u64::MAX } else { bits(times.iter(), |t| (*t >= start) & (*t <= end)) }
    }
}

#[inline]
fn bits<T>(values: impl Iterator<Item = T>, test: impl Fn(T) -> bool) -> u64 {
    values.take(64).enumerate().fold(0, |bits, (i, value)| bits | u64::from(test(value)) << i)
}

impl Predicate {
    /// This predicate as plain numbers, if it consists of at most one `bbox` and the primary time.
    pub fn as_space_time(&self) -> Option<SpaceTimeFilter> {
        let mut filter = SpaceTimeFilter { boxes: None, interval: Interval::ALWAYS };
        let parts = match self.node() {
            Node::And(parts) => parts.as_slice(),
            _ => std::slice::from_ref(self),
        };
        for part in parts {
            match part.node() {
                Node::Constant(true) => {}
                Node::Primary(interval) if filter.interval == Interval::ALWAYS => filter.interval = *interval,
                Node::Bbox(test) if filter.boxes.is_none() => filter.boxes = Some(test.boxes().to_vec()),
                _ => return None,
            }
        }
        Some(filter)
    }
}
