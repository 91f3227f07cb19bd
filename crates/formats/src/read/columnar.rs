//! Events of record batches: the part common to Arrow and Parquet.

use super::csv::Position;
use super::{Records, Step, whole};
use crate::columns::Column;
use crate::error::{Fault, ReadError};
use crate::geo_metadata::GeoColumns;
use crate::options::{BatchLimits, ReadOptions};
use crate::report::Unread;
use crate::roles::{Role, Roles};
use crate::survey::{EventNotes, Survey};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use meridian_model::{Batch, BatchBuilder, Invalid, Layout, Schema};
use std::sync::Arc;

/// A source of record batches.
pub(crate) trait Batches: Send {
    /// Returns the schema of the batches and the `geo` metadata, if any. Called once, first.
    fn open(&mut self) -> Result<(SchemaRef, Option<String>), Fault>;

    /// Sets the wanted columns, by position, in order; later batches may hold only those.
    fn want(&mut self, columns: &[usize]) -> Result<ColumnScope, Fault>;

    /// Returns the next batch.
    fn next(&mut self) -> Result<Option<RecordBatch>, Fault>;

    /// Returns the assumptions about the source, once it is open: sentences for the user of a load.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns what was not taken so far.
    fn unread(&self) -> Unread {
        Unread::default()
    }
}

impl<B: Batches + ?Sized> Batches for Box<B> {
    fn open(&mut self) -> Result<(SchemaRef, Option<String>), Fault> {
        (**self).open()
    }

    fn want(&mut self, columns: &[usize]) -> Result<ColumnScope, Fault> {
        (**self).want(columns)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, Fault> {
        (**self).next()
    }

    fn notes(&self) -> Vec<String> {
        (**self).notes()
    }

    fn unread(&self) -> Unread {
        (**self).unread()
    }
}

/// The content of batches after [`Batches::want`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnScope {
    /// All columns, at their positions.
    All,
    /// The wanted columns only.
    Projected,
}

/// Events of batches, one per row.
pub(crate) struct ColumnEvents<B> {
    batches: B,
    roles: Roles,
    layout: Arc<Layout>,
    survey: Survey,
    opened: bool,
    wanted: Vec<(usize, Role, String)>,
    projected: ColumnScope,
    columns: Vec<Column>,
    row: usize,
    rows: usize,
    ordinal: u64,
}

impl<B: Batches> ColumnEvents<B> {
    pub(crate) fn new(batches: B, schema: Arc<Schema>, options: &ReadOptions) -> ColumnEvents<B> {
        ColumnEvents {
            batches,
            layout: Arc::new(Layout::of(&schema)),
            survey: Survey::new(options),
            roles: Roles::new(schema, options),
            opened: false,
            wanted: Vec::new(),
            projected: ColumnScope::All,
            columns: Vec::new(),
            row: 0,
            rows: 0,
            ordinal: 0,
        }
    }

