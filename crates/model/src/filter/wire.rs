//! The source expression of a predicate, for sending it to another server that binds it there.
//!
//! A bound predicate refers to fields by number and keeps only what it evaluates. Its source expression is kept
//! beside it: CQL2 for filters, and boxes, times and circles, which CQL2 cannot express, under separate names.
//!
//! ```text
//! {"cql2": EXPR} | {"cql2-text": "EXPR"} | {"bbox": [west, south, east, north]} | {"time": [start, end]} | {"near":
//! [lon, lat, metres]}
//! | {"located": true} | {"and": [..]} | {"or": [..]} | {"not": ..}       times in microseconds since 1970
//! ```

use super::expr::Expr;
use super::parse_json::parse_json_within;
use super::parse_text::{DEPTH_MAX, parse_text};
use super::predicate::Predicate;
use super::write::{to_json, to_text};
use crate::error::Invalid;
use crate::schema::Schema;
use crate::time::Interval;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Max number of values of an expression on input: one that fits the text limit is longer in JSON.
const VALUES_MAX: usize = 1 << 20;

/// Max nesting of an expression in JSON, which JSON readers limit to 128 in all. A deeper one is sent as text.
const LEVELS_MAX: usize = 96;

/// The source of a predicate.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    Cql2(Expr),
    And(Vec<Arc<Source>>),
    Or(Vec<Arc<Source>>),
    Not(Arc<Source>),
    Bbox([f64; 4]),
    Time(Interval),
    Near([f64; 3]),
    Located,
}

impl Predicate {
    /// The expression of this predicate, as JSON that [`Predicate::from_json`] binds again; see the module `wire`.
    ///
    /// `None` for a part of a filter, which has no expression of its own.
    pub fn to_json(&self) -> Option<Value> {
        self.source().map(|source| source.to_json())
    }

    /// Binds the output of [`Predicate::to_json`] to a schema. Errors name `filter`.
    pub fn from_json(value: &Value, schema: &Schema) -> Result<Predicate, Invalid> {
        read(value, schema, 0)
    }
}

impl Source {
    fn to_json(&self) -> Value {
        let all = |parts: &[Arc<Source>]| parts.iter().map(|part| part.to_json()).collect::<Vec<_>>();
        match self {
            Source::Cql2(expr) => match to_json(expr) {
                // The limit does not apply to text: its parser counts nesting, and the filter has already passed it.
                deep if levels(&deep) > LEVELS_MAX => json!({"cql2-text": to_text(expr)}),
                expr => json!({"cql2": expr}),
            },
            Source::And(parts) => json!({"and": all(parts)}),
            Source::Or(parts) => json!({"or": all(parts)}),
            Source::Not(inner) => json!({"not": inner.to_json()}),
            Source::Bbox(sides) => json!({"bbox": sides}),
            Source::Time(interval) => json!({"time": [interval.start, interval.end]}),
            Source::Near(circle) => json!({"near": circle}),
            Source::Located => json!({"located": true}),
        }
    }
}

/// Nesting depth of arrays and objects, including the value itself.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
        _ => 1,
    }
}

fn wrong(detail: impl std::fmt::Display) -> Invalid {
    Invalid::field("filter", detail)
}

fn read(value: &Value, schema: &Schema, depth: usize) -> Result<Predicate, Invalid> {
    if depth > DEPTH_MAX {
        return Err(wrong(format!("the expression is nested more than {DEPTH_MAX} deep")));
    }
    let only = |members: &Map<String, Value>| members.len() == 1;
    let Some((word, value)) = value.as_object().filter(|m| only(m)).and_then(|m| m.iter().next()) else {
        return Err(wrong("expected an object with one member, such as \"cql2\""));
    };
    let parts = || {
        let parts = value.as_array().ok_or_else(|| wrong(format!("{word:?} takes a list")))?;
        parts.iter().map(|part| read(part, schema, depth + 1)).collect::<Result<Vec<_>, _>>()
    };
    match word.as_str() {
        "cql2" => Predicate::bind(&parse_json_within(value, VALUES_MAX)?, schema),
        "cql2-text" => {
            let text = value.as_str().ok_or_else(|| wrong("\"cql2-text\" takes a text"))?;
            Predicate::bind(&parse_text(text)?, schema)
        }
        "and" => Ok(Predicate::and(parts()?)),
        "or" => Ok(Predicate::or(parts()?)),
        "not" => Ok(read(value, schema, depth + 1)?.not()),
        "bbox" => {
            let [west, south, east, north] = numbers(word, value)?;
            Ok(Predicate::bbox(west, south, east, north))
        }
        "time" => match value.as_array().map(Vec::as_slice) {
            Some([start, end]) => match (start.as_i64(), end.as_i64()) {
                (Some(start), Some(end)) => Ok(Predicate::interval(Interval { start, end })),
                _ => Err(wrong("\"time\" takes two whole numbers")),
            },
            _ => Err(wrong("\"time\" takes two whole numbers")),
        },
        "near" => {
            let [lon, lat, radius_m] = numbers(word, value)?;
            Ok(Predicate::near(lon, lat, radius_m))
        }
        "located" if *value == Value::Bool(true) => Ok(Predicate::located()),
        _ => Err(wrong(format!("{word:?} is not a part of an expression"))),
    }
}

fn numbers<const N: usize>(word: &str, value: &Value) -> Result<[f64; N], Invalid> {
    let numbers: Option<Vec<f64>> = value.as_array().and_then(|list| list.iter().map(Value::as_f64).collect());
    numbers.and_then(|list| list.try_into().ok()).ok_or_else(|| wrong(format!("{word:?} takes {N} numbers")))
}
