//! Long lines in pieces, since the box of a long line is a poor approximation of its course.
//!
//! The box of a line across an ocean covers half the ocean, so a query for any part of it would read the line. A line
//! of many vertices is therefore cut into pieces of [`PIECE_EDGES`] edges. The boxes of all pieces of a run have
//! their own tree. That tree only excludes lines: it determines which rows have a piece that a query may touch.
//! Matches and totals still come from the rows and their own trees, so each event is found once, in order, and
//! aggregates stay exact.

use crate::codec::{Reader, write_array};
use crate::columns::{BoxColumns, Boxes, Instants, Time};
use crate::error::IndexError;
use crate::key::{Grid, Key};
use crate::nodes::{Nodes, NodesBuilder};
use crate::tree::{FANOUT, LEAF_ROWS, Tree, levels};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, ScalarBuffer};
use geo_types::{Geometry, LineString};
use meridian_model::bounds::{f32_above, f32_below};
use meridian_model::filter::{FieldRange, Region, Relation};
use meridian_model::{Batch, Bounds};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Number of edges of a piece.
pub const PIECE_EDGES: usize = 16;
/// A line is cut only if its pieces together cover less than this fraction of its box.
const WORTH: f64 = 0.5;
/// Bytes of a piece besides its share of the nodes: four sides and a row.
pub(crate) const PIECE_BYTES: usize = 20;

/// The pieces of the long lines of a run, and the tree over them; cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Pieces {
    tree: Tree,
    sides: Arc<Sides>,
    /// The row of each piece.
    rows: ScalarBuffer<u32>,
    /// Marks the rows of the run that are not in pieces.
    whole: BooleanBuffer,
}

/// West, south, east and north of each piece, rounded outwards.
#[derive(Debug, PartialEq)]
struct Sides([ScalarBuffer<f32>; 4]);

/// A piece as seen by a predicate: a place, and the time of the pieces around it.
struct Piece(Bounds);

impl Region for Piece {
    fn bounds(&self) -> Bounds {
        self.0
    }

    fn field_range(&self, _: usize) -> Option<FieldRange> {
        None
    }
}

impl Pieces {
    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes used by pieces and nodes.
    pub fn bytes(&self) -> usize {
        self.rows.len() * PIECE_BYTES + self.whole.len() / 8 + self.tree.bytes()
    }

    /// The rows of the run that may match: all without pieces, and rows with a piece for which `relation` is not
    /// [`Relation::None`]. Also returns the number of nodes visited.
    pub fn sift(&self, relation: &mut dyn FnMut(&dyn Region) -> Relation) -> (BooleanBuffer, u64) {
        let mut may = BooleanBufferBuilder::new(self.whole.len());
        may.append_buffer(&self.whole);
        // A fully matching node is no stronger evidence than one that may match: its pieces are tested too.
        let relation = std::cell::RefCell::new(relation);
        let touches = |region: &dyn Region| (relation.borrow_mut())(region) != Relation::None;
        let stats =
            self.tree.walk(&mut |node| if touches(node) { Relation::Some } else { Relation::None }, &mut |visit| {
                let leaf = self.tree.bounds(visit.node);
                for piece in visit.rows {
                    let row = self.rows[piece as usize] as usize;
                    // A long line has hundreds of pieces; after the first that may match, the others cannot add
                    // anything.
                    if !may.get_bit(row) && touches(&Piece(self.bounds(piece as usize, &leaf))) {
                        may.set_bit(row, true);
                    }
                }
                ControlFlow::Continue(())
            });
        (may.finish(), stats.nodes_visited)
    }

    fn bounds(&self, piece: usize, leaf: &Bounds) -> Bounds {
        let [west, south, east, north] = &self.sides.0;
        Bounds {
            west: west[piece].into(),
            south: south[piece].into(),
            east: east[piece].into(),
            north: north[piece].into(),
            ..*leaf
        }
    }

    /// Encodes sides and rows as specified in `docs/format.md`; the caller writes the nodes.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        self.sides.0.iter().for_each(|side| write_array(bytes, side));
        write_array(bytes, &self.rows);
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.tree.nodes
    }

    /// Decodes the output of [`Pieces::encode`] for `count` pieces of `rows` rows.
    pub(crate) fn decode(reader: &mut Reader<'_>, count: u32, rows: u32, nodes: Nodes) -> Result<Pieces, IndexError> {
        let len = count as usize;
        let sides = Sides([reader.array(len)?, reader.array(len)?, reader.array(len)?, reader.array(len)?]);
        let of: ScalarBuffer<u32> = reader.array(len)?;
        // `Pieces::new` sets a bit for each row, and would panic on one past the end.
        if of.iter().any(|&row| row >= rows) {
            return Err(reader.damaged("a piece of a row that is not there"));
        }
        Ok(Pieces::new(nodes, sides, of, rows))
    }

    fn new(nodes: Nodes, sides: Sides, rows: ScalarBuffer<u32>, run_rows: u32) -> Pieces {
        let tree = Tree::new(0, 0..rows.len() as u32, true, Arc::new([]), nodes);
        let mut whole = BooleanBufferBuilder::new(run_rows as usize);
        whole.append_n(run_rows as usize, true);
        rows.iter().for_each(|&row| whole.set_bit(row as usize, false));
        Pieces { tree, sides: Arc::new(sides), rows, whole: whole.finish() }
    }
}

/// Collects the pieces of a run.
pub(crate) struct PiecesBuilder {
    grid: Grid,
    pieces: Vec<(Key, u32, Bounds)>,
}

impl PiecesBuilder {
    pub(crate) fn new(grid: Grid) -> PiecesBuilder {
        PiecesBuilder { grid, pieces: Vec::new() }
    }

