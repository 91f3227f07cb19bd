//! Groups form, every write is answered once, and a lead is never lost.

use super::*;
use parking_lot::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};

fn far() -> Instant {
    wait::deadline(Duration::from_secs(600))
}

fn plus_one(group: Vec<u32>) -> Vec<Result<u32, WriteError>> {
    group.into_iter().map(|w| Ok(w + 1)).collect()
}

#[test]
fn every_write_is_answered_once_and_groups_form() {
    let queue = Queue::<usize, usize>::new();
    let (groups, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let busy = Mutex::new(());
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (queue, groups, order, busy) = (&queue, &groups, &order, &busy);
            scope.spawn(move || {
                for i in 0..50 {
                    let write = thread * 1000 + i;
                    let answer = queue.push(write, 1).unwrap().wait(far(), |group| {
                        let _alone = busy.try_lock().expect("two groups at once");
                        groups.fetch_add(1, Ordering::SeqCst);
                        order.lock().extend_from_slice(&group);
                        group.into_iter().map(|w| Ok(w + 1)).collect()
                    });
                    assert_eq!(answer.unwrap(), write + 1);
                }
            });
        }
    });
    let mut order = order.into_inner();
    assert_eq!(order.len(), 16 * 50);
    order.sort_unstable();
    order.dedup();
    assert_eq!(order.len(), 16 * 50);
    assert!(groups.into_inner() <= 16 * 50);
}

#[test]
fn a_write_past_its_deadline_is_taken_back_while_it_waits() {
    let queue = Queue::<u32, u32>::new();
    let (entered, release) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let leader = scope.spawn(|| {
            queue.push(1, 1).unwrap().wait(far(), |group| {
                let mut go = entered.lock();
                while !*go {
                    release.wait(&mut go);
                }
                plus_one(group)
            })
        });
        while !queue.waiting.lock().has_leader || !queue.waiting.lock().writes.is_empty() {
            std::thread::yield_now();
        }
        let late = queue.push(2, 1).unwrap().wait(wait::deadline(Duration::ZERO), plus_one);
        assert!(matches!(late, Err(WriteError::Busy(_))), "{late:?}");
        *entered.lock() = true;
        release.notify_all();
        assert_eq!(leader.join().unwrap().unwrap(), 2);
    });
    assert_eq!(queue.push(3, 1).unwrap().wait(far(), plus_one).unwrap(), 4);
}

#[test]
fn who_leaves_takes_the_write_along_and_passes_the_lead_on() {
    let queue = Queue::<u32, u32>::new();
    let (first, second, third) = (queue.push(1, 9).unwrap(), queue.push(2, 9).unwrap(), queue.push(3, 9).unwrap());
    assert!(matches!(first.poll(Waker::noop()), Poll::Ready(QueueStep::Lead)));
    assert!(second.poll(Waker::noop()).is_pending());
    drop(first);
    assert!(matches!(second.poll(Waker::noop()), Poll::Ready(QueueStep::Lead)));
    drop(third);
    second.lead(|group| {
        assert_eq!(group, [2]);
        plus_one(group)
    });
    assert!(matches!(second.poll(Waker::noop()), Poll::Ready(QueueStep::Answered(Ok(3)))));
    let waiting = queue.waiting.lock();
    assert_eq!((waiting.bytes, waiting.has_leader), (0, false));
}

#[test]
fn a_group_that_panics_is_answered_and_does_not_end_the_queue() {
    let queue = Queue::<u32, u32>::new();
    let (first, second) = (queue.push(1, 20 << 20).unwrap(), queue.push(2, 20 << 20).unwrap());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.lead(|_| panic!("on purpose"))));
    assert!(panicked.is_err());
    assert!(matches!(first.poll(Waker::noop()), Poll::Ready(QueueStep::Answered(Err(WriteError::Unknown(_))))));
    assert_eq!(second.wait(far(), plus_one).unwrap(), 3);
}

#[test]
fn a_queue_is_late_once_a_group_has_left_writes_waiting() {
    let queue = Queue::<u32, u32>::new();
    let (first, second) = (queue.push(1, 20 << 20).unwrap(), queue.push(2, 20 << 20).unwrap());
    // However long the first group takes, the second may take everything that waits.
    assert!(!queue.is_late(Duration::ZERO));
    first.lead(|group| {
        assert!(queue.is_late(Duration::ZERO) && !queue.is_late(Duration::from_secs(3600)));
        plus_one(group)
    });
    second.lead(plus_one);
    assert!(!queue.is_late(Duration::ZERO));
    let _third = queue.push(3, 1).unwrap();
    assert!(!queue.is_late(Duration::ZERO));
}

#[test]
fn a_full_queue_refuses_at_once() {
    let queue = Queue::<usize, usize>::new();
    let _all: Vec<_> = (0..WAITING_MAX).map(|i| queue.push(i, 1).unwrap()).collect();
    assert!(matches!(queue.push(0, 1), Err(WriteError::Late(_))));
    let queue = Queue::<usize, usize>::new();
    // A single write is accepted, however large.
    let _one = queue.push(0, WAITING_BYTES_MAX * 2).unwrap();
    assert!(matches!(queue.push(0, 1), Err(WriteError::Late(_))));
}
