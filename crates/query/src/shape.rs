//! Converts geometry into a tile: projected, clipped, simplified, rounded to tile units.

use crate::error::QueryError;
use crate::mvt::{EXTENT, Shape};
use crate::simplify::keep_planar;
use geo_types::{Geometry, LineString, Polygon};
use std::f64::consts::PI;

/// Latitude beyond which Mercator is useless; far outside every tile.
const LAT_MAX: f64 = 89.9;

/// One tile's coordinates: x to the east and y to the south in tile units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    side: f64,
    column: f64,
    row: f64,
    /// The drawn square: the tile and its buffer.
    low: f64,
    high: f64,
    tolerance: f64,
}

type Point = (f64, f64);

/// Called for each line and ring, and at intervals within it; returns whether to continue.
type Tick<'a> = &'a dyn Fn() -> Result<(), QueryError>;
/// Vertices in tile units.
type Path = Vec<(i32, i32)>;

impl Canvas {
    /// The canvas of a tile, with a buffer and a tolerance of simplification in tile units.
    pub(crate) fn new(z: u8, column: u32, row: u32, buffer: f64, tolerance: f64) -> Canvas {
        Canvas {
            side: f64::from(1u32 << z.min(31)),
            column: column.into(),
            row: row.into(),
            low: -buffer,
            high: f64::from(EXTENT) + buffer,
            tolerance,
        }
    }

    /// A geometry in tile units; `None` if it does not reach into the square. A geometry smaller than a unit is drawn
    /// as the smallest shape of its kind, so that no event vanishes.
    pub(crate) fn draw(&self, geometry: &Geometry<f64>, tick: Tick<'_>) -> Result<Option<Shape>, QueryError> {
        let lines = |lines: &[LineString<f64>]| -> Result<Option<Shape>, QueryError> {
            let mut paths = Vec::new();
            for line in lines {
                paths.extend(self.line(line, tick)?);
            }
            Ok((!paths.is_empty()).then_some(Shape::Lines(paths)))
        };
        let polygons = |polygons: &[Polygon<f64>]| -> Result<Option<Shape>, QueryError> {
            let mut paths = Vec::new();
            for polygon in polygons {
                paths.extend(self.polygon(polygon, tick)?);
            }
            Ok((!paths.is_empty()).then_some(Shape::Polygons(paths)))
        };
        match geometry {
            Geometry::Point(p) => Ok(self.points([p.0].into_iter())),
            Geometry::MultiPoint(points) => Ok(self.points(points.iter().map(|p| p.0))),
            Geometry::Line(line) => lines(&[LineString(vec![line.start, line.end])]),
            Geometry::LineString(line) => lines(std::slice::from_ref(line)),
            Geometry::MultiLineString(many) => lines(&many.0),
            Geometry::Polygon(polygon) => polygons(std::slice::from_ref(polygon)),
            Geometry::MultiPolygon(many) => polygons(&many.0),
            Geometry::Rect(rect) => polygons(&[rect.to_polygon()]),
            Geometry::Triangle(triangle) => polygons(&[triangle.to_polygon()]),
            // Collections cannot be stored, so none occurs here.
            Geometry::GeometryCollection(_) => Ok(None),
        }
    }

    fn project(&self, lon: f64, lat: f64) -> Point {
        let sin = lat.clamp(-LAT_MAX, LAT_MAX).to_radians().sin();
        let x = lon / 360.0 + 0.5;
        let y = 0.5 - ((1.0 + sin) / (1.0 - sin)).ln() / (4.0 * PI);
        let units = |part: f64, tile: f64| (part * self.side - tile) * f64::from(EXTENT);
        (units(x, self.column), units(y, self.row))
    }

    fn holds(&self, (x, y): Point) -> bool {
        self.low <= x && x <= self.high && self.low <= y && y <= self.high
    }

    fn points(&self, points: impl Iterator<Item = geo_types::Coord<f64>>) -> Option<Shape> {
        // A client draws no point at x = EXTENT, as the next tile has it at 0. At the antimeridian there is no next
        // tile.
        let x_max = if self.column + 1.0 == self.side { f64::from(EXTENT - 1) } else { f64::INFINITY };
        let mut inside: Vec<(i32, i32)> = points
            .map(|c| self.project(c.x, c.y))
            .filter(|p| self.holds(*p))
            .map(|p| round((p.0.min(x_max), p.1)))
            .collect();
        inside.dedup();
        (!inside.is_empty()).then_some(Shape::Points(inside))
    }

