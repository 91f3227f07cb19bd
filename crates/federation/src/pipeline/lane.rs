//! A bounded queue before a stage: quick before poll before background, each with room of its own, so that what waits
//! patiently cannot shut out what does not.

use crate::question::Priority;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Semaphore;

/// Work that waits, by priority.
#[derive(Debug)]
pub struct Lane<T> {
    queues: Mutex<[VecDeque<T>; 3]>,
    ready: Semaphore,
    space: [Semaphore; 3],
}

impl<T> Lane<T> {
    /// A queue with room for so much work of each priority.
    pub fn new(room: usize) -> Lane<T> {
        let space = || Semaphore::new(room.max(1));
        Lane { queues: Mutex::default(), ready: Semaphore::new(0), space: [space(), space(), space()] }
    }

    /// Adds work, once there is room.
    pub async fn push(&self, priority: Priority, work: T) {
        let at = priority as usize;
        // Neither semaphore is ever closed.
        if let Ok(permit) = self.space[at].acquire().await {
            permit.forget();
        }
        self.queues.lock()[at].push_back(work);
        self.ready.add_permits(1);
    }

    /// Takes the oldest work of the highest priority, once there is any.
    pub async fn pop(&self) -> T {
        loop {
            if let Ok(permit) = self.ready.acquire().await {
                permit.forget();
            }
            let mut queues = self.queues.lock();
            if let Some((at, work)) =
                queues.iter_mut().enumerate().find_map(|(at, queue)| Some((at, queue.pop_front()?)))
            {
                self.space[at].add_permits(1);
                return work;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn who_waits_for_it_goes_first_and_room_is_bounded() {
        let lane = Lane::new(2);
        for (priority, work) in
            [(Priority::Background, 1), (Priority::Poll, 2), (Priority::Quick, 3), (Priority::Quick, 4)]
        {
            lane.push(priority, work).await;
        }
        let full = tokio::time::timeout(Duration::from_millis(20), lane.push(Priority::Quick, 5)).await;
        assert!(full.is_err());
        lane.push(Priority::Poll, 6).await;
        let mut order = Vec::new();
        for _ in 0..5 {
            order.push(lane.pop().await);
        }
        assert_eq!(order, [3, 4, 2, 6, 1]);
    }
}
