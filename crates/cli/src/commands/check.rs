//! `meridian check`: everything in a data folder read and verified.

use crate::args::folder_exists;
use crate::collection::TENANT;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_store::seams::Seams;
use meridian_store::{Options, Repair, Store};
use std::path::PathBuf;

/// Read everything in a data folder and verify every checksum and tree
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian check
  meridian check --data /srv/events
  meridian check --repair --data /srv/events

Ends with 0 where all is well, with 1 and a list of what is bad otherwise. The folder must not be in use. A check
changes nothing, but for what every start puts right: a torn tail of the log, half-made files after a crash, and what
can be made anew from what is whole, which the list names.

A repair keeps what reads of a collection that is damaged, so that it takes writes again. It deletes nothing: what is
damaged or belongs to nothing goes to the folder lost of the collection. It ends with 1 where something is missing.")]
pub struct CheckArgs {
    /// Folder to check
    #[arg(long, value_name = "DIR", default_value = "./meridian-data")]
    pub data: PathBuf,
    /// First mend the collections that cannot be opened, lack something, take no writes or have events that do not read
    #[arg(long)]
    pub repair: bool,
}

/// Says what a repair found, did and misses.
fn tell(repair: &Repair) {
    let outcome = if repair.mended { "is put together again" } else { "could not be put together" };
    say(&format!("the collection {} {outcome}", repair.name));
    repair.done.iter().for_each(|what| say(&format!("  {what}")));
    repair.missing.iter().for_each(|what| say(&format!("  missing: {what}")));
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    folder_exists(&args.data, "")?;
    // Opening it would make it a data folder.
    if std::fs::read_dir(&args.data).is_ok_and(|mut names| names.next().is_none()) {
        return Err(Failure::Usage(format!("{} is empty: there is nothing to check", args.data.display())));
    }
    // Nothing is let go, flushed or merged meanwhile.
    let options = Options { background: false, ..Options::at(&args.data) };
    let store = Store::open(options, Seams::real())?;
    let repairs = if args.repair { store.repair() } else { Vec::new() };
    repairs.iter().for_each(tell);
    let problems = store.check();
    for problem in &problems {
        say(&problem.to_string());
    }
    for damaged in store.damaged(TENANT) {
        say(&format!("the collection {} is not served: {}", damaged.name, damaged.cure));
    }
    for collection in store.list(TENANT).iter().filter(|collection| collection.stats().refuses.is_some()) {
        let name = collection.name();
        say(&format!(
            "the collection {name} takes no writes: `meridian check --repair` keeps what reads of it, and deletes nothing"
        ));
    }
    // Closing would flush: a check changes nothing.
    drop(store);
    let missing: usize = repairs.iter().map(|repair| repair.missing.len()).sum();
    if problems.is_empty() && missing > 0 {
        let data = args.data.display();
        return Err(Failure::Bad(format!(
            "{data}: repaired, and the rest is in order, but for what is missing as said"
        )));
    }
    if problems.is_empty() {
        say(&format!("{}: everything is in order", args.data.display()));
        return Ok(());
    }
    let things = if problems.len() == 1 { "problem" } else { "problems" };
    Err(Failure::Bad(format!("{}: {} {things}", args.data.display(), problems.len())))
}
