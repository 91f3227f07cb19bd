//! Questions for numbers, and their answers.

use crate::control::Stats;
use crate::windows::{Window, Windows};
use meridian_model::filter::Predicate;
use meridian_model::{FieldType, Invalid, Schema};
use serde::{Deserialize, Serialize};

/// A function of the events of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Number of events.
    Count,
    /// Number of events with a value of a numeric field.
    CountOf(usize),
    /// Sum of a numeric field.
    Sum(usize),
    /// Mean of a numeric field.
    Avg(usize),
    /// Min of a numeric field.
    Min(usize),
    /// Max of a numeric field.
    Max(usize),
}

/// Max number of functions of a question.
pub const FUNCTIONS_MAX: usize = 64;

impl Function {
    /// Reads a list such as `count,sum(price),avg(price)`.
    pub fn parse(text: &str, schema: &Schema) -> Result<Vec<Function>, Invalid> {
        let functions =
            text.split(',').map(|part| Function::parse_one(part.trim(), schema)).collect::<Result<Vec<_>, _>>()?;
        // Each function is a column of running totals for every group.
        if functions.len() > FUNCTIONS_MAX {
            return Err(Invalid::field(
                "function",
                format!("at most {FUNCTIONS_MAX} functions can be asked for at once"),
            ));
        }
        Ok(functions)
    }

    /// Reads one function, whatever the name of its property.
    pub(crate) fn parse_one(text: &str, schema: &Schema) -> Result<Function, Invalid> {
        let wrong = |why: String| Invalid::field("function", why);
        let (name, field) = match text.split_once('(') {
            None if text == "count" => return Ok(Function::Count),
            None => (text, None),
            Some((name, rest)) => (name, rest.strip_suffix(')')),
        };
        let make = match name {
            "count" => Function::CountOf,
            "sum" => Function::Sum,
            "avg" => Function::Avg,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => {
                return Err(wrong(format!(
                    "{text:?} is not a function: expected count, or count, sum, avg, min or max of a numeric property, such as avg(price)"
                )));
            }
        };
        let field = field.ok_or_else(|| wrong(format!("{text:?} names no property: expected {name}(PROPERTY)")))?;
        let index = schema
            .field_index(field)
            .ok_or_else(|| wrong(format!("{field:?} is not a property of this collection")))?;
        let kind = schema.fields[index].kind;
        if !kind.is_numeric() {
            return Err(wrong(format!("{field:?} is a {}: expected a numeric property", kind.word())));
        }
        Ok(make(index))
    }

    /// The name as it appears in an answer, such as `sum(price)`.
    pub fn name(&self, schema: &Schema) -> String {
        let of = |name: &str, field: &usize| format!("{name}({})", schema.fields.get(*field).map_or("", |f| &f.name));
        match self {
            Function::Count => "count".to_owned(),
            Function::CountOf(f) => of("count", f),
            Function::Sum(f) => of("sum", f),
            Function::Avg(f) => of("avg", f),
            Function::Min(f) => of("min", f),
            Function::Max(f) => of("max", f),
        }
    }

    pub(crate) fn field(&self) -> Option<usize> {
        match *self {
            Function::Count => None,
            Function::CountOf(f) | Function::Sum(f) | Function::Avg(f) | Function::Min(f) | Function::Max(f) => Some(f),
        }
    }
}

/// A question for aggregates of events.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The filter of events.
    pub predicate: Predicate,
    /// The functions of each group.
    pub functions: Vec<Function>,
    /// A group for each window of time.
    pub windows: Option<Windows>,
    /// A group for each value of a text, integer or boolean field.
    pub by: Option<usize>,
    /// Include windows without events between the first and the last window with events.
    pub empty: bool,
}

/// The value of the `by` field that a group shares.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByValue {
    /// False or true.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
    /// No value.
    Null,
}

/// The value of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FunctionValue {
    /// No value: the group has no value of the field.
    Null,
    /// An integer: counts, and sums and extremes of integer fields. Sums may pass 64 bits.
    Int(i128),
    /// A float.
    Float(f64),
}

/// One group of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The window; `None` where no windows were asked for, or of events with an open start.
    pub window: Option<Window>,
    /// The value of the `by` field; `None` where none was asked for.
    pub by: Option<ByValue>,
    /// Number of events.
    pub count: u64,
    /// The value of each function, in the order asked.
    pub values: Vec<FunctionValue>,
}

/// Groups in order of window, then of `by`; and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregated {
    /// The groups. Without windows and `by` there is exactly one.
    pub groups: Vec<Group>,
    /// The cost of the question.
    pub stats: Stats,
}

impl Aggregate {
    /// The numeric fields that the functions are about, each once, ascending.
    pub(crate) fn fields(&self) -> Vec<usize> {
        let mut fields: Vec<usize> = self.functions.iter().filter_map(Function::field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Checks that the question can be asked of events of this schema.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), Invalid> {
        if self.windows.is_some() && !schema.has_time() {
            return Err(Invalid::field("window", "this collection has no time"));
        }
        if self.functions.len() > FUNCTIONS_MAX {
            return Err(Invalid::field(
                "function",
                format!("at most {FUNCTIONS_MAX} functions can be asked for at once"),
            ));
        }
        for field in self.functions.iter().filter_map(Function::field) {
            if schema.fields.get(field).is_none_or(|f| !f.kind.is_numeric()) {
                return Err(Invalid::field("function", "expected a numeric property"));
            }
        }
        if let Some(by) = self.by {
            let kind = schema.fields.get(by).map(|f| f.kind);
            if !matches!(kind, Some(FieldType::Text | FieldType::Int | FieldType::Bool)) {
                let kind = kind.map_or("nothing", FieldType::word);
                return Err(Invalid::field(
                    "by",
                    format!("groups cannot be by a {kind}: expected a string, an integer or a boolean"),
                ));
            }
        }
        Ok(())
    }
}
