//! Drives a target: from a scenario to a results folder.
//!
//! One thread sends and receives ([`population`] turns arrivals into jobs, a [`user`] executes them over a
//! [`connection`](crate::protocol::connection)). A second writes rows to disk, a third samples. State shared within
//! the first thread is in cells, without locks.
//!
//! # Accounting
//! Every due arrival is a record, or several if its user retried. Sent and unsent ones add up to the demand of the
//! arrival process. Latency counts from the intended time, so that a server that stalls cannot hide it by keeping the
//! lab from sending.

mod follow;
pub mod live;
mod population;
mod prepare;
mod recorder;
mod replay;
mod same;
mod schedule;
mod shared;
mod user;
mod watch;

pub use crate::check::objectives::ObjectiveVerdict;
pub use crate::protocol::address::trust;

use crate::clock::Clock;
use crate::sample::{Sampling, Service, wait_idle};
use crate::scenario::{Order, Population, Scenario, WaitIdle};
use live::Live;
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder::{Group, Run, Trial, Writer};
use population::PopulationLoad;
use prepare::PreparedScenario;
use rand::seq::SliceRandom;
use recorder::Recorder;
use schedule::Plan;
use shared::{Counts, Stop, TrialState};
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};

/// The inputs of a run besides its scenario.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The results folder to create.
    pub out: PathBuf,
    /// Public hosts to which load may be sent.
    pub allow_public: Vec<String>,
    /// Ends the run early when notified, as Ctrl-C does.
    pub interrupt: Option<Arc<Notify>>,
    /// The live report, if any.
    pub live: Option<Arc<Live>>,
}

/// Progress of a run.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// The trial, from 0, and the number of trials.
    pub trial: (u16, u16),
    /// Seconds on the trial's clock.
    pub elapsed_s: f64,
    /// When the load ends, if the clock decides it.
    pub end_s: Option<f64>,
    /// Arrivals so far.
    pub arrivals: u64,
    /// Records so far.
    pub done: u64,
    /// Requests that did not end with a sound response.
    pub not_sound: u64,
    /// Requests in flight.
    pub in_flight: u32,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// `run.json`.
    pub run: Run,
    /// `summary.json`.
    pub groups: Vec<Group>,
    /// The objectives.
    pub verdicts: Vec<ObjectiveVerdict>,
}

/// Time for pending responses to arrive after an interrupt.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two reports of progress.
const TICK: Duration = Duration::from_millis(500);
/// Max time between two measurements of the lab's own lateness, if nothing else measures it.
const PROBE_US: i64 = 10_000;
/// Granularity of the runtime's timers.
const TIMER_US: i64 = 1_000;

/// Runs a scenario and writes a results folder. No results remain if every response was of another protocol than its
/// target's. That is an error of the target, like an unreachable one.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut dyn FnMut(&Progress)) -> Result<Outcome> {
    let prepared = PreparedScenario::new(scenario, &options.allow_public)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| LabError::results(format!("cannot start: {e}")))?;
    // Before the results folder is created: a target that cannot be reached leaves no empty folder behind.
    LocalSet::new().block_on(&runtime, prepared.reach(scenario))?;
    let writer = Writer::create(&options.out, &scenario.to_toml()?)?;
    let recorder = Recorder::start(writer, options.live.clone())?;
    let recorder = Rc::new(recorder);
    let mut driver = Driver::new(scenario, options, &prepared, Rc::clone(&recorder))?;
    let outcome = LocalSet::new().block_on(&runtime, driver.all(progress));
    let (stop, counts, mut run, watch) = driver.into_parts();
    drop(runtime);
    let stalls = recorder.stalls();
    // Tasks held the other clones. They ended with the runtime, so a remaining clone is a bug.
    let recorder = Rc::try_unwrap(recorder).map_err(|_| LabError::results("a virtual user outlived its trial"))?;
    // Before `outcome?`: the rows written so far reach the disk even after an error.
    let writer = recorder.finish()?;
    outcome?;
    if let Some(why) = counts.only_garbage() {
        let targets: Vec<&str> = scenario.target.iter().map(|target| target.name.as_str()).collect();
        return Err(LabError::target(format!("target {}: {why}", targets.join(", "))));
    }
    run.ended = jiff::Timestamp::now().to_string();
    run.cut_short = stop.why();
    run.lab = watch.seen(&counts, stalls);
    run.void = watch::void(&run.lab, &scenario.limits, prepared.all_closed, counts.no_socket.get());
    let verdicts = crate::check::objectives::judge(&scenario.objective, writer.summary(), &run);
    let groups = writer.summary().groups(&run);
    writer.finish(&run)?;
    Ok(Outcome { run, groups, verdicts })
}

struct Driver<'a> {
    scenario: &'a Scenario,
    options: &'a Options,
    prepared: &'a PreparedScenario,
    recorder: Rc<Recorder>,
    counts: Rc<Counts>,
    stop: Rc<Stop>,
    sampling: Option<Sampling>,
    watch: watch::Watch,
    run: Run,
}