    /// The pieces of a line within the square.
    fn line(&self, line: &LineString<f64>, tick: Tick<'_>) -> Result<Vec<Path>, QueryError> {
        let projected: Vec<Point> = line.0.iter().map(|c| self.project(c.x, c.y)).collect();
        let mut pieces: Vec<Vec<Point>> = Vec::new();
        for edge in projected.windows(2) {
            let Some((a, b)) = self.clip(edge[0], edge[1]) else { continue };
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&a) => piece.push(b),
                _ => pieces.push(vec![a, b]),
            }
        }
        let mut paths = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let mut rounded = self.simplify(&piece, tick)?;
            if let [(x, y)] = rounded.as_slice() {
                // Shorter than a unit.
                rounded.push((x + 1, *y));
            }
            if rounded.len() >= 2 {
                paths.push(rounded);
            }
        }
        Ok(paths)
    }

    /// The part of an edge inside the square (Liang and Barsky 1984).
    fn clip(&self, a: Point, b: Point) -> Option<(Point, Point)> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut from, mut to) = (0.0f64, 1.0f64);
        for (step, room) in [(-dx, a.0 - self.low), (dx, self.high - a.0), (-dy, a.1 - self.low), (dy, self.high - a.1)]
        {
            if step == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if step < 0.0 {
                from = from.max(room / step);
            } else {
                to = to.min(room / step);
            }
        }
        if from > to {
            return None;
        }
        let at = |part: f64| (a.0 + part * dx, a.1 + part * dy);
        Some((if from > 0.0 { at(from) } else { a }, if to < 1.0 { at(to) } else { b }))
    }

    /// The rings of a polygon within the square: the outer one, then holes; empty if it lies outside.
    fn polygon(&self, polygon: &Polygon<f64>, tick: Tick<'_>) -> Result<Vec<Path>, QueryError> {
        let outer = self.clip_ring(polygon.exterior());
        let Some(&first) = outer.first() else { return Ok(Vec::new()) };
        let Some(outer) = self.ring(&outer, true, tick)? else {
            // Smaller than a unit.
            let (x, y) = round(first);
            return Ok(vec![vec![(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]]);
        };
        let mut rings = vec![outer];
        for hole in polygon.interiors() {
            rings.extend(self.ring(&self.clip_ring(hole), false, tick)?);
        }
        Ok(rings)
    }

    /// A ring clipped by each side of the square in turn (Sutherland and Hodgman 1974), without its closing vertex.
    fn clip_ring(&self, ring: &LineString<f64>) -> Vec<Point> {
        let mut points: Vec<Point> = ring.0.iter().map(|c| self.project(c.x, c.y)).collect();
        if points.first() == points.last() {
            points.pop();
        }
        // Most rings of a zoomed tile lie wholly inside, and are not clipped at all.
        if points.iter().all(|p| self.holds(*p)) {
            return points;
        }
        type Side = fn(Point, f64) -> f64;
        // Distance of a point inside each side.
        let sides: [(Side, f64); 4] = [
            (|p, edge| p.0 - edge, self.low),
            (|p, edge| edge - p.0, self.high),
            (|p, edge| p.1 - edge, self.low),
            (|p, edge| edge - p.1, self.high),
        ];
        for (inside, edge) in sides {
            let mut cut = Vec::with_capacity(points.len() + 4);
            let Some(&last) = points.last() else { break };
            let mut before = last;
            for point in points {
                let (was, is) = (inside(before, edge), inside(point, edge));
                if (was >= 0.0) != (is >= 0.0) {
                    let part = was / (was - is);
                    cut.push((before.0 + part * (point.0 - before.0), before.1 + part * (point.1 - before.1)));
                }
                if is >= 0.0 {
                    cut.push(point);
                }
                before = point;
            }
            points = cut;
        }
        points
    }

    /// A ring simplified, rounded and wound; `None` if no area is left.
    fn ring(&self, ring: &[Point], outer: bool, tick: Tick<'_>) -> Result<Option<Path>, QueryError> {
        let Some(&first) = ring.first() else { return Ok(None) };
        let mut closed = ring.to_vec();
        closed.push(first);
        let mut rounded = self.simplify(&closed, tick)?;
        if rounded.first() == rounded.last() {
            rounded.pop();
        }
        let next = rounded.iter().cycle().skip(1);
        let area: i64 = rounded
            .iter()
            .zip(next)
            .map(|(a, b)| i64::from(a.0) * i64::from(b.1) - i64::from(b.0) * i64::from(a.1))
            .sum();
        if rounded.len() < 3 || area == 0 {
            return Ok(None);
        }
        // A positive area in these coordinates is clockwise as drawn, as the format requires of outer rings.
        if (area > 0) != outer {
            rounded.reverse();
        }
        Ok(Some(rounded))
    }

    /// Drops vertices closer than a unit to the previous one, applies Douglas-Peucker, then rounds.
    fn simplify(&self, line: &[Point], tick: Tick<'_>) -> Result<Path, QueryError> {
        tick()?;
        let mut thinned: Vec<Point> = Vec::with_capacity(line.len().min(1024));
        let last = line.len().saturating_sub(1);
        for (i, &point) in line.iter().enumerate() {
            let near = |other: &Point| (other.0 - point.0).abs() < 1.0 && (other.1 - point.1).abs() < 1.0;
            if i == 0 || i == last || !thinned.last().is_some_and(near) {
                thinned.push(point);
            }
        }
        let kept = keep_planar(&thinned, self.tolerance, tick)?;
        let mut rounded: Path =
            thinned.into_iter().zip(kept).filter(|(_, keep)| *keep).map(|(p, _)| round(p)).collect();
        rounded.dedup();
        Ok(rounded)
    }
}

