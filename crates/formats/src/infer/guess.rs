//! Infers a schema from the values of a sample.

use super::column::{Column, Ids};
use super::{Inference, kinds, notes};
use crate::error::Fault;
use crate::instant;
use crate::options::{Epoch, OnError, ReadOptions, Unknown};
use crate::roles::{FEATURE_ID, GEOMETRY, ID, INTERVALS, LAT, LON, PAIRS, TIME, left_out, rank};
use meridian_model::schema::NAME_BYTES_MAX;
use meridian_model::{Field, FieldType, GeometryType, IdRole, Invalid, Schema, TimeRole, time};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Everything observed in a sample.
#[derive(Debug, Default)]
pub(crate) struct Guess {
    pub(crate) columns: Vec<Column>,
    index: HashMap<String, usize>,
    pub(crate) events: u64,
    /// Union of the geometry of GeoJSON features.
    shape: Option<GeometryType>,
    /// Ids of GeoJSON features.
    ids: Ids,
    hasher: RandomState,
    /// Whether geometry and ids are separate from the properties, as in GeoJSON.
    pub(crate) features: bool,
    /// The column that the file itself names as its geometry.
    declared: Option<String>,
    /// Columns that are left out, as their types are not kept.
    pub(crate) unkept: Vec<String>,
    /// Assumptions of the reader.
    pub(crate) notes: Vec<String>,
    /// The first event that was left out as invalid.
    left_out: Option<Invalid>,
}

impl Guess {
    /// Creates a guess for GeoJSON features, which name their geometry and id.
    pub(crate) fn of_features() -> Guess {
        Guess { features: true, ..Guess::default() }
    }

    /// Creates a guess for a file that may name the column of its geometry.
    pub(crate) fn of_declared(geometry: Option<String>) -> Guess {
        Guess { declared: geometry, ..Guess::default() }
    }

    /// Returns the position of a column, adding it if new; `guess` is tried first.
    pub(crate) fn column(&mut self, name: &str, guess: usize, options: &ReadOptions) -> usize {
        match self.columns.get(guess) {
            Some(column) if column.name == name => return guess,
            _ => {}
        }
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        let may_be_id = match &options.id {
            Some(id) => id == name,
            None => rank(name, ID).is_some(),
        };
        self.columns.push(Column::new(name, may_be_id));
        self.index.insert(name.to_owned(), self.columns.len() - 1);
        self.columns.len() - 1
    }

    /// Skips an event that cannot be read, if such events are left out.
    pub(crate) fn leave_out(&mut self, fault: Fault, line: u64, options: &ReadOptions) -> Result<(), Fault> {
        match fault {
            Fault::Event(mistake) => {
                let line = mistake.line.unwrap_or(line);
                let mistake = if line > 0 { mistake.at_line(line) } else { mistake };
                if options.on_error != OnError::Skip {
                    return Err(Fault::Event(mistake));
                }
                self.left_out.get_or_insert(mistake);
                Ok(())
            }
            stop => Err(stop),
        }
    }

    /// Records a value of a column.
    pub(crate) fn saw(&mut self, column: usize, kind: u8) {
        let column = &mut self.columns[column];
        column.kinds |= kind;
        column.values += 1;
    }

    /// Records a number in a column.
    pub(crate) fn saw_number(&mut self, column: usize, kind: u8, value: f64) {
        self.saw(column, kind);
        self.columns[column].saw_number(value);
    }

    /// Records a text in a column, which may be a time.
    pub(crate) fn saw_text(&mut self, column: usize, text: &str, options: &ReadOptions) {
        match time_kind(text, options) {
            Some(Moment { kind, micros, is_date }) => {
                self.columns[column].dates += u64::from(is_date);
                self.saw_number(column, kind, micros as f64);
            }
            None => self.saw_plain(column, text),
        }
    }

    /// Records a text in a column that is of no other kind.
    pub(crate) fn saw_plain(&mut self, column: usize, text: &str) {
        self.columns[column].saw_plain(text);
    }

    /// Records a day in a column of days.
    pub(crate) fn saw_day(&mut self, column: usize, micros: f64) {
        self.columns[column].dates += 1;
        self.saw_number(column, kinds::LOCAL_TIME, micros);
    }

