//! The arrays that hold a tree's nodes: one per property, leaves first, then each level above.

mod builder;
mod numbers;
mod reduce;

pub(crate) use builder::NodesBuilder;
pub(crate) use numbers::{Numbers, NumericField};

use crate::fold;
use crate::summary::Summary;
use arrow_buffer::ScalarBuffer;
use meridian_model::Bounds;
use reduce::sum_i128;
use std::ops::Range;

/// Bytes of a node's box, and of its summary of one integer or float field.
const BOX_BYTES: usize = 48;
const INT_BYTES: usize = 4 + 16 + 8 + 8;
const FLOAT_BYTES: usize = 4 + 8 + 8 + 8;

/// Bytes of one node.
pub(crate) fn node_bytes(fields: &[NumericField]) -> usize {
    BOX_BYTES + fields.iter().map(|f| if f.float { FLOAT_BYTES } else { INT_BYTES }).sum::<usize>()
}

/// The nodes of a finished tree.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Nodes {
    pub(crate) west: ScalarBuffer<f64>,
    pub(crate) south: ScalarBuffer<f64>,
    pub(crate) east: ScalarBuffer<f64>,
    pub(crate) north: ScalarBuffer<f64>,
    pub(crate) start: ScalarBuffer<i64>,
    pub(crate) end: ScalarBuffer<i64>,
    pub(crate) fields: Vec<FieldNodes>,
}

/// The summaries of one numeric field, by node.
#[derive(Debug, PartialEq)]
pub(crate) enum FieldNodes {
    Int { count: ScalarBuffer<u32>, sum: ScalarBuffer<i128>, min: ScalarBuffer<i64>, max: ScalarBuffer<i64> },
    Float { count: ScalarBuffer<u32>, sum: ScalarBuffer<f64>, min: ScalarBuffer<f64>, max: ScalarBuffer<f64> },
}

impl Nodes {
    #[inline]
    pub(crate) fn bounds(&self, at: usize) -> Bounds {
        Bounds {
            west: self.west[at],
            south: self.south[at],
            east: self.east[at],
            north: self.north[at],
            start: self.start[at],
            end: self.end[at],
        }
    }

    pub(crate) fn summary(&self, at: usize, ordinal: usize) -> Summary {
        match self.fields.get(ordinal) {
            // A field added after the tree was written: its values here are all null.
            None => Summary::INT,
            Some(FieldNodes::Int { count, sum, min, max }) => {
                fold::of_ints(count[at].into(), sum[at], min[at], max[at])
            }
            Some(FieldNodes::Float { count, sum, min, max }) => {
                fold::of_floats(count[at].into(), sum[at].into(), min[at], max[at])
            }
        }
    }

    /// The summary of consecutive nodes of one level.
    pub(crate) fn summary_of(&self, nodes: Range<usize>, ordinal: usize) -> Summary {
        let counted = |count: &[u32]| count[nodes.clone()].iter().map(|&n| u64::from(n)).sum();
        match self.fields.get(ordinal) {
            None => Summary::INT,
            Some(FieldNodes::Int { count, sum, min, max }) => {
                let (sum, min, max) = (&sum[nodes.clone()], &min[nodes.clone()], &max[nodes.clone()]);
                fold::of_ints(counted(count), sum_i128(sum), fold::min_int(min), fold::max_int(max))
            }
            Some(FieldNodes::Float { count, sum, min, max }) => {
                let (sum, min, max) = (&sum[nodes.clone()], &min[nodes.clone()], &max[nodes.clone()]);
                // Nodes without values hold infinities, which are neutral for min and max.
                fold::of_floats(counted(count), fold::sum_floats(sum), fold::min_float(min), fold::max_float(max))
            }
        }
    }
}
