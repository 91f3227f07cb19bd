//! Record batches from records: connects record-based formats to the columnar reader.

use super::columnar::{Batches, ColumnScope};
use crate::error::Fault;
use crate::report::Unread;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
use meridian_model::Invalid;
use std::collections::HashMap;
use std::sync::Arc;

/// Max rows and bytes of one batch. Small, since a batch is held in addition to the events made from it.
const ROWS: usize = 2048;
const BYTES: usize = 1 << 20;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Float,
    Bool,
    /// An instant, in microseconds.
    Time,
    /// A day, as days since 1970.
    Date,
    /// A geometry in well-known binary.
    Shape,
}

/// A value of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// Microseconds since 1970.
    Time(i64),
    /// Days since 1970.
    Date(i32),
    Shape(&'a [u8]),
}

/// A source of records with columns of known types.
pub(crate) trait Source: Send {
    /// Returns the columns. Called once, first.
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault>;

    /// Puts the next record into the row; returns false at the end. After [`Fault::Event`] the next record can be
    /// read.
    fn next(&mut self, row: &mut Row) -> Result<bool, Fault>;

    /// Returns the assumptions about the source so far, once it is open: sentences for the user of a load.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what was not taken so far.
    fn unread(&self) -> Unread {
        Unread::default()
    }
}

enum Builder {
    Text(StringBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    Date(Date32Builder),
    Shape(BinaryBuilder),
}

impl Builder {
    fn of(kind: Kind) -> Builder {
        match kind {
            Kind::Text => Builder::Text(StringBuilder::new()),
            Kind::Int => Builder::Int(Int64Builder::new()),
            Kind::Float => Builder::Float(Float64Builder::new()),
            Kind::Bool => Builder::Bool(BooleanBuilder::new()),
            Kind::Time => Builder::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Kind::Date => Builder::Date(Date32Builder::new()),
            Kind::Shape => Builder::Shape(BinaryBuilder::new()),
        }
    }

    /// Appends a value whose type was checked, or a null.
    fn append(&mut self, value: Option<&Value>) {
        match (self, value) {
            (Builder::Text(b), Some(Value::Text(v))) => b.append_value(v),
            (Builder::Int(b), Some(Value::Int(v))) => b.append_value(*v),
            (Builder::Float(b), Some(Value::Float(v))) => b.append_value(*v),
            (Builder::Float(b), Some(Value::Int(v))) => b.append_value(*v as f64),
            (Builder::Bool(b), Some(Value::Bool(v))) => b.append_value(*v),
            (Builder::Time(b), Some(Value::Time(v))) => b.append_value(*v),
            (Builder::Date(b), Some(Value::Date(v))) => b.append_value(*v),
            (Builder::Shape(b), Some(Value::Shape(v))) => b.append_value(v),
            (Builder::Text(b), _) => b.append_null(),
            (Builder::Int(b), _) => b.append_null(),
            (Builder::Float(b), _) => b.append_null(),
            (Builder::Bool(b), _) => b.append_null(),
            (Builder::Time(b), _) => b.append_null(),
            (Builder::Date(b), _) => b.append_null(),
            (Builder::Shape(b), _) => b.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(b) => Arc::new(b.finish()),
            Builder::Int(b) => Arc::new(b.finish()),
            Builder::Float(b) => Arc::new(b.finish()),
            Builder::Bool(b) => Arc::new(b.finish()),
            Builder::Time(b) => Arc::new(b.finish()),
            Builder::Date(b) => Arc::new(b.finish()),
            Builder::Shape(b) => Arc::new(b.finish()),
        }
    }
}

/// A value of the current row, kept until the row is known to be complete.
#[derive(Debug)]
enum Value {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Time(i64),
    Date(i32),
    Shape(Vec<u8>),
}

/// The record being read.
pub(crate) struct Row {
    names: Vec<String>,
    kinds: Vec<Kind>,
    values: Vec<Option<Value>>,
    bytes: usize,
}

impl Row {
    /// Creates a record of these columns, without a value yet.
    pub(crate) fn new(columns: &[(String, Kind)]) -> Row {
        Row {
            names: columns.iter().map(|(name, _)| name.clone()).collect(),
            kinds: columns.iter().map(|(_, kind)| *kind).collect(),
            values: columns.iter().map(|_| None).collect(),
            bytes: 0,
        }
    }

