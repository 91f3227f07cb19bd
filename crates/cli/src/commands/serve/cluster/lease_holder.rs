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

/// How long before a lease passes on its heir is named: gateways and the heir look for that long at most. On top of one look of a candidate.
const NOTICE: Duration = Duration::from_millis(200);
/// How many times candidates look in the length of a lease.
const LOOKS: u32 = 12;

/// Keeps the lease of a process that would hold it. Dropping it stops the renewals.
pub(super) struct LeaseHolder {
    lease: Arc<Lease>,
    standing: watch::Sender<Standing>,
    /// From when its heir is named until the lease passes on.
    notice: Duration,
    turns: JoinSet<()>,
}

impl LeaseHolder {
    /// A lease_holder of the lease `name`; it takes no turns yet. `node` and `process`: name and number of this
    /// process. `ttl`: how long the lease holds without renewal. `address`: where others reach this process.
    pub(super) fn new(
        name: &str,
        (node, process): (String, u64),
        ttl: Duration,
        bucket: &Arc<dyn Bucket>,
        address: &str,
        seams: &Seams,
    ) -> LeaseHolder {
        let lease = Arc::new(Lease::of_process(bucket, name, (node, process), address, ttl, seams));
        let standing = watch::Sender::new(Standing::Other(None, Duration::ZERO));
        LeaseHolder { lease, standing, notice: NOTICE + ttl / LOOKS, turns: JoinSet::new() }
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

    /// Lets this process take the lease no more, or again. What it holds it keeps.
    pub(super) fn withdraw(&self, withdrawn: bool) {
        self.lease.withdraw(withdrawn);
    }

    /// Passes the lease on to another process that stands by. Gives whether it was held in this epoch until then. The heir and the gateways
    /// hear of it first, while this process still owns.
    pub(super) async fn pass_on(&self, epoch: u64, heir: u64) -> Result<bool, Failure> {
        let passed = self.pass_on_now(epoch, heir).await;
        // A lease that this process still holds, or takes again, has no heir. Written by then, or with the next renewal.
        let _ = self.name_heir(None).await;
        passed
    }

    async fn pass_on_now(&self, epoch: u64, heir: u64) -> Result<bool, Failure> {
        if !self.holds(epoch) || !self.name_heir(Some(heir)).await? {
            return Ok(false);
        }
        tokio::time::sleep(self.notice).await;
        let held = self.holds(epoch);
        self.resign().await?;
        Ok(held)
    }

    async fn name_heir(&self, heir: Option<u64>) -> Result<bool, Failure> {
        let lease = self.lease.clone();
        blocking("naming the next owner", move || lease.name_heir(heir)).await?.map_err(Failure::from)
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

    /// Gives the lease up, so that the next owner need not wait for its end.
    pub(super) async fn resign(&self) -> Result<(), Failure> {
        let lease = self.lease.clone();
        blocking("giving up the lease", move || lease.resign()).await?.map_err(Failure::from)
    }

    /// The same at the end of this process, which takes no turns any more.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        // A turn that has begun goes on: it must not take the lease once this process has given it up.
        self.withdraw(true);
        self.turns.shutdown().await;
        self.resign().await
    }
}

/// Completes after the next turn that was not seen yet.
pub(super) async fn changed(standing: &mut watch::Receiver<Standing>) {
    if standing.changed().await.is_err() {
        // The lease_holder is gone, and with it the turns.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::bucket::MemoryBucket;

    #[tokio::test]
    async fn a_turn_that_comes_last_does_not_take_the_lease_of_a_process_that_ends() {
        let bucket: Arc<dyn Bucket> = Arc::new(MemoryBucket::new());
        let node = ("n1".to_owned(), 1);
        let mut lease_holder =
            LeaseHolder::new("owner", node, Duration::from_secs(3), &bucket, "host:1", &Seams::real());
        lease_holder.start();
        assert_eq!(lease_holder.wait(|_| ()).await, 1);
        let lease = lease_holder.lease().clone();
        lease_holder.end().await.unwrap();
        assert!(matches!(lease.turn().unwrap(), Standing::Other(None, _)));
    }
}
