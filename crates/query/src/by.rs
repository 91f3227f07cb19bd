//! The values of the `by` fields.

use crate::hash::NumberMap;
use arrow_array::Array;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use meridian_model::{FieldColumn, Invalid};
use serde::{Deserialize, Serialize};
use std::hash::BuildHasher;

/// Max number of distinct values of the `by` field.
pub const BY_VALUES_MAX: usize = 100_000;

/// A group's value of a `by` field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByValue {
    /// False or true.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
    /// Null.
    Null,
}

/// The values of the `by` field, numbered in order of first occurrence.
#[derive(Default)]
pub(crate) struct Values {
    pub(crate) list: Vec<ByValue>,
    /// The numbers of the texts, whose bytes are in `list`.
    texts: HashTable<u32>,
    hasher: RandomState,
    ints: NumberMap<i64>,
    bools: [Option<u32>; 2],
    null: Option<u32>,
    /// Estimated memory of all values, in bytes.
    bytes: usize,
}

/// Estimated bytes that an allocation takes besides what is asked for.
const ALLOCATION_BYTES: usize = 16;
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
        // A text is stored in the list and in the result.
        self.bytes += VALUE_BYTES + if let ByValue::Text(text) = &value { 2 * text.len() } else { 0 };
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
        let hash = self.hasher.hash_one(text);
        if let Some(&number) = self.texts.find(hash, |&number| text_of(&self.list, number) == text) {
            return Ok(number);
        }
        let number = self.next(ByValue::Text(text.to_owned()))?;
        let Values { list, texts, hasher, .. } = self;
        texts.insert_unique(hash, number, |&number| hasher.hash_one(text_of(list, number)));
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

/// The text with a number.
fn text_of(list: &[ByValue], number: u32) -> &str {
    match &list[number as usize] {
        ByValue::Text(text) => text,
        _ => "",
    }
}

/// The values of all `by` fields; each combination is numbered in order of first occurrence.
pub(crate) struct Keys {
    fields: Vec<Values>,
    /// The combinations, by the numbers of their values. A single field uses its own numbers.
    tuples: HashTable<u32>,
    hasher: RandomState,
    list: Vec<Box<[u32]>>,
    scratch: Vec<u32>,
}

impl Keys {
    /// An empty set of keys over the given fields.
    pub(crate) fn none(fields: usize) -> Keys {
        let fields = (0..fields).map(|_| Values::none()).collect();
        let hasher = RandomState::default();
        Keys { fields, tuples: HashTable::new(), hasher, list: Vec::new(), scratch: Vec::new() }
    }

    /// Number of combinations so far.
    pub(crate) fn len(&self) -> usize {
        match &self.fields[..] {
            [one] => one.list.len(),
            _ => self.list.len(),
        }
    }

    /// Estimated memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // Each is an allocation; the list and the table have free slots.
        let tuple = 2 * size_of::<Box<[u32]>>() + (self.fields.len() + 2) * size_of::<u32>() + ALLOCATION_BYTES;
        self.fields.iter().map(Values::bytes).sum::<usize>() + self.list.len() * tuple
    }

    /// The number of a combination of values, one for each field.
    pub(crate) fn number_of(&mut self, values: &[ByValue]) -> Result<u32, Invalid> {
        self.number(|at, field| field.number_of(values.get(at).unwrap_or(&ByValue::Null)))
    }

    /// The number of a row's combination; an absent column has no values.
    #[inline]
    pub(crate) fn number_at(&mut self, columns: &[Option<FieldColumn<'_>>], row: usize) -> Result<u32, Invalid> {
        self.number(|at, field| match columns.get(at) {
            Some(Some(column)) => field.number_at(column, row),
            _ => field.number_of(&ByValue::Null),
        })
    }

    #[inline]
    fn number(&mut self, mut of: impl FnMut(usize, &mut Values) -> Result<u32, Invalid>) -> Result<u32, Invalid> {
        if let [one] = &mut self.fields[..] {
            return of(0, one);
        }
        self.scratch.clear();
        for (at, field) in self.fields.iter_mut().enumerate() {
            self.scratch.push(of(at, field)?);
        }
        let hash = self.hasher.hash_one(&self.scratch[..]);
        if let Some(&number) = self.tuples.find(hash, |&number| *self.list[number as usize] == self.scratch[..]) {
            return Ok(number);
        }
        if self.list.len() >= BY_VALUES_MAX {
            let detail = format!(
                "the properties have more than {BY_VALUES_MAX} different combinations of values: filter, or group by fewer"
            );
            return Err(Invalid::field("by", detail));
        }
        let number = self.list.len() as u32;
        self.list.push(Box::from(&self.scratch[..]));
        let Keys { tuples, hasher, list, .. } = self;
        tuples.insert_unique(hash, number, |&number| hasher.hash_one(&*list[number as usize]));
        Ok(number)
    }

    /// The values of a combination.
    pub(crate) fn values(&self, number: u32) -> impl Iterator<Item = &ByValue> {
        let tuple = self.list.get(number as usize);
        self.fields.iter().enumerate().map(move |(at, field)| {
            let value = tuple.map_or(number, |tuple| tuple[at]);
            field.list.get(value as usize).unwrap_or(&ByValue::Null)
        })
    }

    /// The values of one field, and the number among them of its value in a combination.
    pub(crate) fn of_field(&self, field: usize) -> (&Values, impl Fn(u32) -> u32) {
        (&self.fields[field], move |number| self.list.get(number as usize).map_or(number, |tuple| tuple[field]))
    }
}
