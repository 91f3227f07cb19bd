//! Files with missing companion files or missing content, or with a column named as what it is not.

use crate::common::point;
use crate::common::shown::value;
use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use meridian_formats::{BatchLimits, Format, ReadError, ReadOptions, Unknown, infer_path, reader_of_path};
use meridian_model::Batch;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Returns a point, written by GDAL in a format.
fn written(folder: &Path, driver: &str, ending: &str) -> PathBuf {
    written_with(folder, driver, ending, r#"{"n":1}"#)
}

/// Returns a point with these properties, written by GDAL in a format, texts of a Shapefile in Latin-1.
fn written_with(folder: &Path, driver: &str, ending: &str, properties: &str) -> PathBuf {
    let (from, to) = (folder.join("events.geojson"), folder.join(format!("events.{ending}")));
    let point = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[13,52]},"properties":"#;
    std::fs::write(&from, format!("{point}{properties}}}")).unwrap();
    let mut command = Command::new("ogr2ogr");
    if ending == "shp" {
        command.args(["-lco", "ENCODING=ISO-8859-1"]);
    }
    let run = command.arg("-f").arg(driver).arg(&to).arg(&from).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    to
}

/// Reads the events of a file with the schema that it suggests; `None` without an event.
fn read(format: Format, file: &Path) -> Result<Option<Batch>, ReadError> {
    let options = ReadOptions::default();
    let schema = infer_path(format, file, &options)?.schema;
    reader_of_path(format, file, schema.into(), &options)?.next_batch(&BatchLimits::default())
}

#[test]
fn a_shapefile_without_attributes_is_loaded_and_this_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "ESRI Shapefile", "shp");
    let notes = || infer_path(Format::Shapefile, &file, &ReadOptions::default()).unwrap().notes;
    assert_eq!(notes(), Vec::<String>::new());
    std::fs::remove_file(file.with_extension("dbf")).unwrap();
    assert!(notes()[0].starts_with("no .dbf file"), "{:?}", notes());
    std::fs::remove_file(file.with_extension("prj")).unwrap();
    assert_eq!(notes().len(), 2);
}

#[test]
fn a_geopackage_of_a_system_that_it_does_not_describe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "GPKG", "gpkg");
    let read = || infer_path(Format::GeoPackage, &file, &ReadOptions::default()).map_err(|e| e.to_string());
    assert!(read().is_ok());
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute_batch("PRAGMA foreign_keys = OFF; UPDATE gpkg_geometry_columns SET srs_id = 99999").unwrap();
    let refusal = read().unwrap_err();
    assert!(refusal.contains("srs_id 99999") && refusal.contains("-s_srs EPSG:CODE"), "{refusal}");
    let named =
        "INSERT INTO gpkg_spatial_ref_sys (srs_name, srs_id, organization, organization_coordsys_id, definition)
                 VALUES ('local', 99999, 'NONE', 0, 'undefined')";
    database.execute_batch(named).unwrap();
    assert!(read().unwrap_err().contains("srs_id 99999"));
    // A system declared as unknown does not count as another one.
    database.execute_batch("UPDATE gpkg_geometry_columns SET srs_id = 0").unwrap();
    assert!(read().is_ok());
}

#[test]
fn texts_of_a_shapefile_are_read_in_its_encoding_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = written_with(folder.path(), "ESRI Shapefile", "shp", r#"{"name":"Café","stars":"***"}"#);
    let (table, named) = (file.with_extension("dbf"), file.with_extension("cpg"));
    let mut bytes = std::fs::read(&table).unwrap();
    let batch = read(Format::Shapefile, &file).unwrap().unwrap();
    // Asterisks mean no value in a column of numbers only.
    assert_eq!([value(&batch, "name", 0), value(&batch, "stars", 0)], ["\"Café\"", "\"***\""]);
    // Neither a file nor the header names the encoding.
    std::fs::remove_file(&named).unwrap();
    bytes[29] = 0;
    std::fs::write(&table, &bytes).unwrap();
    let refusal = read(Format::Shapefile, &file).unwrap_err().to_string();
    assert!(refusal.starts_with("line 1: name: the text is not UTF-8") && refusal.contains(".cpg"), "{refusal}");
    std::fs::write(&named, "windows-1252\n").unwrap();
    let batch = read(Format::Shapefile, &file).unwrap().unwrap();
    assert_eq!(value(&batch, "name", 0), "\"Café\"");
}

#[test]
fn a_geopackage_column_named_as_the_row_number_takes_no_rows_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "GPKG", "gpkg");
    let database = rusqlite::Connection::open(&file).unwrap();
    // SQLite adds no column with such a name to a table, and takes it when it makes one.
    let add = |column: &str| {
        let made = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'events'";
        let made: String = database.query_row(made, [], |row| row.get(0)).unwrap();
        let (head, _) = made.rsplit_once(')').unwrap();
        let steps = "CREATE TABLE copied AS SELECT * FROM events; DROP TABLE events;";
        let rows = "INSERT INTO events SELECT *, NULL FROM copied; DROP TABLE copied;";
        database.execute_batch(&format!("{steps} {head}, {column} INTEGER); {rows}")).unwrap();
    };
    add("RowID");
    let batch = read(Format::GeoPackage, &file).unwrap().unwrap();
    assert_eq!(batch.rows(), 1);
    assert_eq!([value(&batch, "n", 0), value(&batch, "RowID", 0)], ["1", "null"]);
    ["_rowid_", "oid"].into_iter().for_each(add);
    let refusal = read(Format::GeoPackage, &file).unwrap_err().to_string();
    assert!(refusal.contains("rowid, _rowid_ and oid") && refusal.contains("ogr2ogr"), "{refusal}");
}

