//! The edges of a shape in bands of latitude, so that only edges near a place or box are tested.

use crate::planar::{
    Side, Sides, box_union, boxes_touch, ray_crosses, segment_box, segment_holds, segment_touches_box, segments_touch,
};
use geo_types::Coord;

/// Edges in bands of equal height.
///
/// An edge is listed in every band that it reaches. The number of bands grows with the number of edges, and is
/// bounded so that the bands together hold at most [`ENTRIES_PER_EDGE_MAX`] entries per edge.
#[derive(Debug)]
pub(crate) struct Bands {
    edges: Vec<[Coord<f64>; 2]>,
    sides: Sides,
    /// Bands per degree.
    scale: f64,
    /// Start of each band in `entries`, plus the end of the last one.
    starts: Vec<u32>,
    entries: Vec<u32>,
}

/// Max bands of one shape.
const BANDS_MAX: usize = 4096;
/// Max entries of all bands together, per edge.
const ENTRIES_PER_EDGE_MAX: usize = 8;

impl Bands {
    pub(crate) fn new(edges: Vec<[Coord<f64>; 2]>) -> Bands {
        let sides = edges
            .iter()
            .fold([f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY], |sides, &[a, b]| {
                box_union(sides, segment_box(a, b))
            });
        let mut bands = Bands { edges, sides, scale: 0.0, starts: vec![0, 0], entries: Vec::new() };
        // About one edge per band. Long edges are listed in many bands, so the count is reduced if they would take
        // much memory.
        let mut count = bands.edges.len().clamp(1, BANDS_MAX);
        loop {
            bands.scale = if sides[3] > sides[1] { count as f64 / (sides[3] - sides[1]) } else { 0.0 };
            if !bands.scale.is_finite() {
                bands.scale = 0.0;
            }
            let total: usize = bands.edges.iter().map(|e| bands.of_edge(e, count)).map(|r| r.1 - r.0 + 1).sum();
            if count == 1 || total <= ENTRIES_PER_EDGE_MAX * bands.edges.len() {
                bands.fill(count, total);
                return bands;
            }
            count /= 2;
        }
    }

    fn fill(&mut self, count: usize, total: usize) {
        // Counted first, then filled: one array for all bands instead of one each.
        let mut starts = vec![0u32; count + 1];
        for edge in &self.edges {
            let (first, last) = self.of_edge(edge, count);
            starts[first + 1..=last + 1].iter_mut().for_each(|n| *n += 1);
        }
        for band in 0..count {
            starts[band + 1] += starts[band];
        }
        let mut next = starts.clone();
        let mut entries = vec![0u32; total];
        for (i, edge) in self.edges.iter().enumerate() {
            let (first, last) = self.of_edge(edge, count);
            for slot in &mut next[first..=last] {
                entries[*slot as usize] = i as u32;
                *slot += 1;
            }
        }
        self.starts = starts;
        self.entries = entries;
    }

    /// The band of a latitude. It is monotonic in the latitude, so a latitude within an edge falls into one of the
    /// edge's bands.
    fn of(&self, y: f64, count: usize) -> usize {
        // The cast maps negative numbers and NaN to 0.
        (((y - self.sides[1]) * self.scale) as usize).min(count - 1)
    }

    fn of_edge(&self, [a, b]: &[Coord<f64>; 2], count: usize) -> (usize, usize) {
        (self.of(a.y.min(b.y), count), self.of(a.y.max(b.y), count))
    }

    /// Edges that may reach latitudes from `south` to `north`; an edge may occur more than once.
    fn between(&self, south: f64, north: f64) -> impl Iterator<Item = &[Coord<f64>; 2]> {
        let count = self.starts.len() - 1;
        let (first, last) = (self.of(south, count), self.of(north, count));
        // `of` clamps every latitude to some band, even beyond the shape.
        let entries = if north < self.sides[1] || south > self.sides[3] {
            &[]
        } else {
            &self.entries[self.starts[first] as usize..self.starts[last + 1] as usize]
        };
        entries.iter().map(|&i| &self.edges[i as usize])
    }

    /// The bounding box of all edges; empty if there are none.
    pub(crate) fn sides(&self) -> &Sides {
        &self.sides
    }

    /// A vertex, if there is one.
    pub(crate) fn vertex(&self) -> Option<Coord<f64>> {
        self.edges.first().map(|e| e[0])
    }

    /// Position of a place relative to the rings formed by the edges (even-odd rule).
    pub(crate) fn side(&self, p: Coord<f64>) -> Side {
        let [west, south, east, north] = self.sides;
        if p.x < west || p.x > east || p.y < south || p.y > north {
            return Side::Outside;
        }
        let mut inside = false;
        for &[a, b] in self.between(p.y, p.y) {
            match ray_crosses(a, b, p) {
                None => return Side::Boundary,
                Some(crosses) => inside ^= crosses,
            }
        }
        if inside { Side::Inside } else { Side::Outside }
    }

    /// Whether a place lies on an edge.
    pub(crate) fn holds(&self, p: Coord<f64>) -> bool {
        self.between(p.y, p.y).any(|&[a, b]| segment_holds(a, b, p))
    }

    /// Whether an edge and a box share a point.
    pub(crate) fn touch_box(&self, sides: &Sides) -> bool {
        boxes_touch(&self.sides, sides)
            && self.between(sides[1], sides[3]).any(|&[a, b]| segment_touches_box(a, b, sides))
    }

    /// Whether an edge and a segment share a point.
    pub(crate) fn touch_segment(&self, c: Coord<f64>, d: Coord<f64>) -> bool {
        let sides = segment_box(c, d);
        boxes_touch(&self.sides, &sides) && self.between(sides[1], sides[3]).any(|&[a, b]| segments_touch(a, b, c, d))
    }
}
