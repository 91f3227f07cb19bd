//! A bounded queue before a stage. Tenants take turns by weight, so a flood of one delays another by one item at a
//! time. A tenant's work has three priority classes: quick, poll, background. Each class of each tenant has its own
//! space, so that neither other tenants nor work of low priority can block it. The rules, including dropping expired
//! work, are in [`meridian_model::policy::turns`].

use meridian_model::policy::queue::{Class, Dequeued, JobTimeout};
use meridian_model::policy::turns::TenantQueues;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant};

/// An item in a queue.
pub trait LaneItem {
    /// Returns the tenant whose work it is.
    fn tenant(&self) -> &Arc<str>;
    /// Returns the weight of that tenant.
    fn weight(&self) -> u32;
    /// Returns its priority class.
    fn class(&self) -> Class;
    /// Returns when it expires.
    fn deadline(&self) -> Instant;
}

/// Queued work, by tenant and class.
#[derive(Debug)]
pub struct Lane<T> {
    /// Origin of the times in the queues.
    origin: Instant,
    state: Mutex<State<T>>,
    // Permits rather than a condition variable: a waiter that is dropped loses none.
    ready: Semaphore,
    room: usize,
}

#[derive(Debug)]
struct State<T> {
    queues: TenantQueues<Arc<str>, T>,
    /// Free space of the tenants that have work queued or wait for space.
    space: HashMap<Arc<str>, Space>,
}

/// Free space of a tenant, by class.
type Space = Arc<[Semaphore; 3]>;

impl<T: LaneItem> Lane<T> {
    /// Creates a queue with space for `room` items of each class of each tenant.
    pub fn new(room: usize) -> Lane<T> {
        let room = room.max(1);
        let state = State { queues: TenantQueues::new(room), space: HashMap::new() };
        Lane { origin: Instant::now(), state: Mutex::new(state), ready: Semaphore::new(0), room }
    }

    /// Adds work, once there is space for its tenant.
    pub async fn push(&self, work: T) {
        // Before the wait for space: time spent in front of a full queue counts as delay too.
        let came = self.origin.elapsed();
        let (class, patience) = (work.class(), JobTimeout::Deadline(work.deadline() - self.origin));
        let tenant = work.tenant().clone();
        let space = self.space_of(&tenant);
        // Neither semaphore is ever closed, and a permit guarantees space.
        if let Ok(permit) = space[class as usize].acquire().await {
            // Not returned on drop: `pop` returns it when the item leaves the queue.
            permit.forget();
        }
        let turn = (tenant, work.weight());
        if self.state.lock().queues.push(turn, class, came, patience, work).is_ok() {
            self.ready.add_permits(1);
        }
    }

    /// Takes the oldest work of the most urgent class of the tenant whose turn it is. Waits until there is any.
    pub async fn pop(&self) -> Dequeued<T> {
        loop {
            if let Ok(permit) = self.ready.acquire().await {
                permit.forget();
            }
            // The permit guarantees an item, not a particular one: more urgent work that came later is taken first.
            let mut state = self.state.lock();
            if let Some(taken) = state.queues.take(self.origin.elapsed()) {
                let (Dequeued::Due(work) | Dequeued::Expired(work)) = &taken;
                state.give_back(work.tenant(), work.class());
                return taken;
            }
        }
    }

    fn space_of(&self, tenant: &Arc<str>) -> Space {
        let room = || Semaphore::new(self.room);
        let mut state = self.state.lock();
        state.space.entry(tenant.clone()).or_insert_with(|| Arc::new([room(), room(), room()])).clone()
    }
}

impl<T> State<T> {
    /// Releases the space of an item that left. Forgets the tenant's space if it has no other item and no waiter. A
    /// waiter holds a reference, taken under the same lock.
    fn give_back(&mut self, tenant: &Arc<str>, class: Class) {
        let Some(space) = self.space.get(tenant) else { return };
        space[class as usize].add_permits(1);
        if Arc::strong_count(space) == 1 && self.queues.is_empty_of(&**tenant) {
            self.space.remove(tenant);
        }
    }
}

/// Age of queued work, for a queue of any type.
pub trait QueueAge: Send + Sync {
    /// Returns how long the oldest work of this class or a more urgent one has waited, including the wait for space.
    /// Covers one tenant, or all.
    fn oldest(&self, class: Class, tenant: Option<&str>) -> Duration;
}

impl<T: Send> QueueAge for Lane<T> {
    fn oldest(&self, class: Class, tenant: Option<&str>) -> Duration {
        let queues = &self.state.lock().queues;
        let came = match tenant {
            Some(tenant) => queues.oldest_of(tenant, class),
            None => queues.oldest(class),
        };
        came.map_or(Duration::ZERO, |came| self.origin.elapsed().saturating_sub(came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Job {
        tenant: Arc<str>,
        class: Class,
        deadline: Instant,
        n: u32,
    }

    impl LaneItem for Job {
        fn tenant(&self) -> &Arc<str> {
            &self.tenant
        }
        fn weight(&self) -> u32 {
            1
        }
        fn class(&self) -> Class {
            self.class
        }
        fn deadline(&self) -> Instant {
            self.deadline
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_it_goes_first_and_room_is_bounded() {
        let lane = Lane::new(2);
        let far = Instant::now() + Duration::from_secs(3_600);
        let tenant: Arc<str> = "one".into();
        let job = |class, n| Job { tenant: tenant.clone(), class, deadline: far, n };
        for (class, n) in [(Class::Background, 1), (Class::Default, 2), (Class::Quick, 3), (Class::Quick, 4)] {
            lane.push(job(class, n)).await;
        }
        let full = tokio::time::timeout(Duration::from_millis(20), lane.push(job(Class::Quick, 5))).await;
        assert!(full.is_err());
        lane.push(job(Class::Default, 6)).await;
        // The wait counts for classes served after this work, not for more urgent ones.
        assert_eq!(lane.oldest(Class::Background, None), Duration::from_millis(20));
        let mut order = Vec::new();
        for n in 0..5 {
            match lane.pop().await {
                Dequeued::Due(job) => order.push(job.n),
                other => panic!("{other:?}"),
            }
            assert_eq!(lane.oldest(Class::Quick, None).is_zero(), n >= 1);
        }
        assert_eq!(order, [3, 4, 2, 6, 1]);
        assert!(lane.oldest(Class::Background, None).is_zero());
        lane.push(Job { deadline: lane.origin, ..job(Class::Quick, 7) }).await;
        assert!(matches!(lane.pop().await, Dequeued::Expired(Job { n: 7, .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_that_fills_its_space_takes_neither_space_nor_turns_of_another() {
        let lane = Lane::new(4);
        let far = Instant::now() + Duration::from_secs(3_600);
        let job = |tenant: &str, class, n| Job { tenant: tenant.into(), class, deadline: far, n };
        for n in 0..4 {
            lane.push(job("red", Class::Quick, n)).await;
        }
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, lane.push(job("red", Class::Quick, 4))).await.is_err());
        // This item is of the last class, and after all others.
        lane.push(job("blue", Class::Background, 100)).await;
        assert_eq!(lane.oldest(Class::Background, Some("blue")), Duration::ZERO);
        assert_eq!(lane.oldest(Class::Background, Some("red")), soon);
        let mut order = Vec::new();
        for _ in 0..5 {
            match lane.pop().await {
                Dequeued::Due(job) => order.push(job.n),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(order, [100, 0, 1, 2, 3]);
        assert!(lane.state.lock().space.is_empty(), "nothing is kept of tenants without work");
    }
}
