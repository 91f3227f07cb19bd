//! The near kernel of the places profile: how many places lie in a circle, and the first of them by distance.
//!
//! One walk over the trees sorts nodes into three: outside the circle, wholly inside, and cut by its edge. Inside
//! nodes are counted from the tree and read only while they may hold one of the nearest; cut leaves are tested row
//! by row. Nodes are compared with the circle's box before any trigonometry, and rows are compared by the haversine
//! of their distance, so that only the places given out cost a square root.

use arrow_array::Array;
use meridian_index::{FANOUT, LEAF_ROWS, Node, Tree};
use meridian_model::filter::{distance_to_box_m, farthest_in_box_m};
use meridian_model::sphere::EARTH_RADIUS_M;
use meridian_model::{Batch, Bounds, Projection};
use meridian_store::{CHUNK_ROWS, PartView, Snapshot, StoreError};
use std::borrow::Cow;
use std::collections::BinaryHeap;
use std::f64::consts::FRAC_PI_2;
use std::ops::Range;

/// A place found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Great-circle distance in metres.
    pub distance_m: f64,
    /// Which part of the snapshot.
    pub part: usize,
    /// Its row there.
    pub row: u32,
}

/// A circle on the globe.
#[derive(Debug, Clone, Copy)]
pub struct Circle {
    lon: f64,
    lat: f64,
    /// Haversine of the radius. All distances here are compared as haversines.
    reach: f64,
    sin_lat: f64,
    cos_lat: f64,
    /// Whether all angles in the circle's box are below [`SMALL`], so that short series stand for sines and cosines.
    small: bool,
    /// Boxes that cover the circle, two where it crosses the antimeridian: west, south, east, north.
    boxes: [Option<[f64; 4]>; 2],
}

/// Angles in radians up to which [`sin_small`] and [`haversine_small`] are exact to the last digits of a double.
const SMALL: f64 = 0.06;

/// Sine of a small angle: the first term left out is below 3e-17. Reciprocals, for a division costs as much as the rest.
#[inline(always)]
fn sin_small(x: f64) -> f64 {
    let x2 = x * x;
    x * (1.0 - x2 * (1.0 / 6.0) * (1.0 - x2 * (1.0 / 20.0) * (1.0 - x2 * (1.0 / 42.0))))
}

/// Haversine (square of the sine of the half) of a small angle, given its square: the first term left out is below 1e-16 of it.
#[inline(always)]
fn haversine_small(x2: f64) -> f64 {
    x2 * 0.25 * (1.0 - x2 * (1.0 / 12.0) * (1.0 - x2 * (1.0 / 30.0) * (1.0 - x2 * (1.0 / 56.0))))
}

/// Haversine of a distance in metres, which grows with it up to half the globe.
fn haversine_of(distance_m: f64) -> f64 {
    let half = (distance_m / EARTH_RADIUS_M / 2.0).clamp(0.0, FRAC_PI_2).sin();
    half * half
}

impl Circle {
    /// A circle around a position in degrees; the radius is in metres.
    pub fn new(lon: f64, lat: f64, radius_m: f64) -> Circle {
        let angle = radius_m / EARTH_RADIUS_M;
        // A hair wider than exact: the boxes only keep work away, the haversine decides.
        let slack = 1e-9;
        let (south, north) = (lat - angle.to_degrees() - slack, lat + angle.to_degrees() + slack);
        let (sin_lat, cos_lat) = lat.to_radians().sin_cos();
        let mut small = false;
        let boxes = if south <= -90.0 || north >= 90.0 {
            [Some([-180.0, south, 180.0, north]), None]
        } else {
            let wide = (angle.sin() / cos_lat).clamp(-1.0, 1.0).asin().to_degrees() + slack;
            let (west, east) = (lon - wide, lon + wide);
            if west < -180.0 {
                [Some([-180.0, south, east, north]), Some([west + 360.0, south, 180.0, north])]
            } else if east > 180.0 {
                [Some([west, south, 180.0, north]), Some([-180.0, south, east - 360.0, north])]
            } else {
                small = angle < SMALL && wide.to_radians() < SMALL;
                [Some([west, south, east, north]), None]
            }
        };
        Circle { lon, lat, reach: haversine_of(radius_m), sin_lat, cos_lat, small, boxes }
    }

    /// Haversine of the distance to a position in degrees; where `small`, one in the circle's box.
    #[inline]
    fn haversine(&self, lon: f64, lat: f64) -> f64 {
        if self.small {
            return self.haversine_small(lon, lat);
        }
        let (phi, lambda) = ((lat - self.lat).to_radians(), (lon - self.lon).to_radians());
        let (half_phi, half_lambda) = ((phi * 0.5).sin(), (lambda * 0.5).sin());
        half_phi * half_phi + self.cos_lat * lat.to_radians().cos() * half_lambda * half_lambda
    }

