//! The nodes of a tree under construction.

use super::reduce::{each, max_f64, max_i64, max_of, min_f64, min_i64, min_of, sum_f64, sum_i128, sum_u32, valid};
use super::{FieldNodes, Nodes, Numbers, NumericField};
use crate::columns::{BoxColumns, Boxes, Instants, Time};
use crate::error::IndexError;
use crate::summary::FloatSum;
use meridian_model::Bounds;
use rayon::prelude::*;
use std::ops::Range;

/// Min number of leaves for which several threads fill them.
const PARALLEL_LEAVES: usize = 256;

/// The nodes of a tree under construction.
pub(crate) struct NodesBuilder {
    west: Vec<f64>,
    south: Vec<f64>,
    east: Vec<f64>,
    north: Vec<f64>,
    start: Vec<i64>,
    end: Vec<i64>,
    fields: Vec<FieldBuilder>,
}

enum FieldBuilder {
    Int { count: Vec<u32>, sum: Vec<i128>, min: Vec<i64>, max: Vec<i64> },
    Float { count: Vec<u32>, sum: Vec<f64>, min: Vec<f64>, max: Vec<f64> },
}

/// An operation applied to the array of each property, with that property's fold.
trait Operation {
    fn apply<T: Copy>(&self, values: &mut Vec<T>, fold: fn(&[T]) -> T);
}

/// Appends a parent for each group of children.
struct AppendParents {
    children: Range<usize>,
    fanout: usize,
}

impl Operation for AppendParents {
    fn apply<T: Copy>(&self, values: &mut Vec<T>, fold: fn(&[T]) -> T) {
        for first in self.children.clone().step_by(self.fanout) {
            let last = (first + self.fanout).min(self.children.end);
            let parent = fold(&values[first..last]);
            values.push(parent);
        }
    }
}

/// Replaces the last two nodes by their union.
struct JoinLastTwo;

impl Operation for JoinLastTwo {
    fn apply<T: Copy>(&self, values: &mut Vec<T>, fold: fn(&[T]) -> T) {
        let at = values.len().saturating_sub(2);
        let joined = fold(&values[at..]);
        values.truncate(at);
        values.push(joined);
    }
}