fn round((x, y): Point) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geo_types::{line_string, point, polygon};
    use proptest::prelude::*;

    fn draw(canvas: Canvas, geometry: impl Into<Geometry<f64>>) -> Option<Shape> {
        canvas.draw(&geometry.into(), &|| Ok(())).unwrap()
    }

    fn world() -> Canvas {
        Canvas::new(0, 0, 0, 64.0, 2.0)
    }

    #[test]
    fn points_fall_where_mercator_says() {
        let middle = Shape::Points(vec![(2048, 2048)]);
        assert_eq!(draw(world(), point!(x: 0.0, y: 0.0)), Some(middle));
        let corner = Shape::Points(vec![(0, 0)]);
        assert_eq!(draw(world(), point!(x: -180.0, y: 85.051_128_779_806_6)), Some(corner));
        assert_eq!(draw(Canvas::new(1, 0, 0, 64.0, 2.0), point!(x: 90.0, y: -45.0)), None);
        // Inside the last column, so that clients draw it; elsewhere the next tile has it.
        let last = Canvas::new(1, 1, 0, 64.0, 2.0);
        for lon in [180.0, 179.999] {
            assert_eq!(draw(last, point!(x: lon, y: 0.0)), Some(Shape::Points(vec![(4095, 4096)])));
        }
        let (seam, first) = (point!(x: 0.0, y: 0.0), Canvas::new(1, 0, 0, 64.0, 2.0));
        assert_eq!(draw(first, seam), Some(Shape::Points(vec![(4096, 4096)])));
        assert_eq!(draw(last, seam), Some(Shape::Points(vec![(0, 4096)])));
    }

    #[test]
    fn a_line_is_cut_where_it_leaves_and_comes_back() {
        // Column 0 of zoom 1 is the western half: this line crosses into the east and returns.
        let canvas = Canvas::new(1, 0, 0, 64.0, 2.0);
        let line = line_string![(x: -90.0, y: 10.0), (x: 90.0, y: 40.0), (x: -90.0, y: 70.0)];
        let Some(Shape::Lines(pieces)) = draw(canvas, line) else { panic!() };
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().flatten().all(|(x, y)| (-64..=4160).contains(x) && (-64..=4160).contains(y)));
    }

    #[test]
    fn rings_are_wound_as_the_format_asks_and_specks_stay_visible() {
        let with_hole = polygon!(
            exterior: [(x: -60.0, y: -60.0), (x: 60.0, y: -60.0), (x: 60.0, y: 60.0), (x: -60.0, y: 60.0)],
            interiors: [[(x: -20.0, y: -20.0), (x: 20.0, y: -20.0), (x: 20.0, y: 20.0), (x: -20.0, y: 20.0)]],
        );
        let Some(Shape::Polygons(rings)) = draw(world(), with_hole) else { panic!() };
        let area = |ring: &[(i32, i32)]| -> i64 {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).map(|(a, b)| i64::from(a.0 * b.1) - i64::from(b.0 * a.1)).sum()
        };
        assert_eq!(rings.len(), 2);
        assert!(area(&rings[0]) > 0 && area(&rings[1]) < 0);
        let speck = polygon![(x: 1.0, y: 1.0), (x: 1.000_01, y: 1.0), (x: 1.0, y: 1.000_01)];
        let Some(Shape::Polygons(rings)) = draw(world(), speck) else { panic!() };
        assert!(rings[0].len() == 4 && area(&rings[0]) > 0);
    }

    #[test]
    fn a_geometry_is_given_up_on_the_way() {
        let line = line_string![(x: -90.0, y: 10.0), (x: 90.0, y: 40.0), (x: -90.0, y: 70.0)];
        let late = || Err(QueryError::Deadline);
        let polygon = Polygon::new(line.clone(), vec![]);
        for geometry in [Geometry::from(line), Geometry::from(polygon)] {
            assert!(matches!(world().draw(&geometry, &late), Err(QueryError::Deadline)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn what_is_drawn_lies_in_the_square(
            corners in prop::collection::vec((-180.0..180.0f64, -90.0..90.0f64), 3..12),
            z in 0u8..10, x: u32, y: u32,
        ) {
            let canvas = Canvas::new(z, x % (1 << z), y % (1 << z), 64.0, 2.0);
            let line = LineString::from(corners);
            for geometry in [Geometry::LineString(line.clone()), Geometry::Polygon(Polygon::new(line, vec![]))] {
                let paths = match draw(canvas, geometry) {
                    Some(Shape::Lines(paths) | Shape::Polygons(paths)) => paths,
                    _ => Vec::new(),
                };
                // The smallest shapes extend a unit further.
                prop_assert!(paths.iter().flatten().all(|(x, y)| (-64..=4161).contains(x) && (-64..=4161).contains(y)));
                prop_assert!(paths.iter().all(|p| p.len() >= 2));
            }
        }
    }
}
