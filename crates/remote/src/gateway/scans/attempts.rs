//! A query of one partition on its way to a scan server.

use super::super::answer::{Message, MessageStream};
use super::super::link::Link;
use super::{ScanServerLocation, Scans, count};
use crate::wire::call::{Call, Get, WireQuery};
use crate::wire::fault::Fault;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use meridian_model::policy::selector::{AttemptRequest, End, Profile, ScanAttempts, Step, Verdict};
use meridian_observe::{self as observe, WorkContext};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Poll interval while there are no servers.
const LOOK: Duration = Duration::from_millis(100);

/// Max attempts that fail because a server cannot read. At that point all servers may share the cause, and the query
/// fails. The delays between attempts make that about three seconds, in which servers can work around damage.
const UNREADABLE_MAX: usize = 6;

/// How long a server may be silent beyond its busy timeout. It takes a call at once, and then it may start the query late
/// or work for long. So a silent one is paused, or cannot be reached.
const SILENT: Duration = Duration::from_millis(250);

/// How long a query is retried that neither servers nor the owner answer, after servers were lost. A gateway finds their
/// successors within some six seconds.
const SUCCEEDED: Duration = Duration::from_secs(8);

/// Outcome of an attempt: its number, the process asked, and the response.
type AttemptOutcome = (usize, u64, Result<(MessageStream, Message), Fault>);

/// A query, with the servers asked so far. When dropped, it reports the outcome of each attempt to the current work.
pub(in super::super) struct QueryAttempts {
    scans: Arc<Scans>,
    owner: Arc<Link>,
    pub(super) asked: WireQuery,
    make: fn(WireQuery) -> Get,
    scan_type: Option<Arc<str>>,
    attempts: ScanAttempts,
    until: Instant,
    /// The running attempt, and its server.
    begun: Option<(usize, Option<u64>)>,
    /// Fault of the last attempt that was not busy.
    fault: Option<Fault>,
    /// Attempts that failed because the server cannot read.
    unreadable: usize,
    /// Why servers refused the query; damage, if one of them has the collection set apart.
    refusal: Option<Fault>,
    /// Whether no server could answer at the last look.
    is_alone: bool,
    current: WorkContext,
}

/// An attempt whose server may not have taken the call.
struct Unheard {
    attempt: usize,
    process: u64,
    /// When the server counts as silent.
    due: Instant,
    heard: Arc<AtomicBool>,
}

impl QueryAttempts {
    /// Prepares a partition's query for the work of this thread, within this time.
    pub(in super::super) fn new(
        (scans, owner): (Arc<Scans>, Arc<Link>),
        (asked, make): (WireQuery, fn(WireQuery) -> Get),
        scan_type: Option<Arc<str>>,
        left: Duration,
    ) -> QueryAttempts {
        count(&scans.counts.scans);
        scans.hedging.lock().scan_begins();
        let place = &asked.place;
        // Key that selects the servers: the same on every gateway, but different for a later collection of the same
        // name.
        let tablet = format!("{}/{}/{}/p{}", place.tenant, place.name, place.made, place.partition.unwrap_or(0));
        let attempts = ScanAttempts::new(tablet, scans.now());
        let until = Instant::now() + left.min(Duration::from_secs(86_400));
        let current = observe::current();
        QueryAttempts {
            scans,
            owner,
            asked,
            make,
            scan_type,
            attempts,
            until,
            begun: None,
            fault: None,
            unreadable: 0,
            refusal: None,
            is_alone: false,
            current,
        }
    }

    fn profile(&self) -> Profile {
        self.scans.profiles.for_scan_type(self.scan_type.as_deref()).clone()
    }

    fn now(&self) -> Duration {
        self.scans.now()
    }