#[test]
fn a_bad_value_in_the_sample_is_named_by_its_feature() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "GPKG", "gpkg");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute_batch("ALTER TABLE events ADD COLUMN day DATE DEFAULT '2024-02-30'").unwrap();
    let refusal = read(Format::GeoPackage, &file).unwrap_err().to_string();
    assert!(refusal.starts_with("line 1: day: \"2024-02-30\""), "{refusal}");
}

/// A GeoParquet file of one point in the column `shape`, which its metadata name, beside a text `geometry`.
fn parquet_of_shape(folder: &Path) -> PathBuf {
    let mut point = vec![1, 1, 0, 0, 0];
    [13.0f64, 52.0].iter().for_each(|x| point.extend(x.to_le_bytes()));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["POINT (1 2)"]));
    let shape: ArrayRef = Arc::new(BinaryArray::from(vec![point.as_slice()]));
    let batch = RecordBatch::try_from_iter([("geometry", text), ("shape", shape)]).unwrap();
    let geo = r#"{"primary_column":"shape","columns":{"shape":{"encoding":"WKB"}}}"#;
    let path = folder.join("shape.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    let metadata = parquet::file::metadata::KeyValue::new("geo".to_owned(), geo.to_owned());
    writer.append_key_value_metadata(metadata);
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[cfg(feature = "flatgeobuf")]
#[test]
fn the_geometry_that_a_file_declares_goes_before_a_text_of_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let with_text = r#"{"geometry":"POINT (1 2)"}"#;
    let written = |driver, ending| written_with(folder.path(), driver, ending, with_text);
    for (format, file) in [
        (Format::GeoPackage, written("GPKG", "gpkg")),
        (Format::FlatGeobuf, written("FlatGeobuf", "fgb")),
        (Format::Shapefile, written("ESRI Shapefile", "shp")),
        (Format::GeoParquet, parquet_of_shape(folder.path())),
    ] {
        let batch = read(format, &file).unwrap().unwrap();
        assert_eq!(batch.geometry(0), Some(point(13.0, 52.0)), "{format}");
        assert_eq!(value(&batch, "geometry", 0), "\"POINT (1 2)\"", "{format}");
        // No option takes the text in its place.
        assert_eq!(infer_path(format, &file, &ReadOptions::default()).unwrap().notes, Vec::<String>::new(), "{format}");
    }
}

#[cfg(feature = "flatgeobuf")]
#[test]
fn the_geometry_that_a_file_declares_gives_way_to_a_named_column_and_bytes_are_left_out_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let gpkg = written_with(folder.path(), "GPKG", "gpkg", r#"{"place":"POINT (1 2)"}"#);
    let database = rusqlite::Connection::open(&gpkg).unwrap();
    database.execute_batch("ALTER TABLE events ADD COLUMN photo BLOB").unwrap();
    let fgb = gpkg.with_extension("fgb");
    let run = Command::new("ogr2ogr").args(["-f", "FlatGeobuf"]).arg(&fgb).arg(&gpkg).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // The system of a geometry that is set aside does not matter.
    database.execute_batch("PRAGMA foreign_keys = OFF; UPDATE gpkg_geometry_columns SET srs_id = 99999").unwrap();
    let with_photo = r#"{"place":"POINT (1 2)","photo":"a"}"#;
    let shp = written_with(folder.path(), "ESRI Shapefile", "shp", with_photo);
    std::fs::write(shp.with_extension("prj"), "PROJCS[\"ETRS89 / UTM zone 32N\"]").unwrap();
    // The second field becomes a memo, whose text is in another file.
    let mut table = std::fs::read(shp.with_extension("dbf")).unwrap();
    table[32 + 32 + 11] = b'M';
    std::fs::write(shp.with_extension("dbf"), table).unwrap();
    let named = ReadOptions { geometry: Some("place".to_owned()), ..ReadOptions::default() };
    let ignores = ReadOptions { unknown: Unknown::Ignore, ..named.clone() };
    for (format, file, declared) in [
        (Format::GeoPackage, gpkg, "geom"),
        (Format::FlatGeobuf, fgb, "geometry"),
        (Format::Shapefile, shp, "geometry"),
    ] {
        let refusal = infer_path(format, &file, &named).unwrap_err().to_string();
        assert!(refusal.contains("photo") && refusal.contains("--ignore-unknown"), "{format}: {refusal}");
        let found = infer_path(format, &file, &ignores).unwrap();
        for name in ["photo", declared] {
            let is_said = found.notes.iter().any(|note| note.ends_with(&format!("left out: {name}")));
            assert!(is_said, "{format} {name}: {:?}", found.notes);
        }
        let mut events = reader_of_path(format, &file, found.schema.into(), &ignores).unwrap();
        let batch = events.next_batch(&BatchLimits::default()).unwrap().unwrap();
        assert_eq!(batch.geometry(0), Some(point(1.0, 2.0)), "{format}");
    }
}