    /// Records a geometry in a column.
    pub(crate) fn saw_shape(&mut self, column: usize, kind: Option<GeometryType>) {
        self.saw(column, kinds::SHAPE);
        let column = &mut self.columns[column];
        column.shape = Some(join(column.shape, kind));
    }

    /// Records the text of a value that may be an id.
    pub(crate) fn saw_id(&mut self, column: usize, text: &str) {
        if let Some(ids) = &mut self.columns[column].ids {
            ids.hashes.insert(self.hasher.hash_one(text));
            ids.count += 1;
        }
    }

    /// Records the geometry of a feature.
    pub(crate) fn saw_feature_shape(&mut self, kind: Option<GeometryType>) {
        self.shape = Some(join(self.shape, kind));
    }

    /// Records the id of a feature.
    pub(crate) fn saw_feature_id(&mut self, text: &str) {
        self.ids.hashes.insert(self.hasher.hash_one(text));
        self.ids.count += 1;
    }

    fn are_ids(&self, ids: &Ids) -> bool {
        ids.count == self.events && ids.hashes.len() as u64 == self.events
    }

    /// Returns the schema that fits the sample, which is `cut` if more of the input may follow.
    pub(crate) fn schema(mut self, options: &ReadOptions, cut: bool) -> Result<Inference, Invalid> {
        if let (0, Some(first)) = (self.events, self.left_out.take()) {
            return Err(Invalid { detail: format!("{} (and no other event can be read)", first.detail), ..first });
        }
        if self.events == 0 {
            return Err(Invalid::new("the input holds no events: there is nothing to make a schema from"));
        }
        // Checked before anything is inferred: a misspelt option would otherwise be answered by a guess.
        for named in [&options.lon, &options.lat, &options.geometry, &options.time, &options.id].into_iter().flatten() {
            let known = self.index.contains_key(named) || (self.features && *named == "id");
            if !known {
                let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
                let detail = format!("no such column; the columns are {}", crate::roles::list(&names));
                return Err(Invalid::field(named, detail));
            }
        }
        let mut schema = Schema { geometry: self.shape, ..Schema::default() };
        let ids_of_features = std::mem::take(&mut self.ids);
        let wants_member = options.id.as_deref().is_none_or(|id| id == "id" && ids_of_features.count > 0);
        if !self.features {
            self.take_geometry(&mut schema, options);
            self.take_id(&mut schema, options);
        } else if !wants_member {
            self.take_id(&mut schema, options);
        } else if self.are_ids(&ids_of_features) {
            schema.id = IdRole::Given;
        }
        self.leave_out_shapes(options)?;
        // Computed after geometry and id have left the list: they are no longer columns, and the positions have
        // changed.
        let time = self.primary_instant(options);
        for (i, column) in self.columns.iter().enumerate() {
            let kind = column.kind(time == Some(i), options);
            if column.name.len() > NAME_BYTES_MAX {
                return Err(Invalid::field(
                    meridian_model::error::shorten(&column.name),
                    format!("a name of {} bytes is too long: at most {NAME_BYTES_MAX}", column.name.len()),
                ));
            }
            schema.fields.push(Field { name: column.name.clone(), kind, required: time == Some(i), title: None });
        }
        // Ids that are missing somewhere, occur twice, or give way to a property become a text field.
        let is_kept = schema.id == IdRole::Given && wants_member;
        if !is_kept && ids_of_features.count > 0 && schema.field_index(FEATURE_ID).is_none() {
            let name = FEATURE_ID.to_owned();
            schema.fields.push(Field { name, kind: FieldType::Text, required: false, title: None });
        }
        schema.time = match time {
            Some(field) => TimeRole::Instant(field),
            None => interval(&schema.fields),
        };
        if let Some(column) = time.map(|at| &self.columns[at]) {
            let unit = options.epoch.filter(|_| column.but_few_texts() == kinds::INT).map_or(1, Epoch::micros);
            let whole = !cut && self.events < options.sample_rows as u64;
            schema.time_unit_us = column.trend.time_unit(unit, whole);
        }
        // The geometry needs a name that no field has.
        let names = [schema.geometry_name.clone(), "geom".into(), "shape".into(), "place".into(), "@geometry".into()];
        if let Some(name) = names.into_iter().find(|name| schema.field_index(name).is_none()) {
            schema.geometry_name = name;
        }
        schema.validate()?;
        let mut notes: Vec<String> = left_out(&self.unkept).into_iter().collect();
        notes.append(&mut self.notes);
        let has_own_shape = self.declared.is_some();
        notes.extend(notes::of(&self.columns, &schema, self.events, self.features, has_own_shape, options));
        Ok(Inference { schema, notes })
    }