    /// The same by short series, without a branch: a loop over many positions runs on vector registers.
    #[inline(always)]
    fn haversine_small(&self, lon: f64, lat: f64) -> f64 {
        const RADIANS: f64 = std::f64::consts::PI / 180.0;
        let (phi, lambda) = ((lat - self.lat) * RADIANS, (lon - self.lon) * RADIANS);
        let haversine_phi = haversine_small(phi * phi);
        // The cosine of the sum of the latitude and a small angle, whose cosine is 1 - 2 haversines.
        let cos_lat = self.cos_lat * (1.0 - 2.0 * haversine_phi) - self.sin_lat * sin_small(phi);
        haversine_phi + self.cos_lat * cos_lat * haversine_small(lambda * lambda)
    }

    /// Haversines of the distances to some positions in degrees; infinite for those outside the circle's boxes.
    #[inline]
    fn haversines(&self, lons: &[f64], lats: &[f64], out: &mut [f64]) {
        let positions = lons.iter().zip(lats);
        if let ([Some([west, south, east, north]), None], true) = (self.boxes, self.small) {
            for (out, (&lon, &lat)) in out.iter_mut().zip(positions) {
                let near = (south <= lat) & (lat <= north) & (west <= lon) & (lon <= east);
                let haversine = self.haversine_small(lon, lat);
                *out = if near { haversine } else { f64::INFINITY };
            }
            return;
        }
        for (out, (&lon, &lat)) in out.iter_mut().zip(positions) {
            let mut boxes = self.boxes.iter().flatten();
            let near = boxes.any(|[w, s, e, n]| *s <= lat && lat <= *n && *w <= lon && lon <= *e);
            *out = if near { self.haversine(lon, lat) } else { f64::INFINITY };
        }
    }

    fn touches(&self, bounds: &Bounds) -> bool {
        self.boxes.iter().flatten().any(|[west, south, east, north]| {
            bounds.west <= *east && *west <= bounds.east && bounds.south <= *north && *south <= bounds.north
        })
    }

    /// Whether a box lies wholly in the circle; `false` where that is too close to say.
    fn holds(&self, bounds: &Bounds) -> bool {
        let boxed = self.boxes.iter().flatten().any(|[west, south, east, north]| {
            *west <= bounds.west && bounds.east <= *east && *south <= bounds.south && bounds.north <= *north
        });
        boxed && self.farthest(bounds) < self.reach * (1.0 - 1e-9)
    }

    /// Haversine of the distance to the farthest point of a box in the circle's box.
    fn farthest(&self, bounds: &Bounds) -> f64 {
        if !self.small {
            return haversine_of(farthest_in_box_m(self.lon, self.lat, bounds));
        }
        // Along a parallel distances grow with the angle, along a meridian they have one minimum and no maximum
        // between the ends: the farthest point is a corner.
        let lon = if bounds.east - self.lon > self.lon - bounds.west { bounds.east } else { bounds.west };
        self.haversine(lon, bounds.south).max(self.haversine(lon, bounds.north))
    }

    /// A lower bound of the haversine of the distance to anything in a box in the circle's box.
    fn nearest(&self, bounds: &Bounds) -> f64 {
        if !self.small {
            return haversine_of(distance_to_box_m(self.lon, self.lat, bounds));
        }
        // The point of the same latitude is not quite the nearest of a meridian: at these angles it is off by less
        // than a part in two thousand (the square of the angle over eight), of the haversine by twice that.
        let nearest = (self.lon.clamp(bounds.west, bounds.east), self.lat.clamp(bounds.south, bounds.north));
        self.haversine(nearest.0, nearest.1) * 0.998
    }
}

/// A node wholly inside the circle that has not been read, nearest first.
struct Inside {
    /// Lower bound of the haversine of the distance.
    nearest: f64,
    part: usize,
    tree: usize,
    node: Node,
}

impl PartialEq for Inside {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Inside {}

impl PartialOrd for Inside {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Inside {
    /// Reversed: the heap gives the nearest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.nearest.total_cmp(&self.nearest)
    }
}

/// What a walk over the trees found: no row has been read yet.
pub struct Walk {
    circle: Circle,
    /// Leaves cut by the edge: part and rows.
    cut: Vec<(usize, Range<u32>)>,
    inside: Vec<Inside>,
}

impl Walk {
    /// Sorts the nodes of a snapshot by how they stand to a circle.
    pub fn new(snapshot: &Snapshot, circle: Circle) -> Walk {
        let mut walk = Walk { circle, cut: Vec::new(), inside: Vec::new() };
        let mut stack = Vec::with_capacity(64);
        for (part, view) in snapshot.parts.iter().enumerate() {
            for (number, tree) in view.trees().iter().enumerate() {
                let Some(root) = tree.root() else { continue };
                if walk.circle.touches(&tree.bounds(root)) {
                    walk.reach(part, number, tree, root, &mut stack);
                }
                while let Some(node) = stack.pop() {
                    walk.below(part, number, tree, node, &mut stack);
                }
            }
        }
        walk
    }

