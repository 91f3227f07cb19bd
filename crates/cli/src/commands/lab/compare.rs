//! `meridian lab compare`: is the second run faster than the first?

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab::compare::{Side, runs, write};
use std::path::PathBuf;

/// Hold two results folders against each other: faster, slower or no difference seen
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab compare results/before results/after --fail-if-slower
  meridian lab compare results/before results/after --out results/difference

Waits count from the intended time; a question without a sound answer counts as never answered.")]
pub struct CompareArgs {
    /// The results folder to compare with
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The results folder that is judged
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Write report.html and pictures of A against B into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// End with 1 where B is slower anywhere, for CI
    #[arg(long)]
    pub fail_if_slower: bool,
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> Result<(), Failure> {
    let (a, b) = (Side::open(&args.a).map_err(failure)?, Side::open(&args.b).map_err(failure)?);
    let report = runs(&a, &b, 1);
    say(&format!("{}\n\n{}", report.sentence(), report.table().trim_end()));
    if let Some(out) = &args.out {
        say(&format!("\n{}", write(out, &a, &b, &report).map_err(failure)?.display()));
    }
    match args.fail_if_slower && report.slower() {
        true => Err(Failure::Bad(format!("{} is slower than {}", args.b.display(), args.a.display()))),
        false => Ok(()),
    }
}
