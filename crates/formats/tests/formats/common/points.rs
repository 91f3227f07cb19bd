//! Events of points read under a schema of the test's own, and their values as text.

use super::read_all;
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, Unknown};
use meridian_model::{Batch, Field, FieldType, GeometryType, Schema};
use std::fmt::Display;
use std::sync::Arc;

/// Reads the positions and these fields; no field is required, and the other columns are left out.
pub fn read_points(format: Format, bytes: Vec<u8>, fields: &[(&str, FieldType)]) -> Result<Batch, ReadError> {
    let field = |f: &(&str, FieldType)| Field { name: f.0.to_owned(), kind: f.1, required: false, title: None };
    let fields = fields.iter().map(field).collect();
    let schema = Arc::new(Schema { fields, geometry: Some(GeometryType::Point), ..Schema::default() });
    let options = ReadOptions { unknown: Unknown::Ignore, ..ReadOptions::default() };
    read_all(format, bytes, &schema, &options, &BatchLimits::default())
}

/// Longitude and latitude of a row.
pub fn place(batch: &Batch, row: usize) -> Option<(f64, f64)> {
    use arrow_array::Array;
    let (lon, lat) = batch.points().unwrap();
    (lon.is_valid(row) && lat.is_valid(row)).then(|| (lon.value(row), lat.value(row)))
}

/// A number as [`super::shown::value`] shows it.
pub fn number<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// A text as [`super::shown::value`] shows it; an empty one is no value.
pub fn text(value: &str) -> String {
    if value.is_empty() { "null".to_owned() } else { format!("{value:?}") }
}
