//! Planar geometry in degrees: exact tests on segments, rings and boxes.
//!
//! RFC 7946 defines edges as straight in longitude and latitude; boxes and CQL2's spatial functions follow it. Every
//! decision is the sign of a robust orientation (Shewchuk's adaptive predicate), so rounding never makes one wrong.
//! Shapes are closed sets: touching at an edge or a corner counts as intersecting.

use geo::kernels::{Kernel, Orientation, RobustKernel};
use geo_types::{Coord, Geometry, LineString, Polygon};

/// West, south, east and north in degrees; `west <= east`, `south <= north`.
pub(crate) type Sides = [f64; 4];

/// Position of a place relative to a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Inside,
    Boundary,
    Outside,
}

/// The side of the line from `a` to `b` on which a place lies.
#[inline]
pub(crate) fn orient(a: Coord<f64>, b: Coord<f64>, p: Coord<f64>) -> Orientation {
    RobustKernel::orient2d(a, b, p)
}

#[inline]
pub(crate) fn box_holds(sides: &Sides, p: Coord<f64>) -> bool {
    sides[0] <= p.x && p.x <= sides[2] && sides[1] <= p.y && p.y <= sides[3]
}

#[inline]
pub(crate) fn boxes_touch(a: &Sides, b: &Sides) -> bool {
    a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]
}

/// Whether box `a` contains box `b`, edges included.
#[inline]
pub(crate) fn box_in_box(a: &Sides, b: &Sides) -> bool {
    a[0] <= b[0] && b[2] <= a[2] && a[1] <= b[1] && b[3] <= a[3]
}

#[inline]
pub(crate) fn box_union(a: Sides, b: Sides) -> Sides {
    [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]
}

pub(crate) fn segment_box(a: Coord<f64>, b: Coord<f64>) -> Sides {
    [a.x.min(b.x), a.y.min(b.y), a.x.max(b.x), a.y.max(b.y)]
}

/// Whether a segment and a box share a point (separating axes: x, y and the normal of the segment).
pub(crate) fn segment_touches_box(a: Coord<f64>, b: Coord<f64>, sides: &Sides) -> bool {
    if !boxes_touch(&segment_box(a, b), sides) {
        return false;
    }
    if box_holds(sides, a) || box_holds(sides, b) {
        return true;
    }
    let [w, s, e, n] = *sides;
    // All corners are on one side of the line: the normal of the segment separates the two.
    let first = orient(a, b, Coord { x: w, y: s });
    first == Orientation::Collinear
        || [(e, s), (e, n), (w, n)].into_iter().any(|(x, y)| orient(a, b, Coord { x, y }) != first)
}

/// Whether two segments share a point.
pub(crate) fn segments_touch(a: Coord<f64>, b: Coord<f64>, c: Coord<f64>, d: Coord<f64>) -> bool {
    if !boxes_touch(&segment_box(a, b), &segment_box(c, d)) {
        return false;
    }
    // If their boxes touch, two segments are disjoint only if one lies strictly on one side of the other's line.
    let apart = |p: Orientation, q: Orientation| p == q && p != Orientation::Collinear;
    !apart(orient(a, b, c), orient(a, b, d)) && !apart(orient(c, d, a), orient(c, d, b))
}

#[inline]
pub(crate) fn segment_holds(a: Coord<f64>, b: Coord<f64>, p: Coord<f64>) -> bool {
    box_holds(&segment_box(a, b), p) && orient(a, b, p) == Orientation::Collinear
}

/// Whether the eastward ray from a place crosses the edge; `None` if the place is on the edge.
#[inline]
pub(crate) fn ray_crosses(a: Coord<f64>, b: Coord<f64>, p: Coord<f64>) -> Option<bool> {
    let (low, high) = if a.y <= b.y { (a, b) } else { (b, a) };
    if p.y < low.y || p.y > high.y {
        return Some(false);
    }
    let (west, east) = if a.x <= b.x { (a.x, b.x) } else { (b.x, a.x) };
    // Half open in y, so that a vertex between two edges counts once.
    let spans = low.y <= p.y && p.y < high.y;
    if p.x > east {
        return Some(false);
    }
    if p.x < west {
        return Some(spans);
    }
    match orient(low, high, p) {
        Orientation::Collinear => None,
        // A horizontal edge is collinear with every place at its latitude; here the edge rises from low to high.
        Orientation::CounterClockwise => Some(spans),
        Orientation::Clockwise => Some(false),
    }
}

/// Position of a place relative to a closed ring (even-odd rule).
pub(crate) fn ring_side(ring: &LineString<f64>, p: Coord<f64>) -> Side {
    let mut inside = false;
    for edge in ring.0.windows(2) {
        match ray_crosses(edge[0], edge[1], p) {
            None => return Side::Boundary,
            Some(crosses) => inside ^= crosses,
        }
    }
    if inside { Side::Inside } else { Side::Outside }
}

/// Position of a place relative to a polygon with holes.
pub(crate) fn polygon_side(polygon: &Polygon<f64>, p: Coord<f64>) -> Side {
    match ring_side(polygon.exterior(), p) {
        Side::Inside => {}
        other => return other,
    }
    for hole in polygon.interiors() {
        match ring_side(hole, p) {
            Side::Inside => return Side::Outside,
            Side::Boundary => return Side::Boundary,
            Side::Outside => {}
        }
    }
    Side::Inside
}

fn line_touches_box(line: &LineString<f64>, sides: &Sides) -> bool {
    match line.0.as_slice() {
        [only] => box_holds(sides, *only),
        vertices => vertices.windows(2).any(|s| segment_touches_box(s[0], s[1], sides)),
    }
}

fn polygon_touches_box(polygon: &Polygon<f64>, sides: &Sides) -> bool {
    line_touches_box(polygon.exterior(), sides)
        || polygon.interiors().iter().any(|hole| line_touches_box(hole, sides))
        // No edge meets the box, so the box lies wholly inside or wholly outside.
        || polygon_side(polygon, Coord { x: sides[0], y: sides[1] }) != Side::Outside
}

/// Whether a geometry and a box share a point.
pub(crate) fn geometry_touches_box(geometry: &Geometry<f64>, sides: &Sides) -> bool {
    match geometry {
        Geometry::Point(p) => box_holds(sides, p.0),
        Geometry::Line(line) => segment_touches_box(line.start, line.end, sides),
        Geometry::LineString(line) => line_touches_box(line, sides),
        Geometry::Polygon(polygon) => polygon_touches_box(polygon, sides),
        Geometry::MultiPoint(points) => points.iter().any(|p| box_holds(sides, p.0)),
        Geometry::MultiLineString(lines) => lines.iter().any(|l| line_touches_box(l, sides)),
        Geometry::MultiPolygon(polygons) => polygons.iter().any(|p| polygon_touches_box(p, sides)),
        Geometry::GeometryCollection(members) => members.iter().any(|g| geometry_touches_box(g, sides)),
        Geometry::Rect(rect) => polygon_touches_box(&rect.to_polygon(), sides),
        Geometry::Triangle(triangle) => polygon_touches_box(&triangle.to_polygon(), sides),
    }
}
