//! `meridian cluster`: a trial cluster on this machine; and for any cluster, through its bucket, its status and orders
//! to its processes.

pub mod connector;
mod drain;
mod handover;
mod named;
mod nodes;
mod order;
mod private;
mod probe;
mod status;
mod up;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// Default folder of `meridian cluster up`.
const FOLDER: &str = "./meridian-cluster";

/// Start a cluster for trial on this machine, look at one, and change who owns its collections
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster up --nodes 2                          in ./meridian-cluster, until Ctrl-C
  meridian cluster up --nodes 3 --log nats               with the log in three NATS servers
  meridian cluster status                                of the cluster in ./meridian-cluster
  meridian cluster status --bucket file:///srv/bucket    of any cluster over this bucket
  meridian cluster status --bucket file:///srv/bucket --json
  meridian cluster handover                              another owner gets the collections
  meridian cluster drain owner-1                         before it is stopped

docs/cluster.md begins with the first of these.")]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::UpArgs),
    Status(status::StatusArgs),
    Handover(handover::HandoverArgs),
    Drain(drain::DrainArgs),
}

/// Runs the command.
pub fn run(args: &ClusterArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Status(args) => status::run(args),
        Command::Handover(args) => handover::run(args),
        Command::Drain(args) => drain::run(args),
    }
}
