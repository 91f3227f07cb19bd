//! The gate: decides which requests run, wait or are refused, by the policy of [`meridian_model::policy::admission`].
//!
//! A request enters with its [`Account`] and obtains a [`Permit`], which represents a processor slot. The permit's
//! [`Meter`] measures the work on a thread. It charges processor time slice by slice, and blocks its thread while
//! another query has a higher claim to the slot. Dropping a permit releases it and charges the time it used.
//!
//! The policy is pure code behind one lock, which is held for well under a microsecond. The thread that holds the lock
//! carries out the policy's decisions: it wakes the waiters whose wait is over.

mod meter;
mod processors;
#[cfg(test)]
mod tests;
mod wait;

pub use meter::Meter;

use crate::ledger::Ledger;
use meridian_model::policy::admission::{Admission, Capacity, Counts, Entry, Load, SlotRequest, Ticket, WaitOutcome};
pub use meridian_model::policy::admission::{Class, ClassLoad, Refusal, Settings};
use parking_lot::Mutex;
use processors::{Processors, thread_time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use wait::Waiter;

/// Interval at which queries that waited too long are expired.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(20);
/// Interval at which the number of slots is adapted.
const CAPACITY_INTERVAL: Duration = Duration::from_millis(100);
/// Charged per request on top of its metered time: reading it and sending its response.
const REQUEST_COST: Duration = Duration::from_micros(20);

/// The tenant that work is charged to, and the class of the work.
#[derive(Debug, Clone)]
pub struct Account {
    /// The tenant's ledger.
    pub ledger: Arc<Ledger>,
    /// The class of the work.
    pub class: Class,
    /// Whether the request is a write (see [`Gate::refuse_early`]).
    pub is_write: bool,
}

/// A refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub refusal: Refusal,
    /// How long its client is to wait before it retries.
    pub retry_after: Duration,
}

/// The gate. Clones share it.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    origin: Instant,
    state: Mutex<State>,
    /// Whether a query waits or is paused; meters read it without the lock.
    contended: AtomicBool,
    slice: Duration,
    processors: Processors,
    refused: AtomicU64,
    /// Notified when a query begins to wait.
    waits: Notify,
}

#[derive(Debug)]
struct State {
    admission: Admission<Arc<str>>,
    /// Waiters, indexed by ticket number.
    waiters: Vec<Option<Waiter>>,
    capacity: Capacity,
}

impl Gate {
    /// Creates a gate with the initial number of slots of the settings.
    pub fn new(settings: Settings) -> Gate {
        Gate(Arc::new(Inner {
            origin: Instant::now(),
            contended: AtomicBool::new(false),
            slice: settings.slice,
            processors: Processors::default(),
            refused: AtomicU64::new(0),
            waits: Notify::new(),
            state: Mutex::new(State {
                capacity: Capacity::new(settings.slots, settings.slots_max),
                admission: Admission::new(settings),
                waiters: Vec::new(),
            }),
        }))
    }

    /// Returns a permit if a slot is free and no query waits. Takes the account by value, because cloning its reference
    /// count contends across all threads.
    pub fn try_enter(&self, account: Account) -> Option<Permit> {
        // Checked without the lock. A stale value is harmless: `is_free` decides under the lock.
        if self.0.contended.load(Ordering::Relaxed) {
            return None;
        }
        // Any time and a later deadline will do, because this entry never waits.
        let ask = ask(&account, Duration::MAX, None);
        let mut state = self.0.state.lock();
        if !state.admission.is_free() {
            return None;
        }
        match state.admission.enter(Duration::ZERO, ask) {
            Ok(Entry::Run(ticket)) => Some(self.permit(account, ticket)),
            // The tenant already runs its max number of requests.
            Ok(Entry::Wait(ticket)) => {
                state.admission.leave(ticket, Duration::ZERO);
                None
            }
            Err(_) => None,
        }
    }

