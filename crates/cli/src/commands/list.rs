//! `meridian list`: the collections of a folder or of a server.

use crate::args::TargetArgs;
use crate::commands::administration::{print, text};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{remark, say};
use crate::units::{count_text, size_short};
use clap::Args;
use serde_json::Value;

/// List the collections, with their events, bytes and times
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian list
  meridian list --json
  meridian list --url http://127.0.0.1:7117")]
pub struct ListArgs {
    /// Print the server's document of the collections instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &ListArgs) -> Result<(), Failure> {
    let client = Client::open(&args.target.resolve())?;
    let answer = client.json(&["collections"], &[])?;
    client.close()?;
    if args.json {
        say(&format!("{answer:#}"));
        return Ok(());
    }
    let collections = answer["collections"].as_array().map_or(&[][..], Vec::as_slice);
    if collections.is_empty() {
        remark("no collection; `meridian load NAME FILE` makes one");
        return Ok(());
    }
    print(["name", "events", "size", "from", "to", "mode", "durability"], collections, |collection| {
        let [from, to] = interval(collection);
        [
            text(collection, "id"),
            // A damaged collection has no count; `describe` shows the reason.
            collection["itemCount"].as_u64().map_or_else(|| text(collection, "status"), count_text),
            collection["bytes"].as_u64().map_or_else(String::new, size_short),
            from,
            to,
            mode(collection),
            text(collection, "durability"),
        ]
    })
}

/// Returns `latest` or `history`; empty if unknown.
pub fn mode(collection: &Value) -> String {
    match (&collection["mode"], collection["itemCount"].is_u64()) {
        (Value::String(mode), _) => mode.clone(),
        (_, true) => "history".to_owned(),
        (_, false) => String::new(),
    }
}

/// Returns the first and the last time of its events, to the second; empty without events.
pub fn interval(collection: &Value) -> [String; 2] {
    let interval = &collection["extent"]["temporal"]["interval"][0];
    [0, 1].map(|end| {
        let time = interval[end].as_str().unwrap_or_default();
        match time.split_once('.') {
            Some((whole, _)) => format!("{whole}Z"),
            None => time.to_owned(),
        }
    })
}
