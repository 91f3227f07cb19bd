//! `meridian provider`: tests outside sources before a server uses them.

mod test;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Try out the declaration of an outside source
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian provider test flood-warnings.toml                        checks the file
  meridian provider test flood-warnings.toml --answer recorded.xml  reads a recorded answer with it
  meridian provider test wikipedia --question '{\"keywords\":\"flood\"}' --ask

docs/providers/README.md describes declarations.")]
pub struct ProviderArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Test(test::TestArgs),
}

/// Runs the command.
pub fn run(args: &ProviderArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Test(args) => test::run(args),
    }
}