impl<'a> Driver<'a> {
    fn new(
        scenario: &'a Scenario,
        options: &'a Options,
        prepared: &'a PreparedScenario,
        recorder: Rc<Recorder>,
    ) -> Result<Self> {
        let (services, all_known) = Service::of(scenario, &prepared.targets);
        let sampling = Sampling::start(&scenario.sampler, &services, &options.allow_public, recorder.samples())?;
        let names = |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<Vec<_>>();
        let log = scenario.log();
        let run = Run {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            name: scenario.name.clone(),
            source: "run".to_owned(),
            started: jiff::Timestamp::now().to_string(),
            targets: names(&mut scenario.target.iter().map(|target| &target.name)),
            populations: names(&mut scenario.population.iter().map(|population| &population.name)),
            requests: names(&mut scenario.request.iter().chain(&log).map(|request| &request.name)),
            ..Run::default()
        };
        let watch = watch::Watch::new(&services, all_known);
        let (counts, stop) = (Rc::new(Counts::new()), Rc::new(Stop::default()));
        Ok(Driver { scenario, options, prepared, recorder, counts, stop, sampling: Some(sampling), watch, run })
    }

    fn into_parts(self) -> (Rc<Stop>, Rc<Counts>, Run, watch::Watch) {
        (self.stop, self.counts, self.run, self.watch)
    }

    /// Returns the targets in the order of their trials.
    fn turns(&self) -> Vec<u16> {
        let taking_turns = self.scenario.population.iter().any(|population| population.target.is_none());
        let targets = if taking_turns { self.scenario.target.len() } else { 1 };
        let targets = 0..u16::try_from(targets).unwrap_or(u16::MAX);
        let repeats = 0..self.scenario.trials.repeats;
        match self.scenario.trials.order {
            Order::Given => targets.flat_map(|target| repeats.clone().map(move |_| target)).collect(),
            // Alternating targets share a drift of the machine, which in the given order would look like a difference
            // between them.
            Order::Alternate => repeats.flat_map(|_| targets.clone()).collect(),
            Order::Shuffled => {
                let mut turns: Vec<u16> = repeats.flat_map(|_| targets.clone()).collect();
                turns.shuffle(&mut crate::generate::stream(self.scenario.seed, &[u64::MAX]));
                turns
            }
        }
    }

    async fn all(&mut self, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let mut guards = JoinSet::new();
        guards.spawn_local(interrupted(Rc::clone(&self.stop), self.options.interrupt.clone()));
        if self.scenario.limits.total_s > 0.0 {
            let (stop, limit) = (Rc::clone(&self.stop), self.scenario.limits.total_s);
            guards.spawn_local(async move {
                tokio::time::sleep(Duration::from_secs_f64(limit)).await;
                stop.ask(format!("the limit of {limit} s was reached"));
            });
        }
        let turns = self.turns();
        let mut outcome = Ok(());
        for (trial, target) in turns.iter().enumerate() {
            if trial > 0 && self.scenario.trials.pause_s > 0.0 {
                self.pause(self.scenario.trials.pause_s).await;
            }
            if self.stop.is_asked() {
                break;
            }
            let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            outcome = self.trial((number(trial), number(turns.len())), *target, progress).await;
            if outcome.is_err() {
                break;
            }
        }
        // Before the samplers end: a late interrupt must not stop a run that is over.
        guards.shutdown().await;
        if let Some(sampling) = self.sampling.take() {
            sampling.end();
        }
        outcome
    }

