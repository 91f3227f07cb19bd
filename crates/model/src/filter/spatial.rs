//! CQL2's spatial functions, planar in degrees.
//!
//! `S_INTERSECTS` and `S_DISJOINT` are exact for any shape, however its rings run. The other relations are those of
//! Simple Features (DE-9IM) and, like them, are defined for valid shapes only. For a stored multi-polygon whose parts
//! overlap, the result is whatever the matrix yields.

use super::expr::SpatialOp;
use super::outcomes::Outcomes;
use super::place::Places;
use super::region::Region;
use super::shape::{BoxSide, Shape};
use super::truth::Truth;
use crate::batch::Batch;
use crate::planar::{Side, Sides};
use arrow_buffer::BooleanBuffer;
use geo::PreparedGeometry;
use geo::relate::{IntersectionMatrix, Relate};
use geo_types::{Coord, Geometry};

/// `op(the event's geometry, shape)`.
#[derive(Debug)]
pub(crate) struct SpatialTest {
    pub(crate) op: SpatialOp,
    pub(crate) shape: Shape,
}

type PreparedSide<'a> = PreparedGeometry<'a, &'a Geometry<f64>, f64>;

impl SpatialTest {
    pub(crate) fn evaluate(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        let rows = batch.rows();
        match Places::of(batch) {
            Places::None => Truth::unknown(rows),
            Places::Points { lon, lat, nulls } => {
                Truth::test_open(rows, open, nulls.as_ref(), |i| self.holds_of_point(Coord { x: lon[i], y: lat[i] }))
            }
            Places::Shapes { sides, nulls } => {
                // Prepared on first use: the box decides most rows.
                let mut prepared: Option<PreparedSide<'_>> = None;
                Truth::test_open(rows, open, nulls.as_ref(), |i| {
                    self.decided_by_box(&sides.row(i)).unwrap_or_else(|| {
                        batch.geometry(i).is_some_and(|shape| self.holds_of_shape(&shape, &mut prepared))
                    })
                })
            }
        }
    }

    fn holds_of_point(&self, p: Coord<f64>) -> bool {
        match self.op {
            SpatialOp::Intersects => self.shape.side(p) != Side::Outside,
            SpatialOp::Disjoint => self.shape.side(p) == Side::Outside,
            SpatialOp::Within => self.shape.side(p) == Side::Inside,
            SpatialOp::Touches => self.shape.side(p) == Side::Boundary,
            // A point contains, and equals, only itself.
            SpatialOp::Contains | SpatialOp::Equals => self.shape.single() == Some(p),
            // A point cannot have one part inside and another outside.
            SpatialOp::Overlaps | SpatialOp::Crosses => false,
        }
    }

    /// A box that every matching geometry touches; `None` if there is none.
    pub(crate) fn reach(&self) -> Option<Sides> {
        (self.op != SpatialOp::Disjoint).then(|| self.shape.sides())
    }

    /// The result for every geometry in a box, if it is certain.
    fn decided_by_box(&self, sides: &Sides) -> Option<bool> {
        match (self.shape.box_side(sides), self.op) {
            (BoxSide::Outside, SpatialOp::Disjoint) => Some(true),
            (BoxSide::Outside, _) => Some(false),
            (BoxSide::Covered | BoxSide::Interior, SpatialOp::Intersects) => Some(true),
            (BoxSide::Covered | BoxSide::Interior, SpatialOp::Disjoint) => Some(false),
            (BoxSide::Interior, SpatialOp::Within) => Some(true),
            // A box in the interior neither touches, equals, contains, overlaps nor crosses.
            (BoxSide::Interior, _) => Some(false),
            _ => None,
        }
    }

    fn holds_of_shape<'a>(&'a self, row: &Geometry<f64>, prepared: &mut Option<PreparedSide<'a>>) -> bool {
        match (self.op, row) {
            // A collection of mixed geometries has points too. Without a matrix they cost the same as in a point
            // collection.
            (_, Geometry::Point(p)) => return self.holds_of_point(p.0),
            (SpatialOp::Intersects, _) => return self.shape.touches(row),
            (SpatialOp::Disjoint, _) => return !self.shape.touches(row),
            _ => {}
        }
        let prepared = prepared.get_or_insert_with(|| PreparedGeometry::from(self.shape.geometry()));
        // The matrix is (shape, row), so the roles are swapped.
        let matrix: IntersectionMatrix = prepared.relate(row);
        match self.op {
            SpatialOp::Within => matrix.is_contains(),
            SpatialOp::Contains => matrix.is_within(),
            SpatialOp::Equals => matrix.is_equal_topo(),
            SpatialOp::Touches => matrix.is_touches(),
            SpatialOp::Overlaps => matrix.is_overlaps(),
            SpatialOp::Crosses => matrix.is_crosses(),
            SpatialOp::Intersects => matrix.is_intersects(),
            SpatialOp::Disjoint => matrix.is_disjoint(),
        }
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        let bounds = region.bounds();
        if bounds.is_nowhere() {
            return Outcomes::UNKNOWN;
        }
        let outcomes = match self.decided_by_box(&[bounds.west, bounds.south, bounds.east, bounds.north]) {
            Some(true) => Outcomes::TRUE,
            Some(false) => Outcomes::FALSE,
            None => Outcomes::TRUE_OR_FALSE,
        };
        outcomes.with_unknown(region.some_nowhere())
    }
}

/// `op(geometry, geometry)` with one geometry on both sides.
pub(crate) fn holds_of_itself(op: SpatialOp) -> bool {
    matches!(op, SpatialOp::Intersects | SpatialOp::Equals | SpatialOp::Within | SpatialOp::Contains)
}

/// `op` between two geometries of a filter; `None` if one has no positions.
pub(crate) fn holds_between(op: SpatialOp, left: &Geometry<f64>, right: Geometry<f64>) -> Option<bool> {
    let test = SpatialTest { op, shape: Shape::new(right)? };
    let sides = crate::geometry::sides(left)?;
    Some(test.decided_by_box(&sides).unwrap_or_else(|| test.holds_of_shape(left, &mut None)))
}
