//! `meridian export`: a collection into a file that other programs read.

use crate::args::{SelectionArgs, TargetArgs};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{copy, say};
use crate::units::size_short;
use clap::Args;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Write a collection to a file: GeoParquet, or what the file's ending says
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian export quakes quakes.parquet
  meridian export quakes california.parquet --bbox -125,32,-114,42
  meridian export ships ships.csv --datetime 2022-01-03T12:00:00Z/..

Endings: .parquet (GeoParquet 1.1, for DuckDB, GeoPandas, QGIS), .arrow, .csv, .ndjson, .geojsonl, .geojsons.
The file is there whole or not at all.")]
pub struct ExportArgs {
    /// Collection to write
    pub collection: String,
    /// File to write; one that is there is replaced
    pub file: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let ending = args.file.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let wire = match ending.as_str() {
        "parquet" | "geoparquet" => "parquet",
        "arrow" | "arrows" => "arrow",
        "csv" => "csv",
        "ndjson" | "jsonl" | "geojsonl" => "ndjson",
        "geojsons" => "geojsonseq",
        _ => {
            return Err(Failure::Usage(format!(
                "{}: expected a file that ends in .parquet, .arrow, .csv, .ndjson, .geojsonl or .geojsons",
                args.file.display()
            )));
        }
    };
    let mut parameters = args.selection.parameters()?;
    parameters.push(("f", wire.to_owned()));
    let client = Client::open(&args.target.resolve())?;
    let mut answer = client.stream(&["collections", &args.collection, "items"], &parameters)?;
    let partial = partial_name(&args.file);
    let outcome = write(&mut answer, &partial, &args.file);
    if outcome.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    say(&format!("{}: {}", args.file.display(), size_short(outcome?)));
    drop(answer);
    client.close()
}

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    file.with_file_name(name)
}

fn write(answer: &mut dyn std::io::Read, partial: &Path, file: &Path) -> Result<u64, Failure> {
    let failed = |e: std::io::Error| Failure::Usage(format!("{}: cannot be written: {e}", file.display()));
    let mut out = BufWriter::with_capacity(1 << 18, File::create(partial).map_err(failed)?);
    let bytes = copy(answer, &mut out)?;
    out.flush().map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)?;
    std::fs::rename(partial, file).map_err(failed)?;
    Ok(bytes)
}