    /// Adds the long lines of some rows of a batch; `first` is the run's number of the first of them. Rows read
    /// without geometry stay in one piece.
    pub(crate) fn push(&mut self, batch: &Batch, rows: Range<usize>, first: u32) {
        let Some(shapes) = batch.wkb() else { return };
        for (row, number) in rows.zip(first..) {
            // A vertex takes at least 16 bytes: short lines need not be decoded.
            if shapes.value_length(row) as usize <= 16 * (PIECE_EDGES + 1) {
                continue;
            }
            // A shape that fails to decode stays whole: its own row is tested, and nothing is lost.
            let Some(geometry) = batch.geometry(row) else { continue };
            let whole = batch.bounds(row);
            let boxes = boxes_of(&geometry, &whole);
            let area = |b: &Bounds| (b.east - b.west) * (b.north - b.south);
            // A straight diagonal benefits from pieces; a line that winds within its box does not, as its pieces
            // cover the box again.
            if boxes.len() > 1 && boxes.iter().map(area).sum::<f64>() < WORTH * area(&whole) {
                self.pieces.extend(boxes.into_iter().map(|bounds| (self.grid.key(&bounds), number, bounds)));
            }
        }
    }

    /// Finishes the pieces. Empty if no line is long, or if there are more pieces than a tree can number: they only
    /// save work.
    pub(crate) fn finish(mut self, run_rows: u32) -> Option<Pieces> {
        let count = u32::try_from(self.pieces.len()).ok().filter(|&count| count > 0)?;
        // In curve order, so that neighbours in the plane share a leaf. The row breaks ties, which makes the bytes
        // reproducible.
        self.pieces.sort_unstable_by_key(|(key, row, _)| (*key, *row));
        let column = |side: fn(&Bounds) -> f64| self.pieces.iter().map(|(_, _, b)| side(b)).collect::<Vec<f64>>();
        // Rounded outwards, so that a box in `f32` still contains its piece: rounding inwards could exclude a
        // matching line.
        let (west, south) = (column(|b| f32_below(b.west).into()), column(|b| f32_below(b.south).into()));
        let (east, north) = (column(|b| f32_above(b.east).into()), column(|b| f32_above(b.north).into()));
        let (start, end): (Vec<i64>, Vec<i64>) = self.pieces.iter().map(|(_, _, b)| (b.start, b.end)).unzip();
        let boxes = Boxes {
            place: BoxColumns::Boxes { west: &west, south: &south, east: &east, north: &north, nulls: None },
            time: Time::Interval { start: Instants::all(&start), end: Instants::all(&end) },
        };
        let mut nodes = NodesBuilder::new(&[]);
        let total = self.pieces.len();
        let leaves: Vec<Range<usize>> =
            (0..total).step_by(LEAF_ROWS).map(|first| first..total.min(first + LEAF_ROWS)).collect();
        nodes.append_leaves(&boxes, &[], &leaves).ok()?;
        let mut below_level = 0;
        for level in levels(count).windows(2).skip(1) {
            nodes.append_parents(below_level..level[0] as usize, FANOUT);
            below_level = level[0] as usize;
        }
        let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect::<Vec<_>>().into();
        let sides = Sides([narrow(west), narrow(south), narrow(east), narrow(north)]);
        let rows = self.pieces.iter().map(|(_, row, _)| *row).collect::<Vec<_>>().into();
        Some(Pieces::new(nodes.finish(), sides, rows, run_rows))
    }
}

/// The boxes of the pieces of lines; none for other shapes.
fn boxes_of(geometry: &Geometry<f64>, whole: &Bounds) -> Vec<Bounds> {
    let of_line = |line: &LineString<f64>| -> Vec<Bounds> {
        let last = line.0.len().saturating_sub(1);
        let pieces =
            // Consecutive pieces share a vertex: the edge between them must lie in one of the two boxes.
            (0..last.max(1)).step_by(PIECE_EDGES).map(|first| first..line.0.len().min(first + PIECE_EDGES + 1));
        let nowhere = Bounds { start: whole.start, end: whole.end, ..Bounds::EMPTY };
        let add = |b: Bounds, c: &geo_types::Coord<f64>| Bounds {
            west: b.west.min(c.x),
            south: b.south.min(c.y),
            east: b.east.max(c.x),
            north: b.north.max(c.y),
            ..b
        };
        pieces.map(|piece| line.0[piece].iter().fold(nowhere, add)).filter(|b| !b.is_nowhere()).collect()
    };
    match geometry {
        Geometry::LineString(line) => of_line(line),
        Geometry::MultiLineString(lines) => lines.0.iter().flat_map(of_line).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_with_no_edge_left_out() {
        for vertices in [1usize, 2, 16, 17, 18, 33, 34, 100] {
            let line: LineString<f64> = (0..vertices).map(|i| (i as f64, 0.1 * i as f64)).collect();
            let whole = Bounds { start: 3, end: 4, ..Bounds::WORLD };
            let boxes = boxes_of(&line.into(), &whole);
            assert_eq!(boxes.len(), (vertices - 1).div_ceil(PIECE_EDGES).max(1), "{vertices}");
            assert!(boxes.windows(2).all(|pair| pair[0].east == pair[1].west));
            assert_eq!((boxes[0].west, boxes[boxes.len() - 1].east), (0.0, (vertices - 1) as f64));
            assert!(boxes.iter().all(|b| (b.start, b.end) == (3, 4)));
        }
    }

    #[test]
    fn sides_are_rounded_outwards() {
        for x in [0.1, -0.1, 179.999_999_9, -179.999_999_9, 1e-300, 0.5] {
            assert!(f64::from(f32_below(x)) <= x && x <= f64::from(f32_above(x)), "{x}");
        }
    }
}
