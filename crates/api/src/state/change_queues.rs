//! Limits the changes of the registry that run, and those that wait for their turn.
//!
//! The registry makes one change at a time, so a change waits for those that run. Few of them do, and what takes rights
//! away has a queue of its own: it waits for no sign-in and no other change that waits.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Max changes that run, or wait on a thread for the registry; as many revocations may do so beside them.
pub const RUNNING_MAX: usize = 4;
/// Max further changes that wait without a thread; half as many revocations and sign-outs may wait beside them.
pub const WAITING_MAX: usize = 256;

/// Where a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A session that begins. Clients without access can cause such changes.
    SignIn,
    /// Any other change.
    Administration,
    /// A session that its user ends.
    SignOut,
    /// A change that takes rights away: of a token, a user or a tenant.
    Revocation,
    /// The same, by an operator.
    OperatorRevocation,
}

impl Origin {
    /// Returns the origin of a change that takes rights away.
    pub fn revocation(by_operator: bool) -> Origin {
        if by_operator { Origin::OperatorRevocation } else { Origin::Revocation }
    }
}

/// The queues of the changes of the registry.
pub struct ChangeQueues {
    /// Held by the changes that run.
    pub running: Arc<Semaphore>,
    /// Held by the changes that wait.
    waiting: Semaphore,
    /// Held also by sign-ins that wait.
    signing_in: Semaphore,
    /// Held by the revocations that run, and by those that wait.
    revoking: Arc<Semaphore>,
    revocations_waiting: Semaphore,
    /// Held also by revocations that wait and are not by an operator.
    of_tenants: Semaphore,
    /// Held also by sign-outs that wait.
    signing_out: Semaphore,
}

impl ChangeQueues {
    /// Creates queues: this many changes run at a time, and this many more wait. Sign-ins take at most half of the places
    /// to wait, so that a flood of them leaves room for administration. Revocations have a queue beside them: sign-outs
    /// take at most half of its places, and with the revocations of tenants at most three quarters. Others are left to
    /// operators.
    pub fn new(running: usize, waiting: usize) -> ChangeQueues {
        let revocations = waiting.div_ceil(2);
        ChangeQueues {
            running: Arc::new(Semaphore::new(running)),
            waiting: Semaphore::new(waiting),
            signing_in: Semaphore::new(waiting / 2),
            revoking: Arc::new(Semaphore::new(running)),
            revocations_waiting: Semaphore::new(revocations),
            of_tenants: Semaphore::new(revocations - revocations / 4),
            signing_out: Semaphore::new(revocations.div_ceil(2)),
        }
    }