    fn remove(&mut self, column: usize) -> Column {
        self.columns.remove(column)
    }

    /// Returns the position of the column named by an option, else of the likeliest customary name that passes.
    fn find(&self, option: &Option<String>, custom: &[&str], passes: impl Fn(&Column) -> bool) -> Option<usize> {
        if let Some(name) = option {
            return self.columns.iter().position(|c| c.name == *name);
        }
        let candidates = self.columns.iter().enumerate().filter(|(_, c)| passes(c));
        let ranked = candidates.filter_map(|(i, c)| Some((rank(&c.name, custom)?, i)));
        ranked.min().map(|(_, i)| i)
    }

    fn take_geometry(&mut self, schema: &mut Schema, options: &ReadOptions) {
        let whole = |c: &Column| c.kinds;
        if !self.take_place(schema, options, whole) && options.on_error == OnError::Skip {
            self.take_place(schema, options, |c| c.kinds_left(options));
        }
    }

    /// Removes the geometry from the columns that have it by these kinds.
    fn take_place(&mut self, schema: &mut Schema, options: &ReadOptions, kinds: impl Fn(&Column) -> u8) -> bool {
        let shape = |c: &Column| kinds(c) == kinds::SHAPE;
        // Bytes that are no geometry have no readable value: they are left out if unknown columns are.
        let is_readable = |c: &Column| c.shape.is_some() || options.unknown == Unknown::Refuse;
        let of_points = options.lon.is_some() || options.lat.is_some();
        // What the file says of itself goes before any name.
        let named = options.geometry.clone().or_else(|| self.declared.clone());
        let shapes = if of_points { None } else { self.find(&named, GEOMETRY, shape) };
        if let Some(at) = shapes {
            self.take_shapes(at, schema);
        } else if let Some((lon, lat)) = self.find_point(options, &kinds) {
            self.remove(lon.max(lat));
            self.remove(lon.min(lat));
            schema.geometry = Some(GeometryType::Point);
        } else if let Some(at) = self.columns.iter().position(|c| shape(c) && is_readable(c)) {
            self.take_shapes(at, schema);
        }
        schema.geometry.is_some()
    }

    /// Leaves out the columns that could only be the geometry, and are not. One that the file declares gives way to the
    /// place that an option names; others are left out if unknown columns are.
    fn leave_out_shapes(&mut self, options: &ReadOptions) -> Result<(), Invalid> {
        let columns = std::mem::take(&mut self.columns);
        let (shapes, others): (Vec<_>, Vec<_>) = columns.into_iter().partition(|column| column.only_shape);
        self.columns = others;
        for Column { name, .. } in shapes {
            if options.unknown == Unknown::Refuse && self.declared.as_ref() != Some(&name) {
                let detail = "bytes or points beside the place of events, which are not kept: --ignore-unknown leaves \
                              them out";
                return Err(Invalid::field(meridian_model::error::shorten(&name), detail));
            }
            self.unkept.push(name);
        }
        Ok(())
    }

    fn take_shapes(&mut self, at: usize, schema: &mut Schema) {
        let column = self.remove(at);
        schema.geometry = Some(column.shape.unwrap_or(GeometryType::Any));
        schema.geometry_name = column.name;
    }

