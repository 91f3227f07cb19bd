//! Group commit: writers queue up, and the first of them commits for all.
//!
//! There is no writer thread. A writer that finds nobody committing becomes the leader: it takes what is queued (its
//! own write among it), commits that as one group, hands out the answers, and passes the lead to the first of those
//! that queued up meanwhile. A lone writer so pays no switch of threads, and under load a group is as large as what
//! arrives during one sync.

use crate::error::WriteError;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Most writes that wait.
const WAITING_MAX: usize = 4096;
/// Most bytes of one group, unless a single write is larger.
const GROUP_BYTES: usize = 32 << 20;

/// A queue of writes `W` answered by `A`.
#[derive(Debug)]
pub(crate) struct Queue<W, A> {
    waiting: Mutex<Waiting<W, A>>,
}

#[derive(Debug)]
struct Waiting<W, A> {
    writes: VecDeque<(W, usize, Arc<Slot<A>>)>,
    led: bool,
}

#[derive(Debug)]
struct Slot<A> {
    state: Mutex<SlotState<A>>,
    changed: Condvar,
}

#[derive(Debug)]
enum SlotState<A> {
    Waiting,
    /// Its writer is to lead the next group.
    Lead,
    Answered(Result<A, WriteError>),
}

impl<W, A> Queue<W, A> {
    pub(crate) fn new() -> Self {
        Queue { waiting: Mutex::new(Waiting { writes: VecDeque::new(), led: false }) }
    }

    /// Queues a write of so many bytes and waits for its answer. `commit` is called if this writer leads.
    ///
    /// At the deadline a write that is still queued is taken back; one that is being committed is waited for.
    pub(crate) fn submit(
        &self,
        write: W,
        bytes: usize,
        deadline: Instant,
        mut commit: impl FnMut(Vec<W>) -> Vec<Result<A, WriteError>>,
    ) -> Result<A, WriteError> {
        let slot = Arc::new(Slot { state: Mutex::new(SlotState::Waiting), changed: Condvar::new() });
        let mut leads = {
            let mut waiting = self.waiting.lock();
            if waiting.writes.len() >= WAITING_MAX {
                return Err(WriteError::Busy(format!("{WAITING_MAX} writes are waiting already: try again later")));
            }
            waiting.writes.push_back((write, bytes, slot.clone()));
            !std::mem::replace(&mut waiting.led, true)
        };
        loop {
            if leads {
                self.lead(&mut commit);
            }
            let mut state = slot.state.lock();
            loop {
                match std::mem::replace(&mut *state, SlotState::Waiting) {
                    SlotState::Answered(answer) => return answer,
                    SlotState::Lead => break,
                    SlotState::Waiting => {}
                }
                if slot.changed.wait_until(&mut state, deadline).timed_out() {
                    drop(state);
                    if self.take_back(&slot) {
                        return Err(WriteError::Busy(
                            "the write waited for others until its deadline: try again later".to_owned(),
                        ));
                    }
                    // It was taken meanwhile: its answer comes as soon as its group is through.
                    state = slot.state.lock();
                    while matches!(*state, SlotState::Waiting) {
                        slot.changed.wait(&mut state);
                    }
                }
            }
            leads = true;
        }
    }

    /// Commits one group, answers it, and passes the lead on.
    fn lead(&self, commit: &mut impl FnMut(Vec<W>) -> Vec<Result<A, WriteError>>) {
        let (mut group, mut slots, mut total) = (Vec::new(), Vec::new(), 0);
        {
            let mut waiting = self.waiting.lock();
            while let Some((_, bytes, _)) = waiting.writes.front() {
                if !group.is_empty() && total + bytes > GROUP_BYTES {
                    break;
                }
                total += bytes;
                if let Some((write, _, slot)) = waiting.writes.pop_front() {
                    group.push(write);
                    slots.push(slot);
                }
            }
        }
        let mut answers = if group.is_empty() { Vec::new() } else { commit(group) }.into_iter();
        for slot in slots {
            let answer = answers.next().unwrap_or(Err(WriteError::Closed));
            *slot.state.lock() = SlotState::Answered(answer);
            slot.changed.notify_one();
        }
        let mut waiting = self.waiting.lock();
        match waiting.writes.front() {
            None => waiting.led = false,
            Some((_, _, next)) => {
                *next.state.lock() = SlotState::Lead;
                next.changed.notify_one();
            }
        }
    }

    /// Takes a write out of the queue; `false` if it was taken into a group, or is to lead one.
    fn take_back(&self, slot: &Arc<Slot<A>>) -> bool {
        let mut waiting = self.waiting.lock();
        if matches!(*slot.state.lock(), SlotState::Lead) {
            return false;
        }
        let before = waiting.writes.len();
        waiting.writes.retain(|(_, _, other)| !Arc::ptr_eq(slot, other));
        waiting.writes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn every_write_is_answered_once_and_groups_form() {
        let queue = Queue::<usize, usize>::new();
        let (groups, order) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let busy = Mutex::new(());
        let far = Instant::now() + Duration::from_secs(600);
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (queue, groups, order, busy) = (&queue, &groups, &order, &busy);
                scope.spawn(move || {
                    for i in 0..50 {
                        let write = thread * 1000 + i;
                        let answer = queue.submit(write, 1, far, |group| {
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
        let far = Instant::now() + Duration::from_secs(600);
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| {
                queue.submit(1, 1, far, |group| {
                    let mut go = entered.lock();
                    while !*go {
                        release.wait(&mut go);
                    }
                    group.into_iter().map(Ok).collect()
                })
            });
            while !queue.waiting.lock().led || !queue.waiting.lock().writes.is_empty() {
                std::thread::yield_now();
            }
            let late = queue.submit(2, 1, Instant::now(), |group| group.into_iter().map(Ok).collect());
            assert!(matches!(late, Err(WriteError::Busy(_))), "{late:?}");
            *entered.lock() = true;
            release.notify_all();
            assert_eq!(leader.join().unwrap().unwrap(), 1);
        });
        assert_eq!(queue.submit(3, 1, far, |g| g.into_iter().map(Ok).collect()).unwrap(), 3);
    }
}
