//! One trial, event by event.

use super::outcome::{Tally, TenantsOutcome};
use super::rules::{Arrival, Decision, Number, RuleState};
use super::{Rule, SharedServer, Users};
use crate::simulate::events::{EventQueue, Micros, micros};
use meridian_lab_results::random::SeededRng;
use meridian_model::policy::admission::Class;
use meridian_model::policy::quota::{Balances, Quota, Quotas};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// How often a disappointed client returns.
const RETRIES_MAX: u32 = 10;
/// Interval of the checks for queries that waited too long.
const EXPIRY: Micros = 10_000;

/// Work in nanoseconds of one processor.
type Work = u64;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// An entry's next question arrives.
    Arrive(usize),
    /// A disappointed client retries.
    Return { entry: usize, retries: u32 },
    /// A client leaves unless it has its response.
    Leave(Number),
    /// A running question reaches the end of its slice or work, unless the running questions changed meanwhile.
    Boundary(u64),
    /// A check for questions that waited too long.
    Expire,
}

struct Question {
    entry: usize,
    retries: u32,
    arrived: Micros,
    left: Work,
    /// Work at the start of the running slice.
    slice: Work,
    begun: bool,
    /// Whether its client has left while the server continues.
    abandoned: bool,
}

struct Simulator<'a> {
    server: &'a SharedServer,
    accounts: Vec<usize>,
    /// Quotas and balances by tenant, in the order of their first entries.
    limits: Vec<(Quotas, Balances)>,
    classes: Vec<Class>,
    events: EventQueue<Event>,
    rng: SeededRng,
    ruler: RuleState,
    questions: HashMap<Number, Question>,
    arrivals: Number,
    /// The running questions, by the service at which each reaches its boundary.
    running: BTreeSet<(Work, Number)>,
    boundaries: HashMap<Number, Work>,
    /// Service received by each running question since the start.
    given: Work,
    settled: Micros,
    change: u64,
    /// Processor time of refusals, which delays all running questions.
    overhead: Work,
    tallies: Vec<Tally>,
}

/// Runs a checked scenario until its last question has left.
pub fn run(server: &SharedServer) -> TenantsOutcome {
    let mut names: Vec<&str> = Vec::new();
    let (mut accounts, mut limits) = (Vec::new(), Vec::new());
    for tenant in &server.tenant {
        let place = names.iter().position(|name| *name == tenant.account()).unwrap_or_else(|| {
            names.push(tenant.account());
            let mut quotas = Quotas::default();
            // Only a quota of 0 is refused, and here that means none.
            let _ = quotas.set(Quota::RequestsPerSecond, Some(tenant.requests_per_second.into()));
            limits.push((quotas, Balances::default()));
            names.len() - 1
        });
        accounts.push(place);
    }
    let mut simulator = Simulator {
        accounts,
        limits,
        classes: server.tenant.iter().map(|tenant| tenant.class().unwrap_or(Class::Interactive)).collect(),
        events: EventQueue::default(),
        rng: SeededRng::new(server.seed),
        ruler: RuleState::of(server),
        questions: HashMap::new(),
        arrivals: 0,
        running: BTreeSet::new(),
        boundaries: HashMap::new(),
        given: 0,
        settled: 0,
        change: 0,
        overhead: 0,
        tallies: server.tenant.iter().map(|_| Tally::default()).collect(),
        server,
    };
    for (entry, tenant) in server.tenant.iter().enumerate() {
        let first = simulator.gap(entry);
        simulator.events.at(micros(tenant.from_s) + first, Event::Arrive(entry));
    }
    simulator.events.after(EXPIRY, Event::Expire);
    while let Some(event) = simulator.events.take() {
        // An outdated boundary must change nothing: planning again for each would never end.
        if matches!(event, Event::Boundary(change) if change != simulator.change) {
            continue;
        }
        simulator.settle();
        simulator.step(event);
        simulator.act();
        simulator.plan();
    }
    TenantsOutcome::of(server, &simulator.tallies)
}