    /// Finds the children of a node that the circle's boxes touch.
    fn below(&mut self, part: usize, number: usize, tree: &Tree, node: Node, stack: &mut Vec<Node>) {
        let children = tree.children(node);
        let places = tree.places(&children);
        // A bit for each child, worked out for all of them at once: most of a walk is to find that a node is elsewhere.
        let mut touched = 0u32;
        for [west, south, east, north] in self.circle.boxes.iter().flatten() {
            for at in 0..places.west.len().min(FANOUT) {
                let near = (places.west[at] <= *east)
                    & (*west <= places.east[at])
                    & (places.south[at] <= *north)
                    & (*south <= places.north[at]);
                touched |= u32::from(near) << at;
            }
        }
        for (at, child) in children.enumerate() {
            if touched >> at & 1 == 1 {
                self.reach(part, number, tree, child, stack);
            }
        }
    }

    /// Takes a node that the circle's boxes touch.
    fn reach(&mut self, part: usize, number: usize, tree: &Tree, node: Node, stack: &mut Vec<Node>) {
        let circle = &self.circle;
        let bounds = tree.bounds(node);
        if circle.holds(&bounds) {
            self.inside.push(Inside { nearest: circle.nearest(&bounds), part, tree: number, node });
        } else if tree.is_leaf(node) {
            self.cut.push((part, tree.rows(node)));
        } else {
            stack.push(node);
        }
    }

    /// About how many rows the next step may read for the `k` nearest.
    pub fn rows_to_read(&self, k: usize) -> usize {
        self.cut.iter().map(|(_, rows)| rows.len()).sum::<usize>() + k
    }

    /// Counts the places in the circle and finds the `k` nearest, in order of distance, then of writing.
    pub fn finish(self, snapshot: &Snapshot, k: usize) -> Result<(u64, Vec<Hit>), StoreError> {
        let Walk { circle, cut, inside } = self;
        let mut columns = Projection::none(&snapshot.layout);
        columns.add_geometry(&snapshot.layout);
        let mut reader =
            Reader { snapshot, chunks: Chunks::new(columns), best: BinaryHeap::with_capacity(k + 1), k, circle };
        let mut total = 0;
        for (part, rows) in cut {
            total += reader.leaf(part, rows)?;
        }
        for entry in &inside {
            let view = &snapshot.parts[entry.part];
            let rows = view.trees()[entry.tree].rows(entry.node);
            total += if view.all_visible(rows.clone()) {
                rows.len() as u64
            } else {
                view.visible(rows)?.count_set_bits() as u64
            };
        }
        let mut heap = BinaryHeap::from(inside);
        while let Some(entry) = heap.pop() {
            if is_full_below(&reader.best, k, entry.nearest) {
                break;
            }
            let tree = &snapshot.parts[entry.part].trees()[entry.tree];
            if tree.is_leaf(entry.node) {
                reader.leaf(entry.part, tree.rows(entry.node))?;
                continue;
            }
            for node in tree.children(entry.node) {
                heap.push(Inside { nearest: circle.nearest(&tree.bounds(node)), node, ..entry });
            }
        }
        Ok((total, reader.hits()))
    }
}

/// A place among the nearest so far; the greatest is the first to go.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    haversine: f64,
    seq: u64,
    part: usize,
    row: u32,
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.haversine.total_cmp(&other.haversine).then(self.seq.cmp(&other.seq))
    }
}

/// Whether nothing at this haversine or farther can be among the `k` nearest.
fn is_full_below(best: &BinaryHeap<Candidate>, k: usize, haversine: f64) -> bool {
    best.len() == k && best.peek().is_none_or(|worst| worst.haversine < haversine)
}

struct Reader<'a> {
    snapshot: &'a Snapshot,
    chunks: Chunks,
    best: BinaryHeap<Candidate>,
    k: usize,
    circle: Circle,
}

