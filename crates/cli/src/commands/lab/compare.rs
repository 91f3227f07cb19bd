//! `meridian lab compare`: is B faster than A?

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab::compare::{Sides, write};
use std::path::PathBuf;

/// Hold two results folders, or the two targets of one, against each other: faster, slower or no difference seen
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab compare results/before results/after --fail-if-slower
  meridian lab compare results/before results/after --out results/difference
  meridian lab compare results/a-b-a-b

Waits count from the intended time; a question without a sound answer counts as never answered.")]
pub struct CompareArgs {
    /// The results folder to compare with; without a second one, the run whose second target is judged by its first
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results folder that is judged
    #[arg(value_name = "B")]
    pub b: Option<PathBuf>,
    /// Write report.html and pictures of A against B into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// End with 1 where B is slower anywhere, for CI
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
    let report = sides.compare(1);
    say(&format!("{}\n\n{}", report.sentence(), report.table().trim_end()));
    if let Some(out) = &args.out {
        say(&format!("\n{}", write(out, &sides, &report).map_err(failure)?.display()));
    }
    match args.fail_if_slower && report.slower() {
        true => Err(Failure::Bad(format!("{} is slower than {}", report.names[1], report.names[0]))),
        false => Ok(()),
    }
}
