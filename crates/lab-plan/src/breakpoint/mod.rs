//! `lab breakpoint`: the max load at which the objectives hold, and how the target fails beyond it.
//!
//! Each step is a whole run of the scenario ([`meridian_lab_drive::driver`]) with its own seed. Each begins with an
//! idle target: after a pause, and after the scenario's `wait_idle` if it has one. [`search`] chooses the loads and
//! knows nothing of servers. [`measure`] reads back the results of a step. [`sustain`] estimates the max rate without
//! a growing backlog. [`verdict`] summarises all steps. The folder holds every step's results folder, so that any of
//! them can be read as a separate run.

mod backlog;
mod load;
mod measure;
mod result;
pub mod search;
mod show;
mod sustain;
mod verdict;

#[cfg(test)]
mod tests;

pub use backlog::Backlog;
pub use load::Load;
pub use measure::{MissedObjective, Step};
pub use result::{Breakpoint, Conclusion, Shape, ShapeKind};
pub use show::report;

use meridian_lab_drive::driver;
use meridian_lab_drive::scenario::{Metric, Objective, Scenario};
use meridian_lab_results::atomic::NewFolder;
use meridian_lab_results::error::{LabError, Result};
use search::{End, Next, Plan, Purpose, Search};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The parameters of a search besides its scenario.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder to create.
    pub out: PathBuf,
    /// Public hosts to which load may be sent.
    pub allow_public: Vec<String>,
    /// Ends the search when notified, as Ctrl-C does.
    pub interrupt: Option<Arc<Notify>>,
    /// The population whose load is searched; required if there are several.
    pub population: Option<String>,
    /// The first load; `None` for the scenario's own.
    pub from: Option<f64>,
    /// The largest load to try.
    pub most: Option<f64>,
    /// The factor of a step up of the load.
    pub factor: f64,
    /// Half the width of the interval, as a share of the breakpoint, at which the search stops.
    pub within: f64,
    /// Max steps.
    pub steps: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            out: PathBuf::new(),
            allow_public: Vec::new(),
            interrupt: None,
            population: None,
            from: None,
            most: None,
            factor: 2.0,
            within: 0.05,
            steps: 40,
        }
    }
}

/// Fresh trials at each end of a narrow interval.
const CONFIRM: u32 = 2;
/// Void steps in a row after which the machine counts as unfit.
const VOID_MAX: u32 = 3;
/// Pause between steps if the scenario has none (`trials.pause_s`).
const PAUSE_S: f64 = 1.0;
/// Attempts to reach a target that was reachable before, and the pause between two.
const REACH: (u32, f64) = (5, 3.0);
/// The objectives of a scenario without any: users keep their train of thought for about a second (Miller 1968).
const OBJECTIVES: [(Metric, Option<f64>, Option<f64>); 2] =
    [(Metric::P95Ms, Some(1_000.0), None), (Metric::SoundShare, None, Some(0.99))];

/// Searches the breakpoint and writes a folder. `progress` receives each step once it has ended.
pub fn run(scenario: &Scenario, options: &Options, progress: &mut dyn FnMut(&Step)) -> Result<Breakpoint> {
    let load = Load::of(scenario, options.population.as_deref())?;
    let scenario = prepared(scenario)?;
    let plan = plan(&scenario, load, options)?;
    let folder = NewFolder::create(&options.out)?;
    folder.write("scenario.toml", scenario.to_toml()?.as_bytes())?;
    let started = jiff::Timestamp::now().to_string();
    let mut steps: Vec<Step> = Vec::new();
    let (mut voids, mut again, mut ended) = (0, None, None);
    let most = plan.bounds.1;
    let mut search = Search::new(plan);
    let conclusion = loop {
        let next = match (again.take(), ended) {
            (Some((value, purpose)), _) => Next::Try(value, purpose),
            (None, None) => search.choose(),
            (None, Some(end)) => Next::End(end),
        };
        let (value, purpose) = match next {
            Next::Try(value, purpose) => (value, purpose),
            Next::End(end) => {
                // The interval of the objectives cannot be narrowed further; the remaining steps measure the
                // sustainable rate.
                let more = load.is_rate() && steps.len() < options.steps;
                let raised = steps.iter().filter(|step| step.purpose == Purpose::Sustain).count();
                ended = Some(end);
                match sustain::next(&steps, most, raised).filter(|_| more) {
                    Some(value) => (value, Purpose::Sustain),
                    None => break Conclusion::from(end),
                }
            }
        };
        if !steps.is_empty() && paused(&scenario, options.interrupt.as_ref()) {
            break ended.map_or(Conclusion::Interrupted, Conclusion::from);
        }
        let n = u32::try_from(steps.len() + 1).unwrap_or(u32::MAX);
        let mut stepped = scenario.clone();
        load.set(&mut stepped, value);
        // Another seed each time: repeated steps at one load would otherwise repeat the same chance and confirm
        // nothing.
        stepped.seed = scenario.seed.wrapping_add(u64::from(n));
        stepped.name = format!("{} at {value} {}", scenario.name, load.unit());
        let name = format!("steps/{n:02}-{value}");
        let Some(outcome) = driven(&stepped, options, &folder.path().join(&name), steps.is_empty())? else {
            break ended.map_or(Conclusion::Gone, Conclusion::from);
        };
        let step = measure::step(folder.path(), &name, &outcome, (load, value), (n, purpose, stepped.seed))?;
        progress(&step);
        let interrupted = step.cut_short.as_deref() == Some("interrupted");
        let void = !step.void.is_empty();
        // Steps for the sustained rate are far above the edge. The fit would take them for evidence about its
        // steepness.
        if !void && !interrupted && purpose != Purpose::Sustain {
            search.record(value, step.held);
        }
        steps.push(step);
        if interrupted {
            break ended.map_or(Conclusion::Interrupted, Conclusion::from);
        }
        // A void step proves nothing: the same load is retried, as long as the machine may come to rest.
        voids = if void { voids + 1 } else { 0 };
        if voids >= VOID_MAX {
            break ended.map_or(Conclusion::Void, Conclusion::from);
        }
        if void {
            again = Some((value, purpose));
        }
    };
    let found = verdict::found(&scenario, load, options, (conclusion, search.estimate().ok()), started, steps);
    found.write(&folder)?;
    show::report(folder.path())?;
    folder.finish()?;
    Ok(found)
}

