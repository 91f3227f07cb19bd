//! Checks whether a ring crosses or touches itself, in time that a hostile ring cannot inflate.
//!
//! Consecutive segments lie near each other, so boxes around runs of them, in ring order, form a packed tree without
//! sorting. Joining that tree with itself tests only segments whose boxes meet: near-linear for real outlines. Pairs
//! are counted, and a ring that needs too many is rejected.

use crate::planar::{Sides, box_union, boxes_touch, segment_box};
use geo::{Intersects, Kernel, Orientation};
use geo_types::{Coord, Line};

/// Fanout of the tree: segments in a leaf, and nodes under a node.
const FANOUT: usize = 8;
/// Max pairs of boxes or segments tested: about a second's work.
pub(crate) const PAIRS_MAX: u64 = 40_000_000;

/// The error in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingFault {
    /// Fewer than three distinct positions.
    TooFew,
    /// It crosses, touches or folds back on itself.
    Crosses,
    /// More than [`PAIRS_MAX`] pairs would have to be tested.
    TooIntricate,
}

struct Ring {
    /// Positions without repetition; the last equals the first.
    positions: Vec<Coord<f64>>,
    /// Boxes of segments, then of runs of them; each level is a [`FANOUT`]th of the previous one.
    levels: Vec<Vec<Sides>>,
    pairs: u64,
}

/// Checks a closed ring.
pub(crate) fn check(ring: &[Coord<f64>]) -> Result<(), RingFault> {
    let mut positions = ring.to_vec();
    // A repeated position makes a zero-length segment, which would touch its neighbours.
    positions.dedup();
    if positions.len() < 4 {
        return Err(RingFault::TooFew);
    }
    let mut levels = vec![positions.windows(2).map(|w| segment_box(w[0], w[1])).collect::<Vec<_>>()];
    while let Some(below) = levels.last().filter(|level| level.len() > 1) {
        let above = below.chunks(FANOUT).filter_map(|run| run.iter().copied().reduce(box_union)).collect();
        levels.push(above);
    }
    let top = levels.len() - 1;
    let mut ring = Ring { positions, levels, pairs: 0 };
    ring.join(top, 0, 0)
}

impl Ring {
    /// Tests the segments under one node against those under another of the same level, `a <= b`.
    fn join(&mut self, level: usize, a: usize, b: usize) -> Result<(), RingFault> {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return Err(RingFault::TooIntricate);
        }
        if !boxes_touch(&self.levels[level][a], &self.levels[level][b]) {
            return Ok(());
        }
        if level == 0 {
            return if self.segments_clash(a, b) { Err(RingFault::Crosses) } else { Ok(()) };
        }
        let below = self.levels[level - 1].len();
        let children = |node: usize| node * FANOUT..((node + 1) * FANOUT).min(below);
        for i in children(a) {
            for j in children(b) {
                // Each pair once: the tree is joined with itself.
                if i <= j {
                    self.join(level - 1, i, j)?;
                }
            }
        }
        Ok(())
    }

    fn segments_clash(&self, i: usize, j: usize) -> bool {
        if i == j {
            return false;
        }
        let p = &self.positions;
        let count = p.len() - 1;
        if j == i + 1 {
            folds(p[i], p[j], p[j + 1])
        } else if i == 0 && j == count - 1 {
            folds(p[j], p[0], p[1])
        } else {
            Line::new(p[i], p[i + 1]).intersects(&Line::new(p[j], p[j + 1]))
        }
    }
}

/// Whether the path from `a` over `at` to `b` turns back along itself.
fn folds(a: Coord<f64>, at: Coord<f64>, b: Coord<f64>) -> bool {
    // Neighbours share a position and so always touch. They must not run back along each other.
    let straight = geo::kernels::RobustKernel::orient2d(a, at, b) == Orientation::Collinear;
    straight && (a.x - at.x) * (b.x - at.x) + (a.y - at.y) * (b.y - at.y) > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo::Validation;
    use geo_types::{LineString, Polygon};
    use proptest::prelude::*;

    fn ring(points: &[(f64, f64)]) -> Vec<Coord<f64>> {
        points.iter().map(|&(x, y)| Coord { x, y }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn agrees_with_trying_every_pair(mut points in prop::collection::vec((0i32..6, 0i32..6), 3..14)) {
            points.push(points[0]);
            let positions = ring(&points.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).collect::<Vec<_>>());
            let polygon = Polygon::new(LineString::new(positions.clone()), vec![]);
            // The library overlooks a ring of three collinear positions, which only goes back and forth.
            let mut distinct = positions.clone();
            distinct.dedup();
            let flat = distinct.len() == 4 && folds(distinct[0], distinct[1], distinct[2]);
            let flat = flat || (distinct.len() == 4 && folds(distinct[1], distinct[2], distinct[3]));
            let flat = flat || (distinct.len() == 4 && folds(distinct[2], distinct[0], distinct[1]));
            prop_assert_eq!(check(&positions).is_ok(), polygon.is_valid() && !flat, "{:?}", points);
        }
    }

    #[test]
    fn long_rings_are_checked_in_good_time() {
        // A coast of 400,000 positions; every pair would be eighty thousand million.
        let count = 400_000;
        let at = |i: usize| {
            let turn = i as f64 / count as f64 * std::f64::consts::TAU;
            let radius = 40.0 + (turn * 5000.0).sin();
            (radius * turn.cos(), radius * turn.sin())
        };
        let mut points: Vec<_> = (0..count).map(at).collect();
        points.push(points[0]);
        assert_eq!(check(&ring(&points)), Ok(()));
        points.swap(1000, 200_000);
        assert_eq!(check(&ring(&points)), Err(RingFault::Crosses));
    }

    #[test]
    fn a_ring_made_to_be_slow_is_refused() {
        // Long slanted strokes side by side: every box meets every other, and nothing crosses.
        let strokes = 200_000;
        let mut points = Vec::new();
        for i in 0..strokes {
            let y = f64::from(i) * 1e-5;
            let (near, far) = ((0.0, y), (80.0, y + 80.0));
            points.extend(if i % 2 == 0 { [near, far] } else { [far, near] });
        }
        points.extend([(-1.0, 3.0), (-1.0, -1.0), (0.0, 0.0)]);
        assert_eq!(check(&ring(&points)), Err(RingFault::TooIntricate));
    }
}
