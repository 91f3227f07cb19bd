//! The arrays that hold a tree's nodes: one per property, leaves first, then each level above.

use crate::columns::{BoxColumns, Boxes, Instants, Time};
use crate::error::IndexError;
use crate::fold;
use crate::summary::{FloatSum, Summary};
use arrow_array::Array;
use arrow_buffer::{NullBuffer, ScalarBuffer};
use meridian_model::{Batch, Bounds, FieldColumn, FieldType, Schema};
use rayon::prelude::*;
use std::ops::Range;

/// From this many leaves on, several threads fill them.
const PARALLEL_LEAVES: usize = 256;

/// A numeric field that the nodes summarise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumericField {
    /// Index into the schema's fields.
    pub(crate) field: u32,
    pub(crate) float: bool,
}

impl NumericField {
    pub(crate) fn all(schema: &Schema) -> Vec<NumericField> {
        let of =
            |field: usize| NumericField { field: field as u32, float: schema.fields[field].kind == FieldType::Float };
        schema.numeric_fields().into_iter().map(of).collect()
    }
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

    /// The summary of neighbouring nodes of one level.
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
                fold::of_floats(counted(count), fold::sum_floats(sum), fold::min_float(min), fold::max_float(max))
            }
        }
    }
}

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

/// Something done alike to the array of each property, which brings its own way to make one value of several.
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

/// Makes one node of the last two.
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

    /// Makes one node of the last two.
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

/// The values of a numeric field of a batch.
pub(crate) enum Numbers<'a> {
    Int(&'a [i64], Option<&'a NullBuffer>),
    Float(&'a [f64], Option<&'a NullBuffer>),
}

impl Numbers<'_> {
    /// Finds the columns of the numeric fields; all must have been read.
    pub(crate) fn of<'a>(batch: &'a Batch, fields: &[NumericField]) -> Result<Vec<Numbers<'a>>, IndexError> {
        let one = |numeric: &NumericField| {
            let field = numeric.field as usize;
            if field >= batch.schema().fields.len() {
                return Err(IndexError::Unfit(format!("the batch's schema has no field {field}")));
            }
            match (batch.field(field), numeric.float) {
                (Some(FieldColumn::Int(values)), false) => {
                    let nulls = values.nulls().filter(|n| n.null_count() > 0);
                    Ok(Numbers::Int(&values.values()[..], nulls))
                }
                (Some(FieldColumn::Float(values)), true) => {
                    let nulls = values.nulls().filter(|n| n.null_count() > 0);
                    Ok(Numbers::Float(&values.values()[..], nulls))
                }
                _ => {
                    let name = &batch.schema().fields[field].name;
                    Err(IndexError::Unfit(format!("the batch was read without its numeric field {name:?}")))
                }
            }
        };
        fields.iter().map(one).collect()
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

/// Appends `value` of each leaf, on several threads where that pays.
fn extend<T: Send>(values: &mut Vec<T>, leaves: &[Range<usize>], value: impl Fn(Range<usize>) -> T + Send + Sync) {
    if leaves.len() < PARALLEL_LEAVES {
        values.extend(leaves.iter().cloned().map(value));
    } else {
        values.par_extend(leaves.par_iter().with_min_len(PARALLEL_LEAVES / 4).cloned().map(value));
    }
}

/// Calls `take` with each non-null value.
#[inline]
fn each<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, rows: Range<usize>, mut take: impl FnMut(T)) {
    match nulls {
        None => values[rows].iter().for_each(|&v| take(v)),
        Some(nulls) => rows.filter(|&row| nulls.is_valid(row)).for_each(|row| take(values[row])),
    }
}

fn valid(nulls: Option<&NullBuffer>, rows: Range<usize>) -> u32 {
    match nulls {
        None => rows.len() as u32,
        Some(nulls) => rows.filter(|&row| nulls.is_valid(row)).count() as u32,
    }
}

fn min_of(values: &[f64], nulls: Option<&NullBuffer>, rows: Range<usize>) -> f64 {
    let mut min = f64::INFINITY;
    each(values, nulls, rows, |x| min = if x < min { x } else { min });
    min
}

fn max_of(values: &[f64], nulls: Option<&NullBuffer>, rows: Range<usize>) -> f64 {
    let mut max = f64::NEG_INFINITY;
    each(values, nulls, rows, |x| max = if x > max { x } else { max });
    max
}

fn min_f64(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn max_f64(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn min_i64(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MAX, i64::min)
}

fn max_i64(values: &[i64]) -> i64 {
    values.iter().copied().fold(i64::MIN, i64::max)
}

fn sum_u32(values: &[u32]) -> u32 {
    values.iter().sum()
}

fn sum_i128(values: &[i128]) -> i128 {
    values.iter().sum()
}

fn sum_f64(values: &[f64]) -> f64 {
    let mut total = FloatSum::default();
    values.iter().for_each(|&x| total.add(x));
    total.value()
}
