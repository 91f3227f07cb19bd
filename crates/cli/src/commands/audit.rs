//! `meridian audit`: the record of administrative acts.

use crate::args::OwnerArgs;
use crate::commands::administration::as_owner;
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use meridian_model::Interval;
use serde_json::Value;
use std::collections::BTreeMap;

/// Lines read with one request.
const PAGE: &str = "1000";
/// Max rows of a table, which is kept in memory to compute the widths of its columns.
const ROWS_MAX: usize = 10_000;

/// Show the record of administrative acts, oldest first
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian audit
  meridian audit --datetime 2026-11-01/..
  meridian audit --json > audit.ndjson  an object a line, with the hash of the line before

An operator sees all acts, an admin the acts of its tenant. On a data folder no token is needed. `meridian check` verifies
that no line was changed.")]
pub struct AuditArgs {
    /// Only acts of this time: a date, or START/END with .. for an open end
    #[arg(long, value_name = "TIME")]
    pub datetime: Option<String>,
    /// Print a JSON object for each line of the log
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: OwnerArgs,
}

/// Runs the command.
pub fn run(args: &AuditArgs) -> Result<(), Failure> {
    if let Some(datetime) = &args.datetime {
        Interval::parse(datetime).map_err(|e| Failure::option("--datetime", &e))?;
    }
    as_owner(&args.target, None, |client| match args.json {
        true => with_stdout(|out| {
            pages(client, args, |acts| {
                acts.iter().try_for_each(|act| writeln!(out, "{act}")).map_err(|e| unwritable(&e))
            })
        }),
        false => table(client, args),
    })
}

/// Requests the pages in sequence, until the last.
fn pages(
    client: &Client,
    args: &AuditArgs,
    mut take: impl FnMut(&[Value]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = "0".to_owned();
    loop {
        let mut parameters = vec![("after", after), ("limit", PAGE.to_owned())];
        parameters.extend(args.datetime.clone().map(|datetime| ("datetime", datetime)));
        let page = client.json(&["audit"], &parameters)?;
        // Only the position is taken from the link: its address may be one that this client cannot reach.
        let next = page["links"][0]["href"]
            .as_str()
            .and_then(|url| url.split(['?', '&']).find_map(|pair| pair.strip_prefix("after=")).map(str::to_owned));
        take(page["acts"].as_array().map(Vec::as_slice).unwrap_or_default())?;
        match next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}

/// Prints a row for each act. Its start is shown only if its end is missing.
fn table(client: &Client, args: &AuditArgs) -> Result<(), Failure> {
    let columns = ["time", "who", "from", "tenant", "act", "target", "status", "change"];
    // By number, so that rows are in order of time although ends replace starts.
    let mut rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    pages(client, args, |acts| {
        for act in acts {
            let text = |name: &&str| match &act[*name] {
                Value::Null if *name == "status" => "began".to_owned(),
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            // The line of an end replaces the line of its start.
            if let Some(began) = act["began"].as_u64() {
                rows.remove(&began);
            }
            // The number that other lines refer to.
            let n = act["first"].as_u64().or_else(|| act["n"].as_u64());
            rows.insert(n.unwrap_or_default(), columns.iter().map(text).collect());
        }
        match rows.len() > ROWS_MAX {
            true => Err(Failure::Usage(format!(
                "there are more than {ROWS_MAX} acts: name a shorter time with --datetime, or print them with --json"
            ))),
            false => Ok(()),
        }
    })?;
    let mut table = Table::new(columns);
    rows.into_values().for_each(|row| table.push(row));
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}
