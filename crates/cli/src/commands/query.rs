//! `meridian query`: reads events from a collection.

use crate::args::{SelectionArgs, TargetArgs};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{copy, unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};

/// Default rows of a table.
const TABLE_ROWS: u64 = 10;
/// Max limit of the API; without a limit it returns all events.
const LIMIT_MAX: u64 = 10_000;

/// Query the events of a collection
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian query earthquakes --filter \"mag > 7\"
  meridian query earthquakes --bbox -125,32,-114,42 --datetime 2017-01-01/.. --limit 20
  meridian query earthquakes --near 139.69,35.69,200000 --limit 5
  meridian query ships --filter \"vessel = 'v00001'\" --format geojson > track.geojson
  meridian query earthquakes --sortby=-mag --limit 10 --url http://127.0.0.1:7117

A table shows 10 events unless --limit is given; the other formats return all of them. arrow is
a stream (.arrows): meridian export writes .arrow files.")]
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
    /// table, geojson, ndjson, csv, geoparquet or arrow
    #[arg(long, default_value = "table", value_parser = ["table", "geojson", "ndjson", "csv", "geoparquet", "arrow"])]
    pub format: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &QueryArgs) -> Result<(), Failure> {
    let mut parameters = args.selection.parameters()?;
    let limit = match args.format.as_str() {
        "table" => Some(args.limit.unwrap_or(TABLE_ROWS)),
        _ => args.limit,
    };
    // These cannot be truncated to a number of events here, so the server must do it.
    let binary = matches!(args.format.as_str(), "geoparquet" | "arrow");
    if limit.is_some_and(|n| n > LIMIT_MAX) && (binary || args.sortby.is_some()) {
        return Err(Failure::Usage(format!(
            "--limit: at most {LIMIT_MAX} with --sortby, geoparquet and arrow; without a limit all events come"
        )));
    }
    if args.sortby.is_some() && limit.is_none() {
        return Err(Failure::Usage("--sortby needs a --limit".to_owned()));
    }
    if binary && std::io::stdout().is_terminal() {
        return Err(Failure::Usage(format!("{} is not for a terminal: send it to a file with >", args.format)));
    }
    let wire = match args.format.as_str() {
        "table" | "csv" => "csv",
        "geojson" | "ndjson" => "ndjson",
        "geoparquet" => "parquet",
        _ => "arrow",
    };
    parameters.push(("f", wire.to_owned()));
    // One more than a table shows, to tell whether there are more.
    let asked = if args.format == "table" { limit.map(|n| n + 1) } else { limit };
    if let Some(n) = asked.filter(|&n| n <= LIMIT_MAX) {
        parameters.push(("limit", n.to_string()));
    }
    if let Some(fields) = &args.sortby {
        parameters.push(("sortby", fields.clone()));
    }
    if let Some(fields) = &args.properties {
        parameters.push(("properties", fields.clone()));
    }
    let client = Client::open(&args.target.resolve())?;
    let answer = client.stream(&["collections", &args.collection, "items"], &parameters)?;
    show(answer, &args.format, limit.unwrap_or(u64::MAX))?;
    // After the response: a folder's server ends with its client.
    client.close()
}

fn show(mut answer: Box<dyn Read + '_>, format: &str, most: u64) -> Result<(), Failure> {
    match format {
        "table" => table(answer, most),
        "geojson" => with_stdout(|out| geojson(answer, most, out)),
        "ndjson" => with_stdout(|out| lines(answer, most, out)),
        "csv" => with_stdout(|out| csv(answer, most, out)),
        _ => with_stdout(|out| copy(&mut answer, out).map(drop)),
    }
}

fn table(answer: impl Read, most: u64) -> Result<(), Failure> {
    let mut table = Table::from_csv(answer)?;
    let more = table.rows() as u64 > most;
    table.keep(most as usize);
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))?;
    let shown = table.rows();
    match (shown, more) {
        (0, _) => eprintln!("no event matches"),
        (n, true) => eprintln!("the first {n}; there are more: --limit N shows N, other formats give all"),
        (1, false) => eprintln!("1 event"),
        (n, false) => eprintln!("{n} events"),
    }
    Ok(())
}

fn lines(answer: impl Read, most: u64, out: &mut dyn Write) -> Result<(), Failure> {
    each_line(answer, most, |_, line| {
        out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(|e| unwritable(&e))
    })
}

/// Writes features, one per line, as one collection.
pub fn geojson(answer: impl Read, most: u64, out: &mut dyn Write) -> Result<(), Failure> {
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| unwritable(&e));
    put(b"{\"type\":\"FeatureCollection\",\"features\":[\n")?;
    each_line(answer, most, |n, line| {
        if n > 0 {
            put(b",\n")?;
        }
        put(line)
    })?;
    put(b"\n]}\n")
}

fn each_line(
    answer: impl Read,
    most: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let broken = |e: std::io::Error| Failure::Refused(format!("the answer broke off: {e}"));
    let mut reader = BufReader::with_capacity(1 << 16, answer);
    let mut line = Vec::new();
    // The limit also ends the read here: without one in the request, the server sends all events.
    for n in 0..most {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(broken)? == 0 {
            break;
        }
        each(n, line.strip_suffix(b"\n").unwrap_or(&line))?;
    }
    Ok(())
}

fn csv(answer: impl Read, most: u64, out: &mut dyn Write) -> Result<(), Failure> {
    if most == u64::MAX {
        return copy(&mut { answer }, out).map(drop);
    }
    // By record, since a quoted text may hold line breaks.
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(answer);
    let mut writer = csv::Writer::from_writer(out);
    for record in reader.byte_records().take(most.saturating_add(1) as usize) {
        let record = record.map_err(|e| Failure::Refused(format!("the answer broke off: {e}")))?;
        writer.write_byte_record(&record).map_err(|e| unwritable(&std::io::Error::other(e)))?;
    }
    writer.flush().map_err(|e| unwritable(&e))
}
