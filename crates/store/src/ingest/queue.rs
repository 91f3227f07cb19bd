//! Group commit: writers queue up, and one of them commits for all.
//!
//! There is no writer thread. A writer that finds no commit in progress leads. It takes the queued writes, including
//! its own, and commits them as one group. Then it passes the lead to the first write queued meanwhile, and distributes
//! the outcomes. So a lone writer pays for no thread switch. Under load a group has the writes that arrive during one
//! sync.
//!
//! A writer need not be a thread: it holds a [`Ticket`], and a [`Waker`] notifies it when to poll again. Only leading
//! blocks. Dropping a ticket withdraws its write if it is still queued, and passes on a lead.

use crate::error::WriteError;
use crate::seams::wait;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Max waiting writes.
const WAITING_MAX: usize = 4096;
/// Max bytes of waiting writes, unless a single write is larger.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// Max bytes of one group, unless a single write is larger.
const GROUP_BYTES: usize = 32 << 20;

/// A queue of writes `W` answered by `A`.
#[derive(Debug)]
pub(crate) struct Queue<W, A> {
    waiting: Mutex<WaitingWrites<W, A>>,
}

#[derive(Debug)]
struct WaitingWrites<W, A> {
    writes: VecDeque<QueuedWrite<W, A>>,
    bytes: usize,
    /// Whether a writer commits a group, or is to lead the next one.
    has_leader: bool,
    /// Whether the last group was full and left writes waiting.
    passed_over: bool,
}

#[derive(Debug)]
struct QueuedWrite<W, A> {
    write: W,
    bytes: usize,
    since: Instant,
    slot: Arc<Slot<A>>,
}

#[derive(Debug)]
struct Slot<A>(Mutex<(SlotState<A>, Option<Waker>)>);

#[derive(Debug)]
enum SlotState<A> {
    Waiting,
    /// The writer is to lead the next group.
    Lead,
    Answered(Result<A, WriteError>),
    /// The outcome was taken.
    Done,
}

impl<A> Slot<A> {
    fn set(&self, state: SlotState<A>) {
        // Woken without the lock, as the waker may poll at once.
        let waker = {
            let mut slot = self.0.lock();
            slot.0 = state;
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The next step for a writer.
#[derive(Debug)]
pub(crate) enum QueueStep<A> {
    /// Call [`Ticket::lead`], then poll again.
    Lead,
    /// Nothing more: this is the outcome of the write.
    Answered(Result<A, WriteError>),
}

impl<W, A> Queue<W, A> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Queue {
            waiting: Mutex::new(WaitingWrites {
                writes: VecDeque::new(),
                bytes: 0,
                has_leader: false,
                passed_over: false,
            }),
        })
    }

    /// Queues a write of this many bytes.
    pub(crate) fn push(self: &Arc<Self>, write: W, bytes: usize) -> Result<Ticket<W, A>, WriteError> {
        let mut waiting = self.waiting.lock();
        // An empty queue accepts any size: otherwise a batch above the limit could never be written.
        let full = waiting.bytes + bytes > WAITING_BYTES_MAX && !waiting.writes.is_empty();
        if waiting.writes.len() >= WAITING_MAX || full {
            let (count, bytes) = (waiting.writes.len(), waiting.bytes);
            return Err(WriteError::Late(format!("{count} writes of {bytes} bytes wait already: try again later")));
        }
        // Decided under the lock: of writers that arrive at once, one leads.
        let state = if std::mem::replace(&mut waiting.has_leader, true) { SlotState::Waiting } else { SlotState::Lead };
        let slot = Arc::new(Slot(Mutex::new((state, None))));
        waiting.bytes += bytes;
        waiting.writes.push_back(QueuedWrite { write, bytes, since: wait::begin(), slot: slot.clone() });
        Ok(Ticket { queue: self.clone(), slot })
    }

    /// Returns true if the oldest write that a full group passed over has waited longer than this. A queue that each
    /// group empties, however long that takes, is not late; a late one receives more than it can commit.
    pub(crate) fn is_late(&self, wait_max: Duration) -> bool {
        let waiting = self.waiting.lock();
        waiting.passed_over && waiting.writes.front().is_some_and(|oldest| wait::since(oldest.since) > wait_max)
    }

    /// Commits one group, passes on the lead, and answers the group.
    fn lead(&self, commit: impl FnOnce(Vec<W>) -> Vec<Result<A, WriteError>>) {
        // A guard: even if committing panics, the lead is passed on, and every waiting writer gets an outcome.
        struct LeadGuard<'a, W, A>(&'a Queue<W, A>, Vec<Arc<Slot<A>>>, std::vec::IntoIter<Result<A, WriteError>>);
        impl<W, A> Drop for LeadGuard<'_, W, A> {
            fn drop(&mut self) {
                // The lead first: the next group may start while this one is answered.
                self.0.pass_on();
                for slot in self.1.drain(..) {
                    slot.set(SlotState::Answered(self.2.next().unwrap_or_else(|| Err(unanswered()))));
                }
            }
        }
        let (mut group, mut guard) = (Vec::new(), LeadGuard(self, Vec::new(), Vec::new().into_iter()));
        {
            // A group takes queued writes up to its max bytes; writes during the commit form the next one.
            let (mut waiting, mut total) = (self.waiting.lock(), 0);
            while let Some(first) = waiting.writes.front() {
                if !group.is_empty() && total + first.bytes > GROUP_BYTES {
                    break;
                }
                total += first.bytes;
                if let Some(first) = waiting.writes.pop_front() {
                    waiting.bytes -= first.bytes;
                    group.push(first.write);
                    guard.1.push(first.slot);
                }
            }
            waiting.passed_over = !waiting.writes.is_empty();
        }
        if !group.is_empty() {
            // Outcomes are paired with slots by order; a slot without an outcome gets one in `drop`.
            guard.2 = commit(group).into_iter();
        }
    }

    /// Gives the lead to the first waiting write, or to the next one pushed.
    fn pass_on(&self) {
        let mut waiting = self.waiting.lock();
        match waiting.writes.front() {
            // Under the queue's lock: a write pushed after this point sees `has_leader` as false and leads itself.
            None => waiting.has_leader = false,
            // Set while the queue is locked, so that `take_back` cannot remove this write between the choice and the
            // signal.
            Some(next) => next.slot.set(SlotState::Lead),
        }
    }
}

