//! `meridian query`: reads events from a collection.

use crate::args::{SelectionArgs, TargetArgs};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{copy, remark, unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};

/// Default rows of a table.
const TABLE_ROWS: u64 = 10;
/// Max rows of a table, which holds them until the widths of its columns are known.
const TABLE_ROWS_MAX: u64 = 10_000;

/// Query the events of a collection
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian query earthquakes --filter \"mag > 7\"
  meridian query earthquakes --bbox -125,32,-114,42 --datetime 2017-01-01/.. --limit 20
  meridian query earthquakes --near 139.69,35.69,200000 --limit 5
  meridian query ships --filter \"vessel = 'v00001'\" --format geojson > track.geojson
  meridian query earthquakes --filter \"mag > 7\" --format flatgeobuf > strong.fgb
  meridian query earthquakes --sortby=-mag --limit 10 --url http://127.0.0.1:7117

A table shows 10 events unless --limit is given, and at most 10,000; the other formats return all of
them. arrow is a stream (.arrows), and flatgeobuf has no spatial index: meridian export writes .arrow files, and
.fgb files with an index. The html of the API is a page for browsers, and is not offered here.")]
pub struct QueryArgs {
    /// Collection to query
    pub collection: String,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Max number of events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Order by these fields, with - for descending, such as -mag,time (needs --limit)
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    pub sortby: Option<String>,
    /// Only these fields, such as mag,place
    #[arg(long, value_name = "FIELDS")]
    pub properties: Option<String>,
    /// table, geojson, geojsonseq, ndjson, csv, geoparquet, arrow or flatgeobuf
    #[arg(
        long,
        default_value = "table",
        value_parser = ["table", "geojson", "geojsonseq", "ndjson", "csv", "geoparquet", "arrow", "flatgeobuf"]
    )]
    pub format: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &QueryArgs) -> Result<(), Failure> {
    let mut parameters = args.selection.parameters()?;
    let format = args.format.as_str();
    if args.sortby.is_some() && args.limit.is_none() && format != "table" {
        return Err(Failure::Usage("--sortby needs a --limit".to_owned()));
    }
    if matches!(format, "geoparquet" | "arrow" | "flatgeobuf") && std::io::stdout().is_terminal() {
        return Err(Failure::Usage(format!("{format} is not for a terminal: send it to a file with >")));
    }
    // None of these has links to further pages, so the server sends all events, or as many as the limit says.
    let wire = match format {
        "table" => "csv",
        "geojson" => "ndjson",
        "geoparquet" => "parquet",
        same => same,
    };
    parameters.push(("f", wire.to_owned()));
    let rows = args.limit.unwrap_or(TABLE_ROWS).min(TABLE_ROWS_MAX);
    // One more than a table shows, to tell whether there are more.
    let limit = if format == "table" { Some(rows + 1) } else { args.limit };
    for (name, value) in [
        ("limit", limit.map(|n| n.to_string())),
        ("sortby", args.sortby.clone()),
        ("properties", args.properties.clone()),
    ] {
        parameters.extend(value.map(|value| (name, value)));
    }
    let client = Client::open(&args.target.resolve())?;
    let mut answer = client.stream(&["collections", &args.collection, "items"], &parameters)?;
    match format {
        "table" => table(answer, rows)?,
        "geojson" => with_stdout(|out| geojson(answer, out))?,
        _ => with_stdout(|out| copy(&mut answer, out).map(drop))?,
    }
    // After the response: a folder's server ends with its client.
    client.close()
}

fn table(answer: impl Read, most: u64) -> Result<(), Failure> {
    let table = Table::from_csv(answer, most as usize)?;
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))?;
    match (table.rows(), table.has_more()) {
        (0, _) => remark("no event matches"),
        (n, true) if most == TABLE_ROWS_MAX => {
            remark(&format!(
                "the first {n}, the most that a table shows; there are more: --format csv shows them, and meridian \
                 export writes them to a file"
            ));
        }
        (n, true) => remark(&format!("the first {n}; there are more: --limit N shows N, other formats give all")),
        (1, false) => remark("1 event"),
        (n, false) => remark(&format!("{n} events")),
    }
    Ok(())
}

/// Writes features, one per line, as one collection.
pub fn geojson(answer: impl Read, out: &mut dyn Write) -> Result<(), Failure> {
    let broken = |e: std::io::Error| Failure::Refused(format!("the answer broke off: {e}"));
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| unwritable(&e));
    put(b"{\"type\":\"FeatureCollection\",\"features\":[\n")?;
    let mut reader = BufReader::with_capacity(1 << 16, answer);
    let mut line = Vec::new();
    let mut between: &[u8] = b"";
    while reader.read_until(b'\n', &mut line).map_err(broken)? > 0 {
        put(between)?;
        put(line.strip_suffix(b"\n").unwrap_or(&line))?;
        between = b",\n";
        line.clear();
    }
    put(b"\n]}\n")
}
