//! The groups of an aggregate as JSON and as a table; [`arrow`] as an Arrow stream.
//!
//! The error of a function whose value may be an estimate is in a separate member or column, `error(NAME)`.

pub mod arrow;

use crate::protocol::problem::{Problem, Result};
use crate::request::errors;
use meridian_formats::text;
use meridian_model::Schema;
use meridian_query::{Aggregate, Aggregated, ByValue, Control, Function, FunctionValue, Group, Window};
use serde_json::{Value, json};
use std::io::Write;

/// Number of groups written between two checks of the deadline.
const GROUPS_UNSEEN: usize = 256;

/// Stops writing groups at the deadline, or when the client has disconnected.
fn look_at_the_clock(group: usize, control: &Control) -> Result<()> {
    if group.is_multiple_of(GROUPS_UNSEEN) { control.check().map_err(errors::query_problem) } else { Ok(()) }
}

/// Returns the functions besides the count, which is in every group anyway: the place of each, its name, and that of
/// its error.
fn others<'a>(question: &'a Aggregate, schema: &Schema) -> Vec<(usize, &'a Function, String, Option<String>)> {
    let all = question.functions.iter().enumerate().filter(|(_, function)| **function != Function::Count);
    all.map(|(at, function)| {
        let name = function.name(schema);
        let error = function.may_err().then(|| format!("error({name})"));
        (at, function, name, error)
    })
    .collect()
}

/// Returns the column names of the `by` fields.
fn by_names(question: &Aggregate, schema: &Schema) -> Vec<String> {
    let name = |by: &usize| schema.fields.get(*by).map_or("", |field| &field.name);
    match &question.by[..] {
        [_] => vec!["by".to_owned()],
        several => several.iter().map(|by| format!("by({})", name(by))).collect(),
    }
}

fn value_of(by: &ByValue) -> Value {
    match by {
        ByValue::Bool(b) => Value::from(*b),
        ByValue::Int(n) => Value::from(*n),
        ByValue::Text(text) => Value::from(text.as_str()),
        ByValue::Null => Value::Null,
    }
}

/// Appends groups as JSON.
pub fn write_json(
    answer: &Aggregated,
    question: &Aggregate,
    schema: &Schema,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    // Quoted once instead of for each group.
    let quoted = |text: &str| Value::from(text).to_string();
    let by: Vec<String> =
        question.by.iter().map(|by| quoted(schema.fields.get(*by).map_or("", |field| &field.name))).collect();
    let names: Vec<(usize, String, Option<String>)> = others(question, schema)
        .into_iter()
        .map(|(at, _, name, error)| (at, quoted(&name), error.map(|error| quoted(&error))))
        .collect();
    out.extend_from_slice(b"{\"groups\":[");
    for (i, group) in answer.groups.iter().enumerate() {
        look_at_the_clock(i, control)?;
        if i > 0 {
            out.push(b',');
        }
        write_group(group, &by, &names, out).map_err(Problem::internal)?;
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

fn write_group(
    group: &Group,
    by: &[String],
    names: &[(usize, String, Option<String>)],
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    out.push(b'{');
    if let Some(window) = group.window {
        out.extend_from_slice(b"\"window\":\"");
        write_window(window, out);
        out.extend_from_slice(b"\",");
    }
    match &group.by[..] {
        [] => {}
        [one] => write!(out, "\"by\":{},", value_of(one))?,
        several => {
            out.extend_from_slice(b"\"by\":{");
            for (i, (name, value)) in by.iter().zip(several).enumerate() {
                write!(out, "{}{name}:{}", if i > 0 { "," } else { "" }, value_of(value))?;
            }
            out.extend_from_slice(b"},");
        }
    }
    write!(out, "\"count\":{}", group.count)?;
    for (at, name, error) in names {
        write!(out, ",{name}:")?;
        match group.values.get(*at) {
            None | Some(FunctionValue::Null) => out.extend_from_slice(b"null"),
            Some(value) => write_value(value, out)?,
        }
        if let Some(error) = error {
            write!(out, ",{error}:{}", group.errors.get(*at).copied().unwrap_or_default())?;
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_value(value: &FunctionValue, out: &mut Vec<u8>) -> std::io::Result<()> {
    match value {
        FunctionValue::Null => {}
        FunctionValue::Int(n) => write!(out, "{n}")?,
        FunctionValue::Float(x) => text::float(*x, out),
        FunctionValue::Top(top) => {
            let top: Vec<Value> =
                top.iter().map(|(value, count)| json!({ "value": value_of(value), "count": count })).collect();
            write!(out, "{}", Value::from(top))?;
        }
    }
    Ok(())
}

/// Appends groups as comma-separated values (RFC 4180) with a header line. Columns are `window` (start/end) and `by` if
/// the query has them (`by(NAME)` for each of several), `count`, then each function by name. A missing value is empty.
pub fn write_csv(
    answer: &Aggregated,
    question: &Aggregate,
    schema: &Schema,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    let others = others(question, schema);
    let mut names: Vec<String> = question.windows.iter().map(|_| "window".to_owned()).collect();
    names.extend(by_names(question, schema));
    names.push("count".to_owned());
    names.extend(others.iter().flat_map(|(_, _, name, error)| std::iter::once(name.clone()).chain(error.clone())));
    for (i, name) in names.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        text::csv(name, out);
    }
    out.extend_from_slice(b"\r\n");
    answer.groups.iter().enumerate().try_for_each(|(i, group)| {
        look_at_the_clock(i, control)?;
        write_row(group, question, &others, out).map_err(Problem::internal)
    })
}

fn write_row(
    group: &Group,
    question: &Aggregate,
    others: &[(usize, &Function, String, Option<String>)],
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    if question.windows.is_some() {
        if let Some(window) = group.window {
            write_window(window, out);
        }
        out.push(b',');
    }
    for by in &group.by {
        match by {
            ByValue::Bool(b) => write!(out, "{b}")?,
            ByValue::Int(n) => write!(out, "{n}")?,
            ByValue::Text(value) => text::csv(value, out),
            ByValue::Null => {}
        }
        out.push(b',');
    }
    write!(out, "{}", group.count)?;
    for (at, _, _, error) in others {
        out.push(b',');
        match group.values.get(*at) {
            None => {}
            Some(list @ FunctionValue::Top(_)) => {
                let mut json = Vec::new();
                write_value(list, &mut json)?;
                text::csv(&String::from_utf8_lossy(&json), out);
            }
            Some(value) => write_value(value, out)?,
        }
        if error.is_some() {
            write!(out, ",{}", group.errors.get(*at).copied().unwrap_or_default())?;
        }
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn write_window(window: Window, out: &mut Vec<u8>) {
    text::instant(window.start, out);
    out.push(b'/');
    text::instant(window.end, out);
}