    /// Sets a column's value, which must have the column's type.
    pub(crate) fn set(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Invalid> {
        let Some(kind) = self.kinds.get(column) else {
            return Err(Invalid::new(format!("a value of column {}: there are {}", column + 1, self.kinds.len())));
        };
        let value = match (kind, cell) {
            (Kind::Text, Cell::Text(v)) => Value::Text(v.to_owned()),
            (Kind::Int | Kind::Float, Cell::Int(v)) => Value::Int(v),
            (Kind::Float, Cell::Float(v)) => Value::Float(v),
            (Kind::Bool, Cell::Bool(v)) => Value::Bool(v),
            (Kind::Time, Cell::Time(v)) => Value::Time(v),
            (Kind::Date, Cell::Date(v)) => Value::Date(v),
            (Kind::Shape, Cell::Shape(v)) => Value::Shape(v.to_vec()),
            (kind, cell) => {
                let detail = format!("the value {cell:?} in a column of type {kind:?}");
                return Err(Invalid::field(&self.names[column], meridian_model::error::shorten(&detail)));
            }
        };
        self.bytes += match &value {
            Value::Text(v) => v.len(),
            Value::Shape(v) => v.len(),
            _ => 8,
        };
        self.values[column] = Some(value);
        Ok(())
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.values.iter_mut().for_each(|value| *value = None);
        self.bytes = 0;
    }
}

/// The records of a source as record batches.
pub(crate) struct RecordBatcher<S> {
    source: S,
    schema: SchemaRef,
    builders: Vec<Builder>,
    row: Row,
    /// The fault after the last batch.
    pending: Option<Fault>,
    ended: bool,
}

impl<S: Source> RecordBatcher<S> {
    pub(crate) fn new(source: S) -> RecordBatcher<S> {
        let schema = Arc::new(ArrowSchema::empty());
        RecordBatcher { source, schema, builders: Vec::new(), row: Row::new(&[]), pending: None, ended: false }
    }
}

fn field((name, kind): &(String, Kind)) -> Field {
    let data = match kind {
        Kind::Text => DataType::Utf8,
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Kind::Date => DataType::Date32,
        Kind::Shape => DataType::Binary,
    };
    let field = Field::new(name, data, true);
    match kind {
        // Marked as GeoArrow marks a geometry, so that the columnar reader finds it whatever its name.
        Kind::Shape => {
            field.with_metadata(HashMap::from([("ARROW:extension:name".to_owned(), "geoarrow.wkb".to_owned())]))
        }
        _ => field,
    }
}

impl<S: Source> Batches for RecordBatcher<S> {
    fn open(&mut self) -> Result<(SchemaRef, Option<String>), Fault> {
        let columns = self.source.open()?;
        self.schema = Arc::new(ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>()));
        self.builders = columns.iter().map(|(_, kind)| Builder::of(*kind)).collect();
        self.row = Row::new(&columns);
        Ok((self.schema.clone(), None))
    }

    fn want(&mut self, _columns: &[usize]) -> Result<ColumnScope, Fault> {
        Ok(ColumnScope::All)
    }

    fn notes(&self) -> Vec<String> {
        self.source.notes()
    }

    fn unread(&self) -> Unread {
        self.source.unread()
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, Fault> {
        if let Some(fault) = self.pending.take() {
            return Err(fault);
        }
        let (mut rows, mut bytes) = (0, 0);
        while !self.ended && rows < ROWS && bytes < BYTES {
            self.row.clear();
            match self.source.next(&mut self.row) {
                Ok(true) => {
                    for (builder, value) in self.builders.iter_mut().zip(&self.row.values) {
                        builder.append(value.as_ref());
                    }
                    rows += 1;
                    bytes += self.row.bytes;
                }
                Ok(false) => self.ended = true,
                // The records before it come first.
                Err(fault) => {
                    self.ended = matches!(fault, Fault::Stop(_));
                    if rows == 0 {
                        return Err(fault);
                    }
                    self.pending = Some(fault);
                    break;
                }
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        batch.map(Some).map_err(|e| Fault::stop(Invalid::new(e.to_string())))
    }
}
