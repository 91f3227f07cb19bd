//! `meridian rename`: renames a collection.

use crate::args::TargetArgs;
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::say;
use crate::units::count_text;
use clap::Args;
use serde_json::json;

/// Give a collection another name
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian rename ships vessels
  meridian rename vessels ships --url http://127.0.0.1:7117

Clients find it under the new name alone. A collection in a bucket keeps its name.")]
pub struct RenameArgs {
    /// Collection to rename
    pub collection: String,
    /// Its new name, which no collection may have
    pub name: String,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &RenameArgs) -> Result<(), Failure> {
    let client = Client::open(&args.target.resolve())?;
    let renamed = rename(&client, &args.collection, &args.name);
    // The folder is closed before an error is returned, so that its log is synced.
    client.close()?;
    let events = renamed?;
    let word = if events == 1 { "event" } else { "events" };
    say(&format!("{} is now {}, {} {word}", args.collection, args.name, count_text(events)));
    Ok(())
}

/// Returns how many events the collection has.
fn rename(client: &Client, name: &str, new: &str) -> Result<u64, Failure> {
    client.patch(&["collections", name], &json!({ "id": new }))?;
    let described = client.json(&["collections", new], &[])?;
    described["itemCount"].as_u64().ok_or_else(|| Failure::Refused("the answer lacks the number of events".to_owned()))
}
