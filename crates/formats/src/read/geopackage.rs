//! GeoPackage: one layer of an SQLite database, read a page of rows at a time.

use super::spool::spool;
use super::table::{Cell, Kind, Row, Source};
use crate::error::{Fault, ReadError};
use crate::instant;
use crate::options::{ReadOptions, Unknown};
use crate::reference::{ONE_LAYER, check_code, check_wkt, convert, ogr2ogr};
use crate::roles::left_out;
use crate::values::blame;
use jiff::tz::TimeZone;
use meridian_model::civil::DAY_US;
use meridian_model::error::shorten;
use meridian_model::{Invalid, time};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::collections::VecDeque;
use std::io::Read;
use std::path::PathBuf;

/// Rows requested at a time, and the bytes after which such a page ends.
const PAGE_ROWS: i64 = 2048;
const PAGE_BYTES: usize = 1 << 20;
/// The reference system of longitude and latitude.
const WGS_84: i64 = 4326;
/// Steps of the database between two polls of the watch.
const STEPS_WATCHED: i32 = 100_000;

/// Location of the database.
pub(crate) enum Database {
    /// A file, read in place.
    File(PathBuf),
    /// A stream, loaded into memory.
    Stream(Box<dyn Read + Send>),
}

/// Rows of a layer.
pub(crate) struct GeoPackage {
    database: Option<Database>,
    connection: Option<Connection>,
    options: ReadOptions,
    query: String,
    columns: Vec<(String, Kind)>,
    /// Columns that are left out, as their types are not kept.
    left_out: Vec<String>,
    /// Rows read and not yet returned, and the id of the last row read.
    page: VecDeque<Vec<Value>>,
    last: i64,
    more: bool,
}

impl GeoPackage {
    pub(crate) fn new(database: Database, options: &ReadOptions) -> GeoPackage {
        GeoPackage {
            database: Some(database),
            connection: None,
            options: options.clone(),
            query: String::new(),
            columns: Vec::new(),
            left_out: Vec::new(),
            page: VecDeque::new(),
            last: i64::MIN,
            more: true,
        }
    }

    fn connect(&mut self) -> Result<Connection, Fault> {
        let mut connection = match self.database.take() {
            Some(Database::File(path)) => {
                Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                    .map_err(|e| failed(&e))?
            }
            Some(Database::Stream(source)) => {
                let bytes = spool(source, self.options.spool_bytes, "GeoPackage")?;
                let mut connection = Connection::open_in_memory().map_err(|e| failed(&e))?;
                let loaded = connection.deserialize_read_exact("main", bytes.as_ref(), bytes.len(), true);
                loaded.map_err(|e| failed(&e))?;
                connection
            }
            None => return Err(Fault::stop(Invalid::new("the GeoPackage was opened twice"))),
        };
        self.restrain(&mut connection).map_err(|e| failed(&e))?;
        Ok(connection)
    }

    /// Limits the resources that a foreign file can make the database use.
    fn restrain(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        let length = i32::try_from(self.options.record_bytes).unwrap_or(i32::MAX);
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        if let Some(watch) = self.options.watch.clone() {
            connection.progress_handler(STEPS_WATCHED, Some(move || !watch.goes_on()))?;
        }
        Ok(())
    }

    /// Returns the layer to read: the named one, or the only one.
    fn layer(&self, connection: &Connection) -> Result<String, Fault> {
        let list =
            "SELECT table_name FROM gpkg_contents WHERE data_type IN ('features', 'attributes') ORDER BY 1 LIMIT 1000";
        let names = texts(connection, list).map_err(|error| {
            if !error.to_string().contains("no such table") {
                return failed(&error);
            }
            let what = "an SQLite database without the table gpkg_contents is no GeoPackage";
            Fault::stop(Invalid::new(format!("{what}: {}", convert())))
        })?;
        super::layer_of(&names, self.options.layer.as_deref()).map_err(Fault::stop)
    }

