//! Repair of invalid polygons.

use crate::geometry::validate_position;
use geo::{BooleanOps, CoordsIter};
use geo_types::{Coord, Geometry, MultiPolygon, Polygon};

/// The repaired defects of a ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MendedRing {
    /// The ring was open and has been closed.
    pub closed: bool,
    /// Fewer than three distinct positions: the ring encloses nothing.
    pub degenerate: bool,
}

/// Closes a ring and reports its defects.
pub fn ring(positions: &mut Vec<Coord<f64>>) -> MendedRing {
    let closed = positions.first() != positions.last();
    if closed {
        positions.extend(positions.first().copied());
    }
    let steps = positions.windows(2).filter(|pair| pair[0] != pair[1]).take(3).count();
    MendedRing { closed, degenerate: steps < 3 }
}

/// The area of a polygon whose rings cross or overlap, by the even-odd rule, as valid polygons. `None` if the
/// geometry is no polygon, has a position outside the world, or encloses nothing.
///
/// Vertices move by less than a billionth of the polygon's extent.
pub fn untangle(shape: &Geometry<f64>) -> Option<Geometry<f64>> {
    if !shape.coords_iter().all(|at| validate_position(at.x, at.y).is_ok()) {
        return None;
    }
    let parts: Vec<Polygon<f64>> = match shape {
        Geometry::Polygon(polygon) => area(polygon),
        Geometry::MultiPolygon(polygons) => polygons.iter().flat_map(area).collect(),
        _ => return None,
    };
    match (shape, parts.as_slice()) {
        (_, []) => None,
        (Geometry::Polygon(_), [only]) => Some(only.clone().into()),
        _ => Some(MultiPolygon::new(parts).into()),
    }
}

fn area(polygon: &Polygon<f64>) -> Vec<Polygon<f64>> {
    polygon.union(&MultiPolygon::new(Vec::new())).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::validate;
    use geo::Area;
    use geo_types::polygon;

    #[test]
    fn rings_are_closed_and_those_that_enclose_nothing_are_told() {
        let at = |x: f64, y: f64| Coord { x, y };
        let mut open = vec![at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0)];
        assert_eq!(ring(&mut open), MendedRing { closed: true, degenerate: false });
        assert_eq!(open, [at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0), at(0.0, 0.0)]);
        let mut good = open.clone();
        assert_eq!(ring(&mut good), MendedRing::default());
        assert_eq!(good, open);
        assert!(ring(&mut vec![at(0.0, 0.0), at(1.0, 0.0), at(0.0, 0.0)]).degenerate);
        assert!(ring(&mut vec![at(1.0, 1.0); 5]).degenerate);
        assert!(ring(&mut Vec::new()).degenerate);
    }

    #[test]
    fn a_bow_tie_becomes_its_two_triangles() {
        let bow: Geometry<f64> =
            polygon![(x: 0.0, y: 0.0), (x: 2.0, y: 2.0), (x: 2.0, y: 0.0), (x: 0.0, y: 2.0)].into();
        assert!(validate(&bow).is_err());
        let mended = untangle(&bow).unwrap();
        validate(&mended).unwrap();
        let Geometry::MultiPolygon(parts) = &mended else { panic!("expected two polygons: {mended:?}") };
        assert_eq!(parts.0.len(), 2);
        assert!((mended.unsigned_area() - 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_hole_that_sticks_out_is_cut_at_the_edge_and_what_encloses_nothing_stays_as_it_is() {
        let sticking: Geometry<f64> = polygon!(
            exterior: [(x: 0.0, y: 0.0), (x: 4.0, y: 0.0), (x: 4.0, y: 4.0), (x: 0.0, y: 4.0)],
            interiors: [[(x: 3.0, y: 1.0), (x: 5.0, y: 1.0), (x: 5.0, y: 2.0), (x: 3.0, y: 2.0)]],
        )
        .into();
        assert!(validate(&sticking).is_err());
        validate(&untangle(&sticking).unwrap()).unwrap();
        let flat: Geometry<f64> = polygon![(x: 0.0, y: 0.0), (x: 2.0, y: 2.0), (x: 1.0, y: 1.0)].into();
        assert_eq!(untangle(&flat), None);
        let far: Geometry<f64> = polygon![(x: 0.0, y: 0.0), (x: 200.0, y: 2.0), (x: 1.0, y: f64::NAN)].into();
        assert_eq!(untangle(&far), None);
    }
}
