//! `meridian aggregate`: counts, sums, percentiles and frequent values, by time and by fields.

use crate::args::{SelectionArgs, TargetArgs};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{copy, unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use serde_json::Value;
use std::io::IsTerminal;

/// Count, sum and average events, by time window and by fields
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian aggregate earthquakes --function count
  meridian aggregate earthquakes --function \"count,max(mag)\" --window P1D --datetime 2017-01-01/..
  meridian aggregate ships --function \"count,avg(sog_kn)\" --by status --bbox -75,40,-73,41
  meridian aggregate earthquakes --function \"median(mag),distinct(net),top(type,3)\"
  meridian aggregate ships --by status,vessel --format arrow > ships.arrow
  meridian aggregate earthquakes --window P1M --zone America/Los_Angeles --format json")]
pub struct AggregateArgs {
    /// Collection to query
    pub collection: String,
    /// What to compute, separated by commas: count, sum(F), avg(F), min(F), max(F), median(F), percentile(F,95) of a
    /// numeric field F, distinct(F), top(F,5)
    #[arg(long, default_value = "count", value_name = "FUNCTIONS")]
    pub function: String,
    /// A row for each window of this length: an ISO 8601 duration such as PT1H, P1D or P1M
    #[arg(long, value_name = "DURATION")]
    pub window: Option<String>,
    /// Time zone of the windows' midnights [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
    /// A row for each value of this field, or for each combination of values of several, separated by commas
    #[arg(long, value_name = "FIELDS")]
    pub by: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// table, json, csv or arrow (a stream)
    #[arg(long, default_value = "table", value_parser = ["table", "json", "csv", "arrow"])]
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
    if args.format == "arrow" && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("arrow is not for a terminal: send it to a file with >".to_owned()));
    }
    let client = Client::open(&args.target.resolve())?;
    let path = ["collections", &args.collection, "aggregate"];
    match args.format.as_str() {
        format @ ("csv" | "arrow") => {
            parameters.push(("f", format.to_owned()));
            let mut answer = client.stream(&path, &parameters)?;
            with_stdout(|out| copy(&mut answer, out).map(drop))?;
        }
        format => {
            let answer = client.json(&path, &parameters)?;
            with_stdout(|out| match format {
                "json" => writeln!(out, "{answer:#}").map_err(|e| unwritable(&e)),
                _ => {
                    let groups = answer.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
                    table(&groups).print(&mut { out }).map_err(|e| unwritable(&e))
                }
            })?;
        }
    }
    client.close()
}

/// Returns the columns of a group with their values: one per field, and an error column only if there is an error.
fn cells(group: &Value) -> Vec<(String, &Value)> {
    let mut cells = Vec::new();
    for (name, value) in group.as_object().into_iter().flatten() {
        match value {
            Value::Object(fields) if name == "by" => {
                cells.extend(fields.iter().map(|(field, value)| (format!("by({field})"), value)));
            }
            value if name.starts_with("error(") && value.as_f64() == Some(0.0) => {}
            value => cells.push((name.clone(), value)),
        }
    }
    cells
}

/// Returns the columns of all groups, in the order in which they first appear.
fn columns(groups: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // From all groups: a group without a value lacks the member.
    for (name, _) in groups.iter().flat_map(cells) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        // The most frequent values.
        Some(Value::Array(top)) => {
            let one = |entry: &Value| format!("{} ({})", text(entry.get("value")), text(entry.get("count")));
            top.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

fn table(groups: &[Value]) -> Table {
    let names = columns(groups);
    let mut table = Table::new(names.clone());
    for group in groups {
        let cells = cells(group);
        let of = |name: &String| text(cells.iter().find(|(other, _)| other == name).map(|(_, value)| *value));
        table.push(names.iter().map(of).collect());
    }
    table
}
