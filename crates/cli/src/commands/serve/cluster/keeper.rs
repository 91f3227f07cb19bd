//! Taking turns at the lease of a group, for as long as an owner runs.

use super::blocking;
use crate::config::Cluster;
use crate::failure::Failure;
use meridian_model::policy::groups::Group;
use meridian_remote::Owns;
use meridian_store::bucket::lease_of;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, Lease, Standing, Statement};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long after a turn that failed the next one is tried.
const RETRY: Duration = Duration::from_millis(250);

/// Keeps the lease of a process that would be the owner. Dropping it stops the renewals.
pub(super) struct Keeper {
    lease: Arc<Lease>,
    standing: watch::Receiver<Standing>,
    _turns: JoinSet<()>,
}

impl Keeper {
    /// Begins to take turns at the lease of a group. `node`: the name of this process; `address`: where gateways reach it; `rank`: how many
    /// candidates are to come before it.
    pub(super) fn start(
        cluster: &Cluster,
        bucket: &Arc<dyn Bucket>,
        group: Group,
        (node, address, rank): (&str, &str, usize),
        seams: &Seams,
    ) -> Keeper {
        let lease = Arc::new(Lease::new(bucket, &lease_of(group), node, address, cluster.lease, seams));
        lease.ranks(rank);
        let (told, standing) = watch::channel(Standing::Other(None, Duration::ZERO));
        let (taking, mut turns) = (lease.clone(), JoinSet::new());
        turns.spawn(async move {
            loop {
                let lease = taking.clone();
                let after = match blocking("a turn at the lease", move || lease.turn()).await {
                    Ok(Ok(standing)) => {
                        let (Standing::Owner(after) | Standing::Other(_, after)) = standing;
                        told.send_replace(standing);
                        after
                    }
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "the lease could not be read: trying again");
                        RETRY
                    }
                    Err(failure) => {
                        tracing::error!("{failure}");
                        RETRY
                    }
                };
                tokio::time::sleep(after).await;
            }
        });
        Keeper { lease, standing, _turns: turns }
    }

    /// The lease, to be asked from elsewhere.
    pub(super) fn lease(&self) -> Arc<Lease> {
        self.lease.clone()
    }

    /// Waits until this process is the owner; returns the epoch of its term. `waits` is told of each other owner.
    pub(super) async fn wait(&mut self, mut waits: impl FnMut(&str)) -> u64 {
        let mut other = String::new();
        loop {
            if let Some(term) = self.lease.term() {
                return term.epoch;
            }
            if let Standing::Other(Some(term), _) = &*self.standing.borrow_and_update()
                && *other != term.node
            {
                other.clone_from(&term.node);
                waits(&format!("{} at {}", term.node, term.address));
            }
            // The sender lives as long as this.
            if self.standing.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The number of this process in the lease, while it holds it.
    pub(super) fn process(&self) -> Option<u64> {
        self.lease.term().map(|term| term.process)
    }

    /// Whether this process has held the lease since it took it in this epoch.
    pub(super) fn holds(&self, epoch: u64) -> bool {
        self.lease.epoch() == Some(epoch)
    }

    /// The same, to be asked from anywhere.
    pub(super) fn holding(&self, epoch: u64) -> Owns {
        let lease = self.lease.clone();
        Arc::new(move || lease.epoch() == Some(epoch))
    }

    /// Lets each renewal in this epoch tell readers up to when what is flushed is complete, or (`None`) no more.
    pub(super) fn say(&self, epoch: u64, statement: Option<Statement>) {
        self.lease.say(epoch, statement);
    }

    /// Gives the lease up, so that the next owner need not wait for its end. This process stays a candidate: it takes the lease again unless one
    /// that is to come before it does.
    pub(super) async fn resign(&self) -> Result<(), Failure> {
        let lease = self.lease.clone();
        blocking("giving up the lease", move || lease.resign()).await?.map_err(Failure::from)
    }
}
