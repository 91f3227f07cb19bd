//! `meridian check`: everything in a data folder read and verified.

use crate::args::folder_exists;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_store::seams::Seams;
use meridian_store::{Options, Store};
use std::path::PathBuf;

/// Read everything in a data folder and verify every checksum and tree
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian check
  meridian check --data /srv/events

Ends with 0 where all is well, with 1 and a list of what is bad otherwise. The folder must not be in use. A check
changes nothing, but for what every start puts right after a crash: a torn tail of the log, half-made files.")]
pub struct CheckArgs {
    /// Folder to check
    #[arg(long, value_name = "DIR", default_value = "./meridian-data")]
    pub data: PathBuf,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    folder_exists(&args.data)?;
    // Opening it would make it a data folder.
    if std::fs::read_dir(&args.data).is_ok_and(|mut names| names.next().is_none()) {
        return Err(Failure::Usage(format!("{} is empty: there is nothing to check", args.data.display())));
    }
    // Nothing is let go, flushed or merged meanwhile.
    let options = Options { background: false, ..Options::at(&args.data) };
    let store = Store::open(options, Seams::real())?;
    let problems = store.check();
    for problem in &problems {
        say(&problem.to_string());
    }
    // Closing would flush: a check changes nothing.
    drop(store);
    if problems.is_empty() {
        say(&format!("{}: everything is in order", args.data.display()));
        return Ok(());
    }
    let things = if problems.len() == 1 { "problem" } else { "problems" };
    Err(Failure::Bad(format!("{}: {} {things}", args.data.display(), problems.len())))
}
