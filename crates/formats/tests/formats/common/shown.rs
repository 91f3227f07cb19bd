//! Values of a batch as text, to compare.

use meridian_model::{Batch, FieldColumn};

/// The value of a field in a row; `null` without one.
pub fn value(batch: &Batch, name: &str, row: usize) -> String {
    use arrow_array::Array;
    let Some(field) = batch.schema().field_index(name) else { return "no such field".to_owned() };
    match batch.field(field) {
        Some(FieldColumn::Text(c)) if c.is_valid(row) => format!("{:?}", c.value(row)),
        Some(FieldColumn::Int(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Float(c)) if c.is_valid(row) => format!("{}", c.value(row)),
        Some(FieldColumn::Bool(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Time(c)) if c.is_valid(row) => c.value(row).to_string(),
        _ => "null".to_owned(),
    }
}
