//! Geometry into a tile: projected, clipped, simplified, rounded to tile units.

use crate::mvt::{EXTENT, Shape};
use crate::simplify::keep_planar;
use geo_types::{Geometry, LineString, Polygon};
use std::f64::consts::PI;

/// Latitude beyond which Mercator is of no use; far outside every tile.
const LAT_MAX: f64 = 89.9;

/// One tile's coordinates: x to the east and y to the south in tile units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    side: f64,
    column: f64,
    row: f64,
    /// The square drawn: the tile and its buffer.
    low: f64,
    high: f64,
    tolerance: f64,
}

type Point = (f64, f64);

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

    /// A geometry in tile units; `None` if nothing of it is in the square. What is smaller than a unit is drawn as
    /// the smallest shape of its kind, so that no event vanishes.
    pub(crate) fn draw(&self, geometry: &Geometry<f64>) -> Option<Shape> {
        let some = |shapes: Vec<Vec<(i32, i32)>>| (!shapes.is_empty()).then_some(shapes);
        match geometry {
            Geometry::Point(p) => self.points([p.0].into_iter()),
            Geometry::MultiPoint(points) => self.points(points.iter().map(|p| p.0)),
            Geometry::Line(line) => some(self.line(&LineString(vec![line.start, line.end]))).map(Shape::Lines),
            Geometry::LineString(line) => some(self.line(line)).map(Shape::Lines),
            Geometry::MultiLineString(lines) => {
                some(lines.iter().flat_map(|l| self.line(l)).collect()).map(Shape::Lines)
            }
            Geometry::Polygon(polygon) => some(self.polygon(polygon)).map(Shape::Polygons),
            Geometry::MultiPolygon(polygons) => {
                some(polygons.iter().flat_map(|p| self.polygon(p)).collect()).map(Shape::Polygons)
            }
            Geometry::Rect(rect) => some(self.polygon(&rect.to_polygon())).map(Shape::Polygons),
            Geometry::Triangle(triangle) => some(self.polygon(&triangle.to_polygon())).map(Shape::Polygons),
            Geometry::GeometryCollection(_) => None,
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
        let mut inside: Vec<(i32, i32)> =
            points.map(|c| self.project(c.x, c.y)).filter(|p| self.holds(*p)).map(round).collect();
        inside.dedup();
        (!inside.is_empty()).then_some(Shape::Points(inside))
    }

    /// The pieces of a line that lie in the square.
    fn line(&self, line: &LineString<f64>) -> Vec<Vec<(i32, i32)>> {
        let projected: Vec<Point> = line.0.iter().map(|c| self.project(c.x, c.y)).collect();
        let mut pieces: Vec<Vec<Point>> = Vec::new();
        for edge in projected.windows(2) {
            let Some((a, b)) = self.clip(edge[0], edge[1]) else { continue };
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&a) => piece.push(b),
                _ => pieces.push(vec![a, b]),
            }
        }
        let whole = |piece: Vec<Point>| {
            let mut rounded = self.simplify(&piece);
            if let [(x, y)] = rounded.as_slice() {
                // Shorter than a unit.
                rounded.push((x + 1, *y));
            }
            rounded
        };
        pieces.into_iter().map(whole).filter(|p| p.len() >= 2).collect()
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

    /// The rings of a polygon inside the square: the outer one, then holes; nothing if it lies outside.
    fn polygon(&self, polygon: &Polygon<f64>) -> Vec<Vec<(i32, i32)>> {
        let outer = self.clip_ring(polygon.exterior());
        let Some(&first) = outer.first() else { return Vec::new() };
        let Some(outer) = self.ring(&outer, true) else {
            // Smaller than a unit.
            let (x, y) = round(first);
            return vec![vec![(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]];
        };
        let holes = polygon.interiors().iter().filter_map(|hole| self.ring(&self.clip_ring(hole), false));
        std::iter::once(outer).chain(holes).collect()
    }

    /// A ring cut by each side of the square in turn (Sutherland and Hodgman 1974), without its closing vertex.
    fn clip_ring(&self, ring: &LineString<f64>) -> Vec<Point> {
        let mut points: Vec<Point> = ring.0.iter().map(|c| self.project(c.x, c.y)).collect();
        if points.first() == points.last() {
            points.pop();
        }
        if points.iter().all(|p| self.holds(*p)) {
            return points;
        }
        type Side = fn(Point, f64) -> f64;
        // How far inside each side a point lies.
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
    fn ring(&self, ring: &[Point], outer: bool) -> Option<Vec<(i32, i32)>> {
        let mut closed = ring.to_vec();
        closed.push(*ring.first()?);
        let mut rounded = self.simplify(&closed);
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
            return None;
        }
        // A positive area in these coordinates is clockwise as drawn: what the format asks of outer rings.
        if (area > 0) != outer {
            rounded.reverse();
        }
        Some(rounded)
    }

    /// Drops vertices closer than a unit to the one before, then what Douglas and Peucker drop, then rounds.
    fn simplify(&self, line: &[Point]) -> Vec<(i32, i32)> {
        let mut thinned: Vec<Point> = Vec::with_capacity(line.len().min(1024));
        let last = line.len().saturating_sub(1);
        for (i, &point) in line.iter().enumerate() {
            let near = |other: &Point| (other.0 - point.0).abs() < 1.0 && (other.1 - point.1).abs() < 1.0;
            if i == 0 || i == last || !thinned.last().is_some_and(near) {
                thinned.push(point);
            }
        }
        let kept = keep_planar(&thinned, self.tolerance);
        let mut rounded: Vec<(i32, i32)> =
            thinned.into_iter().zip(kept).filter(|(_, keep)| *keep).map(|(p, _)| round(p)).collect();
        rounded.dedup();
        rounded
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

    fn world() -> Canvas {
        Canvas::new(0, 0, 0, 64.0, 2.0)
    }

    #[test]
    fn points_fall_where_mercator_says() {
        let middle = Shape::Points(vec![(2048, 2048)]);
        assert_eq!(world().draw(&point!(x: 0.0, y: 0.0).into()), Some(middle));
        let corner = Shape::Points(vec![(0, 0)]);
        assert_eq!(world().draw(&point!(x: -180.0, y: 85.051_128_779_806_6).into()), Some(corner));
        assert_eq!(Canvas::new(1, 0, 0, 64.0, 2.0).draw(&point!(x: 90.0, y: -45.0).into()), None);
    }

    #[test]
    fn a_line_is_cut_where_it_leaves_and_comes_back() {
        // Column 0 of zoom 1 is the western half: this line crosses into the east and returns.
        let canvas = Canvas::new(1, 0, 0, 64.0, 2.0);
        let line = line_string![(x: -90.0, y: 10.0), (x: 90.0, y: 40.0), (x: -90.0, y: 70.0)];
        let Some(Shape::Lines(pieces)) = canvas.draw(&line.into()) else { panic!() };
        assert_eq!(pieces.len(), 2);
        assert!(pieces.iter().flatten().all(|(x, y)| (-64..=4160).contains(x) && (-64..=4160).contains(y)));
    }

    #[test]
    fn rings_are_wound_as_the_format_asks_and_specks_stay_visible() {
        let with_hole = polygon!(
            exterior: [(x: -60.0, y: -60.0), (x: 60.0, y: -60.0), (x: 60.0, y: 60.0), (x: -60.0, y: 60.0)],
            interiors: [[(x: -20.0, y: -20.0), (x: 20.0, y: -20.0), (x: 20.0, y: 20.0), (x: -20.0, y: 20.0)]],
        );
        let Some(Shape::Polygons(rings)) = world().draw(&with_hole.into()) else { panic!() };
        let area = |ring: &[(i32, i32)]| -> i64 {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).map(|(a, b)| i64::from(a.0 * b.1) - i64::from(b.0 * a.1)).sum()
        };
        assert_eq!(rings.len(), 2);
        assert!(area(&rings[0]) > 0 && area(&rings[1]) < 0);
        let speck = polygon![(x: 1.0, y: 1.0), (x: 1.000_01, y: 1.0), (x: 1.0, y: 1.000_01)];
        let Some(Shape::Polygons(rings)) = world().draw(&speck.into()) else { panic!() };
        assert!(rings[0].len() == 4 && area(&rings[0]) > 0);
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
                let paths = match canvas.draw(&geometry) {
                    Some(Shape::Lines(paths) | Shape::Polygons(paths)) => paths,
                    _ => Vec::new(),
                };
                // The smallest shapes reach a unit further.
                prop_assert!(paths.iter().flatten().all(|(x, y)| (-64..=4161).contains(x) && (-64..=4161).contains(y)));
                prop_assert!(paths.iter().all(|p| p.len() >= 2));
            }
        }
    }
}
