//! `meridian export`: writes a collection to a file for other programs.

use crate::args::{SelectionArgs, TargetArgs};
use crate::client::Client;
use crate::commands::query;
use crate::failure::Failure;
use crate::output::{copy, say};
use crate::units::size_short;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use clap::Args;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Write a collection to a file: GeoParquet, or the format of the file's extension
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian export earthquakes earthquakes.parquet
  meridian export earthquakes california.geojson --bbox -125,32,-114,42
  meridian export ships ships.csv --datetime 2022-01-03T12:00:00Z/..

Extensions: .parquet (GeoParquet 1.1, for DuckDB, GeoPandas, QGIS), .arrow (an Arrow file), .arrows
(an Arrow stream), .csv, .geojson, .ndjson or .geojsonl, .geojsons. The file is written completely or
not at all.")]
pub struct ExportArgs {
    /// Collection to write
    pub collection: String,
    /// File to write; an existing one is replaced
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let ending = args.file.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let (wire, form) = match ending.as_str() {
        "parquet" | "geoparquet" => ("parquet", Form::AsItComes),
        "arrow" => ("arrow", Form::ArrowFile),
        "arrows" => ("arrow", Form::AsItComes),
        "csv" => ("csv", Form::AsItComes),
        "geojson" | "json" => ("ndjson", Form::Collection),
        "ndjson" | "jsonl" | "geojsonl" => ("ndjson", Form::AsItComes),
        "geojsons" => ("geojsonseq", Form::AsItComes),
        _ => {
            return Err(Failure::Usage(format!(
                "{}: expected a file that ends in .parquet, .arrow, .arrows, .csv, .geojson, .ndjson, .geojsonl or .geojsons",
                args.file.display()
            )));
        }
    };
    let mut parameters = args.selection.parameters()?;
    parameters.push(("f", wire.to_owned()));
    let client = Client::open(&args.target.resolve())?;
    let mut answer = client.stream(&["collections", &args.collection, "items"], &parameters)?;
    let partial = partial_name(&args.file);
    let outcome = write(&mut answer, form, &partial, &args.file);
    // Before the error is returned: a partial file must not stay.
    if outcome.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    say(&format!("{}: {}", args.file.display(), size_short(outcome?)));
    drop(answer);
    client.close()
}

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    // With the process id: two exports to one file must not write into each other's.
    name.push(format!(".{}.partial", std::process::id()));
    file.with_file_name(name)
}

/// The conversion of the server's answer on its way into the file.
#[derive(Clone, Copy)]
enum Form {
    AsItComes,
    /// Features, a line each, become one collection.
    Collection,
    /// An Arrow stream becomes a file that can be read from its end.
    ArrowFile,
}

fn write(answer: &mut dyn std::io::Read, form: Form, partial: &Path, file: &Path) -> Result<u64, Failure> {
    let failed = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", file.display()));
    let mut out = BufWriter::with_capacity(1 << 18, File::create(partial).map_err(failed)?);
    match form {
        Form::AsItComes => copy(answer, &mut out).map(drop)?,
        Form::Collection => query::geojson(answer, u64::MAX, &mut out)?,
        Form::ArrowFile => arrow_file(answer, &mut out)?,
    }
    out.flush().map_err(failed)?;
    // Before the rename: after a crash the name must not belong to an unwritten file.
    out.get_ref().sync_all().map_err(failed)?;
    let bytes = out.get_ref().metadata().map_err(failed)?.len();
    // An existing file is replaced in one step: readers find the old content or the new, never a part.
    std::fs::rename(partial, file).map_err(failed)?;
    Ok(bytes)
}

fn arrow_file(answer: &mut dyn std::io::Read, out: &mut dyn Write) -> Result<(), Failure> {
    let broken = |e: ArrowError| Failure::Refused(format!("the answer broke off: {e}"));
    let unwritten = |e: ArrowError| Failure::Usage(format!("the file cannot be written: {e}"));
    let batches = StreamReader::try_new(answer, None).map_err(broken)?;
    let mut writer = FileWriter::try_new(out, &batches.schema()).map_err(unwritten)?;
    for batch in batches {
        writer.write(&batch.map_err(broken)?).map_err(unwritten)?;
    }
    writer.finish().map_err(unwritten)
}
