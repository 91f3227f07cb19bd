//! GeoPackage 1.3: one layer.

use super::extent::Extent;
use crate::columns::Column;
use crate::instant;
use crate::write::WriteError;
use crate::write::table::Columns;
use arrow_array::{Array, RecordBatch};
use meridian_model::{FieldType, GeometryType, Schema};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params, params_from_iter};
use std::path::Path;

/// `GPKG` as a number, and version 1.3 of the format.
const APPLICATION: i32 = 0x4750_4b47;
const VERSION: i32 = 10_300;
/// WGS 84, as EPSG:4326.
const SYSTEM: i32 = 4326;
/// Header of a geometry: little-endian, without a box, in that system.
const GEOMETRY_HEAD: [u8; 8] = [b'G', b'P', 0, 1, 0xe6, 0x10, 0, 0];

const TABLES: &str = r#"
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES
  ('Undefined Cartesian SRS', -1, 'NONE', -1, 'undefined', 'undefined Cartesian coordinate reference system'),
  ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', 'undefined geographic coordinate reference system'),
  ('WGS 84 geodetic', 4326, 'EPSG', 4326, 'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AXIS["Latitude",NORTH],AXIS["Longitude",EAST],AUTHORITY["EPSG","4326"]]', 'longitude and latitude on WGS 84');
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
  description TEXT DEFAULT '', last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL UNIQUE REFERENCES gpkg_contents(table_name),
  column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
  srs_id INTEGER NOT NULL REFERENCES gpkg_spatial_ref_sys(srs_id), z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name));
"#;

/// Writes events into a new database: a layer of features, or of attributes alone if their collection has no geometry.
pub struct GeoPackageWriter {
    columns: Columns,
    connection: Connection,
    name: String,
    insert: String,
    extent: Extent,
    /// Fields whose column has another name, with that name: column names that differ only in case are the same in
    /// SQL.
    pub renamed: Vec<(String, String)>,
}

impl GeoPackageWriter {
    /// Creates a file with one layer of all fields, at a path where no file exists.
    pub fn create(path: &Path, name: &str, schema: &Schema) -> Result<GeoPackageWriter, WriteError> {
        let fields: Vec<usize> = (0..schema.fields.len()).collect();
        let connection = Connection::open(path).map_err(failed)?;
        GeoPackageWriter::begin(connection, name, Columns::of(schema, &fields), None)
    }

    /// Begins a layer in an empty database. `as_of` is when its events were as they are, in microseconds since 1970; by
    /// default the time of its making.
    pub(super) fn begin(
        connection: Connection,
        name: &str,
        mut columns: Columns,
        as_of: Option<i64>,
    ) -> Result<GeoPackageWriter, WriteError> {
        let renamed = columns.tell_apart();
        let free = |wanted: &str| {
            let mut free = wanted.to_owned();
            while columns.named.iter().any(|(name, _)| name.eq_ignore_ascii_case(&free)) {
                free.insert(0, '@');
            }
            free
        };
        let (key, geometry) = (free("fid"), columns.has_places().then(|| free("geom")));
        // An unfinished file is removed, so its writes need no journal.
        connection.pragma_update(None, "journal_mode", "OFF").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
        connection.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
        connection.pragma_update(None, "user_version", VERSION).map_err(failed)?;
        let kind = match columns.shape {
            GeometryType::Point => "POINT",
            GeometryType::Line => "LINESTRING",
            GeometryType::Polygon => "POLYGON",
            // Layers of multi types may hold single shapes too, and only the general type allows both.
            GeometryType::MultiPoint | GeometryType::MultiLine | GeometryType::MultiPolygon | GeometryType::Any => {
                "GEOMETRY"
            }
        };
        let shape = geometry.as_ref().map_or_else(String::new, |name| format!(", {} {kind}", quoted(name)));
        let typed = |(name, kind): &(String, FieldType)| format!(", {} {}", quoted(name), word(*kind));
        let fields: String = columns.named.iter().map(typed).collect();
        let name = layer_of(name);
        let (layer, key) = (quoted(&name), quoted(&key));
        let table = format!("CREATE TABLE {layer} ({key} INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL{shape}{fields})");
        connection.execute_batch(&format!("BEGIN; {TABLES} {table}")).map_err(failed)?;
        let (data_type, system) = if geometry.is_some() { ("features", Some(SYSTEM)) } else { ("attributes", None) };
        // Whole milliseconds, as the format has them.
        let changed = as_of.map(|as_of| moment(FieldType::Time, as_of - as_of.rem_euclid(1_000)));
        connection
            .execute(
                "INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id, last_change)
                 VALUES (?1, ?2, ?1, ?3, coalesce(?4, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))",
                params![name, data_type, system, changed],
            )
            .map_err(failed)?;
        if let Some(geometry) = &geometry {
            connection
                .execute(
                    "INSERT INTO gpkg_geometry_columns VALUES (?1, ?2, ?3, ?4, 0, 0)",
                    params![name, geometry, kind, SYSTEM],
                )
                .map_err(failed)?;
        }
        let names = geometry.iter().chain(columns.named.iter().map(|(name, _)| name));
        let names: Vec<String> = names.map(|name| quoted(name)).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let insert = format!("INSERT INTO {layer} ({}) VALUES ({marks})", names.join(", "));
        Ok(GeoPackageWriter { columns, connection, name, insert, extent: Extent::default(), renamed })
    }

