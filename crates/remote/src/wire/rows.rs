//! Events as a record batch: columns under their physical names, event numbers and, if ordered by distance, the
//! distances.

use super::fault::Fault;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{Field, Schema as ArrowSchema};
use meridian_model::{Batch, Layout, Projection, Schema, Seq};
use std::sync::Arc;

// Physical columns of a collection begin with a single `@`.
const SEQ: &str = "@@seq";
const DISTANCE: &str = "@@distance";

/// Events with their numbers.
pub(crate) struct Events {
    pub(crate) batch: Batch,
    pub(crate) seqs: Vec<Seq>,
    pub(crate) distances: Option<Vec<f64>>,
}

impl Events {
    pub(crate) fn to_arrow(&self) -> Result<RecordBatch, Fault> {
        to_arrow(&self.batch, Some(&self.seqs), self.distances.as_deref())
    }

    /// Decodes the output of [`Events::to_arrow`] for events of a schema.
    pub(crate) fn from_arrow(columns: &RecordBatch, schema: &Arc<Schema>) -> Result<Events, Fault> {
        let batch = batch_from_arrow(columns, schema)?;
        let seqs = columns.column_by_name(SEQ).and_then(|column| column.as_primitive_opt::<UInt64Type>());
        let seqs = seqs.filter(|seqs| seqs.null_count() == 0).ok_or_else(|| malformed("events without numbers"))?;
        let seqs = seqs.values().iter().map(|&seq| Seq(seq)).collect();
        let distances = match columns.column_by_name(DISTANCE) {
            None => None,
            Some(column) => {
                let distances = column.as_primitive_opt::<Float64Type>().filter(|column| column.null_count() == 0);
                Some(distances.ok_or_else(|| malformed("distances that are no numbers"))?.values().to_vec())
            }
        };
        Ok(Events { batch, seqs, distances })
    }
}

/// Encodes events to be written, which have no numbers yet.
pub(crate) fn batch_to_arrow(batch: &Batch) -> Result<RecordBatch, Fault> {
    to_arrow(batch, None, None)
}

fn to_arrow(batch: &Batch, seqs: Option<&[Seq]>, distances: Option<&[f64]>) -> Result<RecordBatch, Fault> {
    let (mut fields, mut columns): (Vec<Arc<Field>>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (field, column) in batch.layout().columns.iter().zip(batch.columns()) {
        if let Some(column) = column {
            fields.push(field.clone());
            columns.push(column.clone());
        }
    }
    let mut add = |name: &str, column: ArrayRef| {
        fields.push(Arc::new(Field::new(name, column.data_type().clone(), false)));
        columns.push(column);
    };
    if let Some(seqs) = seqs {
        add(SEQ, Arc::new(seqs.iter().map(|seq| seq.0).collect::<UInt64Array>()));
    }
    if let Some(distances) = distances {
        add(DISTANCE, Arc::new(Float64Array::from(distances.to_vec())));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows()));
    RecordBatch::try_new_with_options(Arc::new(ArrowSchema::new(fields)), columns, &options)
        .map_err(|e| Fault::internal(format!("events cannot be written: {e}")))
}

/// Decodes events of a schema, with the columns that are present.
pub(crate) fn batch_from_arrow(columns: &RecordBatch, schema: &Arc<Schema>) -> Result<Batch, Fault> {
    let layout = Arc::new(Layout::of(schema));
    let named = layout.columns.iter().map(|field| columns.column_by_name(field.name()).cloned()).collect();
    let batch = Batch::new(schema.clone(), layout, columns.num_rows(), named).map_err(|e| malformed(e.detail))?;
    // Users of a batch rely on invariants that its writer ensures. Over a wire these have to be verified.
    batch.check_nulls().map_err(|e| malformed(e.to_string()))?;
    Ok(batch)
}

/// Decodes events to be written. Fields that the schema has gained since they were encoded are null.
pub(crate) fn whole_batch_from_arrow(columns: &RecordBatch, schema: &Arc<Schema>) -> Result<Batch, Fault> {
    let layout = Arc::new(Layout::of(schema));
    let rows = columns.num_rows();
    let column = |field: &Arc<Field>| {
        let found = columns.column_by_name(field.name()).cloned();
        Some(found.unwrap_or_else(|| arrow_array::new_null_array(field.data_type(), rows)))
    };
    let named = layout.columns.iter().map(column).collect();
    let batch = Batch::new(schema.clone(), layout, rows, named).map_err(|e| malformed(e.detail))?;
    batch.check_nulls()?;
    Ok(batch)
}

/// Returns the names of a projection's columns.
pub(crate) fn names(projection: &Projection, layout: &Layout) -> Vec<String> {
    projection.columns().filter_map(|column| Some(layout.columns.get(column)?.name().clone())).collect()
}

/// Returns the projection to these columns; ignores unknown ones.
pub(crate) fn projection(names: &[String], layout: &Layout) -> Projection {
    let mut projection = Projection::none(layout);
    for (at, _) in layout.columns.iter().enumerate().filter(|(_, column)| names.contains(column.name())) {
        projection.add(at);
    }
    projection
}

fn malformed(detail: impl AsRef<str>) -> Fault {
    Fault::internal(format!("events are malformed: {}", detail.as_ref()))
}
