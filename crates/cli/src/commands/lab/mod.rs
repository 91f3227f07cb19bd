//! `meridian lab`: load, measurement and prediction, for any server. One file per subcommand.

mod breakpoint;
mod compare;
mod cost;
mod load;
mod mock;
mod report;
mod run;
mod simulate;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use meridian_lab_results::LabError;

/// Measure the limits of a server, and predict them at a size that was not tried
#[derive(Args, Debug)]
#[command(after_help = "\
From a URL to figures:
  meridian lab run first.toml                 drives the scenario and leaves a results folder
  meridian lab run first.toml --set arrival.rate=200 --out results/at-200
  meridian lab report results/at-200          makes a page and pictures of it
  meridian lab breakpoint first.toml          finds the load up to which the objectives hold

docs/lab.md begins with a first scenario of ten lines.")]
pub struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(run::RunArgs),
    Mock(mock::MockArgs),
    Report(report::ReportArgs),
    Breakpoint(breakpoint::BreakpointArgs),
    Simulate(simulate::SimulateArgs),
    Compare(compare::CompareArgs),
    Cost(cost::CostArgs),
}

/// Runs the command.
pub fn run(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Mock(args) => mock::run(args),
        Command::Report(args) => report::run(args),
        Command::Breakpoint(args) => breakpoint::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Cost(args) => cost::run(args),
    }
}

/// An invalid scenario is wrong usage; an unreachable target or a full disk is not.
fn failure(error: LabError) -> Failure {
    match error {
        LabError::Scenario(text) => Failure::Usage(text),
        LabError::Target(text) | LabError::Results(text) => Failure::Refused(text),
    }
}
