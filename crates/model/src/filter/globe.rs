//! Distances on the globe from a place to boxes and shapes.
//!
//! On the sphere of [`crate::sphere`]. The edges of a shape are straight in longitude and latitude (RFC 7946), not
//! great circles. This keeps a shape inside its box, and `near` consistent with the planar predicates. The distance
//! to an edge is found by bisection. It ends when the great circle through the ends of a piece deviates from it by
//! less than [`SHAPE_ERROR_M`]. Pieces that cannot be the nearest are skipped.

use crate::bounds::Bounds;
use crate::planar::{Side, polygon_side};
use crate::sphere::{EARTH_RADIUS_M, distance_m, unit_vector};
use geo_types::{Coord, Geometry, LineString, Polygon};
use std::f64::consts::PI;

/// Max error of [`distance_to_geometry_m`] in metres.
pub const SHAPE_ERROR_M: f64 = 1e-3;

/// Slack for rounding in a bound: twice the error of shapes, and more within 10 km of the antipode. There the
/// haversine hardly changes with the distance, and one ulp of it is up to 0.3 m. Farther away it is less than a tenth
/// of a millimetre.
fn slack(distance: f64) -> f64 {
    2.0 * SHAPE_ERROR_M + rounding(distance)
}

fn rounding(distance: f64) -> f64 {
    let antipodal = distance > PI * EARTH_RADIUS_M - 10_000.0;
    if antipodal { 0.5 } else { 1e-9 * distance }
}

/// A lower bound in metres of the distance from a place in degrees to anything in the spatial part of a box.
/// It is never more than a distance measured by [`distance_m`] or [`distance_to_geometry_m`]. It is at most
/// some millimetres less than the true distance to the box. Infinite for a nowhere box.
pub fn distance_to_box_m(lon: f64, lat: f64, bounds: &Bounds) -> f64 {
    if bounds.is_nowhere() {
        return f64::INFINITY;
    }
    let exact = box_distance(lon, lat, bounds);
    (exact - slack(exact)).max(0.0)
}

/// An upper bound in metres of the distance from a place in degrees to anything in the spatial part of a box.
/// Negative infinity for a nowhere box.
pub fn farthest_in_box_m(lon: f64, lat: f64, bounds: &Bounds) -> f64 {
    if bounds.is_nowhere() {
        return f64::NEG_INFINITY;
    }
    // The point farthest from a place is the one nearest to its antipode.
    let nearest = box_distance(lon + 180.0, -lat, bounds);
    let exact = PI * EARTH_RADIUS_M - nearest;
    exact + slack(exact).max(slack(nearest))
}

/// Degrees between two meridians, 0 to 180.
#[inline]
pub(crate) fn between_meridians(lon1: f64, lon2: f64) -> f64 {
    let apart = (lon1 - lon2).abs();
    // The remainder is expensive, and needed only for longitudes outside the usual range.
    let apart = if apart < 360.0 { apart } else { apart % 360.0 };
    if apart > 180.0 { 360.0 - apart } else { apart }
}

/// Distance to the nearest point of a box. At a given latitude the distance grows with the difference in longitude.
/// So the nearest point is on the place's own meridian if the box spans it, else on the nearer side of the box.
fn box_distance(lon: f64, lat: f64, bounds: &Bounds) -> f64 {
    let inside = [lon - 360.0, lon, lon + 360.0].into_iter().any(|l| bounds.west <= l && l <= bounds.east);
    if inside {
        return (bounds.south - lat).max(lat - bounds.north).max(0.0).to_radians() * EARTH_RADIUS_M;
    }
    let apart = between_meridians(lon, bounds.west).min(between_meridians(lon, bounds.east));
    // Along that side, cos d = sin lat sin y + cos lat cos apart cos y, with its max at y = atan2(...). Where
    // that lies beyond the side, the max is at one of its ends.
    let turn = lat.to_radians().sin().atan2(lat.to_radians().cos() * apart.to_radians().cos()).to_degrees();
    let to = |y: f64| distance_m(0.0, lat, apart, y);
    to(bounds.south).min(to(bounds.north)).min(to(turn.clamp(bounds.south, bounds.north)))
}

/// Distance in metres from a place in degrees to the nearest point of a geometry, 0 inside a polygon, to
/// [`SHAPE_ERROR_M`]. Infinite for a geometry without positions.
pub fn distance_to_geometry_m(lon: f64, lat: f64, geometry: &Geometry<f64>) -> f64 {
    let mut search = Search::from(Coord { x: lon, y: lat });
    search.geometry(geometry);
    search.best
}

/// The search for the nearest point of a shape.
struct Search {
    at: Coord<f64>,
    eye: [f64; 3],
    best: f64,
    /// Pieces visited: the cost of the search.
    pieces: u32,
}

/// Max bisections of an edge. Each makes a piece deviate a quarter as much, so 30 is ample for the whole world.
const HALVINGS_MAX: u32 = 30;

impl Search {
    fn from(at: Coord<f64>) -> Search {
        Search { at, eye: unit_vector(at.x, at.y), best: f64::INFINITY, pieces: 0 }
    }

    fn geometry(&mut self, geometry: &Geometry<f64>) {
        match geometry {
            Geometry::Point(p) => self.point(p.0),
            Geometry::Line(line) => self.edge(line.start, line.end),
            Geometry::LineString(line) => self.line(line),
            Geometry::Polygon(polygon) => self.polygon(polygon),
            Geometry::MultiPoint(points) => points.iter().for_each(|p| self.point(p.0)),
            Geometry::MultiLineString(lines) => lines.iter().for_each(|l| self.line(l)),
            Geometry::MultiPolygon(polygons) => polygons.iter().for_each(|p| self.polygon(p)),
            Geometry::GeometryCollection(members) => members.iter().for_each(|g| self.geometry(g)),
            Geometry::Rect(rect) => self.polygon(&rect.to_polygon()),
            Geometry::Triangle(triangle) => self.polygon(&triangle.to_polygon()),
        }
    }