    /// Returns the columns of longitude and latitude: named by options, else by names that belong together, else by
    /// any two customary names.
    fn find_point(&self, options: &ReadOptions, kinds: impl Fn(&Column) -> u8) -> Option<(usize, usize)> {
        let numeric = |c: &Column| c.values > 0 && kinds(c) & !(kinds::INT | kinds::FLOAT) == 0;
        // Columns named x and y are usually projected coordinates, or no position at all.
        let events = self.events;
        let sure = |c: &Column, edge: f64| c.values == events && c.trend.magnitude() <= edge;
        let passes = |c: &Column, edge: f64| numeric(c) && (c.name.len() > 1 || sure(c, edge));
        let (east, north) = (|c: &Column| passes(c, 180.0), |c: &Column| passes(c, 90.0));
        if options.lon.is_none() && options.lat.is_none() {
            let pair =
                |(lon, lat): &(&str, &str)| Some((self.find(&None, &[lon], east)?, self.find(&None, &[lat], north)?));
            if let Some(pair) = PAIRS.iter().find_map(pair) {
                return Some(pair);
            }
        }
        self.find(&options.lon, LON, east).zip(self.find(&options.lat, LAT, north))
    }

    fn take_id(&mut self, schema: &mut Schema, options: &ReadOptions) {
        let found = self.columns.iter().position(|c| c.ids.as_ref().is_some_and(|ids| self.are_ids(ids)));
        let found =
            found.or_else(|| options.id.as_ref().and_then(|id| self.columns.iter().position(|c| c.name == *id)));
        if let Some(at) = found {
            schema.id_name = self.remove(at).name;
            schema.id = IdRole::Given;
        }
    }

    fn primary_instant(&self, options: &ReadOptions) -> Option<usize> {
        let could_be = |c: &Column, kinds: u8| {
            let times = kinds::TIME | kinds::LOCAL_TIME;
            let epochs = if options.epoch.is_some() { kinds::INT } else { 0 };
            c.values == self.events && kinds & !(times | epochs) == 0
        };
        let only = || {
            // Without a customary name: the only column that is certainly a time.
            let mut times = self.columns.iter().enumerate().filter(|(_, c)| c.kinds == kinds::TIME);
            match (times.next(), times.next()) {
                (Some((at, column)), None) if column.values == self.events => Some(at),
                _ => None,
            }
        };
        // A column without a mistake takes precedence over one with a few.
        self.find(&options.time, TIME, |c| could_be(c, c.kinds))
            .or_else(only)
            .or_else(|| self.find(&None, TIME, |c| could_be(c, c.kinds_left(options))))
    }
}

fn join(known: Option<GeometryType>, seen: Option<GeometryType>) -> GeometryType {
    match (known, seen) {
        (None, Some(seen)) => seen,
        (Some(known), Some(seen)) => known.union(seen),
        (_, None) => GeometryType::Any,
    }
}

fn interval(fields: &[Field]) -> TimeRole {
    let find = |name: &str| fields.iter().position(|f| f.kind == FieldType::Time && f.name.eq_ignore_ascii_case(name));
    INTERVALS
        .iter()
        .find_map(|(start, end)| Some(TimeRole::Interval { start: find(start)?, end: find(end)? }))
        .unwrap_or(TimeRole::None)
}

/// A text that is a time.
pub(crate) struct Moment {
    pub(crate) kind: u8,
    /// Microseconds since 1970, in UTC if it has no zone.
    pub(crate) micros: i64,
    /// Whether it is a date alone.
    is_date: bool,
}

/// Parses a text as a time, in the form that the options name or in RFC 3339.
pub(crate) fn time_kind(text: &str, options: &ReadOptions) -> Option<Moment> {
    let iso = options.date_format.as_ref().and_then(|format| format.iso(text));
    let text = iso.as_deref().unwrap_or(text);
    let bytes = text.as_bytes();
    // A cheap check before the parsers: a date begins with a year.
    if bytes.len() < 10 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return None;
    }
    let is_date = text.len() == time::DATE_BYTES;
    match instant::parse(text, None) {
        Ok(micros) => Some(Moment { kind: kinds::TIME, micros, is_date }),
        Err(_) => {
            let micros = instant::parse(text, Some(&jiff::tz::TimeZone::UTC)).ok()?;
            Some(Moment { kind: kinds::LOCAL_TIME, micros, is_date })
        }
    }
}
