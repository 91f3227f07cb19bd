//! `meridian delete`: deletes the events that match.

use crate::args::{SelectionArgs, TargetArgs};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::say;
use crate::units::count_text;
use clap::Args;

/// Delete the events of a collection that match
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian delete earthquakes --filter \"mag < 0\" --dry-run  only counts them
  meridian delete earthquakes --filter \"mag < 0\"
  meridian delete earthquakes --datetime ../1970-01-01

At least one condition is needed; --filter TRUE deletes all events. `meridian drop` removes the collection too.")]
pub struct DeleteArgs {
    /// Collection to delete from
    pub collection: String,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Count the events that match, and delete none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &DeleteArgs) -> Result<(), Failure> {
    let mut parameters = args.selection.parameters()?;
    if parameters.is_empty() {
        let what = "which events? name a condition, such as --filter \"mag < 0\"; --filter TRUE deletes all";
        return Err(Failure::Usage(what.to_owned()));
    }
    let client = Client::open(&args.target.resolve())?;
    let path = |last| ["collections", args.collection.as_str(), last];
    let (number, word) = if args.dry_run {
        parameters.push(("function", "count".to_owned()));
        (client.json(&path("aggregate"), &parameters)?["groups"][0]["count"].as_u64(), "match")
    } else {
        (client.delete_matching(&path("items"), &parameters)?["deleted"].as_u64(), "deleted")
    };
    client.close()?;
    let number = number.ok_or_else(|| Failure::Refused("the answer lacks the number of events".to_owned()))?;
    let events = if number == 1 { "event" } else { "events" };
    say(&format!("{} {events} {}", count_text(number), if (number, word) == (1, "match") { "matches" } else { word }));
    Ok(())
}
