//! The groups of an aggregate as JSON and as a table.

use crate::errors;
use crate::problem::{Problem, Result};
use meridian_formats::text;
use meridian_model::Schema;
use meridian_query::{Aggregate, Aggregated, ByValue, Control, Function, FunctionValue, Group, Window};
use serde_json::Value;
use std::io::Write;

/// Groups written between two checks of the deadline.
const GROUPS_UNSEEN: usize = 4096;

/// Stops the writing of many groups at the deadline, or when the client has disconnected.
fn look_at_the_clock(group: usize, control: &Control) -> Result<()> {
    if group.is_multiple_of(GROUPS_UNSEEN) { control.check().map_err(errors::query_problem) } else { Ok(()) }
}

/// Appends groups as JSON.
pub fn write_json(
    answer: &Aggregated,
    functions: &[Function],
    schema: &Schema,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    // Quoted once, not for each group.
    let names: Vec<String> = functions.iter().map(|f| Value::from(f.name(schema)).to_string()).collect();
    out.extend_from_slice(b"{\"groups\":[");
    for (i, group) in answer.groups.iter().enumerate() {
        look_at_the_clock(i, control)?;
        if i > 0 {
            out.push(b',');
        }
        write_group(group, functions, &names, out)?;
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

fn write_group(group: &Group, functions: &[Function], names: &[String], out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    if let Some(window) = group.window {
        out.extend_from_slice(b"\"window\":\"");
        write_window(window, out);
        out.extend_from_slice(b"\",");
    }
    if let Some(by) = &group.by {
        let by = match by {
            ByValue::Bool(b) => Value::from(*b),
            ByValue::Int(n) => Value::from(*n),
            ByValue::Text(text) => Value::from(text.as_str()),
            ByValue::Null => Value::Null,
        };
        write!(out, "\"by\":{by},").map_err(Problem::internal)?;
    }
    write!(out, "\"count\":{}", group.count).map_err(Problem::internal)?;
    // The count stands above in every group, whether requested or not.
    for ((function, name), value) in functions.iter().zip(names).zip(&group.values) {
        if *function == Function::Count {
            continue;
        }
        write!(out, ",{name}:").map_err(Problem::internal)?;
        match value {
            FunctionValue::Null => out.extend_from_slice(b"null"),
            FunctionValue::Int(n) => write!(out, "{n}").map_err(Problem::internal)?,
            FunctionValue::Float(x) => text::float(*x, out),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Appends groups as comma-separated values (RFC 4180) with a header line. Columns are `window` (start/end) and `by`
/// if the query has them, `count`, then each function by name. A missing value is empty.
pub fn write_csv(
    answer: &Aggregated,
    question: &Aggregate,
    schema: &Schema,
    control: &Control,
    out: &mut Vec<u8>,
) -> Result<()> {
    let parts = [("window", question.windows.is_some()), ("by", question.by.is_some()), ("count", true)];
    let mut names: Vec<String> = parts.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()).collect();
    let others = question.functions.iter().filter(|f| **f != Function::Count);
    names.extend(others.map(|f| f.name(schema)));
    for (i, name) in names.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        text::csv(name, out);
    }
    out.extend_from_slice(b"\r\n");
    answer.groups.iter().enumerate().try_for_each(|(i, group)| {
        look_at_the_clock(i, control)?;
        write_row(group, question, out)
    })
}

fn write_row(group: &Group, question: &Aggregate, out: &mut Vec<u8>) -> Result<()> {
    if question.windows.is_some() {
        if let Some(window) = group.window {
            write_window(window, out);
        }
        out.push(b',');
    }
    if question.by.is_some() {
        match &group.by {
            Some(ByValue::Bool(b)) => write!(out, "{b}").map_err(Problem::internal)?,
            Some(ByValue::Int(n)) => write!(out, "{n}").map_err(Problem::internal)?,
            Some(ByValue::Text(value)) => text::csv(value, out),
            Some(ByValue::Null) | None => {}
        }
        out.push(b',');
    }
    write!(out, "{}", group.count).map_err(Problem::internal)?;
    for (function, value) in question.functions.iter().zip(&group.values) {
        if *function == Function::Count {
            continue;
        }
        out.push(b',');
        match value {
            FunctionValue::Null => {}
            FunctionValue::Int(n) => write!(out, "{n}").map_err(Problem::internal)?,
            FunctionValue::Float(x) => text::float(*x, out),
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
