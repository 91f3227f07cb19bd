//! `meridian cluster handover`: a lease passes from its holder to another owner that stands by.
//!
//! A lease covers partitions. Today one lease covers all of them.

use super::order::{BucketArgs, Cluster};
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_store::bucket::{Condition, OWNER, Survey, Terms, What};

/// Pass the collections from their owner to another one that stands by, without failed requests
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster handover                              of the cluster in ./meridian-cluster
  meridian cluster handover quakes/0 --to owner-2
  meridian cluster handover --bucket file:///srv/bucket

The owner flushes first, and writes wait for the next owner for a fraction of a second. docs/cluster.md has more.")]
pub(super) struct HandoverArgs {
    /// A partition, as COLLECTION/PARTITION; all that are under its lease pass on [default: all]
    #[arg(value_name = "COLLECTION/PARTITION")]
    partition: Option<String>,
    /// Name of the next owner [default: the best that stands by]
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    #[command(flatten)]
    cluster: BucketArgs,
}

/// Runs the command.
pub(super) fn run(args: &HandoverArgs) -> Result<(), Failure> {
    let cluster = Cluster::open(&args.cluster)?;
    let lease = lease_of(&cluster, args.partition.as_deref())?;
    let terms = Terms::new(&cluster.bucket, lease);
    let (known, term) = match terms.newest()? {
        Some((known, term)) if !term.resigned => (known, term),
        _ => return Err(Failure::Refused("nobody owns the collections at present: nothing to hand over".to_owned())),
    };
    let holder = cluster.find(&term.node, |node| node.process == term.process)?;
    let to = match &args.to {
        None => None,
        Some(name) => {
            let is = |node: &meridian_store::bucket::Node| node.node == *name && node.condition == Condition::StandsBy;
            Some(cluster.find(&format!("--to {name}"), is)?.node.process)
        }
    };
    let what = What::Handover { lease: lease.to_owned(), epoch: term.epoch, to };
    say(&cluster.order(&holder, what)?);
    follow(&cluster, &terms, known, term.epoch)
}

/// Waits until another process holds the lease, and says who.
pub(super) fn follow(cluster: &Cluster, terms: &Terms, mut known: u64, epoch: u64) -> Result<(), Failure> {
    let wait = cluster.wait();
    loop {
        if let Some((number, term)) = terms.newest_from(known)? {
            known = number;
            if term.epoch > epoch && !term.resigned {
                say(&format!("{} owns the collections, at {}; epoch {}", term.node, term.address, term.epoch));
                return Ok(());
            }
        }
        if !wait.goes_on() {
            let why = "the lease was given up, and no other owner has taken it yet: see `meridian cluster status`";
            return Err(Failure::Refused(why.to_owned()));
        }
    }
}

/// Name of the lease that covers a partition.
fn lease_of(cluster: &Cluster, partition: Option<&str>) -> Result<&'static str, Failure> {
    let Some(named) = partition else { return Ok(OWNER) };
    let wrong = |why: String| Failure::Usage(format!("{named}: {why}"));
    let parts = named.rsplit_once('/').and_then(|(name, number)| Some((name, number.parse::<usize>().ok()?)));
    let (name, number) = parts.ok_or_else(|| wrong("expected COLLECTION/PARTITION, such as quakes/0".to_owned()))?;
    let all = Survey::new(&cluster.bucket, &cluster.seams).collections(None)?;
    let partitions = all.iter().filter(|one| one.name == name).map(|one| one.folders.len()).max();
    match partitions {
        None => Err(wrong(format!("there is no collection {name}"))),
        Some(count) if number >= count => Err(wrong(format!("{name} has {count} partitions, from 0"))),
        Some(_) => Ok(OWNER),
    }
}
