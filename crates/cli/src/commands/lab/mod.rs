//! `meridian lab`: load, measurement and prediction, for any server. One file per subcommand.

mod simulate;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Learn what a server holds, and what it would do at a size that was not tried
#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Simulate(simulate::SimulateArgs),
}

/// Runs the command.
pub fn run(args: &LabArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Simulate(args) => simulate::run(args),
    }
}