    fn point(&mut self, p: Coord<f64>) {
        self.best = self.best.min(distance_m(self.at.x, self.at.y, p.x, p.y));
    }

    fn polygon(&mut self, polygon: &Polygon<f64>) {
        if polygon_side(polygon, self.at) != Side::Outside {
            self.best = 0.0;
            return;
        }
        self.line(polygon.exterior());
        polygon.interiors().iter().for_each(|hole| self.line(hole));
    }

    fn line(&mut self, line: &LineString<f64>) {
        if let [only] = line.0.as_slice() {
            self.point(*only);
        }
        let mut from = line.0.first().map(|c| unit_vector(c.x, c.y));
        for edge in line.0.windows(2) {
            let to = unit_vector(edge[1].x, edge[1].y);
            if let Some(from) = from {
                self.piece((edge[0], from), (edge[1], to), HALVINGS_MAX);
            }
            from = Some(to);
        }
    }

    fn edge(&mut self, a: Coord<f64>, b: Coord<f64>) {
        self.piece((a, unit_vector(a.x, a.y)), (b, unit_vector(b.x, b.y)), HALVINGS_MAX);
    }

    fn piece(&mut self, a: (Coord<f64>, [f64; 3]), b: (Coord<f64>, [f64; 3]), halvings: u32) {
        self.pieces += 1;
        let (d_lon, d_lat) = ((b.0.x - a.0.x).abs().to_radians(), (b.0.y - a.0.y).abs().to_radians());
        let length = d_lon + d_lat;
        // The piece as a curve of its parameter has a geodesic acceleration of at most 2 |sin lat| d_lon length. That
        // follows from the geodesic equations of the sphere. The piece deviates from the chord by an eighth of the
        // acceleration times the radius. Using a quarter allows for the curvature of the sphere over half a radian.
        let stray = 0.5 * EARTH_RADIUS_M * a.1[2].abs().max(b.1[2].abs()) * d_lon * length;
        if length < 0.5 || halvings == 0 {
            let distance = great_circle_piece_m(&self.eye, &a.1, &b.1);
            if distance - stray >= self.best {
                return;
            }
            if stray <= SHAPE_ERROR_M || halvings == 0 {
                self.best = self.best.min(distance);
                return;
            }
        }
        if self.is_beyond(a.0, b.0) {
            return;
        }
        let middle = Coord { x: 0.5 * (a.0.x + b.0.x), y: 0.5 * (a.0.y + b.0.y) };
        let middle = (middle, unit_vector(middle.x, middle.y));
        // The half with the nearer end first: the other one is then skipped more often.
        if dot(&self.eye, &a.1) >= dot(&self.eye, &b.1) {
            self.piece(a, middle, halvings - 1);
            self.piece(middle, b, halvings - 1);
        } else {
            self.piece(middle, b, halvings - 1);
            self.piece(a, middle, halvings - 1);
        }
    }
}

impl Search {
    /// Whether the box of a piece is no nearer than the best distance so far. Seen from a pole, all pieces of a
    /// parallel are equally far. Their chords alone would rule none of them out before they are fully bisected.
    fn is_beyond(&self, a: Coord<f64>, b: Coord<f64>) -> bool {
        let bounds = Bounds {
            west: a.x.min(b.x),
            east: a.x.max(b.x),
            south: a.y.min(b.y),
            north: a.y.max(b.y),
            ..Bounds::WORLD
        };
        let nearest = box_distance(self.at.x, self.at.y, &bounds);
        nearest + rounding(nearest) >= self.best
    }
}

/// Distance in metres from a unit vector to the shorter great-circle arc between two others.
fn great_circle_piece_m(p: &[f64; 3], a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let normal = cross(a, b);
    let length = dot(&normal, &normal).sqrt();
    // The foot of the perpendicular lies between the ends if it is ahead of `a` and behind `b`.
    if length > 1e-12 && dot(p, &cross(&normal, a)) >= 0.0 && dot(p, &cross(&normal, b)) <= 0.0 {
        return (dot(p, &normal) / length).clamp(-1.0, 1.0).asin().abs() * EARTH_RADIUS_M;
    }
    chord_m(p, a).min(chord_m(p, b))
}

/// Great-circle distance in metres between unit vectors.
fn chord_m(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    2.0 * EARTH_RADIUS_M * (0.5 * dot(&d, &d).sqrt()).min(1.0).asin()
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parallel_is_not_halved_to_the_end_for_an_eye_at_a_pole() {
        for (lat, edge) in [(90.0, 60.0), (-90.0, 60.0), (90.0, -89.99), (89.999, 71.0), (90.0, 0.0)] {
            for slant in [0.0, 1e-9, 1e-4] {
                let mut search = Search::from(Coord { x: 12.0, y: lat });
                search.geometry(&Geometry::LineString(vec![(-170.0, edge), (170.0, edge + slant)].into()));
                assert!(search.pieces < 20_000, "{lat}, {edge}, {slant}: {} pieces", search.pieces);
                let exact = distance_m(12.0, lat, 12.0, edge);
                let wide = 0.6 + slant * 120_000.0;
                assert!((search.best - exact).abs() < wide, "{lat}, {edge}: {} and {exact}", search.best);
            }
        }
    }
}
