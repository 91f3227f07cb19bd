//! The numeric fields summarised by nodes, and their values over a batch.

use crate::error::IndexError;
use arrow_array::Array;
use arrow_buffer::NullBuffer;
use meridian_model::{Batch, FieldColumn, FieldType, Schema};

/// A numeric field summarised by nodes.
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

/// The values of a numeric field of a batch.
pub(crate) enum Numbers<'a> {
    Int(&'a [i64], Option<&'a NullBuffer>),
    Float(&'a [f64], Option<&'a NullBuffer>),
}

impl Numbers<'_> {
    /// Looks up the columns of the numeric fields; all must have been read.
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
