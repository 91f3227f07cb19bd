//! Roles of the columns or keys of a file, found by name.

use crate::options::{ReadOptions, Unknown};
use meridian_model::{Invalid, Schema, TimeRole};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Customary names of longitudes, the likeliest first.
pub(crate) const LON: &[&str] = &["lon", "lng", "long", "longitude", "x", "@lon"];
/// Customary names of latitudes, the likeliest first.
pub(crate) const LAT: &[&str] = &["lat", "latitude", "y", "@lat"];
/// Customary names of longitude and latitude that belong together, the likeliest first.
pub(crate) const PAIRS: &[(&str, &str)] =
    &[("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("longitude", "latitude"), ("@lon", "@lat"), ("x", "y")];
/// Customary names of shapes.
pub(crate) const GEOMETRY: &[&str] = &["geometry", "geom", "wkt", "the_geom", "shape", "geo", "wkb_geometry"];
/// Customary names of the primary instant, the likeliest first.
pub(crate) const TIME: &[&str] = &[
    "time",
    "timestamp",
    "datetime",
    "date_time",
    "dtg",
    "date",
    "event_time",
    "eventtime",
    "event_date",
    "observed_at",
    "occurred_at",
    "created_at",
    "basedatetime",
    "ts",
    "t",
    "when",
    "day",
];
/// Customary names of ids.
pub(crate) const ID: &[&str] = &["id", "fid", "@id"];
/// The text field that takes the ids of GeoJSON features if the collection makes its own.
pub(crate) const FEATURE_ID: &str = "feature_id";
/// Customary names of the ends of an interval.
pub(crate) const INTERVALS: &[(&str, &str)] = &[
    ("start", "end"),
    ("start_time", "end_time"),
    ("time_start", "time_end"),
    ("starttime", "endtime"),
    ("begin", "end"),
    ("begin_time", "end_time"),
    ("valid_from", "valid_to"),
    ("start_date", "end_date"),
];

/// Role of a column or key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The value of a field.
    Field(usize),
    /// Longitude in degrees.
    Lon,
    /// Latitude in degrees.
    Lat,
    /// A geometry, in the format's encoding.
    Geometry,
    /// The id.
    Id,
    /// No role: left out.
    Nothing,
}

/// Up to this many fields are searched linearly: building a map does not pay off for a single event.
const FEW_FIELDS: usize = 16;

/// Returns the position of a name in a list, ignoring case.
pub(crate) fn rank(name: &str, list: &[&str]) -> Option<usize> {
    list.iter().position(|n| n.eq_ignore_ascii_case(name))
}

/// Returns the names of the longitude and latitude columns of a table: the first that no other column has.
pub(crate) fn point_names(schema: &Schema) -> [String; 2] {
    let pairs = [["lon", "lat"], ["longitude", "latitude"], ["lng", "latitude"], ["x", "y"]];
    let free = pairs.into_iter().find(|pair| pair.iter().all(|name| schema.free_name(name) == *name));
    free.map_or_else(|| ["@lon", "@lat"].map(|name| schema.free_name(name)), |pair| pair.map(str::to_owned))
}

/// Names of one schema under one set of options.
pub(crate) struct Roles {
    schema: Arc<Schema>,
    options: ReadOptions,
    /// The names of ids, longitudes and latitudes in the tables that are written of this schema: fields may have the
    /// customary ones.
    id: String,
    point: [String; 2],
    /// The position of each field, if there are many.
    fields: HashMap<String, usize>,
}

impl Roles {
    pub(crate) fn new(schema: Arc<Schema>, options: &ReadOptions) -> Roles {
        let named = schema.fields.iter().enumerate().map(|(i, f)| (f.name.clone(), i));
        let fields = if schema.fields.len() > FEW_FIELDS { named.collect() } else { HashMap::new() };
        let (id, point) = (schema.id_column(), point_names(&schema));
        Roles { schema, options: options.clone(), id, point, fields }
    }

    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub(crate) fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// Returns the field with this name; `guess` is tried first.
    #[inline]
    pub(crate) fn field(&self, name: &str, guess: usize) -> Option<usize> {
        match self.schema.fields.get(guess) {
            // Keys mostly come in the order of the schema, so the guess saves a search by name.
            Some(field) if field.name == name => Some(guess),
            _ if self.fields.is_empty() => self.schema.field_index(name),
            _ => self.fields.get(name).copied(),
        }
    }

    /// Returns the role of a key whose neighbours are unknown.
    pub(crate) fn of(&self, name: &str, guess: usize) -> Result<Role, Invalid> {
        let named = |option: &Option<String>| option.as_deref() == Some(name);
        let options = &self.options;
        if self.schema.geometry.is_some() {
            if named(&options.lon) {
                return Ok(Role::Lon);
            }
            if named(&options.lat) {
                return Ok(Role::Lat);
            }
            if named(&options.geometry) {
                return Ok(Role::Geometry);
            }
        }
        if named(&options.id) {
            return Ok(Role::Id);
        }
        if named(&options.time)
            && let TimeRole::Instant(field) = self.schema.time
        {
            return Ok(Role::Field(field));
        }
        // A field of the schema takes precedence over customary names: a collection may have a field `x` that is no
        // longitude.
        if let Some(field) = self.field(name, guess) {
            return Ok(Role::Field(field));
        }
        if name == self.id {
            return Ok(Role::Id);
        }
        if self.schema.geometry.is_some() {
            // Where an option names the place, no customary name is another one.
            let by_points = options.lon.is_some() || options.lat.is_some();
            let by_shape = options.geometry.is_some() && !by_points;
            if !by_shape && (name == self.point[0] || rank(name, LON).is_some()) {
                return Ok(Role::Lon);
            }
            if !by_shape && (name == self.point[1] || rank(name, LAT).is_some()) {
                return Ok(Role::Lat);
            }
            if !by_points && (name == self.schema.geometry_name || rank(name, GEOMETRY).is_some()) {
                return Ok(Role::Geometry);
            }
        }
        if name == self.schema.id_name || rank(name, ID).is_some() {
            return Ok(Role::Id);
        }
        self.unknown(name).map(|()| Role::Nothing)
    }

    /// Returns the roles of all columns of a table; each role except a field's is given at most once.
    pub(crate) fn of_columns(&self, names: &[String]) -> Result<Vec<Role>, Invalid> {
        for option in
            [&self.options.lon, &self.options.lat, &self.options.geometry, &self.options.time, &self.options.id]
        {
            if let Some(name) = option
                && !names.contains(name)
            {
                return Err(Invalid::field(name, format!("no such column; the columns are {}", list(names))));
            }
        }
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(Invalid::field(twice, "two columns have this name"));
        }
        // Of several customary names for one role the likeliest wins, and the others are ordinary columns.
        let mut best: [Option<(usize, usize)>; 4] = [None; 4];
        let mut roles = Vec::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            let role = self.of(name, column).or_else(|mistake| {
                // A time under another customary name than the field's own.
                match self.schema.time {
                    TimeRole::Instant(field)
                        if rank(name, TIME).is_some()
                            && self.options.time.is_none()
                            && !names.contains(&self.schema.fields[field].name) =>
                    {
                        Ok(Role::Field(field))
                    }
                    _ => Err(mistake),
                }
            })?;
            let (slot, custom, option, own) = match role {
                Role::Lon => (0, LON, &self.options.lon, Some(&self.point[0])),
                Role::Lat => (1, LAT, &self.options.lat, Some(&self.point[1])),
                Role::Geometry => (2, GEOMETRY, &self.options.geometry, Some(&self.schema.geometry_name)),
                Role::Id => (3, ID, &self.options.id, Some(&self.id)),
                Role::Field(_) | Role::Nothing => {
                    roles.push(role);
                    continue;
                }
            };
            let place = if option.as_ref() == Some(name) {
                0
            } else if own == Some(name) {
                1
            } else {
                2 + rank(name, custom).unwrap_or(custom.len())
            };
            roles.push(role);
            match best[slot] {
                // The loser is an unknown column like any other, and refused or left out accordingly.
                Some((_, other)) if other <= place => {
                    self.unknown(name)?;
                    roles[column] = Role::Nothing;
                }
                Some((loser, _)) => {
                    self.unknown(&names[loser])?;
                    roles[loser] = Role::Nothing;
                    best[slot] = Some((column, place));
                }
                None => best[slot] = Some((column, place)),
            }
        }
        self.check_columns(names, &roles)?;
        Ok(roles)
    }

    fn check_columns(&self, names: &[String], roles: &[Role]) -> Result<(), Invalid> {
        for (i, role) in roles.iter().enumerate() {
            if let Role::Field(field) = role
                && roles[..i].contains(role)
            {
                return Err(Invalid::field(&names[i], format!("two columns hold {}", self.schema.fields[*field].name)));
            }
        }
        if roles.contains(&Role::Lon) != roles.contains(&Role::Lat) {
            let (have, lack) =
                if roles.contains(&Role::Lon) { ("longitude", "latitude") } else { ("latitude", "longitude") };
            return Err(Invalid::new(format!(
                "a column of {have} but none of {lack}; the columns are {}",
                list(names)
            )));
        }
        if roles.contains(&Role::Lon) && roles.contains(&Role::Geometry) {
            let shape = roles.iter().position(|r| *r == Role::Geometry).unwrap_or(0);
            return Err(Invalid::field(
                &names[shape],
                "a column of geometry beside longitude and latitude: name the one to use",
            ));
        }
        for (i, field) in self.schema.fields.iter().enumerate() {
            if field.required && !roles.contains(&Role::Field(i)) {
                return Err(Invalid::field(
                    &field.name,
                    format!("no column of this name, which this collection requires; the columns are {}", list(names)),
                ));
            }
        }
        if self.schema.id == meridian_model::IdRole::Given
            && !roles.contains(&Role::Id)
            && self.options.id_if_absent.is_none()
        {
            return Err(Invalid::field(
                &self.schema.id_name,
                format!("no column of ids, which this collection requires; the columns are {}", list(names)),
            ));
        }
        Ok(())
    }

    /// Returns the treatment of a name that the schema does not have.
    pub(crate) fn unknown(&self, name: &str) -> Result<(), Invalid> {
        match self.options.unknown {
            Unknown::Ignore => Ok(()),
            Unknown::Refuse => {
                let known: Vec<String> = self.schema.fields.iter().map(|f| f.name.clone()).collect();
                let detail = if known.is_empty() {
                    "no such field: this collection has none".to_owned()
                } else {
                    format!("no such field; the fields are {}", list(&known))
                };
                Err(Invalid::field(meridian_model::error::shorten(name), detail))
            }
        }
    }
}

/// Returns the note on columns that are left out because of their types; `None` without any.
pub(crate) fn left_out(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("columns that are not kept are left out: {}", list(names)))
}

/// Formats a list of names for messages, truncated if there are too many.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 40;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| meridian_model::error::shorten(n)).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}
