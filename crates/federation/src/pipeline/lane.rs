//! A bounded queue before a stage, in three priority classes: quick, poll, background. Each class has its own space,
//! so that low-priority work cannot block urgent work. The scheduling rules, including dropping expired work, are in
//! [`meridian_model::policy::queue`], which the lab's simulator uses too.

use meridian_model::policy::queue::{Class, Patience, Queues, Taken};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant};

/// An item in a queue.
pub trait Urgent {
    /// Its priority class.
    fn class(&self) -> Class;
    /// When it expires.
    fn deadline(&self) -> Instant;
}

/// Queued work, by class.
#[derive(Debug)]
pub struct Lane<T> {
    /// The origin of times in the queues.
    origin: Instant,
    queues: Mutex<Queues<T>>,
    // Permits rather than a condition variable: a waiter that is dropped loses none.
    ready: Semaphore,
    space: [Semaphore; 3],
}

impl<T: Urgent> Lane<T> {
    /// A queue with space for `room` items of each class.
    pub fn new(room: usize) -> Lane<T> {
        let room = room.max(1);
        let space = || Semaphore::new(room);
        Lane {
            origin: Instant::now(),
            queues: Mutex::new(Queues::new(room)),
            ready: Semaphore::new(0),
            space: [space(), space(), space()],
        }
    }

    /// Adds work, once there is space.
    pub async fn push(&self, work: T) {
        // Before the wait for space: time spent in front of a full queue counts as delay too.
        let came = self.origin.elapsed();
        let (class, patience) = (work.class(), Patience::Deadline(work.deadline() - self.origin));
        // Neither semaphore is ever closed, and a permit guarantees space.
        if let Ok(permit) = self.space[class as usize].acquire().await {
            // Not returned on drop: `pop` gives it back when the item leaves the queue.
            permit.forget();
        }
        if self.queues.lock().push(class, came, patience, work).is_ok() {
            self.ready.add_permits(1);
        }
    }

    /// Takes the oldest work of the most urgent class, once there is any.
    pub async fn pop(&self) -> Taken<T> {
        loop {
            if let Ok(permit) = self.ready.acquire().await {
                permit.forget();
            }
            // The permit says that there is some item, not which: urgent work that came later is taken first.
            let taken = self.queues.lock().take(self.origin.elapsed());
            if let Some(taken) = taken {
                let (Taken::Due(work) | Taken::Expired(work)) = &taken;
                self.space[work.class() as usize].add_permits(1);
                return taken;
            }
        }
    }
}

/// The age of queued work, for a queue of any type.
pub trait QueueAge: Send + Sync {
    /// How long the oldest work of this class or a more urgent one has waited, including the wait for space.
    fn oldest(&self, class: Class) -> Duration;
}

impl<T: Send> QueueAge for Lane<T> {
    fn oldest(&self, class: Class) -> Duration {
        let came = self.queues.lock().oldest(class);
        came.map_or(Duration::ZERO, |came| self.origin.elapsed().saturating_sub(came))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Job {
        class: Class,
        deadline: Instant,
        n: u32,
    }

    impl Urgent for Job {
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
        let job = |class, n| Job { class, deadline: far, n };
        for (class, n) in [(Class::Background, 1), (Class::Default, 2), (Class::Quick, 3), (Class::Quick, 4)] {
            lane.push(job(class, n)).await;
        }
        let full = tokio::time::timeout(Duration::from_millis(20), lane.push(job(Class::Quick, 5))).await;
        assert!(full.is_err());
        lane.push(job(Class::Default, 6)).await;
        // The wait counts for classes served after this work, not for more urgent ones.
        assert_eq!(lane.oldest(Class::Background), Duration::from_millis(20));
        let mut order = Vec::new();
        for n in 0..5 {
            match lane.pop().await {
                Taken::Due(job) => order.push(job.n),
                other => panic!("{other:?}"),
            }
            assert_eq!(lane.oldest(Class::Quick).is_zero(), n >= 1);
        }
        assert_eq!(order, [3, 4, 2, 6, 1]);
        assert!(lane.oldest(Class::Background).is_zero());
        lane.push(Job { class: Class::Quick, deadline: lane.origin, n: 7 }).await;
        assert!(matches!(lane.pop().await, Taken::Expired(Job { n: 7, .. })));
    }
}