    /// Waits for a turn. `None` at once if too many wait already, and later if it does not come in time.
    pub async fn take(&self, origin: Origin, wait_max: Duration) -> Option<OwnedSemaphorePermit> {
        // The places in each of these. All are given back when the wait ends. A disconnect of the client ends the wait of
        // a sign-in. An act waits on, since it runs on a task of its own.
        let [all, tenants] = [Some(&self.revocations_waiting), Some(&self.of_tenants)];
        let (running, waiting) = match origin {
            Origin::SignIn => (&self.running, [Some(&self.waiting), Some(&self.signing_in), None]),
            Origin::Administration => (&self.running, [Some(&self.waiting), None, None]),
            Origin::SignOut => (&self.revoking, [all, tenants, Some(&self.signing_out)]),
            Origin::Revocation => (&self.revoking, [all, tenants, None]),
            Origin::OperatorRevocation => (&self.revoking, [all, None, None]),
        };
        let places: Result<Vec<_>, _> = waiting.into_iter().flatten().map(|of| of.try_acquire()).collect();
        let _places = places.ok()?;
        let turn = running.clone().acquire_owned();
        tokio::time::timeout(wait_max, turn).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test(start_paused = true)]
    async fn a_change_is_refused_at_once_while_too_many_wait() {
        let queues = ChangeQueues::new(1, 2);
        let first = queues.take(Origin::Administration, LONG).await;
        assert!(first.is_some());
        let wait = || Box::pin(queues.take(Origin::Administration, LONG));
        let (mut second, mut third) = (wait(), wait());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(matches!(queues.take(Origin::Administration, LONG).now_or_never(), Some(None)));
        drop(third);
        let mut fourth = wait();
        assert!(fourth.as_mut().now_or_never().is_none(), "it waits in the place of the third");
        drop(first);
        let second = second.await;
        assert!(second.is_some());
        drop(second);
        assert!(fourth.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_does_not_come_in_time_gives_its_place_back() {
        let queues = ChangeQueues::new(1, 1);
        let first = queues.take(Origin::Administration, LONG).await;
        assert!(queues.take(Origin::Administration, LONG).await.is_none());
        drop(first);
        assert!(queues.take(Origin::Administration, LONG).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_sign_ins_leaves_half_of_the_places_to_others() {
        let queues = ChangeQueues::new(1, 4);
        let first = queues.take(Origin::SignIn, LONG).await;
        assert!(first.is_some());
        let wait = |origin| Box::pin(queues.take(origin, LONG));
        let mut sign_ins = [wait(Origin::SignIn), wait(Origin::SignIn)];
        assert!(sign_ins.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(matches!(queues.take(Origin::SignIn, LONG).now_or_never(), Some(None)));
        let mut revocations = [wait(Origin::Administration), wait(Origin::Administration)];
        assert!(revocations.iter_mut().all(|one| one.as_mut().now_or_never().is_none()), "they wait");
        drop(revocations);
        drop(sign_ins);
        let mut next = wait(Origin::SignIn);
        assert!(next.as_mut().now_or_never().is_none(), "it waits in the place of an earlier one");
        drop(first);
        assert!(next.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_revocation_waits_for_no_change_but_other_revocations() {
        let queues = ChangeQueues::new(1, 4);
        let _first = queues.take(Origin::SignIn, LONG).await;
        let wait = |origin| Box::pin(queues.take(origin, LONG));
        let others = [Origin::SignIn, Origin::SignIn, Origin::Administration, Origin::Administration];
        let mut others = others.map(wait);
        assert!(others.iter_mut().all(|one| one.as_mut().now_or_never().is_none()), "they take every place");
        let revocation = queues.take(Origin::Revocation, LONG).now_or_never().flatten();
        assert!(revocation.is_some());
        // They are bounded too.
        let mut revocations = [wait(Origin::Revocation), wait(Origin::Revocation)];
        assert!(revocations.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(matches!(queues.take(Origin::Revocation, LONG).now_or_never(), Some(None)));
        drop(revocation);
        let [next, _last] = revocations;
        assert!(next.await.is_some());
        assert!(others.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_sign_outs_leaves_places_to_revocations_and_these_some_to_operators() {
        let queues = ChangeQueues::new(1, 16);
        let first = queues.take(Origin::SignOut, LONG).await;
        assert!(first.is_some());
        let mut waiting = Vec::new();
        for (origin, most) in [(Origin::SignOut, 4), (Origin::Revocation, 2), (Origin::OperatorRevocation, 2)] {
            for n in 0..most {
                let mut one = Box::pin(queues.take(origin, LONG));
                assert!(one.as_mut().now_or_never().is_none(), "{origin:?} {n} waits");
                waiting.push(one);
            }
            assert!(matches!(queues.take(origin, LONG).now_or_never(), Some(None)), "{origin:?}");
        }
        // A refused revocation keeps no place in any of the queues.
        drop(waiting.remove(0));
        let mut next = Box::pin(queues.take(Origin::SignOut, LONG));
        assert!(next.as_mut().now_or_never().is_none());
        drop((waiting, first));
        assert!(next.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn administration_that_waits_takes_every_place() {
        let queues = ChangeQueues::new(1, 2);
        let _first = queues.take(Origin::Administration, LONG).await;
        let wait = || Box::pin(queues.take(Origin::Administration, LONG));
        let mut waiting = [wait(), wait()];
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(matches!(queues.take(Origin::SignIn, LONG).now_or_never(), Some(None)));
    }
}
