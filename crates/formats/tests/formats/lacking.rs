//! Files with missing companion files or missing content.

use meridian_formats::{Format, ReadOptions, infer_path};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a point, written by GDAL in a format.
fn written(folder: &Path, driver: &str, ending: &str) -> PathBuf {
    let (from, to) = (folder.join("events.geojson"), folder.join(format!("events.{ending}")));
    let point = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[13,52]},"properties":{"n":1}}"#;
    std::fs::write(&from, point).unwrap();
    let run = Command::new("ogr2ogr").arg("-f").arg(driver).arg(&to).arg(&from).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    to
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