/// Returns the outcome of a write whose commit panicked: its group may be in the log.
fn unanswered() -> WriteError {
    WriteError::Unknown("the server failed while it wrote them".to_owned())
}

/// A writer's handle to its write in the queue.
#[derive(Debug)]
pub(crate) struct Ticket<W, A> {
    queue: Arc<Queue<W, A>>,
    slot: Arc<Slot<A>>,
}

impl<W, A> Ticket<W, A> {
    /// Returns the next step for the writer. While there is none, `waker` is registered to be woken. The outcome is
    /// returned once.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<QueueStep<A>> {
        let mut slot = self.slot.0.lock();
        match std::mem::replace(&mut slot.0, SlotState::Done) {
            SlotState::Answered(answer) => Poll::Ready(QueueStep::Answered(answer)),
            SlotState::Done => Poll::Ready(QueueStep::Answered(Err(WriteError::Closed))),
            // The state stays `Lead` until `lead` is called: a spurious poll must not lose the lead, or the queue would
            // stall.
            SlotState::Lead => {
                slot.0 = SlotState::Lead;
                Poll::Ready(QueueStep::Lead)
            }
            SlotState::Waiting => {
                slot.0 = SlotState::Waiting;
                match &mut slot.1 {
                    // Only the last waker counts, as in any future; `clone_from` avoids an allocation when it is the
                    // same task.
                    Some(known) => known.clone_from(waker),
                    unknown => *unknown = Some(waker.clone()),
                }
                Poll::Pending
            }
        }
    }

    /// Commits a group, including its own write, if this writer leads. Blocks as long as `commit` does.
    pub(crate) fn lead(&self, commit: impl FnOnce(Vec<W>) -> Vec<Result<A, WriteError>>) {
        let mine = {
            let mut slot = self.slot.0.lock();
            let mine = matches!(slot.0, SlotState::Lead);
            if mine {
                slot.0 = SlotState::Waiting;
            }
            mine
        };
        // Without the lock of the slot: the group answers this slot too.
        if mine {
            self.queue.lead(commit);
        }
    }

    /// Withdraws the write from the queue; returns false if a group has taken it.
    pub(crate) fn take_back(&self) -> bool {
        let mut waiting = self.queue.waiting.lock();
        // A linear search, but only on cancellation, in a queue of at most `WAITING_MAX`.
        let Some(at) = waiting.writes.iter().position(|queued| Arc::ptr_eq(&queued.slot, &self.slot)) else {
            return false;
        };
        if let Some(removed) = waiting.writes.remove(at) {
            waiting.bytes -= removed.bytes;
        }
        // The queue's lock is released first: `pass_on` takes it again.
        drop(waiting);
        // The lead is given under the lock of the queue, and only to queued writes: from here on it cannot be given to
        // this one.
        let leads = matches!(std::mem::replace(&mut self.slot.0.lock().0, SlotState::Done), SlotState::Lead);
        if leads {
            self.queue.pass_on();
        }
        true
    }

    /// Blocks this thread until the deadline while other groups commit, then for as long as its own group takes.
    pub(crate) fn wait(
        &self,
        deadline: Instant,
        mut commit: impl FnMut(Vec<W>) -> Vec<Result<A, WriteError>>,
    ) -> Result<A, WriteError> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut late = false;
        loop {
            match self.poll(&waker) {
                Poll::Ready(QueueStep::Answered(answer)) => return answer,
                Poll::Ready(QueueStep::Lead) => self.lead(&mut commit),
                // The deadline no longer applies: the write may be durable, and an error now would make the client send
                // it twice.
                Poll::Pending if late => std::thread::park(),
                Poll::Pending => match wait::left(deadline) {
                    Some(left) => std::thread::park_timeout(left),
                    None if self.take_back() => return Err(too_late()),
                    // A group took it meanwhile, and its outcome comes soon.
                    None => late = true,
                },
            }
        }
    }
}

impl<W, A> Drop for Ticket<W, A> {
    fn drop(&mut self) {
        if !matches!(self.slot.0.lock().0, SlotState::Answered(_) | SlotState::Done) {
            self.take_back();
        }
    }
}

/// Returns the error for a write whose deadline passed while it was queued.
pub(crate) fn too_late() -> WriteError {
    WriteError::Busy("the write waited for others until its deadline: try again later".to_owned())
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests;