    /// Returns the name of a layer's geometry column, if it has one. Its reference system must be supported if the
    /// geometry is taken.
    fn geometry(&self, connection: &Connection, layer: &str) -> Result<Option<String>, Fault> {
        let found = connection.query_row(
            "SELECT column_name, srs_id FROM gpkg_geometry_columns WHERE table_name = ?1",
            [layer],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)),
        );
        let (column, srs) = match found {
            Ok(found) => found,
            // A layer of attributes alone; its file may lack the table.
            Err(_) => return Ok(None),
        };
        let system = connection.query_row(
            "SELECT organization, organization_coordsys_id, definition FROM gpkg_spatial_ref_sys WHERE srs_id = ?1",
            [srs],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)),
        );
        let unknown = || {
            let line = ogr2ogr("-s_srs EPSG:CODE -t_srs EPSG:4326", ONE_LAYER);
            Invalid::new(format!("the file does not describe its reference system, srs_id {srs}: convert it: {line}"))
        };
        match system {
            // By the standard, 0 and -1 stand for an unknown system.
            _ if srs <= 0 || !self.options.takes(&column) => {}
            Ok((organization, code, definition)) => {
                let by_code = if code > 0 { check_code(&organization, code) } else { Err(unknown()) };
                by_code.or_else(|refusal| check_wkt(&definition).map_err(|_| refusal)).map_err(Fault::stop)?;
            }
            Err(_) if srs == WGS_84 => {}
            Err(_) => return Err(Fault::stop(unknown())),
        }
        Ok(Some(column))
    }

    fn fill(&mut self) -> Result<(), Fault> {
        let Some(connection) = &self.connection else { return Ok(()) };
        let mut statement = connection.prepare(&self.query).map_err(|e| failed(&e))?;
        let mut rows = statement.query([self.last, PAGE_ROWS]).map_err(|e| failed(&e))?;
        let (mut taken, mut bytes) = (0, 0);
        while let Some(row) = rows.next().map_err(|e| failed(&e))? {
            self.last = row.get(0).map_err(|e| failed(&e))?;
            let values = (1..=self.columns.len()).map(|i| row.get::<_, Value>(i)).collect::<Result<Vec<_>, _>>();
            let values = values.map_err(|e| failed(&e))?;
            bytes += values.iter().map(held).sum::<usize>();
            self.page.push_back(values);
            taken += 1;
            if bytes >= PAGE_BYTES {
                return Ok(());
            }
        }
        self.more = taken == PAGE_ROWS && self.last < i64::MAX;
        Ok(())
    }
}

impl Source for GeoPackage {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        let connection = self.connect()?;
        let layer = self.layer(&connection)?;
        let geometry = self.geometry(&connection, &layer)?;
        let kind = connection
            .query_row("SELECT type FROM sqlite_master WHERE name = ?1", [&layer], |row| row.get::<_, String>(0));
        if kind.map_err(|e| failed(&e))? != "table" {
            let layer = shorten(&layer);
            return Err(Fault::stop(Invalid::new(format!("the layer {layer} is a view and no table: {}", convert()))));
        }
        let mut statement =
            connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1)").map_err(|e| failed(&e))?;
        let columns = statement
            .query_map([&layer], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)))
            .and_then(|rows| rows.collect::<rusqlite::Result<Vec<_>>>())
            .map_err(|e| failed(&e))?;
        drop(statement);
        // A column may have a name of the row number, which has three.
        let is_free = |key: &&str| !columns.iter().any(|(name, ..)| name.eq_ignore_ascii_case(key));
        let row_number = ["rowid", "_rowid_", "oid"].into_iter().find(is_free).ok_or_else(|| {
            let layer = shorten(&layer);
            let detail = format!("the layer {layer} has columns named rowid, _rowid_ and oid: {}", convert());
            Fault::stop(Invalid::new(detail))
        })?;
        for (name, kind, key) in columns {
            // Row ids are assigned by the writer and repeat in every file, so they are ids only if named so.
            if key > 0 && self.options.id.as_ref() != Some(&name) {
                continue;
            }
            if geometry.as_ref() == Some(&name) {
                self.columns.push((name, Kind::Shape));
                continue;
            }
            match kind_of(&kind) {
                Some(kind) => self.columns.push((name, kind)),
                None if self.options.unknown == Unknown::Ignore => self.left_out.push(name),
                None => {
                    let detail = format!(
                        "a column of type {}, which is not kept: --ignore-unknown leaves it out",
                        shorten(&kind)
                    );
                    return Err(Fault::stop(Invalid::field(shorten(&name), detail)));
                }
            }
        }
        let selected = |(name, kind): &(String, Kind)| match kind {
            // Set aside, and not read.
            Kind::Shape if !self.options.takes(name) => ", NULL".to_owned(),
            _ => format!(", {}", quoted(name)),
        };
        let names: String = self.columns.iter().map(selected).collect();
        let layer = quoted(&layer);
        self.query =
            format!("SELECT {row_number}{names} FROM {layer} WHERE {row_number} > ?1 ORDER BY {row_number} LIMIT ?2");
        self.connection = Some(connection);
        Ok(self.columns.clone())
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        while self.page.is_empty() && self.more {
            self.fill()?;
        }
        let Some(values) = self.page.pop_front() else { return Ok(false) };
        for (i, (value, (name, kind))) in values.iter().zip(&self.columns).enumerate() {
            set(row, i, *kind, value).map_err(|e| blame(e, name))?;
        }
        Ok(true)
    }

    fn notes(&self) -> Vec<String> {
        left_out(&self.left_out).into_iter().collect()
    }
}

