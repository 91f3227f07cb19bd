//! Schemas as read and shown by the command line.

use crate::failure::Failure;
use crate::table::Table;
use crate::units::count_text;
use meridian_model::{IdRole, Invalid, Mode, Schema, TimeRole, schema_json, schema_spec};
use meridian_store::seams::read_named_text;
use std::path::Path;

/// Parses `--schema`: a file that holds a JSON Schema or a spec, or a spec itself.
pub fn read(argument: &str) -> Result<Schema, Failure> {
    let path = Path::new(argument);
    // What is there and is no file is refused when it is read, and is no spec.
    let is_there = path.exists();
    // A name alone would be a spec of one text field. It is rarely meant, and nearly always a name misspelt.
    if !is_there && !argument.contains([':', ',', ';', '=', '{']) && path.extension().is_some() {
        return Err(Failure::Usage(format!("--schema: there is no file {argument}")));
    }
    let (text, from) = if is_there {
        let text =
            read_named_text(path).map_err(|e| Failure::Usage(format!("--schema: {argument} cannot be read: {e}")))?;
        (text, argument)
    } else {
        (argument.to_owned(), "--schema")
    };
    parse(&text).map_err(|e| {
        let hint = if is_there || text.contains(':') { "" } else { " (and there is no file of this name)" };
        Failure::Usage(format!("{from}: {e}{hint}"))
    })
}

fn parse(text: &str) -> Result<Schema, Invalid> {
    if text.trim_start().starts_with('{') {
        let document = serde_json::from_str(text).map_err(|e| Invalid::new(format!("not JSON: {e}")))?;
        schema_json::from_json(&document)
    } else {
        schema_spec::parse(text.trim())
    }
}

/// Returns the schema for people: a line per field, with its role.
pub fn describe(schema: &Schema) -> String {
    let mut table = Table::new(["  field", "type", "part"]);
    let made = match schema.id {
        IdRole::Given => "id, given",
        IdRole::Made => "id, made by the server",
    };
    // A field may have the name of the id, as in KML.
    table.push(vec![format!("  {}", schema.id_column()), "string".to_owned(), made.to_owned()]);
    if let Some(kind) = schema.geometry {
        table.push(vec![format!("  {}", schema.geometry_name), kind.word().to_owned(), "where".to_owned()]);
    }
    for (i, field) in schema.fields.iter().enumerate() {
        let mut parts = Vec::new();
        match schema.time {
            TimeRole::Instant(t) if t == i => parts.push("when"),
            TimeRole::Interval { start, .. } if start == i => parts.push("when, start"),
            TimeRole::Interval { end, .. } if end == i => parts.push("when, end"),
            _ if field.required => parts.push("required"),
            _ => {}
        }
        if schema.object == Some(i) {
            parts.push("object");
        }
        table.push(vec![format!("  {}", field.name), field.kind.word().to_owned(), parts.join(", ")]);
    }
    let mut out = Vec::new();
    // Writing to memory cannot fail.
    let _ = table.print(&mut out);
    let mode = if schema.mode == Mode::Latest { "  mode latest: readers see each object's last event\n" } else { "" };
    let unit = if schema.time_unit_us == meridian_model::schema::TIME_UNIT_DEFAULT_US {
        String::new()
    } else {
        format!("  time unit of the grid: {}\n", grid_unit(schema.time_unit_us))
    };
    format!("{}{mode}{unit}", String::from_utf8_lossy(&out))
}

/// A time unit in days where it is a whole number of them.
fn grid_unit(micros: i64) -> String {
    const DAY_US: i64 = 86_400_000_000;
    match (micros / DAY_US, micros % DAY_US) {
        (1, 0) => "1 day".to_owned(),
        (days, 0) if days > 1 => format!("{} days", count_text(days.unsigned_abs())),
        _ => schema_json::duration_text(micros),
    }
}
