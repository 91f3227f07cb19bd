//! A filter geometry, prepared once to be tested against many events.

use super::bands::Bands;
use crate::planar::{Side, Sides, box_holds, box_in_box, boxes_touch, polygon_side, segment_holds};
use geo_types::{Coord, Geometry, LineString, Polygon};

/// A prepared geometry. Collections and multi-geometries are the union of their parts.
#[derive(Debug)]
pub(crate) struct Shape {
    geometry: Geometry<f64>,
    sides: Sides,
    points: Vec<Coord<f64>>,
    lines: Option<Lines>,
    areas: Vec<Area>,
    /// The position, if the geometry is a single point.
    single: Option<Coord<f64>>,
}

#[derive(Debug)]
struct Lines {
    edges: Bands,
    /// A vertex of each line.
    starts: Vec<Coord<f64>>,
    /// Boundary points of lines: points at which an odd number of lines end.
    ends: Vec<Coord<f64>>,
}

#[derive(Debug)]
struct Area {
    edges: Bands,
    /// The area, if it is a single box.
    rectangle: Option<Sides>,
}

/// Relation of a box to a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoxSide {
    /// Box and shape share no point.
    Outside,
    /// Not certain to be any of the others.
    Unsure,
    /// Every point of the box belongs to the shape.
    Covered,
    /// Every point of the box lies in the interior of the shape.
    Interior,
}

impl Shape {
    /// Prepares a geometry; `None` for one without positions.
    pub(crate) fn new(geometry: Geometry<f64>) -> Option<Shape> {
        let sides = crate::geometry::sides(&geometry)?;
        let mut parts = Parts::default();
        parts.add(&geometry);
        let Parts { points, edges, starts, mut ends, areas } = parts;
        let order = |a: &Coord<f64>, b: &Coord<f64>| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y));
        // The mod-2 rule of Simple Features (OGC 06-103r4): a point where two lines end is not on the boundary.
        ends.sort_unstable_by(order);
        let ends = ends.chunk_by(|a, b| a == b).filter(|run| run.len() % 2 == 1).map(|run| run[0]).collect();
        let single = match points.first() {
            Some(first) if edges.is_empty() && areas.is_empty() && points.iter().all(|p| p == first) => Some(*first),
            _ => None,
        };
        let lines = (!edges.is_empty()).then(|| Lines { edges: Bands::new(edges), starts, ends });
        Some(Shape { geometry, sides, points, lines, areas, single })
    }

    pub(crate) fn geometry(&self) -> &Geometry<f64> {
        &self.geometry
    }

    /// The smallest box that contains the geometry.
    pub(crate) fn sides(&self) -> Sides {
        self.sides
    }

    pub(crate) fn single(&self) -> Option<Coord<f64>> {
        self.single
    }

    /// Position of a place relative to the shape.
    pub(crate) fn side(&self, p: Coord<f64>) -> Side {
        // Most rows of a page lie outside, which four comparisons decide.
        if !box_holds(&self.sides, p) {
            return Side::Outside;
        }
        let mut boundary = false;
        for area in &self.areas {
            match area.edges.side(p) {
                // A union: inside one part is inside, whatever the others say.
                Side::Inside => return Side::Inside,
                Side::Boundary => boundary = true,
                Side::Outside => {}
            }
        }
        if let Some(lines) = &self.lines
            && lines.edges.holds(p)
        {
            if !lines.ends.contains(&p) {
                return Side::Inside;
            }
            boundary = true;
        }
        if self.points.contains(&p) {
            return Side::Inside;
        }
        if boundary { Side::Boundary } else { Side::Outside }
    }

    /// Relation of a box to the shape; errs only towards [`BoxSide::Unsure`].
    pub(crate) fn box_side(&self, sides: &Sides) -> BoxSide {
        if !boxes_touch(&self.sides, sides) {
            return BoxSide::Outside;
        }
        let mut meets = self.points.iter().any(|p| box_holds(sides, *p));
        let mut covered = false;
        for area in &self.areas {
            if !boxes_touch(area.edges.sides(), sides) {
                continue;
            }
            // With no edge in it, the box lies wholly inside or wholly outside; one corner decides.
            if area.edges.touch_box(sides) {
                meets = true;
                covered |= area.rectangle.is_some_and(|r| box_in_box(&r, sides));
            } else if area.edges.side(Coord { x: sides[0], y: sides[1] }) == Side::Inside {
                return BoxSide::Interior;
            }
        }
        meets = meets || self.lines.as_ref().is_some_and(|lines| lines.edges.touch_box(sides));
        if covered || self.single.is_some_and(|p| *sides == [p.x, p.y, p.x, p.y]) {
            BoxSide::Covered
        } else if meets {
            BoxSide::Unsure
        } else {
            BoxSide::Outside
        }
    }

    /// Whether the shape and a geometry share a point.
    pub(crate) fn touches(&self, geometry: &Geometry<f64>) -> bool {
        match geometry {
            Geometry::Point(p) => self.side(p.0) != Side::Outside,
            Geometry::Line(line) => self.touches_path(&[line.start, line.end]),
            Geometry::LineString(line) => self.touches_path(&line.0),
            Geometry::Polygon(polygon) => self.touches_polygon(polygon),
            Geometry::MultiPoint(points) => points.iter().any(|p| self.side(p.0) != Side::Outside),
            Geometry::MultiLineString(lines) => lines.iter().any(|l| self.touches_path(&l.0)),
            Geometry::MultiPolygon(polygons) => polygons.iter().any(|p| self.touches_polygon(p)),
            Geometry::GeometryCollection(members) => members.iter().any(|g| self.touches(g)),
            Geometry::Rect(rect) => self.touches_polygon(&rect.to_polygon()),
            Geometry::Triangle(triangle) => self.touches_polygon(&triangle.to_polygon()),
        }
    }

    fn touches_path(&self, path: &[Coord<f64>]) -> bool {
        let Some(&first) = path.first() else {
            return false;
        };
        // One vertex decides whether a path is inside an area, unless the path crosses an edge.
        self.side(first) != Side::Outside || path.windows(2).any(|s| self.touches_segment(s[0], s[1]))
    }

    fn touches_segment(&self, a: Coord<f64>, b: Coord<f64>) -> bool {
        self.areas.iter().any(|area| area.edges.touch_segment(a, b))
            || self.lines.as_ref().is_some_and(|lines| lines.edges.touch_segment(a, b))
            || self.points.iter().any(|p| segment_holds(a, b, *p))
    }

    fn touches_polygon(&self, polygon: &Polygon<f64>) -> bool {
        self.touches_path(&polygon.exterior().0)
            || polygon.interiors().iter().any(|hole| self.touches_path(&hole.0))
            // No edges cross: the shape may still lie wholly inside the polygon.
            || self.vertices().any(|p| polygon_side(polygon, p) != Side::Outside)
    }

    /// A vertex of each part.
    fn vertices(&self) -> impl Iterator<Item = Coord<f64>> {
        let of_lines = self.lines.iter().flat_map(|l| l.starts.iter().copied());
        self.points.iter().copied().chain(of_lines).chain(self.areas.iter().filter_map(|a| a.edges.vertex()))
    }
}