    async fn pause(&self, seconds: f64) {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
            () = self.stop.asked() => {}
        }
    }

    async fn trial(&mut self, trial: (u16, u16), target: u16, progress: &mut dyn FnMut(&Progress)) -> Result<()> {
        let phases = &self.scenario.phases;
        match self.idle(target).await {
            // Earlier measurements are kept.
            Err(error) if trial.0 > 0 => self.stop.ask(format!("trial {} did not begin: {error}", trial.0 + 1)),
            other => other?,
        }
        // Checked again after the wait, during which an interrupt may have arrived.
        if self.stop.is_asked() {
            return Ok(());
        }
        let clock = Clock::start();
        if let Some(sampling) = &self.sampling {
            sampling.trial(Some((trial.0, clock)));
        }
        let plan = Plan::main(phases, clock.now());
        let started = jiff::Timestamp::now().to_string();
        self.run.trials.push(Trial { target, started, measured_us: [plan.measured, plan.cool_down] });
        self.stretch(trial, target, clock, plan, progress).await?;
        if phases.again_s > 0.0 && !self.stop.is_asked() {
            // Time for the server to recover: the repeat shows whether it does.
            self.pause(phases.again_after_s).await;
            if !self.stop.is_asked() {
                let plan = Plan::again(phases, clock.now());
                self.stretch(trial, target, clock, plan, progress).await?;
            }
        }
        if let Some(sampling) = &self.sampling {
            sampling.trial(None);
        }
        Ok(())
    }

    /// Waits until the targets of a trial are idle, or the run must end.
    async fn idle(&self, turn: u16) -> Result<()> {
        let scenario = self.scenario;
        let mut waits: Vec<&WaitIdle> = Vec::new();
        for (index, target) in scenario.target.iter().enumerate() {
            let is_asked = |population: &Population| match &population.target {
                Some(own) => *own == target.name,
                None => index == usize::from(turn),
            };
            let wait = target.wait_idle.as_ref().or(scenario.phases.wait_idle.as_ref());
            if scenario.population.iter().any(is_asked) {
                let new = wait.filter(|wait| !waits.contains(wait));
                waits.extend(new);
            }
        }
        for wait in waits {
            tokio::select! {
                waited = wait_idle(wait, &self.options.allow_public) => { waited?; }
                () = self.stop.asked() => return Ok(()),
            }
        }
        Ok(())
    }

    /// Runs one period of load, from its first arrival to its last response.
    async fn stretch(
        &mut self,
        trial: (u16, u16),
        target: u16,
        clock: Clock,
        plan: Plan,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<()> {
        let shared = Rc::new(TrialState {
            trial: trial.0,
            clock,
            plan,
            checkers: Rc::clone(&self.prepared.checkers),
            recorder: Rc::clone(&self.recorder),
            counts: Rc::clone(&self.counts),
            in_flight: Cell::new(0),
            stop: Rc::clone(&self.stop),
        });
        let mut loads = JoinSet::new();
        for load in self.prepared.loads(self.scenario, &shared, target).map_err(LabError::scenario)? {
            loads.spawn_local(PopulationLoad::run(load));
        }
        let mut probe = JoinSet::new();
        // Open arrivals measure their own lateness at each send; closed ones have no schedule.
        if self.prepared.all_closed {
            probe.spawn_local(probe_lateness(Rc::clone(&shared)));
        }
        // After preparation, whose processor time does not count towards the run.
        self.watch.begin();
        let mut tick = tokio::time::interval(TICK);
        let mut grace = None;
        let mut broken = false;
        loop {
            let patience = grace.unwrap_or_else(|| tokio::time::Instant::now() + GRACE);
            tokio::select! {
                done = loads.join_next() => match done {
                    None => break,
                    Some(done) => broken |= done.is_err(),
                },
                () = self.stop.asked(), if grace.is_none() && !self.stop.is_patient() => {
                    // Requests that began before a limit of requests are completed.
                    if !self.stop.is_patient() {
                        grace = Some(tokio::time::Instant::now() + GRACE);
                    }
                }
                () = tokio::time::sleep_until(patience), if grace.is_some() && !self.stop.is_aborted() => self.stop.give_up(),
                _ = tick.tick() => {
                    let now = self.progress(trial, &shared);
                    if let Some(live) = &self.options.live {
                        // A live report must not wait until a batch of thousands is full.
                        self.recorder.flush();
                        live.look(&self.run, &now);
                    }
                    progress(&now);
                }
            }
        }
        self.watch.end();
        probe.shutdown().await;
        progress(&self.progress(trial, &shared));
        if broken { Err(LabError::results("a part of the driver ended early: please report it")) } else { Ok(()) }
    }

    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
    fn progress(&self, trial: (u16, u16), shared: &TrialState) -> Progress {
        let seconds = |time: i64| time as f64 / 1e6;
        Progress {
            trial,
            elapsed_s: seconds(shared.clock.now()),
            end_s: (!self.prepared.any_ends).then(|| seconds(shared.plan.end)),
            arrivals: self.counts.arrivals.get(),
            done: self.counts.done.get(),
            not_sound: self.counts.not_sound.get(),
            in_flight: shared.in_flight.get(),
        }
    }
}

/// Handles Ctrl-C or the options' handle: the first ends the run cleanly, the second at once.
async fn interrupted(stop: Rc<Stop>, handle: Option<Arc<Notify>>) {
    let handle = handle.unwrap_or_default();
    loop {
        tokio::select! {
            // If signals are unavailable, only the handle remains.
            signal = tokio::signal::ctrl_c() => if signal.is_err() { std::future::pending::<()>().await },
            () = handle.notified() => {}
        }
        if stop.is_asked() {
            stop.give_up();
        }
        stop.ask("interrupted");
    }
}

/// Measures the lab's lateness by a timer if every arrival waits for a response, as such arrivals have no schedule.
/// The timer shows how long the thread does not respond.
async fn probe_lateness(shared: Rc<TrialState>) {
    loop {
        let due = shared.clock.now() + PROBE_US;
        tokio::time::sleep_until(shared.clock.instant(due)).await;
        shared.counts.late_by(shared.clock.now() - due - TIMER_US);
    }
}

#[cfg(test)]
mod tests;
