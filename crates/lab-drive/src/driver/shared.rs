//! State shared by all users of a load phase. One thread: cells, no locks.

use super::recorder::Recorder;
use super::schedule::Plan;
use crate::check::checker::Checker;
use crate::clock::Clock;
use crate::protocol::fault::GARBAGE;
use crate::scenario::Limits;
use hdrhistogram::Histogram;
use meridian_lab_results::record::{Micros, Outcome, Record};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// State of one trial's load.
#[derive(Debug)]
pub struct TrialState {
    /// The trial's number.
    pub trial: u16,
    /// The trial's clock.
    pub clock: Clock,
    /// The phases of this stretch.
    pub plan: Plan,
    /// Checks, by request.
    pub checkers: Rc<[Checker]>,
    /// Receiver of records.
    pub recorder: Rc<Recorder>,
    /// Counts over the whole run.
    pub counts: Rc<Counts>,
    /// Requests in flight.
    pub in_flight: Cell<u32>,
    /// Whether and why the run must end.
    pub stop: Rc<Stop>,
}

/// Counts over the whole run.
#[derive(Debug)]
pub struct Counts {
    /// First attempts that were due.
    pub arrivals: Cell<u64>,
    /// Records written.
    pub done: Cell<u64>,
    /// Records without a sound response.
    pub not_sound: Cell<u64>,
    /// Records that failed.
    pub failed: Cell<u64>,
    /// Requests for which the lab's own machine had no port or descriptor.
    pub no_socket: Cell<u64>,
    /// Responses that were not of the protocol, and the error of the last of them.
    pub garbage: RefCell<(u64, String)>,
    /// Lateness of the lab itself, microseconds.
    pub late: RefCell<Histogram<u64>>,
}

/// Number of responses after which a run ends if all of them are invalid.
const GARBAGE_MAX: u64 = 100;

impl Counts {
    /// Creates counts of zero.
    pub fn new() -> Counts {
        #[expect(clippy::expect_used, reason = "the bounds are constants")]
        let mut late = Histogram::<u64>::new_with_bounds(1, 1 << 24, 3).expect("constant bounds are sound");
        late.auto(true);
        let zero = || Cell::new(0);
        Counts {
            arrivals: zero(),
            done: zero(),
            not_sound: zero(),
            failed: zero(),
            no_socket: zero(),
            garbage: RefCell::default(),
            late: late.into(),
        }
    }

    /// Returns the error for a target that never spoke its protocol: its address is wrong.
    pub fn only_garbage(&self) -> Option<String> {
        let garbage = self.garbage.borrow();
        let (count, last) = &*garbage;
        (*count > 0 && *count == self.done.get()).then(|| format!("{last} ({count} of {count} times)"))
    }

    /// Records how late the lab was.
    pub fn late_by(&self, late: Micros) {
        // It resizes itself, so that recording cannot fail.
        let _ = self.late.borrow_mut().record(u64::try_from(late).unwrap_or(0));
    }
}

/// The early end of a run.
#[derive(Debug, Default)]
pub struct Stop {
    why: RefCell<Option<String>>,
    patient: Cell<bool>,
    aborted: Cell<bool>,
    asked: Notify,
    /// Wakes users that wait for responses when the run is given up.
    pub abort: Arc<Notify>,
}

impl Stop {
    /// Stops the load soon: no more arrivals, and requests in flight have a short time to end.
    pub fn ask(&self, why: impl Into<String>) {
        self.why.borrow_mut().get_or_insert_with(|| why.into());
        // The first reason stays, but an urgent stop overrides one that lets requests end.
        self.patient.set(false);
        self.asked.notify_waiters();
    }

    /// Stops the load: no more arrivals, but requests that have arrived are completed.
    pub fn enough(&self, why: impl Into<String>) {
        if !self.is_asked() {
            self.patient.set(true);
            self.why.borrow_mut().get_or_insert_with(|| why.into());
            self.asked.notify_waiters();
        }
    }

    /// Returns whether started requests are completed.
    pub fn is_patient(&self) -> bool {
        self.patient.get()
    }

    /// Aborts the requests in flight.
    pub fn give_up(&self) {
        self.aborted.set(true);
        self.abort.notify_waiters();
    }

    /// Returns whether the run was aborted.
    pub fn is_aborted(&self) -> bool {
        self.aborted.get()
    }

    /// Returns whether the load must end.
    pub fn is_asked(&self) -> bool {
        self.why.borrow().is_some()
    }

    /// Returns the reason.
    pub fn why(&self) -> Option<String> {
        self.why.borrow().clone()
    }

    /// Completes when the load must end.
    pub async fn asked(&self) {
        let asked = self.asked.notified();
        if !self.is_asked() {
            asked.await;
        }
    }
}

impl TrialState {
    /// Waits until a time; returns false if the load must end first.
    pub async fn until(&self, at: Micros) -> bool {
        if at > self.clock.now() {
            tokio::select! {
                // The stop is checked first, so that a lab that is behind schedule still ends at once.
                biased;
                () = self.stop.asked() => {}
                () = self.clock.until(at) => {}
            }
        }
        !self.stop.is_asked()
    }

    /// Counts an arrival, which may be the last one that a limit allows.
    pub fn arrive(&self, limits: &Limits) {
        let arrivals = self.counts.arrivals.get() + 1;
        self.counts.arrivals.set(arrivals);
        if arrivals == limits.requests {
            self.stop.enough(format!("the limit of {arrivals} requests was reached"));
        }
    }

    /// Keeps a record.
    pub fn keep(&self, record: Record, limits: &Limits) {
        let counts = &self.counts;
        counts.done.set(counts.done.get() + 1);
        if record.outcome != Outcome::Sound {
            counts.not_sound.set(counts.not_sound.get() + 1);
        }
        if record.outcome == Outcome::NotSent
            && record.detail.as_deref().is_some_and(|detail| detail.starts_with("no "))
        {
            counts.no_socket.set(counts.no_socket.get() + 1);
        }
        if record.outcome == Outcome::Failed {
            counts.failed.set(counts.failed.get() + 1);
            if let Some(detail) = record.detail.as_deref().filter(|detail| detail.starts_with(GARBAGE)) {
                let garbage = counts.garbage.borrow().0 + 1;
                *counts.garbage.borrow_mut() = (garbage, detail.to_owned());
                // Only if all responses so far were invalid: a server that once responded properly does speak the
                // protocol.
                if garbage == GARBAGE_MAX && garbage == counts.done.get() {
                    self.stop.ask(detail);
                }
            }
            if counts.failed.get() == limits.errors {
                self.stop.ask(format!("the limit of {} failed requests was reached", limits.errors));
            }
        }
        self.recorder.push(record);
        if self.recorder.is_broken() {
            self.stop.ask("results cannot be written");
        }
    }
}
