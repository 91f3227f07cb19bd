//! The values of the `by` field.

use crate::aggregate::ByValue;
use crate::hash::NumberMap;
use arrow_array::Array;
use meridian_model::{FieldColumn, Invalid};
use std::collections::HashMap;

/// Max number of distinct values of the `by` field.
pub const BY_VALUES_MAX: usize = 100_000;

/// The values of the `by` field, numbered in order of first occurrence.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) list: Vec<ByValue>,
    texts: HashMap<Box<str>, u32>,
    ints: NumberMap<i64>,
    bools: [Option<u32>; 2],
    null: Option<u32>,
    /// Estimated memory of all values, in bytes.
    bytes: usize,
}

/// Estimated bytes of a value besides its text.
const VALUE_BYTES: usize = 96;

impl Values {
    pub(crate) fn none() -> Values {
        Values::default()
    }

    /// Estimated memory of the values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn next(&mut self, value: ByValue) -> Result<u32, Invalid> {
        if self.list.len() >= BY_VALUES_MAX {
            return Err(Invalid::field(
                "by",
                format!("the property has more than {BY_VALUES_MAX} different values: filter, or group by another one"),
            ));
        }
        // A text is stored in the list, in the map and in the answer.
        self.bytes += VALUE_BYTES + if let ByValue::Text(text) = &value { 3 * text.len() } else { 0 };
        self.list.push(value);
        Ok(self.list.len() as u32 - 1)
    }

    pub(crate) fn number_of(&mut self, value: &ByValue) -> Result<u32, Invalid> {
        match value {
            ByValue::Text(text) => self.text(text),
            ByValue::Int(n) => self.int(*n),
            ByValue::Bool(b) => self.bool(*b),
            ByValue::Null => self.null(),
        }
    }

    #[inline]
    pub(crate) fn number_at(&mut self, column: &FieldColumn<'_>, row: usize) -> Result<u32, Invalid> {
        match column {
            FieldColumn::Text(a) if a.is_valid(row) => self.text(a.value(row)),
            FieldColumn::Int(a) if a.is_valid(row) => self.int(a.value(row)),
            FieldColumn::Bool(a) if a.is_valid(row) => self.bool(a.value(row)),
            _ => self.null(),
        }
    }

    fn text(&mut self, text: &str) -> Result<u32, Invalid> {
        if let Some(&number) = self.texts.get(text) {
            return Ok(number);
        }
        let number = self.next(ByValue::Text(text.to_owned()))?;
        self.texts.insert(text.into(), number);
        Ok(number)
    }

    fn int(&mut self, n: i64) -> Result<u32, Invalid> {
        if let Some(&number) = self.ints.get(&n) {
            return Ok(number);
        }
        let number = self.next(ByValue::Int(n))?;
        self.ints.insert(n, number);
        Ok(number)
    }

    fn bool(&mut self, b: bool) -> Result<u32, Invalid> {
        match self.bools[usize::from(b)] {
            Some(number) => Ok(number),
            None => {
                let number = self.next(ByValue::Bool(b))?;
                self.bools[usize::from(b)] = Some(number);
                Ok(number)
            }
        }
    }

    fn null(&mut self) -> Result<u32, Invalid> {
        match self.null {
            Some(number) => Ok(number),
            None => {
                let number = self.next(ByValue::Null)?;
                self.null = Some(number);
                Ok(number)
            }
        }
    }
}
