//! `meridian lab report`: a results folder as a page and pictures.

use super::failure;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab_plan::breakpoint;
use meridian_lab_results::report;
use std::path::PathBuf;

/// Write report.html and pictures into a results folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab report lab-results/first-20260102T030405

The page is one file that works from the disk; its first paragraph sums it up. The same pictures lie beside it in
pictures/, as SVG and PNG.")]
pub struct ReportArgs {
    /// The results folder
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Runs the command.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let report = match breakpoint::Breakpoint::is_in(&args.dir) {
        true => breakpoint::report(&args.dir),
        false => report::write(&args.dir),
    }
    .map_err(failure)?;
    say(&report.words);
    say(&format!("\n{}\n{}", report.page.display(), report.pictures.display()));
    Ok(())
}
