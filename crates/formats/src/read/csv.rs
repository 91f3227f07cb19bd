//! Comma- and tab-separated values with a header line.

use super::{Records, Step};
use crate::error::Fault;
use crate::options::ReadOptions;
use crate::roles::{Role, Roles};
use crate::rows::Rows;
use crate::shape::Shape;
use crate::survey::{EventNotes, Survey, coord};
use crate::values::{BLANKS, blame, decimal, set_text};
use crate::wkt;
use meridian_model::error::shorten;
use meridian_model::{BatchBuilder, FieldType, Invalid, Schema};
use std::io::Read;
use std::sync::Arc;

/// Events of a table, one per row.
pub(crate) struct Table {
    /// Rows are opened at the first event, so that creating a reader does not wait for bytes.
    source: Option<Box<dyn Read + Send>>,
    rows: Option<Rows>,
    names: Vec<String>,
    columns: Vec<Role>,
    has_unnamed: bool,
    roles: Roles,
    schema: Arc<Schema>,
    survey: Survey,
}

impl Table {
    pub(crate) fn new(source: Box<dyn Read + Send>, schema: Arc<Schema>, options: &ReadOptions) -> Table {
        Table {
            source: Some(source),
            rows: None,
            names: Vec::new(),
            columns: Vec::new(),
            has_unnamed: false,
            roles: Roles::new(schema.clone(), options),
            schema,
            survey: Survey::new(options),
        }
    }

    fn set(&mut self, rows: &Rows, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        if rows.len() != self.columns.len() {
            let what = if rows.len() < self.columns.len() { "; was the row cut off?" } else { "" };
            return Err(Invalid::new(format!(
                "a row of {} fields where the header has {}{what}",
                rows.len(),
                self.columns.len()
            )));
        }
        if self.has_unnamed {
            rows.check_unnamed(&self.names, self.roles.options())?;
        }
        let options = self.roles.options();
        let mut position = Position::default();
        for (i, role) in self.columns.iter().enumerate() {
            let text = rows.text(i);
            if is_null(text, rows.quoted(i), *role, &self.schema, options) {
                continue;
            }
            match *role {
                Role::Field(field) => set_text(builder, field, text, options)?,
                Role::Lon => position.lon = Some(degrees(text, &self.names[i], options)?),
                Role::Lat => position.lat = Some(degrees(text, &self.names[i], options)?),
                Role::Geometry => {
                    let shape = wkt::read_text_or_hex(text.trim(), &mut self.survey);
                    if let Some(shape) = shape.map_err(|e| blame(e, &self.names[i]))? {
                        let named = |e: Invalid| Invalid { field: Some(self.names[i].clone()), ..e };
                        shape.set(builder, &mut self.survey).map_err(named)?;
                    }
                }
                Role::Id => self.survey.id(text, builder)?,
                Role::Nothing => {}
            }
        }
        position.set(builder)
    }
}

/// Longitude and latitude of one event, which arrive separately.
#[derive(Debug, Default)]
pub(crate) struct Position {
    pub(crate) lon: Option<f64>,
    pub(crate) lat: Option<f64>,
}

impl Position {
    /// Sets the position of the current event, if it has one.
    pub(crate) fn set(&self, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        match (self.lon, self.lat) {
            (Some(x), Some(y)) => Shape::Point(coord(x, y)).set(builder, &mut Survey::default()),
            (None, None) => Ok(()),
            _ => Err(Invalid::field(
                &builder.schema().geometry_name,
                "a longitude and a latitude belong together: one is missing",
            )),
        }
    }
}

/// Parses a coordinate in degrees.
pub(crate) fn degrees(text: &str, column: &str, options: &ReadOptions) -> Result<f64, Invalid> {
    decimal(text.trim(), options)
        .ok_or_else(|| Invalid::field(column, format!("{:?} where a number of degrees was expected", shorten(text))))
}

/// Returns whether a cell has no value. Spaces are a value for texts and ids only, and quotes distinguish an empty
/// text from an absent one.
fn is_null(text: &str, quoted: bool, role: Role, schema: &Schema, options: &ReadOptions) -> bool {
    match role {
        // In quotes, an empty text or a word such as NULL is a value: quoting distinguishes the two.
        Role::Field(f) if schema.fields[f].kind == FieldType::Text => {
            !quoted && (text.is_empty() || options.nulls.iter().any(|null| null == text))
        }
        Role::Id => text.is_empty() || !quoted && options.nulls.iter().any(|null| null == text),
        _ => is_null_number(text, quoted, options),
    }
}

/// The same for cells of every other kind. Inference uses this too, so that it guesses only kinds that will be read as
/// such.
pub(crate) fn is_null_number(text: &str, quoted: bool, options: &ReadOptions) -> bool {
    let bare = text.trim_matches(BLANKS);
    bare.is_empty() || !quoted && options.nulls.iter().any(|null| null == text || null == bare)
}

impl Records for Table {
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault> {
        if let Some(source) = self.source.take() {
            let (rows, names) = Rows::with_header(source, self.roles.options())?;
            let named: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
            let roles = self.roles.of_columns(&named).map_err(|e| Fault::stop(e.at_line(1)))?;
            let mut roles = roles.into_iter();
            let role = |name: &String| if name.is_empty() { None } else { roles.next() };
            self.columns = names.iter().map(role).map(|role| role.unwrap_or(Role::Nothing)).collect();
            self.has_unnamed = named.len() < names.len();
            self.names = names;
            self.rows = Some(rows);
        }
        // Taken out for the call, since `set` borrows both the row's text and the rest of `self`.
        let Some(mut rows) = self.rows.take() else { return Ok(Step::End) };
        let more = rows.next();
        let step = match more {
            Ok(true) => self.set(&rows, builder).map(|()| Step::Event).map_err(Fault::from),
            Ok(false) => Ok(Step::End),
            Err(fault) => Err(fault),
        };
        self.rows = Some(rows);
        step
    }

    fn line(&self) -> u64 {
        self.rows.as_ref().map_or(0, Rows::line)
    }

    fn noted(&mut self) -> EventNotes {
        self.survey.take()
    }

    /// Returns the row as an object of its texts by column.
    fn raw(&self) -> Option<String> {
        let rows = self.rows.as_ref()?;
        let mut row = serde_json::Map::new();
        for (i, name) in self.names.iter().enumerate().take(rows.len()) {
            row.insert(name.clone(), rows.text(i).into());
        }
        // Fields without a column keep their place.
        row.extend((self.names.len()..rows.len()).map(|i| (format!("@{}", i + 1), rows.text(i).into())));
        Some(serde_json::Value::Object(row).to_string())
    }
}
