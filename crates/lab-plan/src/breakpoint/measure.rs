//! One step of a search, read back from its results folder.

use super::backlog::Backlog;
use super::load::Load;
use super::search::Purpose;
use meridian_lab_drive::driver;
use meridian_lab_results::error::Result;
use meridian_lab_results::folder;
use meridian_lab_results::record::{Micros, Outcome, Phase, Record};
use meridian_lab_results::stats::mode::{self, Mode, Stall};
use meridian_lab_results::stats::percentile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Share of arrivals that the lab may fail to send before a step counts as failed, whatever its objectives.
pub const NOT_SENT_MAX: f64 = 0.01;
/// Max requests that are examined one by one for the mode.
const COURSE_MAX: usize = 100_000;

/// A load that was tried, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub n: u32,
    /// Why it was tried.
    pub purpose: Purpose,
    /// The load.
    pub load: f64,
    /// The seed of its requests.
    pub seed: u64,
    /// Its results folder, within the search's folder.
    pub folder: String,
    /// Whether every objective held.
    pub held: bool,
    /// Failed objectives, and their measured values.
    pub failed: Vec<MissedObjective>,
    /// Why the step is void, and so proves nothing about the target; empty if it is valid.
    pub void: Vec<String>,
    /// Why it ended early.
    pub cut_short: Option<String>,
    /// Number of questions due in the measured phase.
    pub arrivals: u64,
    /// Their outcomes.
    pub outcomes: BTreeMap<String, u64>,
    /// Sound responses per second that arrived within the measured phase.
    pub sound_per_s: f64,
    /// 95th percentile of the wait over all questions; null if more than 5 % had no sound response.
    pub p95_ms: Option<f64>,
    /// Course over time.
    pub mode: Mode,
    /// How much longer each request waited than the previous one, if measured.
    pub growth_ms: Option<f64>,
    /// Whether its backlog grew, and the rate served meanwhile. Null if the load is not a rate or there are too few
    /// requests.
    #[serde(default)]
    pub backlog: Option<Backlog>,
    /// Periods in which no response arrived though requests waited.
    #[serde(default)]
    pub stalls: Vec<Stall>,
}

/// An objective that was not met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissedObjective {
    /// The objective as a sentence.
    pub objective: String,
    /// The measured value; null if there is none, or if users waited for ever.
    pub value: Option<f64>,
}

/// Reads a finished step; `folder` is its name in `dir`.
pub(super) fn step(
    dir: &Path,
    folder: &str,
    outcome: &driver::Outcome,
    (load, value): (Load, f64),
    (n, purpose, seed): (u32, Purpose, u64),
) -> Result<Step> {
    let mut seen = StepStats::new(load.population());
    for batch in folder::open(&dir.join(folder))?.records()? {
        batch?.into_iter().for_each(|record| seen.add(record));
    }
    let window = outcome.run.trials.first().map_or([0, 0], |trial| trial.measured_us);
    let mut failed: Vec<MissedObjective> = outcome
        .verdicts
        .iter()
        .filter(|verdict| !verdict.holds)
        .map(|verdict| MissedObjective { objective: verdict.objective.clone(), value: verdict.value })
        .collect();
    // An unsent request has no wait, so a step that could not send all would look successful.
    let not_sent = seen.with(Outcome::NotSent) as f64 / seen.questions.max(1) as f64;
    if not_sent > NOT_SENT_MAX {
        let objective = format!("arrivals not sent at most {NOT_SENT_MAX}");
        failed.push(MissedObjective { objective, value: Some(not_sent) });
    }
    let course = mode::of(&seen.course);
    Ok(Step {
        n,
        purpose,
        load: value,
        seed,
        folder: folder.to_owned(),
        // Objectives are trivially met in an empty step, which proves nothing.
        held: failed.is_empty() && seen.questions > 0,
        failed,
        void: outcome.run.void.clone(),
        cut_short: outcome.run.cut_short.clone(),
        arrivals: seen.questions,
        sound_per_s: seen.sound_per_s(window, load.ends()),
        p95_ms: seen.p95_ms(),
        outcomes: seen.outcomes.iter().map(|(outcome, n)| (outcome.name().to_owned(), *n)).collect(),
        mode: course.mode,
        growth_ms: course
            .growth
            .filter(|_| matches!(course.mode, Mode::Growing | Mode::TimingOut))
            .map(|line| line.slope.value * 1e3),
        backlog: if load.is_rate() { Backlog::of(&seen.course) } else { None },
        stalls: course.stalls,
    })
}

/// State kept while a step's records are read.
struct StepStats {
    population: u16,
    questions: u64,
    outcomes: BTreeMap<Outcome, u64>,
    /// Waits of questions that ended with a sound response.
    waits: Vec<f64>,
    /// End times of sound responses of any phase.
    ends: Vec<Micros>,
    course: Vec<Record>,
    span: [Micros; 2],
}

impl StepStats {
    fn new(population: u16) -> StepStats {
        StepStats {
            population,
            questions: 0,
            outcomes: BTreeMap::new(),
            waits: Vec::new(),
            ends: Vec::new(),
            course: Vec::new(),
            span: [Micros::MAX, Micros::MIN],
        }
    }

    fn add(&mut self, record: Record) {
        if record.population != self.population {
            return;
        }
        let sound = record.outcome == Outcome::Sound;
        // Responses of every phase: a response counts where it ends. One requested in the warm-up may end in the
        // window.
        self.ends.extend(record.done.filter(|_| sound));
        if record.phase != Phase::Measured {
            return;
        }
        let [first, last] = self.span;
        self.span = [first.min(record.intended), last.max(record.done.unwrap_or(record.intended))];
        // By question, not by attempt: a user who retries is still one arrival.
        self.questions += u64::from(record.attempt == 0);
        *self.outcomes.entry(record.outcome).or_default() += 1;
        self.waits.extend(record.latency().filter(|_| sound).map(|us| us as f64 / 1e3));
        // The mode shows in the first requests of a phase. All of a long step at a high rate would not fit in memory.
        if self.course.len() < COURSE_MAX {
            self.course.push(Record { detail: None, ..record });
        }
    }

    fn with(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Covers the whole time of an arrival that ends by itself; otherwise the window.
    fn sound_per_s(&self, window: [Micros; 2], ends_by_itself: bool) -> f64 {
        let [from, to] = if ends_by_itself { self.span } else { window };
        let within = self.ends.iter().filter(|end| (from..=to).contains(*end)).count();
        if to > from { within as f64 * 1e6 / (to - from) as f64 } else { 0.0 }
    }

    fn p95_ms(&mut self) -> Option<f64> {
        // A question without a sound response counts as an infinite wait. Left out, it would make a failing server
        // look fast.
        let missing = (self.questions as usize).saturating_sub(self.waits.len());
        self.waits.extend(std::iter::repeat_n(f64::INFINITY, missing));
        self.waits.sort_by(f64::total_cmp);
        percentile::of_sorted(&self.waits, 0.95).filter(|ms| ms.is_finite())
    }
}
