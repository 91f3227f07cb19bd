//! Spatial functions and their geometry arguments.

use super::Binder;
use super::operand::{GeometrySide, TypedOperand, shown, wrong};
use crate::error::Invalid;
use crate::filter::expr::{Operand, SpatialOp};
use crate::filter::predicate::{Node, Predicate};
use crate::filter::shape::Shape;
use crate::filter::spatial::{SpatialTest, holds_between, holds_of_itself};
use geo::{CoordsIter, HasDimensions, Validation};
use geo_types::Geometry;

impl Binder<'_> {
    pub(super) fn spatial(&self, op: SpatialOp, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let place = |operand: &Operand| match self.typed(operand)? {
            TypedOperand::Geometry(GeometrySide::Own) => Ok(GeometrySide::Own),
            TypedOperand::Geometry(GeometrySide::Literal(geometry)) => {
                if !matches!(op, SpatialOp::Intersects | SpatialOp::Disjoint) {
                    // For these two the even-odd rule gives any ring a meaning; the others need a sound polygon.
                    let geometry = if matches!(operand, Operand::Bbox(_)) { one_kind(geometry) } else { geometry };
                    validate_for_relations(op, &geometry)?;
                    return Ok(GeometrySide::Literal(geometry));
                }
                Ok(GeometrySide::Literal(geometry))
            }
            other => {
                Err(wrong(&[operand], format!("{} takes geometries, found {}", op.text(), shown(operand, &other))))
            }
        };
        let empty = || Invalid::field("filter", "an empty geometry has no place");
        let test = |op: SpatialOp, geometry: Geometry<f64>| {
            let shape = Shape::new(geometry).ok_or_else(empty)?;
            Ok(Predicate::new(Node::Spatial(Box::new(SpatialTest { op, shape }))))
        };
        match (place(left)?, place(right)?) {
            (GeometrySide::Own, GeometrySide::Own) => Ok(Predicate::new(Node::Located(holds_of_itself(op)))),
            (GeometrySide::Own, GeometrySide::Literal(geometry)) => test(op, geometry),
            (GeometrySide::Literal(geometry), GeometrySide::Own) => test(op.flipped(), geometry),
            (GeometrySide::Literal(a), GeometrySide::Literal(b)) => {
                holds_between(op, &a, b).map(Predicate::constant).ok_or_else(empty)
            }
        }
    }
}

/// A box over the antimeridian as one kind of geometry. A half without width, which lies on the antimeridian, is part
/// of the boundary of the box: it is left out beside the other half.
fn one_kind(bbox: Geometry<f64>) -> Geometry<f64> {
    match bbox {
        Geometry::GeometryCollection(halves) => {
            // Two halves, of which one is wider.
            halves.iter().max_by_key(|half| half.dimensions()).cloned().unwrap_or(Geometry::GeometryCollection(halves))
        }
        other => other,
    }
}

/// Max polygons of a multi-polygon that are compared pair by pair for overlaps.
const COMPARED_MAX: usize = 100;

/// Max positions of a validated geometry: the check is quadratic in their number, and a filter must not stall the
/// server. A larger one is not validated.
const CHECKED_MAX: usize = 1_000;

/// Checks that a geometry is valid, as the relations of Simple Features require.
fn validate_for_relations(op: SpatialOp, geometry: &Geometry<f64>) -> Result<(), Invalid> {
    let wrong = |e: String| Invalid::field("filter", format!("a geometry of the filter is not valid: {e}"));
    match geometry {
        // A large invalid geometry gets an arbitrary result rather than a slow rejection.
        Geometry::Polygon(_) | Geometry::MultiPolygon(_) if geometry.coords_count() > CHECKED_MAX => Ok(()),
        Geometry::Polygon(polygon) => polygon.check_validation().map_err(|e| wrong(e.to_string())),
        Geometry::MultiPolygon(polygons) if polygons.0.len() <= COMPARED_MAX => {
            polygons.check_validation().map_err(|e| wrong(e.to_string()))
        }
        Geometry::MultiPolygon(polygons) => {
            polygons.iter().try_for_each(|polygon| polygon.check_validation().map_err(|e| wrong(e.to_string())))
        }
        Geometry::GeometryCollection(_) => Err(Invalid::field(
            "filter",
            format!(
                "{} does not take a GEOMETRYCOLLECTION: expected one kind of geometry (S_INTERSECTS and S_DISJOINT take collections)",
                op.text()
            ),
        )),
        _ => Ok(()),
    }
}
