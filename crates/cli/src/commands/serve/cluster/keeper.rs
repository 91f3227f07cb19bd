//! Taking turns at a lease, for as long as a process would hold it.

use super::blocking;
use crate::failure::Failure;
use meridian_remote::Owns;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, Lease, Standing, Statement};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long after a turn that failed the next one is tried.
const RETRY: Duration = Duration::from_millis(250);

/// Keeps the lease of a process that would hold it. Dropping it stops the renewals.
pub(super) struct Keeper {
    lease: Arc<Lease>,
    standing: watch::Sender<Standing>,
    turns: JoinSet<()>,
}

impl Keeper {
    /// Of the lease `name`; it takes no turns yet. `node`: name of this process. `ttl`: how long the lease holds without renewal. `address`:
    /// where others reach this process.
    pub(super) fn new(
        name: &str,
        node: String,
        ttl: Duration,
        bucket: &Arc<dyn Bucket>,
        address: &str,
        seams: &Seams,
    ) -> Keeper {
        let lease = Arc::new(Lease::new(bucket, name, node, address, ttl, seams));
        let standing = watch::Sender::new(Standing::Other(None, Duration::ZERO));
        Keeper { lease, standing, turns: JoinSet::new() }
    }

    /// Begins to take turns.
    pub(super) fn start(&mut self) {
        let (taking, told) = (self.lease.clone(), self.standing.clone());
        self.turns.spawn(async move {
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
    }

    /// Waits until this process is the owner; returns the epoch of its term. `waits` is told of each other owner.
    pub(super) async fn wait(&self, mut waits: impl FnMut(&str)) -> u64 {
        let (mut standing, mut other) = (self.standing.subscribe(), String::new());
        loop {
            if let Some(term) = self.lease.term() {
                return term.epoch;
            }
            if let Standing::Other(Some(term), _) = &*standing.borrow_and_update()
                && *other != term.node
            {
                other.clone_from(&term.node);
                waits(&format!("{} at {}", term.node, term.address));
            }
            changed(&mut standing).await;
        }
    }

    /// How the lease stands, as of each turn.
    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The epoch in which this process holds the lease now.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.lease.epoch()
    }

    /// The lease, to be asked from elsewhere, and to be given up once this is dropped.
    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
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

    /// The same at the end of this process, which takes no turns any more.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        self.turns.shutdown().await;
        self.resign().await
    }
}

/// Completes after the next turn that was not looked at yet.
pub(super) async fn changed(standing: &mut watch::Receiver<Standing>) {
    if standing.changed().await.is_err() {
        // The keeper is gone, and with it the turns.
        std::future::pending::<()>().await;
    }
}
