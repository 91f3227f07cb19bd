//! `meridian cluster drain`: a process takes no new work, before it is stopped permanently or for an upgrade.

use super::handover::follow;
use super::order::{BucketArgs, Cluster};
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_store::bucket::{OrderKind, Terms, lease_of};

/// Let a process take no new work: an owner passes its collections on, a gateway or a scan server is not ready any more
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster drain owner-1                         of the cluster in ./meridian-cluster
  meridian cluster drain gateway-1 --bucket file:///srv/bucket
  meridian cluster drain gateway-1 --undo

A process is drained until it starts again. `meridian cluster status` names the processes.")]
pub(super) struct DrainArgs {
    /// Name of the process: its setting cluster.node, or role and process id
    #[arg(value_name = "NODE")]
    node: String,
    /// Let it take new work again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    cluster: BucketArgs,
}

/// Runs the command.
pub(super) fn run(args: &DrainArgs) -> Result<(), Failure> {
    let cluster = Cluster::open(&args.cluster)?;
    let process = cluster.find(&args.node, None, |node| node.node == args.node)?;
    let mut held = Vec::new();
    for group in cluster.groups()?.all() {
        let terms = Terms::new(&cluster.bucket, &lease_of(group));
        let newest = terms.newest()?.filter(|(_, term)| term.process == process.node.process && !term.resigned);
        held.extend(newest.map(|(known, term)| (group, terms, known, term.epoch)));
    }
    say(&cluster.order(&process, if args.undo { OrderKind::Undo } else { OrderKind::Drain })?);
    for (group, terms, known, epoch) in held.into_iter().filter(|_| !args.undo) {
        follow(&cluster, group, &terms, (known, epoch))?;
    }
    Ok(())
}
