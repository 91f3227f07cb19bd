//! GDELT event exports.

use super::csv::{Position, degrees};
use super::{Records, Step};
use crate::error::Fault;
use crate::gdelt::{self, Column};
use crate::options::ReadOptions;
use crate::rows::Rows;
use crate::survey::{EventNotes, Survey};
use crate::values::set_text;
use meridian_model::builder::Value;
use meridian_model::error::shorten;
use meridian_model::{BatchBuilder, Invalid, Schema};
use std::io::Read;
use std::sync::Arc;

/// Events of an export, one per row. Columns that the schema leaves out are left out.
pub(crate) struct Export {
    rows: Rows,
    options: ReadOptions,
    schema: Arc<Schema>,
    /// Columns of the rows seen so far and the field of each; empty before the first row.
    columns: Vec<(Column, Option<usize>)>,
    survey: Survey,
}

impl Export {
    pub(crate) fn new(source: Box<dyn Read + Send>, schema: Arc<Schema>, options: &ReadOptions) -> Export {
        let rows = Rows::new(source, b'\t', false, options);
        Export { rows, options: options.clone(), schema, columns: Vec::new(), survey: Survey::new(options) }
    }

    fn set(&mut self, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        // Determined from the first row, since an export has no header.
        if self.columns.is_empty() {
            let columns = gdelt::columns(self.rows.len()).ok_or_else(|| self.wrong_width("57, 58 or 61"))?;
            let field = |column: &Column| match column {
                Column::Time(name) | Column::Value(name, _) => self.schema.field_index(name),
                Column::Id | Column::Lat | Column::Lon => None,
            };
            self.columns = columns.into_iter().map(|c| (c.clone(), field(&c))).collect();
        }
        if self.rows.len() != self.columns.len() {
            return Err(self.wrong_width(&self.columns.len().to_string()));
        }
        let mut position = Position::default();
        for (i, (column, field)) in self.columns.iter().enumerate() {
            let text = self.rows.text(i);
            if text.is_empty() {
                continue;
            }
            match (column, field) {
                (Column::Id, _) => self.survey.id(text, builder)?,
                (Column::Lat, _) => position.lat = Some(degrees(text, "action_geo_lat", &self.options)?),
                (Column::Lon, _) => position.lon = Some(degrees(text, "action_geo_lon", &self.options)?),
                (Column::Time(name), Some(field)) => {
                    let time = gdelt::time(text).ok_or_else(|| {
                        let detail = format!("{:?} where a day as yyyyMMdd was expected", shorten(text));
                        Invalid::field(name, detail)
                    })?;
                    builder.set(*field, Value::Time(time))?;
                }
                (Column::Value(..), Some(field)) => set_text(builder, *field, text, &self.options)?,
                (Column::Time(_) | Column::Value(..), None) => {}
            }
        }
        if self.schema.geometry.is_some() { position.set(builder) } else { Ok(()) }
    }

    fn wrong_width(&self, expected: &str) -> Invalid {
        Invalid::new(format!("a row of {} fields: expected {expected} of a GDELT event export", self.rows.len()))
    }
}

impl Records for Export {
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault> {
        if !self.rows.next()? {
            return Ok(Step::End);
        }
        self.set(builder)?;
        Ok(Step::Event)
    }

    fn line(&self) -> u64 {
        self.rows.line()
    }

    fn noted(&mut self) -> EventNotes {
        self.survey.take()
    }

    /// Returns the row as a list of its texts.
    fn raw(&self) -> Option<String> {
        let row: Vec<&str> = (0..self.rows.len()).map(|i| self.rows.text(i)).collect();
        serde_json::to_string(&row).ok()
    }
}
