//! `meridian export`: writes a collection to a file for other programs.

mod table;
mod tiles;

use crate::args::{SelectionArgs, TargetArgs};
use crate::commands::client::Client;
use crate::commands::query;
use crate::failure::Failure;
use crate::output::{copy, say};
use crate::units::size_short;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use clap::Args;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use table::Table;

/// Write a collection to a file: GeoParquet, or the format of the file's extension
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian export earthquakes earthquakes.parquet
  meridian export earthquakes california.geojson --bbox -125,32,-114,42
  meridian export ships ships.csv --datetime 2022-01-03T12:00:00Z/..
  meridian export ships ships.pmtiles --max-zoom 10

Extensions: .parquet (GeoParquet 1.1, for DuckDB, GeoPandas, QGIS), .fgb (FlatGeobuf), .gpkg
(GeoPackage), .pmtiles (vector tiles), .arrow (an Arrow file), .arrows (an Arrow stream), .csv, .geojson,
.ndjson or .geojsonl, .geojsons. The file is written completely or not at all.")]
pub struct ExportArgs {
    /// Collection to write
    pub collection: String,
    /// File to write; an existing one is replaced
    pub file: PathBuf,
    /// Last zoom level of .pmtiles, 0 to 16
    #[arg(long, value_name = "ZOOM", default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..=16))]
    pub max_zoom: u8,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let ending = args.file.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let form = Form::of(&ending).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: expected a file that ends in .parquet, .fgb, .gpkg, .pmtiles, .arrow, .arrows, .csv, .geojson, .ndjson, .geojsonl \
             or .geojsons",
            args.file.display()
        ))
    })?;
    let client = Client::open(&args.target.resolve())?;
    let partial = partial_name(&args.file);
    let outcome = write(&client, args, form, &partial);
    // Before the error is returned: a partial file must not stay.
    if outcome.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    say(&format!("{}: {}", args.file.display(), size_short(outcome?)));
    client.close()
}

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    // With the process id: two exports to one file must not write into each other's.
    name.push(format!(".{}.partial", std::process::id()));
    file.with_file_name(name)
}

/// The format requested from the server, and the conversion of its response for the file.
#[derive(Clone, Copy)]
enum Form {
    /// The response in this format, unchanged.
    AsItComes(&'static str),
    /// Features, one per line, converted to one collection.
    Collection,
    /// An Arrow stream, converted to a file that can be read from its end.
    ArrowFile,
    /// An Arrow stream, converted to another program's format.
    Table(Table),
    /// Vector tiles, collected in an archive.
    Tiles,
}

impl Form {
    fn of(ending: &str) -> Option<Form> {
        Some(match ending {
            "parquet" | "geoparquet" => Form::AsItComes("parquet"),
            "arrow" => Form::ArrowFile,
            "arrows" => Form::AsItComes("arrow"),
            "csv" => Form::AsItComes("csv"),
            "geojson" | "json" => Form::Collection,
            "ndjson" | "jsonl" | "geojsonl" => Form::AsItComes("ndjson"),
            "geojsons" => Form::AsItComes("geojsonseq"),
            "fgb" => Form::Table(Table::FlatGeobuf),
            "gpkg" => Form::Table(Table::GeoPackage),
            "pmtiles" => Form::Tiles,
            _ => return None,
        })
    }
}

/// Writes the file under its partial name, then renames it; returns its bytes.
fn write(client: &Client, args: &ExportArgs, form: Form, partial: &Path) -> Result<u64, Failure> {
    let file = &args.file;
    let failed = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", file.display()));
    let parameters = args.selection.parameters()?;
    let answer = |wire: &str| {
        let mut parameters = parameters.clone();
        parameters.push(("f", wire.to_owned()));
        client.stream(&["collections", &args.collection, "items"], &parameters)
    };
    // Requested before the file is created, so that a missing collection leaves nothing behind.
    let out = match form {
        Form::Table(kind) => {
            table::write(kind, client, &args.collection, answer("arrow")?, partial)?;
            std::fs::OpenOptions::new().write(true).open(partial).map_err(failed)?
        }
        Form::Tiles => tiles::write(client, args, &parameters, partial)?,
        Form::AsItComes(wire) => streamed(answer(wire)?, partial, file, |answer, out| copy(answer, out).map(drop))?,
        Form::Collection => streamed(answer("ndjson")?, partial, file, |answer, out| query::geojson(answer, out))?,
        Form::ArrowFile => streamed(answer("arrow")?, partial, file, |answer, out| arrow_file(answer, out))?,
    };
    // Before the rename: after a crash the name must not belong to an unwritten file.
    out.sync_all().map_err(failed)?;
    let bytes = out.metadata().map_err(failed)?.len();
    // An existing file is replaced in one step: readers see the old content or the new, never a part.
    std::fs::rename(partial, file).map_err(failed)?;
    Ok(bytes)
}

/// Creates the partial file of a response.
fn streamed(
    mut answer: Box<dyn Read>,
    partial: &Path,
    file: &Path,
    put: impl FnOnce(&mut dyn Read, &mut dyn Write) -> Result<(), Failure>,
) -> Result<File, Failure> {
    let failed = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", file.display()));
    let mut out = BufWriter::with_capacity(1 << 18, File::create(partial).map_err(failed)?);
    put(&mut answer, &mut out)?;
    out.into_inner().map_err(|e| failed(e.into_error()))
}

fn arrow_file(answer: &mut dyn Read, out: &mut dyn Write) -> Result<(), Failure> {
    let broken = |e: ArrowError| Failure::Refused(format!("the answer broke off: {e}"));
    let unwritten = |e: ArrowError| Failure::Usage(format!("the file cannot be written: {e}"));
    let batches = StreamReader::try_new(answer, None).map_err(broken)?;
    let mut writer = FileWriter::try_new(out, &batches.schema()).map_err(unwritten)?;
    for batch in batches {
        writer.write(&batch.map_err(broken)?).map_err(unwritten)?;
    }
    writer.finish().map_err(unwritten)
}