/// Returns the scenario as every step runs it: one trial of one target, with objectives.
fn prepared(scenario: &Scenario) -> Result<Scenario> {
    let mut scenario = scenario.clone();
    let turns = scenario.population.iter().any(|population| population.target.is_none());
    if turns && scenario.target.len() > 1 {
        return Err(LabError::scenario(
            "there are several targets that take turns: expected one, as each has its own breakpoint \
             (or a target for each population)",
        ));
    }
    scenario.trials.repeats = 1;
    // A phase after the load would belong to no step: the next one begins from an idle target anyway.
    scenario.phases.again_s = 0.0;
    if scenario.objective.is_empty() {
        let objective = |(metric, at_most, at_least)| Objective {
            metric,
            at_most,
            at_least,
            population: None,
            request: None,
            target: None,
        };
        scenario.objective = OBJECTIVES.map(objective).to_vec();
    }
    Ok(scenario)
}

fn plan(scenario: &Scenario, load: Load, options: &Options) -> Result<Plan> {
    let wrong = |option: &str, value: f64, expected: &str| {
        Err(LabError::scenario(format!("{option} {value}: expected {expected}")))
    };
    let (from, most) = (options.from.unwrap_or_else(|| load.value(scenario)), options.most.unwrap_or(load.most()));
    if !(from > 0.0 && from <= load.most()) {
        return wrong("--from", from, &format!("a load above 0 and at most {}", load.most()));
    }
    if !(most >= from && most <= load.most()) {
        return wrong("--most", most, &format!("a load from {from} to {}", load.most()));
    }
    if !(options.factor >= 1.05 && options.factor <= 100.0) {
        return wrong("--factor", options.factor, "a number from 1.05 to 100");
    }
    if !(options.within >= 0.005 && options.within <= 0.5) {
        return wrong("--within", options.within, "a share from 0.005 to 0.5, such as 0.05 for plus or minus 5 %");
    }
    let min = if load.whole() { 1.0 } else { from / 1_000.0 };
    let (factor, within) = (options.factor, options.within);
    Ok(Plan { from, bounds: (min, most), factor, within, confirm: CONFIRM, trials: options.steps, whole: load.whole() })
}

/// Executes one run; returns `None` if a target that was reachable before no longer is.
fn driven(scenario: &Scenario, options: &Options, out: &Path, first: bool) -> Result<Option<driver::Outcome>> {
    let (allow_public, interrupt) = (options.allow_public.clone(), options.interrupt.clone());
    let options = driver::Options { out: out.to_owned(), allow_public, interrupt: interrupt.clone(), live: None };
    for _ in 0..REACH.0 {
        match driver::run(scenario, &options, &mut |_| ()) {
            // A target that failed at the last step may restart. At the first step it was never reachable, and the
            // error is the user's.
            Err(LabError::Target(_)) if !first => {
                if slept(REACH.1, interrupt.as_ref()) {
                    break;
                }
            }
            other => return other.map(Some),
        }
    }
    Ok(None)
}

fn paused(scenario: &Scenario, interrupt: Option<&Arc<Notify>>) -> bool {
    let pause = scenario.trials.pause_s;
    slept(if pause > 0.0 { pause } else { PAUSE_S }, interrupt)
}

/// Sleeps; returns true if interrupted.
fn slept(seconds: f64, interrupt: Option<&Arc<Notify>>) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return false };
    let interrupt = interrupt.cloned().unwrap_or_default();
    runtime.block_on(async {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => false,
            Ok(()) = tokio::signal::ctrl_c() => true,
            () = interrupt.notified() => true,
        }
    })
}

impl From<End> for Conclusion {
    fn from(end: End) -> Self {
        match end {
            End::Found => Conclusion::Found,
            End::Trials => Conclusion::Wide,
            End::Above => Conclusion::Above,
            End::Below => Conclusion::Below,
        }
    }
}
