//! Exports to table formats that need a file of their own: FlatGeobuf and GeoPackage.

use crate::commands::client::Client;
use crate::failure::Failure;
#[cfg(feature = "geopackage")]
use crate::output::say;
use meridian_model::{Schema, schema_json};
use std::io::Read;
use std::path::Path;

/// A table format.
#[derive(Clone, Copy)]
pub enum Table {
    /// `.fgb`.
    FlatGeobuf,
    /// `.gpkg`.
    GeoPackage,
}

/// Writes an Arrow response as such a file.
pub fn write(kind: Table, client: &Client, name: &str, answer: Box<dyn Read>, path: &Path) -> Result<(), Failure> {
    // The types of the response do not tell which times are dates, and which shapes a layer may have.
    let document = client.json(&["collections", name, "schema"], &[])?;
    let schema = schema_json::from_json(&document)
        .map_err(|e| Failure::Refused(format!("the server's schema of {name} is not one this program knows: {e}")))?;
    match kind {
        Table::FlatGeobuf => flatgeobuf(name, &schema, answer, path),
        Table::GeoPackage => geopackage(name, &schema, answer, path),
    }
}

#[cfg(feature = "flatgeobuf")]
fn flatgeobuf(name: &str, schema: &Schema, answer: Box<dyn Read>, path: &Path) -> Result<(), Failure> {
    use std::io::Write;
    let mut writer = meridian_formats::export::FlatGeobufWriter::new(path, name, schema).map_err(unwritten)?;
    each_batch(answer, |batch| writer.write(batch))?;
    let unwritable = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", path.display()));
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).map_err(unwritable)?);
    writer.finish(&mut out).map_err(unwritten)?;
    out.flush().map_err(unwritable)
}

#[cfg(not(feature = "flatgeobuf"))]
fn flatgeobuf(_: &str, _: &Schema, _: Box<dyn Read>, _: &Path) -> Result<(), Failure> {
    Err(Failure::Usage(
        "this program was built without the feature `flatgeobuf`: export .geojson or .parquet".to_owned(),
    ))
}

#[cfg(feature = "geopackage")]
fn geopackage(name: &str, schema: &Schema, answer: Box<dyn Read>, path: &Path) -> Result<(), Failure> {
    let mut writer = meridian_formats::export::GeoPackageWriter::create(path, name, schema).map_err(unwritten)?;
    for (field, column) in &writer.renamed {
        say(&format!("note: the field {field} is the column {column}: another field has its name in other case"));
    }
    each_batch(answer, |batch| writer.write(batch))?;
    writer.finish().map_err(unwritten)
}

#[cfg(not(feature = "geopackage"))]
fn geopackage(_: &str, _: &Schema, _: Box<dyn Read>, _: &Path) -> Result<(), Failure> {
    Err(Failure::Usage(
        "this program was built without the feature `geopackage`: export .geojson or .parquet".to_owned(),
    ))
}

/// Passes the batches of an Arrow response to a writer.
#[cfg(any(feature = "flatgeobuf", feature = "geopackage"))]
fn each_batch(
    answer: Box<dyn Read>,
    mut put: impl FnMut(&arrow_array::RecordBatch) -> Result<(), meridian_formats::WriteError>,
) -> Result<(), Failure> {
    let broken = |e: arrow_schema::ArrowError| Failure::Refused(format!("the answer broke off: {e}"));
    for batch in arrow_ipc::reader::StreamReader::try_new(answer, None).map_err(broken)? {
        put(&batch.map_err(broken)?).map_err(unwritten)?;
    }
    Ok(())
}

#[cfg(any(feature = "flatgeobuf", feature = "geopackage"))]
fn unwritten(error: meridian_formats::WriteError) -> Failure {
    Failure::Usage(format!("the file cannot be written: {}", error.detail))
}
