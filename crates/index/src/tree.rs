//! The aggregate tree: packed, immutable, walked from the root.

use crate::nodes::{Nodes, NumericField, node_bytes};
use crate::summary::{Number, Summary};
use meridian_model::Bounds;
use meridian_model::filter::{FieldRange, Region, Relation};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Rows under a leaf.
pub const LEAF_ROWS: usize = 64;
/// Children of an inner node.
pub const FANOUT: usize = 16;
/// Max levels of a tree: eight cover 64 * 16^7 rows, more than `u32` can number.
pub(crate) const LEVELS_MAX: usize = 8;

/// A packed tree over a run of rows; cheap to clone.
///
/// Leaf `i` covers rows `64 * i ..` of the run, a node of the level above covers 16 leaves, and so on. The tree's
/// shape follows from the number of rows alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    pub(crate) class: u8,
    pub(crate) rows: Range<u32>,
    pub(crate) place_known: bool,
    /// Index of each level's first node, leaves first, then the number of nodes.
    pub(crate) levels: Arc<[u32]>,
    pub(crate) fields: Arc<[NumericField]>,
    pub(crate) nodes: Arc<Nodes>,
}

/// A node of a [`Tree`]; meaningful only for the tree that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// 0 for a leaf.
    level: u8,
    /// Index within its level.
    index: u32,
}

impl Node {
    /// Height above the leaves.
    pub fn level(self) -> u8 {
        self.level
    }
}

/// The children of a node, in row order; empty for a leaf.
#[derive(Debug, Clone)]
pub struct Children {
    level: u8,
    indexes: Range<u32>,
}

impl Iterator for Children {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        self.indexes.next().map(|index| Node { level: self.level, index })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.indexes.size_hint()
    }
}

impl DoubleEndedIterator for Children {
    fn next_back(&mut self) -> Option<Node> {
        self.indexes.next_back().map(|index| Node { level: self.level, index })
    }
}

impl ExactSizeIterator for Children {}

/// A node together with its tree, as passed to predicates.
#[derive(Debug, Clone, Copy)]
pub struct NodeRef<'a> {
    tree: &'a Tree,
    node: Node,
}

impl<'a> NodeRef<'a> {
    /// The tree.
    pub fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// The node.
    pub fn node(&self) -> Node {
        self.node
    }

    /// The rows below the node.
    pub fn rows(&self) -> Range<u32> {
        self.tree.rows(self.node)
    }

    /// Whether the node is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.tree.is_leaf(self.node)
    }

    /// The summary of a numeric field, see [`Tree::summary`].
    pub fn summary(&self, ordinal: usize) -> Summary {
        self.tree.summary(self.node, ordinal)
    }
}

impl Region for NodeRef<'_> {
    fn bounds(&self) -> Bounds {
        self.tree.bounds(self.node)
    }

    fn field_range(&self, field: usize) -> Option<FieldRange> {
        let ordinal = self.tree.fields.binary_search_by_key(&field, |f| f.field as usize).ok()?;
        let summary = self.tree.summary(self.node, ordinal);
        // The summary counts values, not rows: any difference is rows with null.
        let nulls = summary.count < u64::from(self.tree.row_count(self.node));
        Some(match (summary.min, summary.max) {
            (Some(Number::Int(min)), Some(Number::Int(max))) => FieldRange::of_ints(min, max, nulls),
            (Some(min), Some(max)) => FieldRange { min: min.to_f64(), max: max.to_f64(), nulls },
            _ => FieldRange::EMPTY,
        })
    }

    fn some_nowhere(&self) -> bool {
        !self.tree.place_known || self.bounds().is_nowhere()
    }
}

/// A part of a tree reached by a walk: all rows below match, or each must be tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// The rows below the node.
    pub rows: Range<u32>,
    /// The node.
    pub node: Node,
    /// Whether every row matches, so that summaries may be used and rows need no test. Otherwise the node is a leaf.
    pub whole: bool,
}