/// A geometry split into points, lines and areas.
#[derive(Default)]
struct Parts {
    points: Vec<Coord<f64>>,
    edges: Vec<[Coord<f64>; 2]>,
    starts: Vec<Coord<f64>>,
    ends: Vec<Coord<f64>>,
    areas: Vec<Area>,
}

impl Parts {
    fn add(&mut self, geometry: &Geometry<f64>) {
        match geometry {
            Geometry::Point(p) => self.points.push(p.0),
            Geometry::Line(line) => self.add_line(&LineString(vec![line.start, line.end])),
            Geometry::LineString(line) => self.add_line(line),
            Geometry::Polygon(polygon) => self.add_polygon(polygon),
            Geometry::MultiPoint(points) => self.points.extend(points.iter().map(|p| p.0)),
            Geometry::MultiLineString(lines) => lines.iter().for_each(|l| self.add_line(l)),
            Geometry::MultiPolygon(polygons) => polygons.iter().for_each(|p| self.add_polygon(p)),
            Geometry::GeometryCollection(members) => members.iter().for_each(|g| self.add(g)),
            Geometry::Rect(rect) => self.add_polygon(&rect.to_polygon()),
            Geometry::Triangle(triangle) => self.add_polygon(&triangle.to_polygon()),
        }
    }

    fn add_line(&mut self, line: &LineString<f64>) {
        self.edges.extend(line.0.windows(2).map(|s| [s[0], s[1]]));
        self.starts.extend(line.0.first());
        if let (Some(first), Some(last)) = (line.0.first(), line.0.last())
            && first != last
        {
            self.ends.extend([*first, *last]);
        }
    }

    fn add_polygon(&mut self, polygon: &Polygon<f64>) {
        let rings = std::iter::once(polygon.exterior()).chain(polygon.interiors());
        let edges: Vec<_> = rings.flat_map(|ring| ring.0.windows(2).map(|s| [s[0], s[1]])).collect();
        let edges = Bands::new(edges);
        let rectangle = is_rectangle(polygon).then_some(*edges.sides());
        self.areas.push(Area { edges, rectangle });
    }
}

/// Whether a polygon is a box with sides along meridians and parallels.
fn is_rectangle(polygon: &Polygon<f64>) -> bool {
    let ring = &polygon.exterior().0;
    polygon.interiors().is_empty()
        && ring.len() == 5
        && ring.windows(2).all(|s| (s[0].x == s[1].x) != (s[0].y == s[1].y))
        && ring.windows(3).all(|s| (s[0].x == s[1].x) != (s[1].x == s[2].x))
        && ring[0] != ring[2]
        && ring[1] != ring[3]
}
