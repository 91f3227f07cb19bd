//! A candidate for the groups of a bucket. It ranks itself for each group, passes on groups that belong to another
//! process, and carries out an operator's orders. The rules are in `model::policy::placement`; the roll (`member.rs`)
//! lists the other candidates.
//!
//! In a bucket with a single group, only an order moves it: otherwise its owner keeps it.

use super::handover::HandoverRequest;
use super::process::Process;
use meridian_model::policy::groups::{Group, Groups};
use meridian_model::policy::placement::{Handovers, places};
use meridian_store::Lease;
use meridian_store::bucket::{OrderKind, lease_of};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// This process as one of the candidates.
pub(super) struct Candidates {
    process: Arc<Process>,
    groups: Groups,
    places: Vec<Vec<u64>>,
    handovers: Handovers,
    leases: Vec<GroupLease>,
}

/// The lease of a group, and the channel to its holder for requests to pass it on.
struct GroupLease {
    group: Group,
    lease: Arc<Lease>,
    requests: mpsc::Sender<HandoverRequest>,
}

impl GroupLease {
    /// Passes the lease on if this process holds it; returns what was done, or why it was not.
    async fn pass_on(&self, epoch: Option<u64>, to: Option<u64>) -> Result<String, String> {
        let (done, outcome) = oneshot::channel();
        let stops = || "it stops".to_owned();
        self.requests.send(HandoverRequest { epoch, to, done }).await.map_err(|_| stops())?;
        outcome.await.map_err(|_| stops())?
    }
}

impl Candidates {
    /// Makes a candidate of a process on the roll.
    pub(super) fn new(process: Arc<Process>, groups: Groups) -> Candidates {
        let places = places(groups, &process.member.owners());
        Candidates { process, groups, places, handovers: Handovers::default(), leases: Vec::new() }
    }

    /// Ranks this candidate for the group of a lease from now on. The lease's holder must carry out the received
    /// requests.
    pub(super) fn keep(&mut self, group: Group, lease: Arc<Lease>) -> mpsc::Receiver<HandoverRequest> {
        lease.ranks(self.rank(group));
        let (requests, received) = mpsc::channel(1);
        self.leases.push(GroupLease { group, lease, requests });
        received
    }

    /// Returns the number of candidates ahead of this one for a group.
    fn rank(&self, group: Group) -> usize {
        if group.is_all() {
            return 0;
        }
        let order = self.places.get(usize::from(group.number()));
        order.and_then(|order| order.iter().position(|process| *process == self.process.number)).unwrap_or(0)
    }

    /// Keeps ranks current, passes groups on and carries out orders, until the process stops.
    pub(super) async fn run(mut self) {
        let (process, mut stopping) = (self.process.clone(), self.process.stopping.clone());
        let ttl = process.config.cluster.lease;
        loop {
            tokio::select! {
                () = async { drop(stopping.wait_for(|stop| *stop).await) } => return,
                (order, what) = process.member.ordered() => {
                    let outcome = self.obey(what).await;
                    process.member.done(order, outcome);
                }
                () = tokio::time::sleep(ttl / 3), if self.groups != Groups::ONE => {
                    self.places = places(self.groups, &process.member.owners());
                    self.leases.iter().for_each(|kept| kept.lease.ranks(self.rank(kept.group)));
                    self.pass_on(ttl).await;
                }
            }
        }
    }

    /// Passes the next group on, if one is due.
    async fn pass_on(&mut self, ttl: Duration) {
        let held = self.leases.iter().filter(|kept| kept.lease.holds());
        let held: Vec<(u16, bool)> = held.map(|kept| (kept.group.number(), kept.lease.has_inherited())).collect();
        self.handovers.note(self.process.number, &held, &self.places);
        let held: Vec<u16> = held.into_iter().map(|(group, _)| group).collect();
        let now = Duration::from_micros(u64::try_from(self.process.seams.clock.elapsed()).unwrap_or(0));
        let Some(due) = self.handovers.due(self.process.number, &held, &self.places, ttl, now) else { return };
        let first = self.places.get(usize::from(due)).and_then(|order| order.first()).copied();
        if let Some(kept) = self.leases.iter().find(|kept| kept.group.number() == due)
            && let Err(why) = kept.pass_on(None, first).await
        {
            tracing::info!("group {due} is not passed on now: {why}");
        }
    }

    /// Carries out an order; returns what was done, or why it was not.
    async fn obey(&self, what: OrderKind) -> Result<String, String> {
        match what {
            OrderKind::Handover { lease, epoch, to } => {
                match self.leases.iter().find(|kept| lease_of(kept.group) == lease) {
                    Some(kept) => kept.pass_on(Some(epoch), to).await,
                    None => Err(format!("it holds no lease {lease:?}")),
                }
            }
            OrderKind::Drain => self.drain().await,
            OrderKind::Undo => {
                let was_drained = self.leases.iter().any(|kept| kept.lease.has_withdrawn());
                self.withdraw(false);
                self.process.drains(false);
                Ok(if was_drained { "it takes leases again" } else { "it was not drained" }.to_owned())
            }
        }
    }

    /// Passes on everything this process holds. If no process can take over a part, it stays the owner of everything.
    async fn drain(&self) -> Result<String, String> {
        self.withdraw(true);
        let mut passed = Vec::new();
        for kept in self.leases.iter().filter(|kept| kept.lease.holds()) {
            match kept.pass_on(None, None).await {
                Ok(text) => passed.push(text),
                Err(why) => {
                    self.withdraw(false);
                    return Err(why);
                }
            }
        }
        self.process.drains(true);
        Ok(match passed.is_empty() {
            true => "drained: it takes no lease until it starts again".to_owned(),
            false => passed.join(", "),
        })
    }

    fn withdraw(&self, withdrawn: bool) {
        self.leases.iter().for_each(|kept| kept.lease.withdraw(withdrawn));
    }
}