    /// Asks servers until one starts a response.
    pub(super) async fn begin(&mut self) -> Result<(MessageStream, Message), Fault> {
        let profile = self.profile();
        loop {
            if Instant::now() >= self.until {
                return Err(self.late());
            }
            let servers = self.scans.servers(&profile.group);
            let names: Vec<String> = servers.iter().map(|server| format!("{:016x}", server.process)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (scans, now) = (self.scans.clone(), self.now());
            self.is_alone = servers.is_empty();
            match self.attempts.next(&profile, &names, now, |n| scans.draw(n)) {
                Step::Ask(ask) => {
                    if let Some(begun) = self.race(&profile, &servers, &names, ask).await? {
                        return Ok(begun);
                    }
                }
                Step::Wait(left) => self.wait_for_servers(left).await,
                Step::Absent => {
                    self.is_alone = true;
                    let owner = self.owner.owner().borrow().as_ref().map(|owner| owner.address.clone());
                    let verdict = self.scans.fallback.lock().ask(owner.as_deref().unwrap_or("owner"), now);
                    match verdict {
                        Verdict::Owner => match self.fall_back(owner.as_deref().unwrap_or("owner")).await {
                            Err(fault) if fault.is_of_the_link() && self.may_be_succeeded() => {
                                self.fault = Some(fault);
                                self.wait_for_servers(2 * LOOK).await;
                            }
                            answered => return answered,
                        },
                        // Servers may only be behind: what they do not know is the reason at the deadline.
                        Verdict::Wait if !matches!(self.refusal, Some(Fault::Damaged(_))) => {
                            self.fault = self.refusal.clone().or(self.fault.take());
                            self.attempts.ask_again();
                            self.wait_for_servers(LOOK).await;
                        }
                        Verdict::Wait | Verdict::Fail => {
                            if let Some(refusal) = self.refusal.take() {
                                return Err(refusal);
                            }
                            count(&self.scans.counts.absent);
                            return Err(Fault::Busy(self.absence()));
                        }
                        Verdict::Later(after) => {
                            count(&self.scans.counts.absent);
                            return Err(Fault::Busy(format!(
                                "{}, and the owner takes no further question now: try again in {} ms",
                                self.absence(),
                                after.as_millis()
                            )));
                        }
                    }
                }
                Step::GiveUp => return Err(self.fault.take().unwrap_or(Fault::NotStarted)),
            }
        }
    }

    /// Returns whether servers that come soon may answer, instead of ones that were lost.
    fn may_be_succeeded(&self) -> bool {
        self.attempts.trace().iter().any(|made| made.end == End::Unreachable)
            && self.attempts.since(self.now()) < SUCCEEDED
    }

    /// Why no server was asked.
    fn absence(&self) -> String {
        format!("no scan server of the group {:?} answers for {:?}", self.profile().group, self.asked.place.name)
    }

    /// Why there is no response by the deadline. The query itself is the reason only if a server has started it.
    fn late(&mut self) -> Fault {
        match self.fault.take() {
            Some(fault) => fault,
            None if self.is_alone => Fault::Busy(self.absence()),
            None if self.attempts.finds_all_busy(self.now()) => Fault::NotStarted,
            None => Fault::Deadline,
        }
    }

    /// Waits until there may be a server, at most this long.
    async fn wait_for_servers(&self, left: Duration) {
        let mut servers = self.scans.servers.clone();
        // A clone has only seen what the first receiver has, which is nothing. Without this, an earlier change would
        // end each wait at once.
        drop(servers.borrow_and_update());
        let until = self.until.min(Instant::now() + left.min(LOOK));
        tokio::select! {
            // Without a sender nothing changes any more, so the deadline ends the wait.
            _ = async { if servers.changed().await.is_err() { pending::<()>().await } } => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// Falls back to the owner.
    async fn fall_back(&mut self, owner: &str) -> Result<(MessageStream, Message), Fault> {
        count(&self.scans.counts.fallbacks);
        let attempt = self.attempts.fall_back(owner, self.now());
        let ticket = self.ticket(None)()?;
        let link = self.owner.clone();
        match link.again(|| link.get(ticket.clone())).await {
            Ok(begun) => {
                self.attempts.started(attempt, self.now());
                self.begun = Some((attempt, None));
                Ok(begun)
            }
            Err(fault) => {
                self.attempts.ended(attempt, End::Failed, self.now());
                Err(fault)
            }
        }
    }

    /// Runs one attempt, and others in parallel if it is slow to start or its server is silent. `None`: none started.
    async fn race(
        &mut self,
        profile: &Profile,
        servers: &[ScanServerLocation],
        names: &[&str],
        ask: AttemptRequest,
    ) -> Result<Option<(MessageStream, Message)>, Fault> {
        let (asking, first) = self.attempt(servers, ask)?;
        let (mut running, mut unheard) = (FuturesUnordered::from_iter([asking]), vec![first]);
        let (mut may_hedge, mut passed) = (true, Vec::<usize>::new());
        // Attempts that were passed over may still win, but nobody waits for them alone: they end as not reached.
        while running.len() > passed.len() {
            let due = self.attempts.hedge_due(&self.scans.hedging.lock()).filter(|_| may_hedge);
            let due = due.map(|due| Instant::now() + due.saturating_sub(self.now()));
            let silent = unheard.iter().map(|one| one.due).min();
            tokio::select! {
                biased;
                Some((attempt, process, outcome)) = running.next() => {
                    passed.retain(|other| *other != attempt);
                    unheard.retain(|other| other.attempt != attempt);
                    match outcome {
                        Ok(begun) => {
                            self.attempts.started(attempt, self.now());
                            self.begun = Some((attempt, Some(process)));
                            return Ok(Some(begun));
                        }
                        Err(Fault::NotStarted) => {
                            count(&self.scans.counts.busy);
                            self.attempts.ended(attempt, End::Busy, self.now());
                        }
                        Err(fault) if fault.is_refusal() => self.refused(attempt, fault),
                        Err(Fault::Deadline) => {
                            // That of an earlier server is not the reason.
                            self.fault = None;
                            return Err(self.late());
                        }
                        Err(fault) => self.failed(attempt, Some(process), fault)?,
                    }
                }
                () = sleep_until(due) => {
                    // At most one hedge per attempt, even if the budget refuses it.
                    may_hedge = false;
                    let (scans, now) = (self.scans.clone(), self.now());
                    let second = self.attempts.hedge(profile, names, &mut scans.hedging.lock(), now, |n| scans.draw(n));
                    if let Some(second) = second {
                        count(&self.scans.counts.hedges);
                        let (asking, second) = self.attempt(servers, second)?;
                        running.push(asking);
                        unheard.push(second);
                    }
                }
                () = sleep_until(silent) => {
                    let due = unheard.extract_if(.., |one| Some(one.due) == silent);
                    let silent: Vec<Unheard> = due.filter(|one| !one.heard.load(Ordering::Relaxed)).collect();
                    for silent in silent {
                        passed.push(silent.attempt);
                        if let Some(next) = self.pass_over(profile, names, &silent) {
                            let (asking, next) = self.attempt(servers, next)?;
                            running.push(asking);
                            unheard.push(next);
                        }
                    }
                }
                () = tokio::time::sleep_until(self.until) => return Err(self.late()),
            }
        }
        for silent in passed {
            self.attempts.ended(silent, End::Unreachable, self.now());
        }
        Ok(None)
    }

    /// Chooses another server beside a silent one, which is avoided from now on. `None` if there is no other.
    fn pass_over(&mut self, profile: &Profile, names: &[&str], silent: &Unheard) -> Option<AttemptRequest> {
        let (scans, now) = (self.scans.clone(), self.now());
        count(&self.scans.counts.failed);
        self.scans.avoid(silent.process);
        self.attempts.pass_over(silent.attempt, profile, names, now, |n| scans.draw(n))
    }

    /// Returns a request to a server, and what is known of it meanwhile. Dropping the request cancels it there.
    fn attempt(
        &self,
        servers: &[ScanServerLocation],
        ask: AttemptRequest,
    ) -> Result<(impl Future<Output = AttemptOutcome> + Send + use<>, Unheard), Fault> {
        let server = servers.get(ask.server).ok_or_else(|| Fault::internal("a server that is not there was chosen"))?;
        count(&self.scans.counts.attempts);
        let (link, process) = (self.scans.link(server, &self.owner), server.process);
        let make_ticket = self.ticket(Some(ask.busy_timeout));
        let (heard, due) = (Arc::new(AtomicBool::new(false)), Instant::now() + ask.delay + ask.busy_timeout + SILENT);
        let unheard = Unheard { attempt: ask.attempt, process, due, heard: heard.clone() };
        let asking = async move {
            tokio::time::sleep(ask.delay).await;
            let outcome = match make_ticket() {
                Ok(ticket) => link.get_heard(ticket, move || heard.store(true, Ordering::Relaxed)).await,
                Err(fault) => Err(fault),
            };
            (ask.attempt, process, outcome)
        };
        Ok((asking, unheard))
    }

    /// Returns what makes the ticket of a call. It is called when the call is sent: the ticket has the time left then.
    fn ticket(&self, busy_timeout: Option<Duration>) -> impl FnOnce() -> Result<Vec<u8>, Fault> + Send + use<> {
        let busy_timeout_us = busy_timeout.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let get = (self.make)(WireQuery { busy_timeout_us, ..self.asked.clone() });
        let (until, current) = (self.until, self.current.clone());
        move || current.run(|| Call::of(get, until.saturating_duration_since(Instant::now())).to_json())
    }

    /// Handles a server that does not have the collection. It stays in use for other collections.
    fn refused(&mut self, attempt: usize, fault: Fault) {
        count(&self.scans.counts.failed);
        self.attempts.ended(attempt, End::Refused, self.now());
        if !matches!(self.refusal, Some(Fault::Damaged(_))) {
            self.refusal = Some(fault);
        }
    }

    /// Handles a failed attempt. Another server may answer, unless the query itself is at fault.
    fn failed(&mut self, attempt: usize, process: Option<u64>, fault: Fault) -> Result<(), Fault> {
        if matches!(fault, Fault::Cancelled) {
            self.attempts.ended(attempt, End::Dropped, self.now());
            return Err(fault);
        }
        let is_lost = process.is_some() && fault.is_of_the_link();
        self.attempts.ended(attempt, if is_lost { End::Unreachable } else { End::Failed }, self.now());
        count(&self.scans.counts.failed);
        let unreadable = process.is_some() && fault.is_of_the_reader();
        self.unreadable += usize::from(unreadable);
        if !(fault.is_of_the_link() || unreadable && self.unreadable < UNREADABLE_MAX) {
            return Err(fault);
        }
        process.into_iter().for_each(|process| self.scans.avoid(process));
        self.fault = Some(match fault {
            // Link faults mention the owner, where most links lead.
            Fault::Unavailable(why) if process.is_some() => {
                Fault::Unavailable(why.replace("the owner of the data", "a scan server"))
            }
            other => other,
        });
        Ok(())
    }

    /// Handles a response that broke off; returns Ok if the query may be retried.
    pub(super) fn lost(&mut self, fault: Fault) -> Result<(), Fault> {
        match self.begun.take() {
            Some((attempt, process)) => self.failed(attempt, process, fault),
            None => Err(fault),
        }
    }

    /// Marks the response as complete.
    pub(super) fn done(&mut self) {
        if let Some((attempt, _)) = self.begun.take() {
            self.attempts.ended(attempt, End::Done, self.now());
        }
    }
}

impl Drop for QueryAttempts {
    fn drop(&mut self) {
        if let Some(work) = &self.current.work {
            let partition = self.asked.place.partition.unwrap_or(0);
            for made in self.attempts.trace() {
                work.note(|| format!("p{partition}: {made}"));
            }
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => pending().await,
    }
}
