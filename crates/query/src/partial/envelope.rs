//! The common parts of every partial result as a record batch: kind, version and cost, and columns that are checked
//! before they are read.

use crate::control::Stats;
use crate::wire::WireError;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use arrow_schema::{Field, Schema};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

const KIND: &str = "meridian.partial";
const VERSION: &str = "meridian.version";
const STATS: &str = "meridian.stats";

/// A kind of partial result and its version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) version: u32,
}

/// A partial result under construction.
pub(super) struct Envelope {
    kind: Kind,
    metadata: HashMap<String, String>,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Kind {
    pub(super) fn malformed(self, detail: impl Into<String>) -> WireError {
        WireError::Malformed { what: self.name, detail: detail.into() }
    }

    /// Begins a record batch of this kind.
    pub(super) fn seal(self, stats: &Stats) -> Envelope {
        let numbers: Map<String, Value> =
            { *stats }.numbers().into_iter().map(|(name, n)| (name.to_owned(), (*n).into())).collect();
        let metadata = HashMap::from([
            (KIND.to_owned(), self.name.to_owned()),
            (VERSION.to_owned(), self.version.to_string()),
            (STATS.to_owned(), Value::Object(numbers).to_string()),
        ]);
        Envelope { kind: self, metadata, fields: Vec::new(), columns: Vec::new() }
    }

    /// Whether a record batch declares this kind.
    pub(super) fn is_of(self, batch: &RecordBatch) -> bool {
        batch.schema_ref().metadata.get(KIND).is_some_and(|name| name == self.name)
    }

    /// Opens a record batch that must have this kind and version.
    pub(super) fn open(self, batch: &RecordBatch) -> Result<Opened<'_>, WireError> {
        let schema = batch.schema_ref();
        let (name, version) = (schema.metadata.get(KIND), schema.metadata.get(VERSION));
        // Exact equality: a partition of another version could return numbers that merge without an error and are
        // wrong.
        if name.map(String::as_str) != Some(self.name) || version != Some(&self.version.to_string()) {
            let shown =
                |text: Option<&String>| text.map_or("none", |text| &text[..text.floor_char_boundary(64)]).to_owned();
            let found = format!("a partial answer {:?} of version {:?}", shown(name), shown(version));
            return Err(WireError::Version { found, expected: format!("{:?} of version {}", self.name, self.version) });
        }
        Ok(Opened { kind: self, batch })
    }
}

impl Envelope {
    /// Adds a column, whose name must be unused.
    pub(super) fn column(&mut self, name: impl Into<String>, column: ArrayRef) -> &mut Envelope {
        self.fields.push(Field::new(name, column.data_type().clone(), true));
        self.columns.push(column);
        self
    }

    /// Adds a text to the metadata.
    pub(super) fn says(&mut self, name: &str, value: impl ToString) -> &mut Envelope {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    pub(super) fn finish(self, rows: usize) -> Result<RecordBatch, WireError> {
        let schema = Arc::new(Schema::new(self.fields).with_metadata(self.metadata));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, self.columns, &options)
            .map_err(|e| self.kind.malformed(e.to_string()))
    }
}

/// A record batch with the right kind and version.
#[derive(Clone, Copy)]
pub(super) struct Opened<'a> {
    kind: Kind,
    batch: &'a RecordBatch,
}

impl<'a> Opened<'a> {
    pub(super) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The cost; numbers unknown to an older server are 0.
    pub(super) fn stats(&self) -> Result<Stats, WireError> {
        let mut stats = Stats::default();
        let text: String = self.said(STATS)?;
        let known: HashMap<String, u64> =
            serde_json::from_str(&text).map_err(|_| self.malformed("the cost is not an object of numbers"))?;
        for (name, number) in stats.numbers() {
            *number = known.get(name).copied().unwrap_or(0);
        }
        Ok(stats)
    }

    /// Parses a metadata text as the expected type.
    pub(super) fn said<T: std::str::FromStr>(&self, name: &str) -> Result<T, WireError> {
        let text = self.batch.schema_ref().metadata.get(name);
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.malformed(format!("{name} is missing or wrong")))
    }

    /// The same for an optional text.
    pub(super) fn may_say<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, WireError> {
        let is_said = self.batch.schema_ref().metadata.contains_key(name);
        is_said.then(|| self.said(name)).transpose()
    }

    pub(super) fn malformed(&self, detail: impl Into<String>) -> WireError {
        self.kind.malformed(detail)
    }

    /// A column by name.
    pub(super) fn any(&self, name: &str) -> Result<&'a ArrayRef, WireError> {
        self.batch.column_by_name(name).ok_or_else(|| self.malformed(format!("the column {name:?} is missing")))
    }

    /// A column by name, converted by `read`; without nulls unless `nullable`.
    pub(super) fn column<T: 'a>(
        &self,
        name: &str,
        nullable: bool,
        read: impl FnOnce(&'a ArrayRef) -> Option<T>,
    ) -> Result<T, WireError> {
        let column = self.any(name)?;
        if !nullable && column.null_count() > 0 {
            return Err(self.malformed(format!("the column {name:?} has nulls")));
        }
        read(column).ok_or_else(|| self.malformed(format!("the column {name:?} is of {}", column.data_type())))
    }

    /// A column of numbers without nulls.
    pub(super) fn numbers<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>, WireError> {
        self.column(name, false, |column| column.as_primitive_opt::<T>())
    }

    /// A column of numbers that may be null.
    pub(super) fn nullable<T: ArrowPrimitiveType>(&self, name: &str) -> Result<&'a PrimitiveArray<T>, WireError> {
        self.column(name, true, |column| column.as_primitive_opt::<T>())
    }

    /// A column of booleans without nulls.
    pub(super) fn flags(&self, name: &str) -> Result<&'a BooleanArray, WireError> {
        self.column(name, false, |column| column.as_boolean_opt())
    }

    /// A column of 16 bytes each, without nulls.
    pub(super) fn sixteens(&self, name: &str) -> Result<&'a FixedSizeBinaryArray, WireError> {
        self.column(name, false, |column| column.as_fixed_size_binary_opt().filter(|array| array.value_length() == 16))
    }
}
