//! Events as columns.

use crate::bounds::Bounds;
use crate::error::Invalid;
use crate::layout::{GeometryColumns, Layout, Projection};
use crate::memory::memory_of;
use crate::schema::{FieldType, IdRole, Schema, TimeRole};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array,
};
use arrow_buffer::ScalarBuffer;
use std::sync::Arc;

/// Events of one collection, as the columns of its [`Layout`]; columns that were not read are absent.
///
/// Cheap to clone: columns are shared. Rows are `0..rows()`.
#[derive(Debug, Clone)]
pub struct Batch {
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    rows: usize,
    columns: Vec<Option<ArrayRef>>,
    /// Sequence numbers of the rows, if attached; slices and selections of a batch keep them.
    seqs: Option<ScalarBuffer<u64>>,
}

/// One field's values, by type.
#[derive(Debug, Clone, Copy)]
pub enum FieldColumn<'a> {
    /// Text values.
    Text(&'a StringArray),
    /// Integers.
    Int(&'a Int64Array),
    /// Floats.
    Float(&'a Float64Array),
    /// Booleans.
    Bool(&'a BooleanArray),
    /// Microseconds since 1970.
    Time(&'a TimestampMicrosecondArray),
    /// Lists of texts.
    TextList(&'a ListArray),
}

impl Batch {
    /// Assembles a batch from columns; each must be absent or have the layout's type and `rows` rows.
    pub fn new(
        schema: Arc<Schema>,
        layout: Arc<Layout>,
        rows: usize,
        columns: Vec<Option<ArrayRef>>,
    ) -> Result<Batch, Invalid> {
        if columns.len() != layout.columns.len() {
            return Err(Invalid::new(format!(
                "a batch of {} columns where the schema has {}",
                columns.len(),
                layout.columns.len()
            )));
        }
        for (column, expected) in columns.iter().zip(&layout.columns) {
            if let Some(column) = column
                && (column.data_type() != expected.data_type() || column.len() != rows)
            {
                return Err(Invalid::field(
                    expected.name(),
                    format!(
                        "a column of {} rows of {} where {rows} rows of {} were expected",
                        column.len(),
                        column.data_type(),
                        expected.data_type()
                    ),
                ));
            }
        }
        Ok(Batch { schema, layout, rows, columns, seqs: None })
    }

    /// A batch without events.
    pub fn empty(schema: Arc<Schema>) -> Batch {
        let layout = Arc::new(Layout::of(&schema));
        let columns = layout.columns.iter().map(|c| Some(arrow_array::new_empty_array(c.data_type()))).collect();
        Batch { schema, layout, rows: 0, columns, seqs: None }
    }

    /// The schema of the columns.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The physical position of each part.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Number of events.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Memory held by the columns present, in bytes.
    pub fn bytes(&self) -> usize {
        memory_of(self.columns.iter().flatten())
    }

    /// A physical column, if it was read.
    pub fn column(&self, column: usize) -> Option<&ArrayRef> {
        self.columns[column].as_ref()
    }

    /// All physical columns in the layout's order.
    pub fn columns(&self) -> &[Option<ArrayRef>] {
        &self.columns
    }

    /// Given ids; `None` if ids are generated or were not read.
    pub fn ids(&self) -> Option<&StringArray> {
        self.columns[self.layout.id?].as_ref()?.as_string_opt::<i32>()
    }

    /// The same batch with the sequence numbers of its rows, for filters that compare generated ids.
    pub fn with_seqs(self, seqs: Vec<u64>) -> Batch {
        debug_assert_eq!(seqs.len(), self.rows);
        Batch { seqs: Some(seqs.into()), ..self }
    }

    /// Sequence numbers, if attached with [`Batch::with_seqs`].
    pub fn seqs(&self) -> Option<&[u64]> {
        self.seqs.as_deref()
    }

    /// Longitudes and latitudes of a point collection, if read.
    pub fn points(&self) -> Option<(&Float64Array, &Float64Array)> {
        match self.layout.geometry? {
            GeometryColumns::Points { lon, lat } => Some((self.floats(lon)?, self.floats(lat)?)),
            GeometryColumns::Shapes { .. } => None,
        }
    }

    /// Well-known binary of a collection of shapes, if read.
    pub fn wkb(&self) -> Option<&BinaryArray> {
        match self.layout.geometry? {
            GeometryColumns::Points { .. } => None,
            GeometryColumns::Shapes { wkb } => self.columns[wkb].as_ref()?.as_binary_opt::<i32>(),
        }
    }

    /// West, south, east and north of a collection of shapes, if read.
    pub fn sides(&self) -> Option<[&Float64Array; 4]> {
        match self.layout.geometry? {
            GeometryColumns::Points { .. } => None,
            GeometryColumns::Shapes { wkb } => {
                Some([self.floats(wkb + 1)?, self.floats(wkb + 2)?, self.floats(wkb + 3)?, self.floats(wkb + 4)?])
            }
        }
    }

    /// The decoded geometry of one row; `None` if it is null or was not read.
    pub fn geometry(&self, row: usize) -> Option<geo_types::Geometry<f64>> {
        match self.layout.geometry? {
            GeometryColumns::Points { .. } => {
                let (lon, lat) = self.points()?;
                lon.is_valid(row).then(|| geo_types::Point::new(lon.value(row), lat.value(row)).into())
            }
            GeometryColumns::Shapes { .. } => {
                let wkb = self.wkb()?;
                wkb.is_valid(row).then(|| crate::geometry::from_wkb(wkb.value(row)).ok()).flatten()
            }
        }
    }

    /// A field's values, if read.
    pub fn field(&self, field: usize) -> Option<FieldColumn<'_>> {
        let column = self.columns[self.layout.field(field)].as_ref()?;
        Some(match self.schema.fields[field].kind {
            FieldType::Text => FieldColumn::Text(column.as_string_opt::<i32>()?),
            FieldType::Int => FieldColumn::Int(column.as_primitive_opt::<Int64Type>()?),
            FieldType::Float => FieldColumn::Float(column.as_primitive_opt::<Float64Type>()?),
            FieldType::Bool => FieldColumn::Bool(column.as_boolean_opt()?),
            FieldType::Time | FieldType::Date => {
                FieldColumn::Time(column.as_primitive_opt::<TimestampMicrosecondType>()?)
            }
            FieldType::TextList => FieldColumn::TextList(column.as_list_opt::<i32>()?),
        })
    }

    /// First and last instant of a row. A collection without time yields 0; open ends yield the extremes.
    pub fn interval(&self, row: usize) -> (i64, i64) {
        let at = |field: usize, open: i64| match self.field(field) {
            Some(FieldColumn::Time(times)) if times.is_valid(row) => times.value(row),
            _ => open,
        };
        match self.schema.time {
            TimeRole::None => (0, 0),
            TimeRole::Instant(i) => {
                let t = at(i, 0);
                (t, t)
            }
            TimeRole::Interval { start, end } => (at(start, i64::MIN), at(end, i64::MAX)),
        }
    }

    /// The bounding box of a row; reads the columns of [`Projection::add_boxes`] and [`Projection::add_time`].
    pub fn bounds(&self, row: usize) -> Bounds {
        let (start, end) = self.interval(row);
        let nowhere = Bounds { start, end, ..Bounds::EMPTY };
        match self.layout.geometry {
            None => nowhere,
            Some(GeometryColumns::Points { .. }) => match self.points() {
                Some((lon, lat)) if lon.is_valid(row) => Bounds {
                    west: lon.value(row),
                    south: lat.value(row),
                    east: lon.value(row),
                    north: lat.value(row),
                    start,
                    end,
                },
                _ => nowhere,
            },
            Some(GeometryColumns::Shapes { .. }) => match self.sides() {
                Some([w, s, e, n]) if w.is_valid(row) => Bounds {
                    west: w.value(row),
                    south: s.value(row),
                    east: e.value(row),
                    north: n.value(row),
                    start,
                    end,
                },
                _ => nowhere,
            },
        }
    }

    /// Rows `from..from + rows`, sharing the columns.
    pub fn slice(&self, from: usize, rows: usize) -> Batch {
        Batch {
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            rows,
            columns: self.columns.iter().map(|c| c.as_ref().map(|c| c.slice(from, rows))).collect(),
            seqs: self.seqs.as_ref().map(|seqs| seqs.slice(from, rows)),
        }
    }

    /// Like [`Batch::slice`], with only the given columns.
    pub fn slice_of(&self, from: usize, rows: usize, wanted: &Projection) -> Batch {
        let mut columns = vec![None; self.columns.len()];
        for column in wanted.columns() {
            columns[column] = self.columns[column].as_ref().map(|c| c.slice(from, rows));
        }
        let seqs = self.seqs.as_ref().map(|seqs| seqs.slice(from, rows));
        Batch { schema: self.schema.clone(), layout: self.layout.clone(), rows, columns, seqs }
    }

    /// Merges the columns of two batches that hold the same events.
    pub fn joined(self, other: Batch) -> Batch {
        let columns = self.columns.into_iter().zip(other.columns).map(|(mine, others)| mine.or(others)).collect();
        Batch { columns, ..self }
    }

    /// The rows at the given indexes, in that order.
    pub fn take(&self, rows: &[u32]) -> Batch {
        let indexes = UInt32Array::from(rows.to_vec());
        // `take` fails only on an index out of range or an offset overflow, both excluded by the callers' row counts.
        let pick = |c: &ArrayRef| arrow_select::take::take(c.as_ref(), &indexes, None).ok();
        Batch {
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            rows: rows.len(),
            columns: self.columns.iter().map(|c| c.as_ref().and_then(pick)).collect(),
            seqs: self.seqs.as_ref().map(|seqs| rows.iter().map(|row| seqs[*row as usize]).collect()),
        }
    }

    /// Only the given columns.
    pub fn project(&self, wanted: &Projection) -> Batch {
        Batch {
            schema: self.schema.clone(),
            layout: self.layout.clone(),
            rows: self.rows,
            columns: self
                .columns
                .iter()
                .enumerate()
                .map(|(i, c)| if wanted.has(i) { c.clone() } else { None })
                .collect(),
            seqs: self.seqs.clone(),
        }
    }

    /// Concatenates batches of one schema. Fails if a text or shape column would exceed 2 GiB.
    pub fn concat(batches: &[Batch]) -> Result<Batch, Invalid> {
        let first = batches.first().ok_or_else(|| Invalid::new("no batches to concatenate"))?;
        if batches.len() == 1 {
            return Ok(first.clone());
        }
        let batches: Vec<&Batch> = batches.iter().collect();
        let rows = batches.iter().map(|b| b.rows).sum();
        first.put_together(&batches, rows, arrow_select::concat::concat)
    }

    /// Picks rows from several batches, given as `(batch, row)` pairs in output order.
    pub fn interleave(batches: &[&Batch], picks: &[(usize, usize)]) -> Result<Batch, Invalid> {
        let first = batches.first().ok_or_else(|| Invalid::new("no batches to pick from"))?;
        first.put_together(batches, picks.len(), |parts| arrow_select::interleave::interleave(parts, picks))
    }

    /// The same events in a schema with the same fields or a prefix of them.
    ///
    /// # Errors
    /// A schema that differs in any other way.
    pub fn within(&self, schema: &Arc<Schema>, layout: &Arc<Layout>) -> Result<Batch, Invalid> {
        let columns = self.columns.get(..layout.columns.len()).unwrap_or(&self.columns).to_vec();
        let fits = self.layout.columns.iter().zip(&layout.columns).all(|(a, b)| a == b);
        match fits && columns.len() == layout.columns.len() {
            true => Ok(Batch {
                schema: schema.clone(),
                layout: layout.clone(),
                rows: self.rows,
                columns,
                seqs: self.seqs.clone(),
            }),
            false => Err(Invalid::new("events of one collection in two schemas: try again")),
        }
    }

    /// Concatenates `batches` into a batch of this one's schema; a column absent in one of them is absent in the
    /// result.
    fn put_together(
        &self,
        batches: &[&Batch],
        rows: usize,
        join: impl Fn(&[&dyn Array]) -> Result<ArrayRef, arrow_schema::ArrowError>,
    ) -> Result<Batch, Invalid> {
        let column = |i: usize| {
            let parts: Option<Vec<&dyn Array>> = batches.iter().map(|b| b.columns[i].as_deref()).collect();
            let joined = parts.map(|parts| join(&parts)).transpose();
            joined.map_err(|e| Invalid::new(format!("batches too large to concatenate: {e}")))
        };
        let columns = (0..self.columns.len()).map(column).collect::<Result<_, _>>()?;
        Ok(Batch { schema: self.schema.clone(), layout: self.layout.clone(), rows, columns, seqs: None })
    }

    /// Converts to an Arrow record batch of [`Layout::arrow_schema`]; every column must be present.
    pub fn to_record_batch(&self) -> Result<RecordBatch, Invalid> {
        let columns: Option<Vec<ArrayRef>> = self.columns.iter().cloned().collect();
        let columns = columns.ok_or_else(|| Invalid::new("a batch with columns left out cannot be written"))?;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(self.layout.arrow_schema(), columns, &options)
            .map_err(|e| Invalid::new(e.to_string()))
    }

    /// Checks invariants that only this crate's builders enforce, for batches from outside. Events must have ids and
    /// required values, and the columns of a geometry must be null in the same rows. Absent columns are accepted.
    pub fn check_nulls(&self) -> Result<(), Invalid> {
        for (i, (column, expected)) in self.columns.iter().zip(&self.layout.columns).enumerate() {
            let Some(column) = column else { continue };
            let field = i.checked_sub(self.layout.first_field).and_then(|field| self.schema.fields.get(field));
            let is_nullable = field.map_or(expected.is_nullable(), |field| !field.required);
            if !is_nullable && column.null_count() > 0 {
                return Err(Invalid::field(expected.name(), "nulls where every event has a value"));
            }
        }
        let geometry = match self.layout.geometry {
            None => return Ok(()),
            Some(GeometryColumns::Points { lon, .. }) => lon..self.layout.first_field,
            Some(GeometryColumns::Shapes { wkb }) => wkb..self.layout.first_field,
        };
        // Readers test one geometry column for null and then read the others unchecked.
        let mut nulls =
            self.columns[geometry].iter().flatten().map(|c| c.logical_nulls().filter(|n| n.null_count() > 0));
        let first = nulls.next().flatten();
        if nulls.any(|other| other != first) {
            return Err(Invalid::field("geometry", "a part of a geometry is null"));
        }
        Ok(())
    }

    /// The id of a row as readers see it: given, or generated from the sequence number passed in.
    pub fn id_of(&self, row: usize, seq: crate::Seq) -> String {
        match (self.schema.id, self.ids()) {
            (IdRole::Given, Some(ids)) => ids.value(row).to_owned(),
            _ => seq.to_id(),
        }
    }

    fn floats(&self, column: usize) -> Option<&Float64Array> {
        self.columns[column].as_ref()?.as_primitive_opt::<Float64Type>()
    }
}

#[cfg(test)]
mod tests;