    /// Returns the size of the file in bytes so far, with what is not written to it yet.
    pub(super) fn bytes(&self) -> Result<u64, WriteError> {
        let ask = |pragma| self.connection.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
        let (pages, size) = (ask("page_count").map_err(failed)?, ask("page_size").map_err(failed)?);
        Ok(u64::from(pages) * u64::from(size))
    }

    /// Adds the events of a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let rows = self.columns.rows(batch)?;
        let mut insert = self.connection.prepare(&self.insert).map_err(failed)?;
        let has_places = self.columns.has_places();
        for row in 0..rows.len {
            let shape = rows.shape(row);
            shape.into_iter().for_each(|wkb| self.extent.add(wkb));
            let shape = shape.map_or(Value::Null, |wkb| Value::Blob([&GEOMETRY_HEAD, wkb].concat()));
            let fields =
                rows.columns.iter().zip(&self.columns.named).map(|(column, (_, kind))| value(column, *kind, row));
            let values = has_places.then_some(shape).into_iter().chain(fields);
            insert.execute(params_from_iter(values)).map_err(failed)?;
        }
        Ok(())
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), WriteError> {
        if let Some([west, south, east, north]) = self.extent.0 {
            let update =
                "UPDATE gpkg_contents SET min_x = ?2, min_y = ?3, max_x = ?4, max_y = ?5 WHERE table_name = ?1";
            self.connection.execute(update, params![self.name, west, south, east, north]).map_err(failed)?;
        }
        self.connection.execute_batch("COMMIT").map_err(failed)?;
        self.connection.close().map_err(|(_, error)| failed(error))
    }
}

/// Tells errors of the disk from others of SQLite.
pub(super) fn failed(error: rusqlite::Error) -> WriteError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => WriteError::of_disk(error),
        _ => WriteError::of(error),
    }
}

/// Returns the name of the layer of a collection. Names with these beginnings belong to SQLite and GeoPackage.
fn layer_of(collection: &str) -> String {
    let lower = collection.to_ascii_lowercase();
    match ["gpkg_", "rtree_", "sqlite_"].iter().any(|kept| lower.starts_with(kept)) {
        true => format!("events_{collection}"),
        false => collection.to_owned(),
    }
}

fn word(kind: FieldType) -> &'static str {
    match kind {
        FieldType::Text | FieldType::TextList => "TEXT",
        FieldType::Int => "INTEGER",
        FieldType::Float => "DOUBLE",
        FieldType::Bool => "BOOLEAN",
        FieldType::Time => "DATETIME",
        FieldType::Date => "DATE",
    }
}

fn value(column: &Column, kind: FieldType, row: usize) -> Value {
    let value = match column {
        Column::Text(texts) => texts.get(row).map(|text| Value::Text(text.to_owned())),
        Column::Int(a) => a.is_valid(row).then(|| Value::Integer(a.value(row))),
        Column::Float(a) => a.is_valid(row).then(|| Value::Real(a.value(row))),
        Column::Bool(a) => a.is_valid(row).then(|| Value::Integer(a.value(row).into())),
        Column::Time(times) => times.get(row).and_then(Result::ok).map(|micros| Value::Text(moment(kind, micros))),
        list => list.json(row).map(Value::Text),
    };
    value.unwrap_or(Value::Null)
}

/// Formats a time as GeoPackage requires, with milliseconds, or with microseconds if there are any.
fn moment(kind: FieldType, micros: i64) -> String {
    let mut out = Vec::new();
    instant::write_as(kind, micros, &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    if kind == FieldType::Date {
        return text;
    }
    let bare = text.trim_end_matches('Z');
    match bare.split_once('.') {
        None => format!("{bare}.000Z"),
        Some((whole, fraction)) => format!("{whole}.{fraction:0<3}Z"),
    }
}

/// Quotes a name for SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, StringArray};
    use meridian_model::Field;
    use std::sync::Arc;

    #[test]
    fn a_full_disk_is_told_from_another_error() {
        let field = Field { name: "note".into(), kind: FieldType::Text, required: false, title: None };
        let schema = Schema { fields: vec![field], ..Schema::default() };
        let begin = |connection| GeoPackageWriter::begin(connection, "notes", Columns::of(&schema, &[0]), None);
        let mut writer = begin(Connection::open_in_memory().unwrap()).unwrap();
        let full = writer.bytes().unwrap() / 4_096 + 2;
        writer.connection.pragma_update(None, "max_page_count", full as i64).unwrap();
        let notes: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1_000); 100]));
        let ids: ArrayRef = Arc::new(StringArray::from((0..100).map(|n| n.to_string()).collect::<Vec<_>>()));
        let batch = RecordBatch::try_from_iter([(schema.id_column(), ids), ("note".to_owned(), notes)]).unwrap();
        assert!(writer.write(&batch).is_err_and(|error| error.is_of_disk()));

        let taken = Connection::open_in_memory().unwrap();
        taken.execute_batch("CREATE TABLE gpkg_contents (name TEXT)").unwrap();
        assert!(begin(taken).is_err_and(|error| !error.is_of_disk()));
    }
}
