//! Measurement of the processor time used under a permit.

use super::processors::thread_time;
use super::wait::{Parker, Waiter};
use super::{Account, Gate, State};
use meridian_model::policy::admission::{Ticket, Verdict};
use meridian_model::policy::quota::Quota;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How often a paused thread checks whether its work is still wanted.
const PAUSE_CHECK: Duration = Duration::from_millis(20);

/// Measures the work done under one permit, on the thread that does it and on its helpers.
#[derive(Debug)]
pub struct Meter {
    gate: Gate,
    ticket: Ticket,
    account: Account,
    /// Locked by the working thread, and briefly when the permit is dropped.
    slice: Mutex<Slice>,
    /// Nanoseconds used by helpers and not charged yet.
    helpers: AtomicU64,
}

#[derive(Debug)]
struct Slice {
    /// When the running slice began; `None` while no thread works.
    began: Option<(Instant, Duration)>,
    /// Time used by slices of threads that have ended, not charged yet.
    uncharged: Duration,
    /// Set while the slot is given back: whether a thread was working at that time.
    away: Option<bool>,
    /// Whether the slot was released.
    closed: bool,
}

impl Meter {
    pub(super) fn new(gate: Gate, ticket: Ticket, account: Account) -> Meter {
        let slice = Slice { began: None, uncharged: Duration::ZERO, away: None, closed: false };
        Meter { gate, ticket, account, slice: Mutex::new(slice), helpers: AtomicU64::new(0) }
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Starts measuring work on this thread.
    pub fn begin(&self) {
        self.slice.lock().began = Some((Instant::now(), thread_time()));
    }

    /// Stops measuring work on this thread; another thread goes on with it.
    pub fn stop(&self) {
        self.slice.lock().end();
    }

    /// Charges a completed slice; the working thread calls this often. If another query then has a higher claim to the
    /// slot, the thread waits for its next slot. It stops waiting once `over` reports that the work is no longer
    /// wanted.
    pub fn tick(&self, over: &dyn Fn() -> bool) {
        let mut slice = self.slice.lock();
        let Some((since, began)) = slice.began.filter(|_| !slice.closed) else { return };
        // Wall time is an upper bound for processor time and cheap to read. The thread's processor clock is a system
        // call.
        if since.elapsed() < self.gate.0.slice {
            return;
        }
        let ran = thread_time().saturating_sub(began);
        self.gate.0.processors.add(ran);
        let used = ran + std::mem::take(&mut slice.uncharged) + self.take_helpers();
        self.account.ledger.add_processor_time(used);
        // The waiter is registered in a block of its own, so that the gate's lock is released before the wait.
        let parker = {
            let mut state = self.gate.0.state.lock();
            let verdict = state.admission.slice(self.ticket, used);
            self.parker(&mut state, verdict)
        };
        if let Some(parker) = parker {
            self.pause(&mut slice, &parker, over);
        }
        // Restarted after the pause, which is not part of the next slice.
        slice.began = Some((Instant::now(), thread_time()));
    }

    /// Gives the slot back until [`Meter::wake`], because the work waits for another process. Charges the time used so
    /// far.
    pub fn rest(&self) {
        let mut slice = self.slice.lock();
        if slice.closed || slice.away.is_some() {
            return;
        }
        let works = slice.began.is_some();
        slice.away = Some(works);
        slice.end();
        let ran = std::mem::take(&mut slice.uncharged);
        if works {
            self.gate.0.processors.add(ran);
        }
        let used = ran + self.take_helpers();
        self.account.ledger.add_processor_time(used);
        let mut state = self.gate.0.state.lock();
        state.admission.rest(self.ticket, used);
        self.gate.carry_out(&mut state, false);
    }

    /// Resumes the work on this thread, which waits for a slot as in [`Meter::tick`]. Does nothing without a
    /// preceding [`Meter::rest`].
    pub fn wake(&self, over: &dyn Fn() -> bool) {
        let mut slice = self.slice.lock();
        let Some(works) = slice.away.take() else { return };
        if !slice.closed {
            let parker = {
                let mut state = self.gate.0.state.lock();
                let verdict = state.admission.wake(self.ticket);
                self.parker(&mut state, verdict)
            };
            if let Some(parker) = parker {
                self.pause(&mut slice, &parker, over);
            }
        }
        slice.began = works.then(|| (Instant::now(), thread_time()));
    }

    /// Registers this thread as a waiter if the verdict is to pause, and returns its parker.
    fn parker(&self, state: &mut State, verdict: Verdict) -> Option<Arc<Parker>> {
        if verdict == Verdict::Continue {
            return None;
        }
        let parker = Arc::new(Parker::default());
        state.register(self.ticket, Waiter::Thread(parker.clone()));
        // Registered first: the policy may give the slot to this thread at once.
        self.gate.carry_out(state, false);
        Some(parker)
    }

    /// Blocks this thread until it has a slot again.
    fn pause(&self, slice: &mut Slice, parker: &Parker, over: &dyn Fn() -> bool) {
        self.gate.0.waits.notify_one();
        // No event wakes a paused thread whose client has gone, so it checks at intervals.
        while !parker.park_timeout(PAUSE_CHECK) {
            if over() {
                // The work ends at its next check and needs no slot for that.
                slice.closed = true;
                self.gate.leave(self.ticket, Duration::ZERO);
                return;
            }
        }
    }

    /// Returns whether the slot was released because the work was no longer wanted.
    pub(super) fn is_closed(&self) -> bool {
        self.slice.lock().closed
    }

    /// Charges work that a helper did on another thread.
    pub fn charge(&self, used: Duration) {
        let nanos = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: a plain sum that orders nothing. A value missed by one slice is charged in the next.
        self.helpers.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Charges bytes of events read, on any thread.
    pub fn read(&self, bytes: u64) {
        self.account.ledger.charge(Quota::ScannedBytesPerSecond, bytes);
    }

    /// Counts a refusal under [`Quota::ScannedBytesPerRequest`], which only the work itself can detect.
    pub fn read_too_much(&self) {
        self.account.ledger.count_refusal(Quota::ScannedBytesPerRequest);
    }

    /// Returns whether others wait for a slot.
    pub fn is_contended(&self) -> bool {
        self.gate.0.contended.load(Ordering::Relaxed)
    }

    /// Releases the slot and charges the time used plus `more`. Returns the processor time used so far; if the slot was
    /// already released, the work counts as ended.
    pub(super) fn close(&self, more: Duration) -> Duration {
        let mut slice = self.slice.lock();
        slice.end();
        // An interrupted pause has already released the slot.
        if std::mem::replace(&mut slice.closed, true) {
            return Duration::ZERO;
        }
        let used = slice.uncharged + self.take_helpers() + more;
        self.account.ledger.add_processor_time(used);
        self.gate.leave(self.ticket, used)
    }

    fn take_helpers(&self) -> Duration {
        Duration::from_nanos(self.helpers.swap(0, Ordering::Relaxed))
    }
}

impl Slice {
    fn end(&mut self) {
        if let Some((_, began)) = self.began.take() {
            self.uncharged += thread_time().saturating_sub(began);
        }
    }
}