/// The cost of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WalkStats {
    /// Nodes whose relation was computed.
    pub nodes_visited: u64,
    /// Nodes returned whole.
    pub nodes_whole: u64,
    /// Leaves returned to be tested row by row.
    pub leaves_tested: u64,
    /// Whether the visitor ended the walk early.
    pub stopped: bool,
}

impl WalkStats {
    /// Adds the cost of another walk.
    pub fn merge(&mut self, other: &WalkStats) {
        self.nodes_visited += other.nodes_visited;
        self.nodes_whole += other.nodes_whole;
        self.leaves_tested += other.leaves_tested;
        self.stopped |= other.stopped;
    }
}

/// Index of each level's first node in a tree over `rows` rows, leaves first, then the number of nodes.
pub(crate) fn levels(rows: u32) -> Vec<u32> {
    let mut firsts = vec![0];
    let mut nodes = rows.div_ceil(LEAF_ROWS as u32);
    let mut total = nodes;
    while nodes > 1 {
        firsts.push(total);
        nodes = nodes.div_ceil(FANOUT as u32);
        total += nodes;
    }
    firsts.push(total);
    debug_assert!(firsts.len() <= LEVELS_MAX + 1);
    firsts
}

/// Total number of nodes in a tree over `rows` rows.
pub(crate) fn node_count(rows: u32) -> usize {
    levels(rows).last().map_or(0, |&n| n as usize)
}

/// Sides of the boxes of some nodes in degrees, one array each.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Min longitudes.
    pub west: &'a [f64],
    /// Min latitudes.
    pub south: &'a [f64],
    /// Max longitudes.
    pub east: &'a [f64],
    /// Max latitudes.
    pub north: &'a [f64],
}

impl Tree {
    pub(crate) fn new(
        class: u8,
        rows: Range<u32>,
        place_known: bool,
        fields: Arc<[NumericField]>,
        nodes: Nodes,
    ) -> Tree {
        let levels = levels(rows.end - rows.start).into();
        Tree { class, rows, place_known, levels, fields, nodes: Arc::new(nodes) }
    }

    /// The size class that the rows' keys share, see [`crate::Grid`].
    pub fn class(&self) -> u8 {
        self.class
    }

    /// All rows of the tree.
    pub fn all_rows(&self) -> Range<u32> {
        self.rows.clone()
    }

    /// Number of nodes of all levels.
    pub fn nodes(&self) -> usize {
        self.levels.last().map_or(0, |&n| n as usize)
    }

    /// Bytes used by the nodes.
    pub fn bytes(&self) -> usize {
        self.nodes() * node_bytes(&self.fields)
    }

    /// The top node; `None` for an empty tree.
    pub fn root(&self) -> Option<Node> {
        (!self.rows.is_empty()).then(|| Node { level: (self.levels.len() - 2) as u8, index: 0 })
    }

    /// The children of a node in row order; empty for a leaf.
    pub fn children(&self, node: Node) -> Children {
        if node.level == 0 {
            return Children { level: 0, indexes: 0..0 };
        }
        // Parents and children are not stored: both follow from the number of rows, as in an implicit heap.
        let below = usize::from(node.level) - 1;
        let count = self.levels[below + 1] - self.levels[below];
        let first = node.index * FANOUT as u32;
        Children { level: below as u8, indexes: first..count.min(first + FANOUT as u32) }
    }

    /// Whether a node is a leaf.
    pub fn is_leaf(&self, node: Node) -> bool {
        node.level == 0
    }

    /// The leaf that contains a row; `None` if the tree does not contain it.
    pub fn leaf_of(&self, row: u32) -> Option<Node> {
        self.rows.contains(&row).then(|| Node { level: 0, index: (row - self.rows.start) / LEAF_ROWS as u32 })
    }

    /// The smallest box that contains every event below a node; the whole world if the tree does not know places.
    #[inline]
    pub fn bounds(&self, node: Node) -> Bounds {
        self.nodes.bounds(self.at(node))
    }

