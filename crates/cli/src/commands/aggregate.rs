//! `meridian aggregate`: counts, sums and extremes, by time and by field.

use crate::args::{SelectionArgs, TargetArgs};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use serde_json::Value;

/// Count, sum and average events, by time window and by field
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian aggregate earthquakes --function count
  meridian aggregate earthquakes --function \"count,max(mag)\" --window P1D --datetime 2017-01-01/..
  meridian aggregate ships --function \"count,avg(sog_kn)\" --by status --bbox -75,40,-73,41
  meridian aggregate earthquakes --window P1M --zone America/Los_Angeles --format json")]
pub struct AggregateArgs {
    /// Collection to query
    pub collection: String,
    /// What to compute, separated by commas: count, sum(F), avg(F), min(F), max(F) of a numeric field F
    #[arg(long, default_value = "count", value_name = "FUNCTIONS")]
    pub function: String,
    /// A row for each window of this length: an ISO 8601 duration such as PT1H, P1D or P1M
    #[arg(long, value_name = "DURATION")]
    pub window: Option<String>,
    /// Time zone of the windows' midnights [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// A row for each value of this field
    #[arg(long, value_name = "FIELD")]
    pub by: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// table, json or csv
    #[arg(long, default_value = "table", value_parser = ["table", "json", "csv"])]
    pub format: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &AggregateArgs) -> Result<(), Failure> {
    let mut parameters = args.selection.parameters()?;
    parameters.push(("function", args.function.clone()));
    for (name, value) in [("window", &args.window), ("zone", &args.zone), ("by", &args.by)] {
        if let Some(value) = value {
            parameters.push((name, value.clone()));
        }
    }
    let client = Client::open(&args.target.resolve())?;
    let answer = client.json(&["collections", &args.collection, "aggregate"], &parameters)?;
    let groups = answer.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
    with_stdout(|out| match args.format.as_str() {
        "json" => writeln!(out, "{answer:#}").map_err(|e| unwritable(&e)),
        "csv" => write_csv(&groups, out),
        _ => table(&groups).print(&mut { out }).map_err(|e| unwritable(&e)),
    })?;
    client.close()
}

/// The names of a group's members, in the order they first come.
fn columns(groups: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // From all groups: a group without a value lacks the member.
    for key in groups.iter().filter_map(Value::as_object).flat_map(|g| g.keys()) {
        if !names.contains(key) {
            names.push(key.clone());
        }
    }
    names
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn table(groups: &[Value]) -> Table {
    let names = columns(groups);
    let mut table = Table::new(names.clone());
    for group in groups {
        table.push(names.iter().map(|n| text(group.get(n))).collect());
    }
    table
}

fn write_csv(groups: &[Value], out: &mut dyn std::io::Write) -> Result<(), Failure> {
    let failed = |e: csv::Error| unwritable(&std::io::Error::other(e));
    let names = columns(groups);
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&names).map_err(failed)?;
    for group in groups {
        writer.write_record(names.iter().map(|n| text(group.get(n)))).map_err(failed)?;
    }
    writer.flush().map_err(|e| unwritable(&e))
}