impl NodesBuilder {
    pub(crate) fn new(fields: &[NumericField]) -> NodesBuilder {
        let field = |f: &NumericField| {
            if f.float {
                FieldBuilder::Float { count: vec![], sum: vec![], min: vec![], max: vec![] }
            } else {
                FieldBuilder::Int { count: vec![], sum: vec![], min: vec![], max: vec![] }
            }
        };
        NodesBuilder {
            west: vec![],
            south: vec![],
            east: vec![],
            north: vec![],
            start: vec![],
            end: vec![],
            fields: fields.iter().map(field).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.west.len()
    }

    /// Appends a node for each range of rows.
    pub(crate) fn append_leaves(
        &mut self,
        boxes: &Boxes<'_>,
        numbers: &[Numbers<'_>],
        leaves: &[Range<usize>],
    ) -> Result<(), IndexError> {
        match &boxes.place {
            BoxColumns::Nowhere => {
                let at = self.west.len() + leaves.len();
                self.fill_place(at, Bounds::EMPTY);
            }
            // The whole world touches every query, so nothing is ruled out by place.
            BoxColumns::Unknown => {
                let at = self.west.len() + leaves.len();
                self.fill_place(at, Bounds::WORLD);
            }
            BoxColumns::Boxes { west, south, east, north, nulls } => {
                extend(&mut self.west, leaves, |rows| min_of(west, *nulls, rows));
                extend(&mut self.south, leaves, |rows| min_of(south, *nulls, rows));
                extend(&mut self.east, leaves, |rows| max_of(east, *nulls, rows));
                extend(&mut self.north, leaves, |rows| max_of(north, *nulls, rows));
            }
        }
        match &boxes.time {
            Time::Never => {
                self.start.resize(self.start.len() + leaves.len(), 0);
                self.end.resize(self.end.len() + leaves.len(), 0);
            }
            Time::Instant(times) => self.append_times(times, times, leaves),
            Time::Interval { start, end } => self.append_times(start, end, leaves),
        }
        for (field, numbers) in self.fields.iter_mut().zip(numbers) {
            field.append_leaves(numbers, leaves)?;
        }
        Ok(())
    }

    fn fill_place(&mut self, len: usize, place: Bounds) {
        self.west.resize(len, place.west);
        self.south.resize(len, place.south);
        self.east.resize(len, place.east);
        self.north.resize(len, place.north);
    }

    fn append_times(&mut self, start: &Instants<'_>, end: &Instants<'_>, leaves: &[Range<usize>]) {
        extend(&mut self.start, leaves, |rows| rows.map(|row| start.at(row)).min().unwrap_or(i64::MAX));
        extend(&mut self.end, leaves, |rows| rows.map(|row| end.at(row)).max().unwrap_or(i64::MIN));
    }

    /// Replaces the last two nodes by their union.
    pub(crate) fn join_last_two(&mut self) {
        self.apply(&JoinLastTwo);
    }

    /// Appends a parent for each `fanout` of the nodes in `children`.
    pub(crate) fn append_parents(&mut self, children: Range<usize>, fanout: usize) {
        self.apply(&AppendParents { children, fanout });
    }

    fn apply(&mut self, operation: &impl Operation) {
        operation.apply(&mut self.west, min_f64);
        operation.apply(&mut self.south, min_f64);
        operation.apply(&mut self.east, max_f64);
        operation.apply(&mut self.north, max_f64);
        operation.apply(&mut self.start, min_i64);
        operation.apply(&mut self.end, max_i64);
        for field in &mut self.fields {
            match field {
                FieldBuilder::Int { count, sum, min, max } => {
                    operation.apply(count, sum_u32);
                    operation.apply(sum, sum_i128);
                    operation.apply(min, min_i64);
                    operation.apply(max, max_i64);
                }
                FieldBuilder::Float { count, sum, min, max } => {
                    operation.apply(count, sum_u32);
                    operation.apply(sum, sum_f64);
                    operation.apply(min, min_f64);
                    operation.apply(max, max_f64);
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Nodes {
        let field = |field| match field {
            FieldBuilder::Int { count, sum, min, max } => {
                FieldNodes::Int { count: count.into(), sum: sum.into(), min: min.into(), max: max.into() }
            }
            FieldBuilder::Float { count, sum, min, max } => {
                FieldNodes::Float { count: count.into(), sum: sum.into(), min: min.into(), max: max.into() }
            }
        };
        Nodes {
            west: self.west.into(),
            south: self.south.into(),
            east: self.east.into(),
            north: self.north.into(),
            start: self.start.into(),
            end: self.end.into(),
            fields: self.fields.into_iter().map(field).collect(),
        }
    }
}

impl FieldBuilder {
    fn append_leaves(&mut self, numbers: &Numbers<'_>, leaves: &[Range<usize>]) -> Result<(), IndexError> {
        match (self, numbers) {
            (FieldBuilder::Int { count, sum, min, max }, Numbers::Int(values, nulls)) => {
                extend(count, leaves, |rows| valid(*nulls, rows));
                extend(sum, leaves, |rows| {
                    let mut total = 0i128;
                    each(values, *nulls, rows, |n| total += i128::from(n));
                    total
                });
                extend(min, leaves, |rows| {
                    let mut min = i64::MAX;
                    each(values, *nulls, rows, |n| min = min.min(n));
                    min
                });
                extend(max, leaves, |rows| {
                    let mut max = i64::MIN;
                    each(values, *nulls, rows, |n| max = max.max(n));
                    max
                });
                Ok(())
            }
            (FieldBuilder::Float { count, sum, min, max }, Numbers::Float(values, nulls)) => {
                extend(count, leaves, |rows| valid(*nulls, rows));
                extend(sum, leaves, |rows| {
                    let mut total = FloatSum::default();
                    each(values, *nulls, rows, |x| total.add(x));
                    // Rounded to one float: a node keeps no correction, and the bound of 1e-12 allows for it.
                    total.value()
                });
                extend(min, leaves, |rows| min_of(values, *nulls, rows));
                extend(max, leaves, |rows| max_of(values, *nulls, rows));
                Ok(())
            }
            _ => Err(IndexError::Unfit("a numeric field changed its type".to_owned())),
        }
    }
}

/// Appends `value` of each leaf, on several threads if that pays off.
fn extend<T: Send>(values: &mut Vec<T>, leaves: &[Range<usize>], value: impl Fn(Range<usize>) -> T + Send + Sync) {
    if leaves.len() < PARALLEL_LEAVES {
        values.extend(leaves.iter().cloned().map(value));
    } else {
        values.par_extend(leaves.par_iter().with_min_len(PARALLEL_LEAVES / 4).cloned().map(value));
    }
}