fn set(row: &mut Row, column: usize, kind: Kind, value: &Value) -> Result<(), Invalid> {
    let cell = match (kind, value) {
        (_, Value::Null) => return Ok(()),
        (Kind::Int, Value::Integer(n)) => Cell::Int(*n),
        (Kind::Float, Value::Integer(n)) => Cell::Int(*n),
        (Kind::Float, Value::Real(x)) => Cell::Float(*x),
        (Kind::Bool, Value::Integer(n)) => Cell::Bool(*n != 0),
        (Kind::Text, Value::Text(text)) => Cell::Text(text),
        (Kind::Date, Value::Text(text)) => Cell::Date((time::parse_date(text)? / DAY_US) as i32),
        // Times of a GeoPackage are in UTC; a few writers leave the letter out.
        (Kind::Time, Value::Text(text)) => Cell::Time(instant::parse(text, Some(&TimeZone::UTC))?),
        (Kind::Shape, Value::Blob(bytes)) => match wkb(bytes)? {
            Some(wkb) => Cell::Shape(wkb),
            None => return Ok(()),
        },
        (kind, value) => {
            return Err(Invalid::new(format!("a value of type {:?} where {kind:?} was expected", value.data_type())));
        }
    };
    row.set(column, cell)
}

/// Returns the well-known binary in the blob of a geometry; `None` for an empty one.
fn wkb(blob: &[u8]) -> Result<Option<&[u8]>, Invalid> {
    let wrong = || Invalid::new("not a geometry of GeoPackage: its header does not read");
    let [b'G', b'P', _, flags, rest @ ..] = blob else { return Err(wrong()) };
    if flags & 0b10_0000 != 0 {
        return Err(Invalid::new(format!("a geometry of an extension is not supported: {}", convert())));
    }
    let envelope = [0, 32, 48, 48, 64].get(usize::from(flags >> 1 & 7)).ok_or_else(wrong)?;
    let wkb = rest.get(4 + envelope..).ok_or_else(wrong)?;
    Ok(if flags & 0b1_0000 != 0 { None } else { Some(wkb) })
}

fn kind_of(declared: &str) -> Option<Kind> {
    let word = declared.split('(').next().unwrap_or("").trim().to_ascii_uppercase();
    Some(match word.as_str() {
        "BOOLEAN" => Kind::Bool,
        "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "INTEGER" => Kind::Int,
        "FLOAT" | "DOUBLE" | "REAL" => Kind::Float,
        "TEXT" | "JSON" | "VARCHAR" => Kind::Text,
        "DATE" => Kind::Date,
        "DATETIME" => Kind::Time,
        _ => return None,
    })
}

fn held(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 8,
    }
}

fn texts(connection: &Connection, query: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(query)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Quotes a name for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn failed(error: &rusqlite::Error) -> Fault {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) {
        return Fault::Stop(ReadError::Stopped);
    }
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::TooBig) {
        return Fault::stop(Invalid::new("a value of the GeoPackage is longer than a feature may be"));
    }
    Fault::stop(Invalid::new(format!("the GeoPackage does not read: {error}")))
}