    /// Refuses a write before its body is read if it would wait long for a permit behind others.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`].
    pub fn refuse_early(&self, account: &Account) -> Result<(), Refused> {
        // Checked without the lock, as in `try_enter`.
        if !self.0.contended.load(Ordering::Relaxed) {
            return Ok(());
        }
        let is_late = self.0.state.lock().admission.is_late(self.now(), account.ledger.tenant(), account.class);
        if is_late { Err(self.refuse(account, Refusal::QueueFull)) } else { Ok(()) }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// The reason for the refusal.
    pub async fn enter(&self, account: &Account, deadline: Instant) -> Result<Permit, Refused> {
        self.wait(account, deadline, None).await.map_err(|refusal| self.refuse(account, refusal))
    }

    /// Waits for a permit for work in progress that has used some processor time already. Such work is refused only at
    /// its deadline.
    ///
    /// # Errors
    /// [`Refusal::Deadline`].
    pub async fn resume(&self, account: &Account, used: Duration, deadline: Instant) -> Result<Permit, Refused> {
        let permit = tokio::time::timeout_at(deadline, self.wait(account, deadline, Some(used))).await;
        permit.unwrap_or(Err(Refusal::Deadline)).map_err(|refusal| self.refuse(account, refusal))
    }

    /// Charges a tenant for work done without a permit.
    pub fn bill(&self, ledger: &Ledger, used: Duration) {
        ledger.add_processor_time(used);
        self.0.state.lock().admission.bill(ledger.tenant(), ledger.weight(), used);
    }

    /// Runs work for a tenant on this thread without a permit, and charges it.
    pub fn run_for(&self, ledger: &Ledger, work: &mut dyn FnMut()) {
        let began = thread_time();
        work();
        self.bill(ledger, thread_time().saturating_sub(began));
    }

    /// Returns the numbers of running and waiting requests.
    pub fn counts(&self) -> Counts {
        self.0.state.lock().admission.counts()
    }

    /// Returns, for each tenant, the numbers of requests that have started and that wait.
    pub fn by_tenant(&self) -> Vec<(Arc<str>, (usize, usize))> {
        let state = self.0.state.lock();
        let each = state.admission.by_tenant();
        each.map(|(tenant, counts)| (tenant.clone(), (counts.running + counts.paused + counts.away, counts.waiting)))
            .collect()
    }

    /// Returns the load of each tenant by class.
    pub fn load(&self) -> Vec<(Arc<str>, [ClassLoad; 3])> {
        let now = self.now();
        self.0.state.lock().admission.load(now)
    }

    /// Returns the number of requests refused since the start.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Expires requests that waited too long and adapts the number of slots, for as long as it is polled.
    pub async fn tend(&self) {
        let mut sample = self.0.processors.sample();
        let mut sampled = Instant::now();
        loop {
            // An idle server stays asleep: nothing can expire, and no slots beyond the processors remain.
            if !self.0.contended.load(Ordering::Relaxed) && self.0.state.lock().capacity.is_min() {
                self.0.waits.notified().await;
                // Resampled, because the idle time says nothing about the load that begins now.
                (sample, sampled) = (self.0.processors.sample(), Instant::now());
            }
            tokio::time::sleep(EXPIRY_INTERVAL).await;
            let mut state = self.0.state.lock();
            if sampled.elapsed() >= CAPACITY_INTERVAL {
                let now = self.0.processors.sample();
                let (busy, delayed) = now.since(&sample);
                let contended = state.admission.is_contended();
                let slots = state.capacity.observe(Load { busy, delayed, contended });
                state.admission.set_slots(slots);
                (sample, sampled) = (now, Instant::now());
            }
            self.carry_out(&mut state, true);
        }
    }

    async fn wait(&self, account: &Account, deadline: Instant, resumed: Option<Duration>) -> Result<Permit, Refusal> {
        let ask = ask(account, deadline.saturating_duration_since(self.0.origin), resumed);
        let (ticket, outcome) = {
            let mut state = self.0.state.lock();
            match state.admission.enter(self.now(), ask)? {
                Entry::Run(ticket) => return Ok(self.permit(account.clone(), ticket)),
                Entry::Wait(ticket) => {
                    let (tell, outcome) = oneshot::channel();
                    // Registered before the policy runs, because it may decide on this waiter.
                    state.register(ticket, Waiter::Task(tell));
                    self.carry_out(&mut state, false);
                    (ticket, outcome)
                }
            }
        };
        self.0.waits.notify_one();
        // However this wait ends, even by a disconnect, dropping `place` removes the query from the queue.
        let mut place = QueueEntry { gate: self, ticket: Some(ticket) };
        // The sender is dropped only with the gate.
        outcome.await.unwrap_or(Err(Refusal::Waited))?;
        // From here on the permit owns the slot, and releases it.
        place.ticket = None;
        Ok(self.permit(account.clone(), ticket))
    }

    fn permit(&self, account: Account, ticket: Ticket) -> Permit {
        Permit { meter: Arc::new(Meter::new(self.clone(), ticket, account)) }
    }

    fn now(&self) -> Duration {
        Instant::now() - self.0.origin
    }

    fn refuse(&self, account: &Account, refusal: Refusal) -> Refused {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        account.ledger.turn_away(refusal);
        let now = self.now();
        let retry_after = self.0.state.lock().admission.retry_after(now, account.ledger.tenant(), account.class);
        Refused { refusal, retry_after }
    }

    /// Wakes the waiters whose wait is over. Called under the lock after every change.
    fn carry_out(&self, state: &mut State, expire: bool) {
        // The common case: with no waiter to wake, the clock need not be read.
        if !state.admission.is_contended() {
            self.0.contended.store(false, Ordering::Relaxed);
            return;
        }
        let now = self.now();
        loop {
            // Slots first: a waiter that can run now must not be refused for having waited too long.
            let ended = state.admission.next(now).or_else(|| if expire { state.admission.expire(now) } else { None });
            let (ticket, outcome) = match ended {
                Some(WaitOutcome::Run(ticket)) => (ticket, Ok(())),
                Some(WaitOutcome::Refuse(ticket, refusal)) => (ticket, Err(refusal)),
                None => break,
            };
            // A waiter that leaves at this moment releases the slot when its place is dropped.
            if let Some(waiter) = state.waiters.get_mut(ticket.0 as usize).and_then(Option::take) {
                waiter.wake(outcome);
            }
        }
        // Stored under the lock, so that the flag reflects the last change. Relaxed: readers use it only as a hint.
        self.0.contended.store(state.admission.is_contended(), Ordering::Relaxed);
    }

    /// Releases a slot or a place in the queue.
    fn leave(&self, ticket: Ticket, used: Duration) -> Duration {
        let mut state = self.0.state.lock();
        let used = state.admission.leave(ticket, used);
        // Ticket numbers are reused: the next holder must not find this waiter in its place.
        if let Some(waiter) = state.waiters.get_mut(ticket.0 as usize) {
            *waiter = None;
        }
        self.carry_out(&mut state, false);
        used
    }
}

/// Builds an account's request to the policy. The deadline counts from the gate's origin.
fn ask(
    Account { ledger, class, is_write }: &Account,
    deadline: Duration,
    resumed: Option<Duration>,
) -> SlotRequest<&Arc<str>> {
    SlotRequest {
        tenant: ledger.tenant(),
        weight: ledger.weight(),
        class: *class,
        is_write: *is_write,
        deadline,
        resumed,
    }
}

impl State {
    /// Stores the waiter of a query, which [`Gate::carry_out`] wakes.
    fn register(&mut self, ticket: Ticket, waiter: Waiter) {
        let place = ticket.0 as usize;
        if self.waiters.len() <= place {
            self.waiters.resize_with(place + 1, || None);
        }
        self.waiters[place] = Some(waiter);
    }
}

/// A place in the queue, given up when dropped.
struct QueueEntry<'a> {
    gate: &'a Gate,
    ticket: Option<Ticket>,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.gate.leave(ticket, Duration::ZERO);
        }
    }
}

/// A permit to run; released when dropped.
#[derive(Debug)]
pub struct Permit {
    meter: Arc<Meter>,
}

impl Permit {
    /// Returns the meter of the work that runs under this permit.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Returns the account that the work is charged to.
    pub fn account(&self) -> &Account {
        self.meter.account()
    }

    /// Returns whether the slot was released because the work was no longer wanted.
    pub fn is_closed(&self) -> bool {
        self.meter.is_closed()
    }

    /// Releases the permit. Returns the arguments for [`Gate::resume`]: the gate, the account and the processor time
    /// used.
    pub fn release(self) -> (Gate, Account, Duration) {
        let (gate, account) = (self.meter.gate().clone(), self.meter.account().clone());
        (gate, account, self.meter.close(REQUEST_COST))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.meter.close(REQUEST_COST);
    }
}