    /// The sides of the boxes of consecutive nodes, as arrays.
    pub fn places(&self, nodes: &Children) -> Places<'_> {
        let at = self.range(nodes);
        Places {
            west: &self.nodes.west[at.clone()],
            south: &self.nodes.south[at.clone()],
            east: &self.nodes.east[at.clone()],
            north: &self.nodes.north[at],
        }
    }

    /// First and last instants of the events below consecutive nodes.
    pub fn times(&self, nodes: &Children) -> (&[i64], &[i64]) {
        let at = self.range(nodes);
        (&self.nodes.start[at.clone()], &self.nodes.end[at])
    }

    /// The range of consecutive nodes in the arrays.
    fn range(&self, nodes: &Children) -> Range<usize> {
        let level = self.levels[usize::from(nodes.level)] as usize;
        level + nodes.indexes.start as usize..level + nodes.indexes.end.max(nodes.indexes.start) as usize
    }

    /// The box of the whole tree.
    pub fn tree_bounds(&self) -> Bounds {
        self.root().map_or(Bounds::EMPTY, |root| self.bounds(root))
    }

    /// Whether boxes locate the events; false for a tree over time alone, see `ForestBuilder::over_time`.
    pub fn knows_place(&self) -> bool {
        self.place_known
    }

    /// The rows below a node.
    #[inline]
    pub fn rows(&self, node: Node) -> Range<u32> {
        // In 64 bits: the span of the top node may exceed `u32` although the rows do not.
        let span = (LEAF_ROWS as u64) << (4 * u32::from(node.level));
        let first = u64::from(self.rows.start) + u64::from(node.index) * span;
        first as u32..(first + span).min(self.rows.end.into()) as u32
    }

    fn row_count(&self, node: Node) -> u32 {
        let rows = self.rows(node);
        rows.end - rows.start
    }

    /// Count, sum, min and max of a numeric field below a node.
    ///
    /// `ordinal` is the field's index in `Schema::numeric_fields`. A field added to the schema after the tree was
    /// built has no values here.
    pub fn summary(&self, node: Node, ordinal: usize) -> Summary {
        self.nodes.summary(self.at(node), ordinal)
    }

    /// A node together with this tree.
    pub fn node_ref(&self, node: Node) -> NodeRef<'_> {
        NodeRef { tree: self, node }
    }

    #[inline]
    fn at(&self, node: Node) -> usize {
        (self.levels[usize::from(node.level)] + node.index) as usize
    }

    /// Finds nodes and rows by their relation to a query, in row order.
    ///
    /// `relation` is called for the root, and then for the children of each node with `Some`. A node with `None` is
    /// skipped with all below it. `visit` receives each node with `All` as a whole, and each leaf with `Some` to be
    /// tested row by row. It ends the walk by returning `Break`. Rows passed to `visit` ascend and never overlap.
    pub fn walk(
        &self,
        relation: &mut dyn FnMut(&NodeRef<'_>) -> Relation,
        visit: &mut dyn FnMut(Visit) -> ControlFlow<()>,
    ) -> WalkStats {
        let mut stats = WalkStats::default();
        let Some(root) = self.root() else { return stats };
        let mut stack = Vec::with_capacity(LEVELS_MAX * FANOUT);
        stack.push(root);
        while let Some(node) = stack.pop() {
            stats.nodes_visited += 1;
            let whole = match relation(&self.node_ref(node)) {
                Relation::None => continue,
                Relation::All => true,
                Relation::Some if !self.is_leaf(node) => {
                    // Reversed, since a stack returns the last child first, and rows have to come out in ascending
                    // order.
                    stack.extend(self.children(node).rev());
                    continue;
                }
                Relation::Some => false,
            };
            if whole {
                stats.nodes_whole += 1;
            } else {
                stats.leaves_tested += 1;
            }
            if visit(Visit { rows: self.rows(node), node, whole }).is_break() {
                stats.stopped = true;
                break;
            }
        }
        stats
    }
}
