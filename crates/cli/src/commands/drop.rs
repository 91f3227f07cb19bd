//! `meridian drop`: removes a collection with all its events.

use crate::args::TargetArgs;
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::say;
use crate::units::count_text;
use clap::Args;

/// Remove a collection with all its events
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian drop tremors
  meridian drop fleet --yes

A collection with events is kept, and their number is printed, unless --yes is given.")]
pub struct DropArgs {
    /// Collection to remove
    pub collection: String,
    /// Remove it, however many events it has
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &DropArgs) -> Result<(), Failure> {
    let name = &args.collection;
    let client = Client::open(&args.target.resolve())?;
    let dropped = drop(&client, name, args.yes);
    // The folder is closed before an error is returned, so that its log is synced.
    client.close()?;
    dropped?;
    say(&format!("collection {name} is removed"));
    Ok(())
}

fn drop(client: &Client, name: &str, yes: bool) -> Result<(), Failure> {
    let path = ["collections", name];
    if !yes {
        let events = client.json(&path, &[])?["itemCount"].as_u64().unwrap_or_default();
        if events > 0 {
            let events = if events == 1 { "1 event".to_owned() } else { format!("{} events", count_text(events)) };
            return Err(Failure::Refused(format!("{name} has {events}: --yes removes it with what it holds")));
        }
    }
    match client.delete(&path)? {
        true => Ok(()),
        false => Err(Failure::Refused(format!("there is no collection {name}"))),
    }
}
