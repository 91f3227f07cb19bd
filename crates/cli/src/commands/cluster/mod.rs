//! `meridian cluster`: a cluster for trial on this machine, and what a bucket says of any cluster.

pub mod means;
mod nodes;
mod private;
mod probe;
mod status;
mod up;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Folder of `meridian cluster up` where none is named.
const FOLDER: &str = "./meridian-cluster";

/// Start a cluster for trial on this machine, and look at one
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster up --nodes 2                          in ./meridian-cluster, until Ctrl-C
  meridian cluster up --nodes 3 --log nats               with the log in three NATS servers
  meridian cluster status                                of the cluster in ./meridian-cluster
  meridian cluster status --bucket file:///srv/bucket    of any cluster over this bucket
  meridian cluster status --bucket file:///srv/bucket --json

docs/cluster.md begins with the first of these.")]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::UpArgs),
    Status(status::StatusArgs),
}

/// Runs the command.
pub fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Status(args) => status::run(args),
    }
}
