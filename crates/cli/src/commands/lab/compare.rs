//! `meridian lab compare`: is B faster than A?

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab_results::compare::{Sides, write};
use std::path::PathBuf;

/// Compare two results folders, or the two targets of one: faster, slower or no difference seen
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab compare results/before results/after --fail-if-slower
  meridian lab compare results/before results/after --out results/difference
  meridian lab compare results/a-b-a-b

Waits count from the intended time; a question without a sound answer counts as never answered.

Repeats decide: three or more trials of each side that took turns (trials.repeats), three or more runs in each folder, or
three or more trials of one run each, with an allowance for what runs differ by themselves. Fewer decide nothing. When a server is
compared with itself, at most 5 % of the comparisons find a difference.

Ends with 1 where A and B have no request in common, where a run is void, and with --fail-if-slower where B is slower
or nothing is decided.")]
pub struct CompareArgs {
    /// The results folder to compare with, or a folder of several; without B, a run whose second target is compared
    /// with its first
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results folder that is compared with it, or a folder of several
    #[arg(value_name = "B")]
    pub b: Option<PathBuf>,
    /// Write report.html and pictures of A against B into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Exit with 1 if B is slower anywhere or nothing is decided, for CI
    #[arg(long)]
    pub fail_if_slower: bool,
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let sides = match &args.b {
        Some(b) => Sides::of_runs(&args.a, b),
        None => Sides::of_targets(&args.a),
    };
    let sides = sides.map_err(failure)?;
    let report = sides.compare();
    say(&format!("{}\n\n{}", report.sentence(), report.table().trim_end()));
    if let Some(out) = &args.out {
        say(&format!("\n{}", write(out, &sides, &report).map_err(failure)?.display()));
    }
    match report.not_decided() {
        // Without shared requests, or with a void run, there is no comparison; without repeats the ratios are still
        // useful.
        Some(why) if args.fail_if_slower || report.rows.is_empty() || !report.void.is_empty() => {
            Err(Failure::Bad(format!("not decided: {why}")))
        }
        None if args.fail_if_slower && report.slower() => {
            Err(Failure::Bad(format!("{} is slower than {}", report.names[1], report.names[0])))
        }
        _ => Ok(()),
    }
}
