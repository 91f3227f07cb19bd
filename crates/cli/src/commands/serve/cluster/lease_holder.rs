//! Acquires and renews a lease.

use super::blocking;
use crate::failure::Failure;
use meridian_remote::OwnershipCheck;
use meridian_store::seams::Seams;
use meridian_store::{Bucket, Lease, LeaseState, Statement};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Pause before a retry after a failed turn.
const RETRY: Duration = Duration::from_millis(250);

/// How long before a handover the heir is named, in addition to one check interval of a candidate. Gateways and the
/// heir check at least this often.
const NOTICE: Duration = Duration::from_millis(200);
/// Number of checks by candidates during the length of a lease.
const LOOKS: u32 = 12;

/// Competes for a lease, and renews it while held. Dropping it stops the renewals.
pub(super) struct LeaseHolder {
    lease: Arc<Lease>,
    standing: watch::Sender<LeaseState>,
    /// Time between naming an heir and passing the lease on.
    notice: Duration,
    turns: JoinSet<()>,
}

impl LeaseHolder {
    /// Makes the holder of the lease `name`, which is not started yet. `node` and `process`: name and number of this
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
        let standing = watch::Sender::new(LeaseState::Other(None, Duration::ZERO));
        LeaseHolder { lease, standing, notice: NOTICE + ttl / LOOKS, turns: JoinSet::new() }
    }

    /// Starts to acquire and renew the lease.
    pub(super) fn start(&mut self) {
        let (taking, told) = (self.lease.clone(), self.standing.clone());
        self.turns.spawn(async move {
            loop {
                let lease = taking.clone();
                let after = match blocking("a turn at the lease", move || lease.turn()).await {
                    Ok(Ok(standing)) => {
                        let (LeaseState::Owner(after) | LeaseState::Other(_, after)) = standing;
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

    /// Waits until this process is the owner; returns the epoch of its term. Calls `waits` with each other owner.
    pub(super) async fn wait(&self, mut waits: impl FnMut(&str)) -> u64 {
        let (mut standing, mut other) = (self.standing.subscribe(), String::new());
        loop {
            if let Some(term) = self.lease.term() {
                return term.epoch;
            }
            if let LeaseState::Other(Some(term), _) = &*standing.borrow_and_update()
                && *other != term.node
            {
                other.clone_from(&term.node);
                waits(&format!("{} at {}", term.node, term.address));
            }
            changed(&mut standing).await;
        }
    }

    /// Watches the state of the lease, updated by each turn.
    pub(super) fn standing(&self) -> watch::Receiver<LeaseState> {
        self.standing.subscribe()
    }

    /// Epoch in which this process holds the lease now.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.lease.epoch()
    }

    /// The lease, for queries from elsewhere, and to give it up after this is dropped.
    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Stops this process from taking the lease, or allows it again. A lease it holds is kept.
    pub(super) fn withdraw(&self, withdrawn: bool) {
        self.lease.withdraw(withdrawn);
    }

    /// Passes the lease on to a standby; returns true if it was held in this epoch until then. The heir and the
    /// gateways are informed first, while this process still owns.
    pub(super) async fn pass_on(&self, epoch: u64, heir: u64) -> Result<bool, Failure> {
        let passed = self.pass_on_now(epoch, heir).await;
        // A lease that this process keeps, or takes again, has no heir. Written now, or with the next renewal.
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

    /// Returns true if this process has held the lease without a break since this epoch.
    pub(super) fn holds(&self, epoch: u64) -> bool {
        self.lease.epoch() == Some(epoch)
    }

    /// As [`LeaseHolder::holds`], as a function for other threads.
    pub(super) fn holding(&self, epoch: u64) -> OwnershipCheck {
        let lease = self.lease.clone();
        Arc::new(move || lease.epoch() == Some(epoch))
    }

    /// Publishes, with each renewal in this epoch, the time up to which flushed writes are complete; `None` stops that.
    pub(super) fn say(&self, epoch: u64, statement: Option<Statement>) {
        self.lease.say(epoch, statement);
    }

    /// Gives up the lease, so that the next owner need not wait for it to expire.
    pub(super) async fn resign(&self) -> Result<(), Failure> {
        let lease = self.lease.clone();
        blocking("giving up the lease", move || lease.resign()).await?.map_err(Failure::from)
    }

    /// Gives up the lease at the end of this process, and stops competing for it.
    pub(super) async fn end(mut self) -> Result<(), Failure> {
        // A turn in progress continues, and must not take the lease after it was given up.
        self.withdraw(true);
        self.turns.shutdown().await;
        self.resign().await
    }
}

/// Waits for the next unseen turn.
pub(super) async fn changed(standing: &mut watch::Receiver<LeaseState>) {
    if standing.changed().await.is_err() {
        // The lease holder is gone, so there are no more turns.
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
        assert!(matches!(lease.turn().unwrap(), LeaseState::Other(None, _)));
    }
}