    fn open(&mut self) -> Result<(), Fault> {
        if std::mem::replace(&mut self.opened, true) {
            return Ok(());
        }
        let (arrow, geo) = self.batches.open()?;
        let mut options = self.roles.options().clone();
        let geo = GeoColumns::of(&arrow, geo.as_deref(), &options).map_err(Fault::stop)?;
        // A field of the schema takes precedence over the file's metadata about its columns.
        let declared = geo.geometry.filter(|name| self.roles.schema().field_index(name).is_none());
        // Another place that an option names takes precedence too.
        let (taken, set_aside) = match declared {
            Some(name) if options.takes(&name) => (Some(name), None),
            other => (None, other),
        };
        if self.roles.schema().geometry.is_some() && taken.is_some() {
            options.geometry = taken;
            self.roles = Roles::new(self.roles.schema().clone(), &options);
        }
        let kept: Vec<(usize, String)> = arrow
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, f)| !geo.covering.contains(f.name()) && set_aside.as_ref() != Some(f.name()))
            .map(|(i, f)| (i, f.name().clone()))
            .collect();
        let names: Vec<String> = kept.iter().map(|(_, name)| name.clone()).collect();
        let roles = self.roles.of_columns(&names).map_err(Fault::stop)?;
        self.wanted = kept
            .into_iter()
            .zip(roles)
            .filter(|(_, role)| *role != Role::Nothing)
            .map(|((i, name), role)| (i, role, name))
            .collect();
        let positions: Vec<usize> = self.wanted.iter().map(|(i, ..)| *i).collect();
        if positions.is_empty() {
            return Err(Fault::stop(Invalid::new("no column of the file is known to this collection")));
        }
        self.projected = self.batches.want(&positions)?;
        Ok(())
    }

    /// Takes the next batch that has rows; returns false at the end.
    fn fetch(&mut self) -> Result<bool, Fault> {
        while self.row == self.rows {
            // A batch may hold any number of events, and its columns are taken without a check of each event.
            self.goes_on()?;
            let Some(batch) = self.batches.next().map_err(|fault| self.counted(fault))? else { return Ok(false) };
            self.columns.clear();
            for (at, (position, _, name)) in self.wanted.iter().enumerate() {
                self.goes_on()?;
                let position = if self.projected == ColumnScope::All { *position } else { at };
                let array = batch.columns().get(position);
                let array = array.ok_or_else(|| Fault::stop(Invalid::field(name, "the column is missing")))?;
                let at_row = |mistake: Invalid| Fault::stop(mistake.at_line(self.ordinal + 1));
                self.columns.push(Column::of(array, name).map_err(at_row)?);
            }
            (self.row, self.rows) = (0, batch.num_rows());
        }
        Ok(true)
    }

    /// Returns a fault of one record, which counts as an event and may be left out.
    fn counted(&mut self, fault: Fault) -> Fault {
        match fault {
            Fault::Event(mistake) => {
                self.ordinal += 1;
                Fault::Event(mistake)
            }
            stop => stop,
        }
    }

    fn goes_on(&self) -> Result<(), Fault> {
        match &self.roles.options().watch {
            Some(watch) if !watch.goes_on() => Err(Fault::Stop(ReadError::Stopped)),
            _ => Ok(()),
        }
    }

    fn set(&mut self, row: usize, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let mut position = Position::default();
        for ((_, role, name), column) in self.wanted.iter().zip(&self.columns) {
            match *role {
                Role::Field(field) => column.set_field(row, field, builder, self.roles.options())?,
                Role::Lon => position.lon = column.degrees(row, name)?,
                Role::Lat => position.lat = column.degrees(row, name)?,
                Role::Geometry => {
                    if let Some(shape) = column.shape(row, name, &mut self.survey)? {
                        let named = |e: Invalid| Invalid { field: Some(name.clone()), ..e };
                        shape.set(builder, &mut self.survey).map_err(named)?;
                    }
                }
                Role::Id => {
                    if let Some(id) = column.id(row, name)? {
                        self.survey.id(id, builder)?;
                    }
                }
                Role::Nothing => {}
            }
        }
        position.set(builder)
    }
}

impl<B: Batches> Records for ColumnEvents<B> {
    fn next(&mut self, builder: &mut BatchBuilder) -> Result<Step, Fault> {
        self.open()?;
        if !self.fetch()? {
            return Ok(Step::End);
        }
        let row = self.row;
        self.row += 1;
        self.ordinal += 1;
        self.set(row, builder)?;
        Ok(Step::Event)
    }

    fn whole(&mut self, room: &BatchLimits) -> Result<Option<Batch>, Fault> {
        self.open()?;
        // A batch begun event by event is also finished event by event.
        if self.row > 0 && self.row < self.rows || !self.fetch()? {
            return Ok(None);
        }
        let columns = self.wanted.iter().map(|(_, role, _)| *role).zip(&self.columns);
        let batch = whole::batch(self.roles.schema(), &self.layout, columns, self.rows, room);
        if batch.is_some() {
            self.row = self.rows;
            // Counted also for a whole batch, since errors name events by their number in the input.
            self.ordinal += self.rows as u64;
        }
        Ok(batch)
    }

    fn line(&self) -> u64 {
        self.ordinal
    }

    fn noted(&mut self) -> EventNotes {
        self.survey.take()
    }

    fn unread(&self) -> Unread {
        self.batches.unread()
    }
}

/// Converts a decoder error: a fault of the byte source, or of the bytes.
pub(crate) fn damaged(what: &str, error: &(dyn std::error::Error + 'static)) -> Fault {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(mistake) = inner.downcast_ref::<Invalid>() {
            return Fault::stop(mistake.clone());
        }
        // A failing disk is not a damaged file. The cause is searched for in the chain, as the libraries wrap it in
        // errors of their own.
        if let Some(io) = inner.downcast_ref::<std::io::Error>()
            && !matches!(io.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData)
        {
            return Fault::Stop(ReadError::Io(std::io::Error::new(io.kind(), io.to_string())));
        }
        cause = inner.source();
    }
    Fault::stop(Invalid::new(format!("the {what} data is damaged or cut off: {error}")))
}