impl Reader<'_> {
    /// Tests the rows of a leaf; answers how many lie in the circle.
    fn leaf(&mut self, part: usize, rows: Range<u32>) -> Result<u64, StoreError> {
        let view = &self.snapshot.parts[part];
        let visible = if view.all_visible(rows.clone()) { None } else { Some(view.visible(rows.clone())?) };
        let circle = self.circle;
        let mut seqs: Option<Cow<'_, [u64]>> = None;
        let mut total = 0;
        let mut haversines = [0.0; LEAF_ROWS];
        // A leaf may lie across two blocks.
        let mut start = rows.start;
        while start < rows.end {
            let (batch, first) = self.chunks.get(part, view, start)?;
            let end = rows.end.min(first + batch.rows() as u32).min(start + LEAF_ROWS as u32);
            let Some((lons, lats)) = batch.points() else { return Ok(total) };
            let at = (start - first) as usize..(end.max(start) - first) as usize;
            let found = &mut haversines[..at.len()];
            circle.haversines(&lons.values()[at.clone()], &lats.values()[at.clone()], found);
            for (i, &haversine) in found.iter().enumerate() {
                if haversine > circle.reach || lons.is_null(at.start + i) {
                    continue;
                }
                let row = start + i as u32;
                if visible.as_ref().is_some_and(|v| !v.value((row - rows.start) as usize)) {
                    continue;
                }
                total += 1;
                if is_full_below(&self.best, self.k, haversine) {
                    continue;
                }
                let seqs = match &mut seqs {
                    Some(seqs) => seqs,
                    none => none.insert(match view.seqs_at_hand(rows.clone()) {
                        Some(seqs) => Cow::Borrowed(seqs),
                        None => Cow::Owned(view.seqs(rows.clone())?),
                    }),
                };
                self.best.push(Candidate { haversine, seq: seqs[(row - rows.start) as usize], part, row });
                if self.best.len() > self.k {
                    self.best.pop();
                }
            }
            start = end.max(start + 1);
        }
        Ok(total)
    }

    fn hits(self) -> Vec<Hit> {
        let metres = |h: f64| 2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin();
        let sorted = self.best.into_sorted_vec();
        sorted.iter().map(|c| Hit { distance_m: metres(c.haversine), part: c.part, row: c.row }).collect()
    }
}

/// Blocks read for one question, so that each is looked up once.
pub struct Chunks {
    wanted: Projection,
    read: Vec<(usize, u32, Batch)>,
}

impl Chunks {
    /// Nothing read yet; `wanted` are the columns of all blocks.
    pub fn new(wanted: Projection) -> Chunks {
        Chunks { wanted, read: Vec::new() }
    }

    /// Rows around one row, and the first of them: all of a memory tree, a block of a segment.
    pub fn get<'a>(&'a mut self, part: usize, view: &'a PartView, row: u32) -> Result<(&'a Batch, u32), StoreError> {
        if let Some(batch) = view.at_hand() {
            return Ok((batch, 0));
        }
        let first = row - row % CHUNK_ROWS;
        let found = self.read.iter().rposition(|(p, f, _)| (*p, *f) == (part, first));
        let at = match found {
            Some(at) => at,
            None => {
                let batch = view.read(first..(first + CHUNK_ROWS).min(view.rows()), &self.wanted)?;
                self.read.push((part, first, batch));
                self.read.len() - 1
            }
        };
        Ok((&self.read[at].2, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::sphere::distance_m;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn series_and_bounds_agree_with_the_sphere(
            lon in -180.0..180.0f64,
            lat in -90.0..90.0f64,
            radius_m in 1.0..60_000.0f64,
            corner in prop::array::uniform4(-1.0..1.0f64),
            within in prop::array::uniform2(0.0..1.0f64),
        ) {
            let circle = Circle::new(lon, lat, radius_m);
            let Some([west, south, east, north]) = circle.boxes[0] else { unreachable!() };
            let at = |share: f64, low: f64, high: f64| low + (share + 1.0) / 2.0 * (high - low);
            let (x, y) = ([at(corner[0], west, east), at(corner[1], west, east)], [at(corner[2], south, north), at(corner[3], south, north)]);
            let bounds = Bounds {
                west: x[0].min(x[1]),
                east: x[0].max(x[1]),
                south: y[0].min(y[1]).max(-90.0),
                north: y[0].max(y[1]).min(90.0),
                ..Bounds::WORLD
            };
            prop_assume!(bounds.south <= bounds.north);
            let (px, py) = (
                bounds.west + within[0] * (bounds.east - bounds.west),
                bounds.south + within[1] * (bounds.north - bounds.south),
            );
            let exact = haversine_of(distance_m(lon, lat, px, py));
            let found = circle.haversine(px, py);
            // Some nanometres: the formula that this is held against subtracts radians.
            let apart = (found.sqrt() - exact.sqrt()).abs();
            prop_assert!(apart <= 1e-15 + 1e-12 * exact.sqrt(), "{found} {exact}");
            prop_assert!(circle.nearest(&bounds) <= found + 1e-24);
            prop_assert!(circle.farthest(&bounds) >= found * (1.0 - 1e-9));
            if circle.holds(&bounds) {
                prop_assert!(found <= circle.reach);
            }
            if found <= circle.reach {
                prop_assert!(circle.touches(&bounds));
            }
        }
    }
}