impl Simulator<'_> {
    fn gap(&mut self, entry: usize) -> Micros {
        let rate = self.server.tenant[entry].rate;
        if rate > 0.0 { micros(self.rng.exponential(1.0 / rate)) } else { micros(self.server.seconds) }
    }

    /// Adds the service of the elapsed time to the running questions.
    fn settle(&mut self) {
        let now = self.events.now();
        let mut work = (now - self.settled) * 1000 * u64::from(self.server.cores);
        self.settled = now;
        // Refusals come before responses, as in the server, where they take no slot. So a flood of them slows every
        // question.
        let overhead = self.overhead.min(work);
        self.overhead -= overhead;
        work -= overhead;
        if !self.running.is_empty() {
            // A question uses one processor at most.
            let most = work / u64::from(self.server.cores);
            self.given += (work / self.running.len() as u64).min(most);
        }
    }

    fn step(&mut self, event: Event) {
        let now = self.events.now();
        match event {
            Event::Arrive(entry) => {
                let end = micros(self.server.tenant[entry].end_s(self.server.seconds));
                if now < end {
                    self.arrive(entry, 0);
                    let gap = self.gap(entry);
                    self.events.after(gap, Event::Arrive(entry));
                }
            }
            Event::Return { entry, retries } => {
                if now < micros(self.server.seconds) {
                    self.arrive(entry, retries);
                }
            }
            Event::Leave(number) => self.client_leaves(number),
            Event::Boundary(_) => self.boundary(),
            Event::Expire => {
                if now < micros(self.server.seconds) || !self.questions.is_empty() {
                    self.events.after(EXPIRY, Event::Expire);
                }
            }
        }
    }

    fn arrive(&mut self, entry: usize, retries: u32) {
        let now = self.events.now();
        let tenant = &self.server.tenant[entry];
        self.tallies[entry].offered += 1;
        if let Err(wait) = self.charge_quota(self.accounts[entry], Duration::from_micros(now)) {
            self.tallies[entry].over_quota += 1;
            self.refuse(entry, retries, Some(wait));
            return;
        }
        // A question without work would reach its boundary at its start time for ever.
        let left = (tenant.service.draw(&mut self.rng) * 1000).max(1000);
        let number = self.arrivals;
        self.arrivals += 1;
        let deadline = now + micros(tenant.deadline_s);
        self.questions
            .insert(number, Question { entry, retries, arrived: now, left, slice: 0, begun: false, abandoned: false });
        self.events.at(deadline, Event::Leave(number));
        let (account, weight, class) = (self.accounts[entry], tenant.weight, self.classes[entry]);
        // A server that does not notice that clients leave does not know their deadlines either.
        let deadline = if self.server.cancellation { deadline } else { Micros::MAX / 4000 };
        if let Some(act) = self.ruler.enter(now, &Arrival { number, account, weight, class, deadline }) {
            self.apply(act);
        }
    }

    /// Counts a request under the quota of its tenant. If the quota is used up, returns the retry delay in whole
    /// seconds, as in `Retry-After`.
    fn charge_quota(&mut self, account: usize, now: Duration) -> Result<(), Micros> {
        let Some((quotas, balances)) = self.limits.get_mut(account) else { return Ok(()) };
        balances.check(quotas, Quota::RequestsPerSecond, now).map_err(|exceeded| {
            let wait = exceeded.wait.unwrap_or(Duration::from_secs(1));
            micros(wait.as_secs_f64().ceil().max(1.0))
        })?;
        balances.charge(quotas, Quota::RequestsPerSecond, 1, now);
        Ok(())
    }

    /// Refuses a client, and gives it a retry delay unless that is left to chance.
    fn refuse(&mut self, entry: usize, retries: u32, told: Option<Micros>) {
        self.overhead += micros(self.server.refusal_s) * 1000;
        self.tallies[entry].refused += 1;
        self.disappointed(entry, retries, told);
    }

    /// Applies all pending decisions of the rule.
    fn act(&mut self) {
        let now = self.events.now();
        while let Some(act) = self.ruler.next(now) {
            self.apply(act);
        }
    }

    fn apply(&mut self, act: Decision) {
        match act {
            Decision::Run(number) => {
                let Some(question) = self.questions.get_mut(&number) else { return };
                question.begun = true;
                let switch = if self.server.rule == Rule::Fair { micros(self.server.fair.switch_s) * 1000 } else { 0 };
                // Charged to the question that gets the slot, each time: short slices cost as much as in the server.
                question.left += switch;
                self.run_slice(number);
            }
            Decision::Refuse(number) => {
                let Some(question) = self.questions.remove(&number) else { return };
                self.refuse(question.entry, question.retries, None);
            }
        }
    }

    fn run_slice(&mut self, number: Number) {
        let Some(question) = self.questions.get_mut(&number) else { return };
        question.slice = match self.server.rule {
            Rule::Fair => question.left.min(micros(self.server.fair.slice_s) * 1000),
            Rule::Queue => question.left,
        };
        let boundary = self.given + question.slice;
        self.running.insert((boundary, number));
        self.boundaries.insert(number, boundary);
    }

    /// Handles the first running question that reaches its boundary.
    fn boundary(&mut self) {
        while let Some(&(at, number)) = self.running.first() {
            if at > self.given {
                break;
            }
            self.running.pop_first();
            self.boundaries.remove(&number);
            let Some(question) = self.questions.get_mut(&number) else { continue };
            let used = question.slice;
            question.left -= used;
            self.tallies[question.entry].used += used;
            let used = Duration::from_nanos(used);
            if question.left == 0 {
                self.done(number, used);
            } else if self.ruler.slice(number, used) {
                self.run_slice(number);
            }
        }
    }

    fn done(&mut self, number: Number, used: Duration) {
        self.ruler.leave(number, used, true);
        let Some(question) = self.questions.remove(&number) else { return };
        if !question.abandoned {
            let took = self.events.now() - question.arrived;
            self.tallies[question.entry].answered(question.arrived, took);
        }
    }

    fn client_leaves(&mut self, number: Number) {
        let Some(question) = self.questions.get_mut(&number).filter(|question| !question.abandoned) else { return };
        let (entry, retries) = (question.entry, question.retries);
        self.tallies[entry].late += 1;
        if self.server.cancellation {
            let begun = question.begun;
            let mut used = 0;
            if let Some(boundary) = self.boundaries.remove(&number) {
                self.running.remove(&(boundary, number));
                // The used part of its slice. Uncharged, a tenant whose clients leave early would work for free.
                used = question.slice - (boundary - self.given).min(question.slice);
                self.tallies[entry].used += used;
            }
            self.questions.remove(&number);
            self.ruler.leave(number, Duration::from_nanos(used), begun);
        } else {
            question.abandoned = true;
        }
        self.disappointed(entry, retries, None);
    }

    fn disappointed(&mut self, entry: usize, retries: u32, told: Option<Micros>) {
        let wait = match self.server.tenant[entry].users {
            Users::Never => return,
            Users::Impatient => 1_000,
            Users::Obedient => told.unwrap_or(1_000_000 + self.rng.below(1_000_000) as Micros),
        };
        if retries < RETRIES_MAX {
            self.events.after(wait, Event::Return { entry, retries: retries + 1 });
        }
    }

    /// Schedules the next boundary, which depends on the number of running questions.
    fn plan(&mut self) {
        self.change += 1;
        let Some(&(at, _)) = self.running.first() else { return };
        let cores = u64::from(self.server.cores);
        let shared = (self.running.len() as u64).max(cores);
        // Rounded up: a boundary a fraction too early would be planned again without end.
        let wait = ((at - self.given.min(at)) * shared).div_ceil(cores) + self.overhead.div_ceil(cores);
        self.events.after(wait.div_ceil(1000), Event::Boundary(self.change));
    }
}
