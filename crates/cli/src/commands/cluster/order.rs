//! Sends an order to a process of a cluster through its bucket, and waits for the outcome.

use super::named::NamedCluster;
use crate::config::Role;
use crate::failure::Failure;
use clap::Args;
use meridian_model::policy::groups::Groups;
use meridian_store::bucket::{Node, OrderKind, Orders, Roll, RollEntry, groups_of};
use meridian_store::seams::Seams;
use meridian_store::{Act, Bucket, ControlPlane, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Poll interval of the bucket.
const LOOK: Duration = Duration::from_millis(100);
/// Max time between signs of life of a process: several times its usual interval.
const LIVES: Duration = Duration::from_secs(20);

/// Which cluster.
#[derive(Args, Debug)]
pub(super) struct BucketArgs {
    /// Bucket of the cluster: file://DIR or s3://BUCKET/PREFIX
    #[arg(long, value_name = "ADDRESS", conflicts_with = "dir")]
    bucket: Option<String>,
    /// Folder of `meridian cluster up` [default: ./meridian-cluster, without --bucket]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Settings of a process of the cluster, in TOML: they name the store of --bucket s3://…
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How many seconds the process may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

/// A cluster that receives orders.
pub(super) struct Cluster {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) seams: Seams,
    wait: Duration,
    _runtime: Runtime,
}

/// A wait with a deadline.
pub(super) struct Wait {
    until: i64,
    seams: Seams,
}

impl Wait {
    /// Sleeps briefly; returns false once the deadline has passed.
    pub(super) fn goes_on(&self) -> bool {
        self.seams.clock.sleep(LOOK);
        self.seams.clock.elapsed() < self.until
    }
}

impl Cluster {
    /// Opens its existing bucket.
    pub(super) fn open(args: &BucketArgs) -> Result<Cluster, Failure> {
        let named = NamedCluster::open(args.bucket.as_deref(), args.dir.as_deref(), args.config.as_deref())?;
        let NamedCluster { bucket, runtime, .. } = named;
        Ok(Cluster { bucket, seams: Seams::real(), wait: Duration::from_secs(args.wait), _runtime: runtime })
    }

    /// Returns the groups of its partitions.
    pub(super) fn groups(&self) -> Result<Groups, Failure> {
        Ok(groups_of(self.bucket.as_ref())?.unwrap_or(Groups::ONE))
    }

    /// Starts a wait with the user's timeout.
    pub(super) fn wait(&self) -> Wait {
        self.wait_for(self.wait)
    }

    fn wait_for(&self, time: Duration) -> Wait {
        let until = self.seams.clock.elapsed().saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
        Wait { until, seams: self.seams.clone() }
    }

    /// Returns the process that `is` matches, once it has shown a sign of life since this call. `name`: its name in
    /// messages. `role`: its role, if only one counts.
    pub(super) fn find(
        &self,
        name: &str,
        role: Option<Role>,
        is: impl Fn(&Node) -> bool,
    ) -> Result<RollEntry, Failure> {
        let has_role = |one: &RollEntry| role.is_none_or(|role| one.node.role == role.to_string());
        let mut before = Roll::read(self.bucket.as_ref(), None)?;
        before.retain(has_role);
        if !before.iter().any(|one| is(&one.node)) {
            let what = role.map_or_else(|| "process".to_owned(), |role| role.to_string());
            let names = Vec::from_iter(living(&before)).join(", ");
            let there = if names.is_empty() { "none" } else { names.as_str() };
            return Err(Failure::Usage(format!("{name}: there is no such {what} in this cluster; there is {there}")));
        }
        let wait = self.wait_for(LIVES);
        loop {
            let now = Roll::read(self.bucket.as_ref(), None)?;
            let said =
                |one: &RollEntry| before.iter().find(|old| old.node.process == one.node.process).map(|old| old.said);
            let mut living = now.into_iter().filter(|one| has_role(one) && is(&one.node) && Some(one.said) > said(one));
            match (living.next(), living.next()) {
                (Some(one), None) => return Ok(one),
                (Some(one), Some(other)) => {
                    return Err(Failure::Usage(format!(
                        "{name}: two processes have this name, at {} and {}: give each its own cluster.node",
                        one.node.address, other.node.address
                    )));
                }
                (None, _) if wait.goes_on() => {}
                (None, _) => {
                    let seconds = LIVES.as_secs();
                    return Err(Failure::Refused(format!("{name} has said nothing for {seconds} s: is it running?")));
                }
            }
        }
    }

    /// Sends an order to a process, waits for its outcome, and returns that as a sentence. The audit log of the cluster
    /// gets a line before and after, as for an administrative request.
    pub(super) fn order(&self, to: &RollEntry, what: OrderKind) -> Result<String, Failure> {
        // A command never trims the log.
        let control = ControlPlane::new(self.bucket.clone(), &self.seams, u64::MAX);
        let mut act = act_of(&to.node.node, &what);
        act.began = Some(control.audit().append(std::slice::from_ref(&act))?);
        let outcome = self.carry_out(to, what);
        let (status, said) = match &outcome {
            Ok(text) => (200, text.clone()),
            Err((status, failure)) => (*status, failure.to_string()),
        };
        act.status = Some(status);
        control.audit().append(&[act]).map_err(|error| {
            Failure::Refused(format!("the outcome is not in the audit log, which cannot be written ({error}): {said}"))
        })?;
        outcome.map_err(|(_, failure)| failure)
    }

    /// Sends an order and waits for its outcome. A failure has a status as over HTTP.
    fn carry_out(&self, to: &RollEntry, what: OrderKind) -> Result<String, (u16, Failure)> {
        let of_bucket = |error: StoreError| (503, Failure::from(error));
        let (name, process) = (&to.node.node, to.node.process);
        let number = to.node.done.as_ref().map_or(0, |done| done.order) + 1;
        let orders = Orders::new(self.bucket.clone(), &self.seams, process);
        if !orders.give(number, what, to.said).map_err(of_bucket)? {
            return Err((409, Failure::Refused(format!("{name} has another order to carry out: try again later"))));
        }
        let wait = self.wait();
        loop {
            let said = Roll::read(self.bucket.as_ref(), Some(process)).map_err(of_bucket)?;
            let done = said.into_iter().find_map(|one| one.node.done).filter(|done| done.order >= number);
            match done {
                Some(done) if done.done => return Ok(done.text),
                Some(done) => return Err((409, Failure::Refused(format!("{name}: {}", done.text)))),
                None if wait.goes_on() => {}
                None => {
                    orders.remove(number).map_err(of_bucket)?;
                    let why = format!(
                        "{name} has not said what came of it: the order is withdrawn, unless it was begun (`meridian cluster status` shows \
                         the owner; --wait SECONDS waits longer)"
                    );
                    return Err((504, Failure::Refused(why)));
                }
            }
        }
    }
}

/// Returns the names of the processes that live as far as the roll shows it: those that ended without leaving it are
/// silent while others go on.
fn living(roll: &[RollEntry]) -> BTreeSet<&str> {
    let last = roll.iter().filter_map(|one| one.written).max().unwrap_or(0);
    let lives = |one: &&RollEntry| one.written.is_none_or(|at| Duration::from_micros(last.abs_diff(at)) <= LIVES);
    roll.iter().filter(lives).map(|one| one.node.node.as_str()).collect()
}

/// Returns the act of an order to the process of this name. Its actor can write the bucket, and so is an operator.
fn act_of(node: &str, what: &OrderKind) -> Act {
    let (act, change) = match what {
        OrderKind::Handover { lease, epoch, to } => {
            let to = to.map_or_else(|| "the best standby".to_owned(), |to| format!("process {to:016x}"));
            ("handover", Some(format!("the lease {lease:?} of epoch {epoch} to {to}")))
        }
        OrderKind::Drain => ("drain", None),
        OrderKind::Undo => ("undoDrain", None),
    };
    Act { who: "local".to_owned(), act: act.to_owned(), target: format!("/cluster/{node}"), change, ..Act::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::Condition;

    #[test]
    fn a_list_of_processes_has_each_living_name_once() {
        let entry = |node: &str, process: u64, written: Option<i64>| RollEntry {
            said: 1,
            written,
            node: Node {
                node: node.to_owned(),
                role: "owner".to_owned(),
                process,
                program: String::new(),
                level: 1,
                address: String::new(),
                condition: Condition::StandsBy,
                leases: Vec::new(),
                done: None,
            },
        };
        let seconds = |seconds: i64| Some(1_700_000_000_000_000 + seconds * 1_000_000);
        // `o2` was killed and started again, `o3` was killed, and of `s1` nothing is known.
        let roll = [
            entry("o2", 1, seconds(0)),
            entry("o2", 2, seconds(95)),
            entry("o3", 3, seconds(1)),
            entry("o1", 4, seconds(100)),
            entry("s1", 5, None),
        ];
        assert_eq!(Vec::from_iter(living(&roll)), ["o1", "o2", "s1"]);
        assert!(living(&[]).is_empty());
    }

    #[test]
    fn the_line_of_an_order_names_process_and_lease() {
        let what = OrderKind::Handover { lease: "owner".to_owned(), epoch: 3, to: Some(7) };
        let act = act_of("owner-1", &what);
        assert_eq!((&*act.who, &*act.act, &*act.target), ("local", "handover", "/cluster/owner-1"));
        assert_eq!(act.change.as_deref(), Some("the lease \"owner\" of epoch 3 to process 0000000000000007"));
        assert_eq!([OrderKind::Drain, OrderKind::Undo].map(|what| act_of("a", &what).act), ["drain", "undoDrain"]);
    }
}
