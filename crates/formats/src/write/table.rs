//! The columns of a record batch of events, by their role in the collection.

use super::WriteError;
use crate::columns::Column;
use arrow_array::RecordBatch;
use meridian_model::{FieldType, GeometryType, Schema};

/// The columns to write: all but the geometry, in order.
pub(crate) struct Columns {
    pub(crate) named: Vec<(String, FieldType)>,
    /// Their names in the record batch.
    sources: Vec<String>,
    /// Type of the geometry; of a collection without one, any.
    pub(crate) shape: GeometryType,
    /// Name of the geometry column, if there is one.
    geometry: Option<String>,
}

/// One batch, its columns looked up.
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    geometry: Column,
    pub(crate) len: usize,
}

impl Columns {
    /// Returns the columns of all fields. The schema must have a geometry: the caller's file is made for it.
    #[cfg(feature = "flatgeobuf")]
    pub(crate) fn of_places(schema: &Schema) -> Result<Columns, WriteError> {
        if schema.geometry.is_none() {
            let detail = "the collection has no geometry, which the format is made for: export .parquet or .csv";
            return Err(WriteError::of(detail));
        }
        let fields: Vec<usize> = (0..schema.fields.len()).collect();
        Ok(Columns::of(schema, &fields))
    }

    /// Returns the id and these fields.
    pub(crate) fn of(schema: &Schema, fields: &[usize]) -> Columns {
        let id = std::iter::once((schema.id_column(), FieldType::Text));
        let fields = fields.iter().map(|&field| {
            let field = &schema.fields[field];
            (field.name.clone(), field.kind)
        });
        let named: Vec<(String, FieldType)> = id.chain(fields).collect();
        Columns {
            sources: named.iter().map(|(name, _)| name.clone()).collect(),
            named,
            shape: schema.geometry.unwrap_or(GeometryType::Any),
            geometry: schema.geometry.map(|_| schema.geometry_name.clone()),
        }
    }

    /// Returns whether there is a geometry.
    #[cfg(feature = "geopackage")]
    pub(crate) fn has_places(&self) -> bool {
        self.geometry.is_some()
    }

    /// Numbers names that differ from an earlier one only in case. Returns each with its new name.
    #[cfg(feature = "geopackage")]
    pub(crate) fn tell_apart(&mut self) -> Vec<(String, String)> {
        let mut renamed = Vec::new();
        for at in 1..self.named.len() {
            let name = &self.sources[at];
            let same = |others: &[(String, FieldType)], name: &str| {
                others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
            };
            if same(&self.named[..at], name) {
                // Must also differ from all later names, which may be numbered already.
                let new = (2..).map(|n| format!("{name}_{n}")).find(|new| !same(&self.named, new));
                if let Some(new) = new {
                    renamed.push((name.clone(), new.clone()));
                    self.named[at].0 = new;
                }
            }
        }
        renamed
    }

    /// Looks up the columns of a batch.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<Rows, WriteError> {
        let column = |name: &str| {
            let array = batch
                .column_by_name(name)
                .ok_or_else(|| WriteError::of(format!("the answer has no column {name:?}")))?;
            Column::of(array, name).map_err(WriteError::of)
        };
        Ok(Rows {
            columns: self.sources.iter().map(|name| column(name)).collect::<Result<_, _>>()?,
            geometry: self.geometry.as_deref().map_or(Ok(Column::Null), column)?,
            len: batch.num_rows(),
        })
    }
}

impl Rows {
    /// Returns the well-known binary of a row.
    pub(crate) fn shape(&self, row: usize) -> Option<&[u8]> {
        match &self.geometry {
            Column::Binary(bytes) => bytes.get(row),
            _ => None,
        }
    }
}
