//! `meridian describe`: the fields, the extent and the settings of one collection.

use crate::args::TargetArgs;
use crate::commands::administration::text;
use crate::commands::client::Client;
use crate::commands::list::{interval, mode};
use crate::failure::Failure;
use crate::output::say;
use crate::schema_arg;
use crate::units::{count_text, size_short, size_text};
use clap::Args;
use meridian_model::schema_json;
use serde_json::{Value, json};

/// Describe a collection: its fields, where and when its events are, its settings
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian describe earthquakes
  meridian describe earthquakes --json")]
pub struct DescribeArgs {
    /// Collection to describe
    pub collection: String,
    /// Print one JSON object with the members `collection` and `schema`, as the server's documents have them
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &DescribeArgs) -> Result<(), Failure> {
    let client = Client::open(&args.target.resolve())?;
    let collection = client.json(&["collections", &args.collection], &[])?;
    // A damaged collection has no schema to show.
    let damaged = collection["status"].is_string();
    let schema = if damaged { Value::Null } else { client.json(&["collections", &args.collection, "schema"], &[])? };
    client.close()?;
    if args.json {
        say(&format!("{:#}", json!({ "collection": collection, "schema": schema })));
        return Ok(());
    }
    if damaged {
        let why = text(&collection, "description");
        return Err(Failure::Bad(format!("{} is damaged: {why}", args.collection)));
    }
    let read = schema_json::from_json(&schema)
        .map_err(|e| Failure::Refused(format!("the server's schema is not one this program knows: {e}")))?;
    let mut lines = vec![args.collection.clone()];
    for (name, value) in facts(&collection) {
        lines.push(format!("  {name:<12}{value}"));
    }
    lines.push(String::new());
    lines.push(schema_arg::describe(&read).trim_end().to_owned());
    say(&lines.join("\n"));
    Ok(())
}

/// Returns the document of a collection as rows, in the order in which people look for them.
fn facts(collection: &Value) -> Vec<(&'static str, String)> {
    let known = |name: &str| Some(text(collection, name)).filter(|text| !text.is_empty());
    let title = known("title").filter(|title| Some(title) != known("id").as_ref());
    let number = |name: &str| collection[name].as_u64();
    let box_of = || {
        let bbox = collection["extent"]["spatial"]["bbox"][0].as_array()?;
        Some(bbox.iter().map(Value::to_string).collect::<Vec<_>>().join(","))
    };
    let [from, to] = interval(collection);
    let all = [
        ("title", title),
        ("about", known("description")),
        ("events", number("itemCount").map(count_text)),
        ("size", number("bytes").map(size_short)),
        ("bbox", box_of()),
        ("from", Some(from).filter(|time| !time.is_empty())),
        ("to", Some(to).filter(|time| !time.is_empty())),
        ("mode", Some(mode(collection))),
        ("durability", known("durability")),
        ("retention", known("retention").or_else(|| number("retention_bytes").is_none().then(|| "none".to_owned()))),
        ("max size", number("retention_bytes").map(size_text)),
        ("partitions", number("partitions").filter(|&n| n > 1).map(count_text)),
        ("read-only", known("refuses_writes")),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
