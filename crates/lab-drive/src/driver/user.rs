//! A virtual user: one connection, with a patience and a retry rule. Of arrivals that do not wait for answers, others
//! may use the connection while it waits to retry.

use super::follow;
use super::same::{Comparison, ReferenceTarget};
use super::shared::TrialState;
use crate::clock::micros;
use crate::generate::Question;
use crate::protocol::connection::Connection;
use crate::protocol::fault::ExchangeError;
use crate::protocol::scan::Scan;
use crate::protocol::{Client, Exchange};
use crate::scenario::{Limits, ResultUnit, Retry};
use meridian_lab_results::record::{Micros, Outcome, Record};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use tokio::sync::futures::OwnedNotified;
use tokio::task::JoinSet;
use tokio::time::Sleep;

/// A request with its due time.
#[derive(Debug)]
pub struct Job {
    /// When it is due.
    pub intended: Micros,
    /// Its number.
    pub n: u32,
    /// The request.
    pub question: Question,
    /// When its first attempt was due, if this is a later one.
    pub first_intended: Option<Micros>,
    /// Number of earlier attempts.
    pub attempt: u8,
}

impl Job {
    /// Creates the job of a first attempt.
    pub fn new(intended: Micros, n: u32, question: Question) -> Job {
        Job { intended, n, question, first_intended: None, attempt: 0 }
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub enum Served {
    /// No attempt follows. The last one, or the comparison of its response, ended at this time.
    Ended(Micros),
    /// Another attempt follows.
    Again {
        /// When this one ended.
        ended: Micros,
        /// The next one.
        next: Job,
    },
}

/// State shared by all users of a population.
#[derive(Debug)]
pub struct UserProfile {
    /// Index of the target.
    pub target: u16,
    /// Index of the population.
    pub population: u16,
    /// When its users give up.
    pub patience: Micros,
    /// How its users retry.
    pub retry: Retry,
    /// The run's limits.
    pub limits: Limits,
    /// Whether the arrival ends by itself.
    pub ends: bool,
    /// Targets that get the same questions.
    pub same_as: Vec<Rc<ReferenceTarget>>,
    /// Whether a user waits for responses, and then also for their comparison.
    pub waits: bool,
    /// Comparisons that run beside arrivals which do not wait.
    pub beside: RefCell<JoinSet<()>>,
}

impl UserProfile {
    /// Returns the other target that a sound response is compared with, if this one is selected.
    fn other(&self, shared: &TrialState, record: &Record) -> Option<&Rc<ReferenceTarget>> {
        let judge = shared.checkers.get(usize::from(record.request)).filter(|_| record.outcome == Outcome::Sound)?;
        self.same_as.iter().find(|same| same.is_due(judge))
    }

    /// Compares beside the load.
    fn compare(&self, shared: Rc<TrialState>, same: Rc<ReferenceTarget>, comparison: Comparison) {
        let limits = self.limits.clone();
        let mut beside = self.beside.borrow_mut();
        // Completed comparisons are removed to make room.
        while beside.try_join_next().is_some() {}
        beside.spawn_local(async move { same.settle(&shared, comparison, &limits).await });
    }

    /// Waits until all comparisons have ended; no request may start after that.
    pub async fn compared(&self) {
        let mut beside = self.beside.take();
        while beside.join_next().await.is_some() {}
    }
}

/// A user of a population.
pub struct VirtualUser {
    shared: Rc<TrialState>,
    profile: Rc<UserProfile>,
    user: u32,
    connection: Connection,
    scan: Scan,
    timer: Pin<Box<Sleep>>,
    abort: Pin<Box<OwnedNotified>>,
}

enum End {
    Answer(Result<(), ExchangeError>),
    Patience,
    Abort,
}

impl VirtualUser {
    /// Creates a user; its connection opens with the first request.
    pub fn new(shared: Rc<TrialState>, profile: Rc<UserProfile>, user: u32, connection: Connection) -> VirtualUser {
        let abort = Box::pin(std::sync::Arc::clone(&shared.stop.abort).notified_owned());
        let timer = Box::pin(tokio::time::sleep(std::time::Duration::ZERO));
        VirtualUser { shared, profile, user, connection, scan: Scan::default(), timer, abort }
    }

    /// Makes one attempt. Returns when it has ended, or its comparison if the user waits for that.
    pub async fn serve(&mut self, job: Job) -> Served {
        let (shared, profile) = (Rc::clone(&self.shared), Rc::clone(&self.profile));
        let mut record = Record {
            trial: shared.trial,
            phase: shared.plan.phase_of(job.intended, profile.ends),
            target: profile.target,
            population: profile.population,
            request: job.question.request,
            user: self.user,
            n: job.n,
            attempt: job.attempt,
            intended: job.intended,
            first_intended: job.first_intended,
            ..Record::default()
        };
        // A notification from the previous attempt must not affect this one.
        self.scan.retry_after = None;
        let is_whole = self.ask(&job.question, &mut record).await;
        let ended = record.done.unwrap_or(job.intended);
        let useful = matches!(record.outcome, Outcome::Sound | Outcome::Partial);
        if is_whole && let Some(same) = profile.other(&shared, &record) {
            // The scan moves with it: the user needs a fresh one for its next request anyway.
            let comparison = Comparison { question: job.question, scan: std::mem::take(&mut self.scan), record };
            if profile.waits {
                same.settle(&shared, comparison, &profile.limits).await;
                return Served::Ended(shared.clock.now());
            }
            profile.compare(Rc::clone(&shared), Rc::clone(same), comparison);
            return Served::Ended(ended);
        }
        shared.keep(record, &profile.limits);
        let retry = &profile.retry;
        let stated = self.scan.retry_after.filter(|_| retry.after).unwrap_or_default();
        let factor = if retry.factor > 0.0 { retry.factor.powi(job.attempt.into()) } else { 1.0 };
        // The server's `Retry-After` is a min: a client's own backoff may be longer.
        let next = ended + micros((retry.wait_s * factor).max(f64::from(stated)));
        let again = retry.forever || job.attempt < retry.times;
        if useful || !again || (next >= shared.plan.end && !profile.ends) {
            return Served::Ended(ended);
        }
        let next = Job {
            intended: next,
            first_intended: job.first_intended.or(Some(job.intended)),
            attempt: job.attempt.saturating_add(1),
            ..job
        };
        Served::Again { ended, next }
    }

    /// Sends once; returns whether a whole response arrived.
    async fn ask(&mut self, question: &Question, record: &mut Record) -> bool {
        let shared = &self.shared;
        let give_up = record.intended + self.profile.patience;
        // Patience counts from the intended time, so a request that waited too long for a connection is not sent at
        // all.
        if shared.clock.now() >= give_up {
            record.outcome = Outcome::NotSent;
            record.detail = Some("every connection was taken until patience ended".to_owned());
            record.done = Some(give_up);
            return false;
        }
        if shared.stop.is_aborted() {
            record.outcome = Outcome::NotSent;
            record.detail = Some("the run was ended first".to_owned());
            record.done = Some(shared.clock.now());
            return false;
        }
        let Some(judge) = shared.checkers.get(usize::from(question.request)) else { return false };
        self.scan.reset(judge.unit(), judge.needs_body());
        self.scan.digest = judge.digest();
        record.in_flight = shared.in_flight.get();
        shared.in_flight.set(record.in_flight + 1);
        self.timer.as_mut().reset(shared.clock.instant(give_up));
        let mut of =
            Exchange { question, unit: judge.unit(), record: &mut *record, scan: &mut self.scan, clock: &shared.clock };
        let end = tokio::select! {
            biased;
            // Polled first, since a body with more data always ready would use up the task's budget. The timer would
            // never be polled, and the user of a lab that is behind would wait for as long as bytes arrive.
            () = self.timer.as_mut() => End::Patience,
            answer = follow::ask(&mut self.connection, judge, &mut of) => End::Answer(answer),
            () = self.abort.as_mut() => End::Abort,
        };
        let now = shared.clock.now();
        shared.in_flight.set(shared.in_flight.get() - 1);
        record.done = Some(now);
        let is_whole = matches!(end, End::Answer(Ok(())));
        if is_whole {
            self.scan.end(now);
        }
        // Also for an incomplete response: a partial one shows how far the server got.
        record.first_result = self.scan.first;
        record.last_result = self.scan.last;
        record.packets = self.scan.packets;
        record.results = self.scan.results;
        record.bytes = self.scan.bytes;
        match end {
            End::Answer(Ok(())) => {
                judge.judge(question.path(), &self.scan, record);
                // An error response has no results.
                if !matches!(record.status, 0 | 101 | 200..=299) {
                    (record.first_result, record.last_result, record.results, record.packets) = (None, None, 0, 0);
                }
            }
            End::Answer(Err(fault)) => {
                let partial = fault.outcome == Outcome::Failed && record.results > 0;
                record.outcome = if partial { Outcome::Partial } else { fault.outcome };
                record.detail = Some(fault.detail.into_owned());
            }
            // An endless stream of events is read until the user's patience ends.
            End::Patience if *judge.unit() == ResultUnit::Event && self.scan.packets > 0 => {
                self.connection.abandon();
                record.outcome = Outcome::Sound;
            }
            End::Patience => {
                self.connection.abandon();
                record.outcome = Outcome::TimedOut;
                record.detail = Some("patience ended first".to_owned());
            }
            End::Abort => {
                self.connection.abandon();
                // Armed again: a fired notification does not fire again.
                self.abort = Box::pin(std::sync::Arc::clone(&shared.stop.abort).notified_owned());
                record.outcome = Outcome::TimedOut;
                record.detail = Some("the run was ended first".to_owned());
            }
        }
        is_whole
    }
}
