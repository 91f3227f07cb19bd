//! `meridian cluster handover`: passes a lease from its holder to a standby owner.
//!
//! A lease covers the partitions of a group; in a bucket with a single group, that is all of them.

use super::order::{BucketArgs, Cluster};
use crate::config::Role;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_model::policy::groups::{Group, Groups};
use meridian_store::bucket::{Condition, OrderKind, Survey, SurveyedCollection, Terms, lease_of};

/// Pass the collections from their owner to a standby, without failed requests
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian cluster handover                              of the cluster in ./meridian-cluster
  meridian cluster handover quakes/0 --to owner-2
  meridian cluster handover --bucket file:///srv/bucket

The owner flushes first, and writes wait for the next owner for a fraction of a second. docs/cluster.md has more.")]
pub(super) struct HandoverArgs {
    /// A partition, as COLLECTION/PARTITION or TENANT/COLLECTION/PARTITION; all of its group pass on [default: all
    /// groups]
    #[arg(value_name = "COLLECTION/PARTITION")]
    partition: Option<String>,
    /// Name of the next owner [default: the best standby]
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    #[command(flatten)]
    cluster: BucketArgs,
}

/// Runs the command.
pub(super) fn run(args: &HandoverArgs) -> Result<(), Failure> {
    let cluster = Cluster::open(&args.cluster)?;
    let groups = match &args.partition {
        Some(named) => vec![group_of(&cluster, named)?],
        None => cluster.groups()?.all().collect(),
    };
    let to = match &args.to {
        None => None,
        Some(name) => {
            let to = cluster.find(&format!("--to {name}"), Some(Role::Owner), |node| node.node == *name)?.node;
            // Whether it is ready otherwise, the present owner knows best.
            if to.condition == Condition::Drained {
                let why = format!(
                    "--to {name}: it is drained, and takes no collections before `meridian cluster drain {name} --undo`"
                );
                return Err(Failure::Refused(why));
            }
            Some(to.process)
        }
    };
    for group in groups {
        let terms = Terms::new(&cluster.bucket, &lease_of(group));
        let Some((known, term)) = terms.newest()?.filter(|(_, term)| !term.resigned) else {
            return Err(Failure::Refused(format!("nobody owns {} at present: nothing to hand over", text_of(group))));
        };
        if to == Some(term.process) {
            say(&format!("{} owns {} already", term.node, text_of(group)));
            continue;
        }
        let holder = cluster.find(&term.node, None, |node| node.process == term.process)?;
        say(&cluster.order(&holder, OrderKind::Handover { lease: lease_of(group), epoch: term.epoch, to })?);
        follow(&cluster, group, &terms, (known, term.epoch))?;
    }
    Ok(())
}

/// Returns what a group has, in messages.
fn text_of(group: Group) -> String {
    if group.is_all() { "the collections".to_owned() } else { format!("group {}", group.number()) }
}

/// Waits until the lease of a group is held in a later epoch than this one, and prints the holder.
pub(super) fn follow(
    cluster: &Cluster,
    group: Group,
    terms: &Terms,
    (mut known, epoch): (u64, u64),
) -> Result<(), Failure> {
    let (what, wait) = (text_of(group), cluster.wait());
    loop {
        if let Some((number, term)) = terms.newest_from(known)? {
            known = number;
            if term.epoch > epoch && !term.resigned {
                say(&format!("{} owns {what}, at {}; epoch {}", term.node, term.address, term.epoch));
                return Ok(());
            }
        }
        if !wait.goes_on() {
            let why = "the lease was given up, and no other owner has taken it yet: see `meridian cluster status`";
            return Err(Failure::Refused(why.to_owned()));
        }
    }
}

/// Returns the group of a partition named by the user.
fn group_of(cluster: &Cluster, named: &str) -> Result<Group, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{named}: {why}"));
    let parts = named.rsplit_once('/').and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?)));
    let (name, number) = parts.ok_or_else(|| wrong("expected COLLECTION/PARTITION, such as quakes/0".to_owned()))?;
    let (tenant, name) = name.split_once('/').map_or((None, name), |(tenant, name)| (Some(tenant), name));
    let all = Survey::new(&cluster.bucket, &cluster.seams).collections(None)?;
    let is = |one: &&SurveyedCollection| one.name == name && tenant.is_none_or(|tenant| one.tenant == tenant);
    let found: Vec<&SurveyedCollection> = all.iter().filter(is).collect();
    let groups = cluster.groups()?;
    match found.as_slice() {
        [] => Err(wrong(format!("there is no collection {name}"))),
        [one] if number as usize >= one.folders.len() => {
            Err(wrong(format!("{name} has {} partitions, from 0", one.folders.len())))
        }
        // With a single group, all of them are in it.
        [one, rest @ ..] if rest.is_empty() || groups == Groups::ONE => Ok(groups.of(&one.tenant, name, number)),
        several => {
            let tenants: Vec<&str> = several.iter().map(|one| one.tenant.as_str()).collect();
            let tenants = tenants.join(", ");
            Err(wrong(format!("several tenants have a collection {name} ({tenants}): expected TENANT/{name}/{number}")))
        }
    }
}
