//! A measured machine: its throughput at several numbers of closed users without think time, and the durations of its
//! responses.
//!
//! Every number of users is a [`Level`]: its throughput and the distribution of its waits. Between two levels the
//! behaviour is interpolated. Past the last one it is unknown, and nothing is sold. The Universal Scalability Law is
//! fitted to the levels for the reader, and prices nothing.

use crate::breakpoint::Breakpoint;
use meridian_lab_drive::scenario::{Arrival, Scenario};
use meridian_lab_results::error::Result;
use meridian_lab_results::folder::{self, Group, Results};
use meridian_lab_results::record::{Outcome, Phase, Record};
use meridian_lab_results::stats::usl::{self, Law, Point};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Number of values kept of a distribution, evenly over its quantiles.
const KEPT: usize = 1_000;
/// Max distance of a plateau's start from an integer number of users at which it counts as that number of workers.
const WHOLE: f64 = 0.15;
/// Max deviation of a plateau, as a share of throughput.
const PLATEAU_WITHIN: f64 = 0.1;

/// One machine, as measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Throughput over users.
    pub law: Law,
    /// Max users at which it was measured; beyond, nothing is known.
    pub users_most: f64,
    /// Max sound responses per second that were measured.
    pub rate_most: f64,
    /// How it serves concurrent clients.
    pub serves: ServiceModel,
    /// Mean bytes of a response, if the runs record them.
    pub answer_bytes: Option<f64>,
    /// The measurements, by number of users.
    #[serde(skip)]
    pub levels: Vec<Level>,
}

/// How a machine serves concurrent requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceModel {
    /// A fixed number of workers; more wait in a queue.
    Workers(u32),
    /// Requests share it: more of them make each slower.
    Shared,
}

/// The measurements at one number of users.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Closed users without think time.
    pub users: f64,
    /// Sound responses per second.
    pub throughput: f64,
    /// Seconds until a response, ascending, evenly over the quantiles; infinite without a sound one.
    waits: Vec<f64>,
}

impl Level {
    /// Creates a level from measured waits in seconds, infinite without a sound response. `None` without waits.
    pub fn of(users: f64, throughput: f64, mut waits: Vec<f64>) -> Option<Level> {
        waits.sort_by(f64::total_cmp);
        let n = waits.len();
        // Quantiles at the middle of equal parts: unlike the first and last values, they do not depend on how many were
        // measured.
        let kept = n.min(KEPT);
        let waits: Vec<f64> = (0..kept).map(|i| waits[(2 * i + 1) * n / (2 * kept)]).collect();
        (n > 0).then_some(Level { users, throughput, waits })
    }

    /// Returns the wait that a share of the requests does not exceed.
    pub fn wait(&self, share: f64) -> f64 {
        let at = (share * self.waits.len() as f64) as usize;
        self.waits[at.min(self.waits.len() - 1)]
    }
}

/// The requests of the runs.
#[derive(Default)]
struct RequestTotals {
    bytes: u64,
    requests: u64,
}

impl RequestTotals {
    fn add(&mut self, run: &Results) {
        // An unreadable summary contributes no sizes.
        let groups: Vec<Group> = serde_json::from_value(run.summary.clone()).unwrap_or_default();
        for group in groups.iter().filter(|group| group.phase == Phase::Measured.name()) {
            self.bytes += group.bytes;
            self.requests += group.arrivals;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.bytes as f64 / self.requests as f64)
    }
}

impl Machine {
    /// Reads a folder: a breakpoint search over users, or results folders of closed users, one for each number of
    /// them. The error is a sentence.
    pub fn read(dir: &Path) -> Result<Machine, String> {
        let folders = if dir.join("breakpoint.json").is_file() { steps(dir)? } else { runs(dir)? };
        let (mut levels, mut sent) = (Vec::new(), RequestTotals::default());
        for folder in &folders {
            let run = folder::open(folder).map_err(|e| e.to_string())?;
            levels.push(level(&run).map_err(|e| format!("{}: {e}", folder.display()))?);
            sent.add(&run);
        }
        Ok(Machine { answer_bytes: sent.mean(), ..Machine::of(levels)? })
    }

    /// Returns the machine that was measured at these levels.
    pub fn of(levels: Vec<Level>) -> Result<Machine, String> {
        let point = |level: &Level| Point { n: level.users, throughput: level.throughput, sd: None };
        let law = usl::fit(&levels.iter().map(point).collect::<Vec<_>>())?;
        let levels = joined(levels);
        let users_most = levels.iter().map(|level| level.users).fold(1.0, f64::max);
        let rate_most = levels.iter().map(|level| level.throughput).fold(0.0, f64::max);
        let serves = serves(&law);
        Ok(Machine { law, users_most, rate_most, serves, answer_bytes: None, levels })
    }

    /// Returns the levels around a number of users, and its relative position between them; the outermost if it lies
    /// beyond.
    pub(super) fn around(&self, users: f64) -> (&Level, &Level, f64) {
        let after = self.levels.partition_point(|level| level.users <= users).min(self.levels.len() - 1);
        let (from, to) = (&self.levels[after.saturating_sub(1)], &self.levels[after]);
        let way = if to.users > from.users { (users - from.users) / (to.users - from.users) } else { 0.0 };
        (from, to, way.clamp(0.0, 1.0))
    }
}

/// Finds a number of workers: throughput rises in a straight line and then stays, from an integer number of users on.
fn serves(law: &Law) -> ServiceModel {
    let plateau = law.plateau().filter(|plateau| !law.fits() && plateau.worst <= PLATEAU_WITHIN);
    // Workers are whole, so a plateau that begins between two integers means a shared machine.
    let whole = plateau.map(|plateau| plateau.from_n).filter(|n| n.round() >= 1.0 && (n - n.round()).abs() <= WHOLE);
    whole.map_or(ServiceModel::Shared, |n| ServiceModel::Workers(n.round() as u32))
}

/// Sorts levels by users, and merges those of the same number of users.
fn joined(mut levels: Vec<Level>) -> Vec<Level> {
    levels.sort_by(|a, b| a.users.total_cmp(&b.users));
    let alike = levels.chunk_by(|a, b| a.users == b.users);
    let one = |of: &[Level]| {
        let throughput = of.iter().map(|level| level.throughput).sum::<f64>() / of.len() as f64;
        Level::of(of[0].users, throughput, of.iter().flat_map(|level| level.waits.clone()).collect())
    };
    alike.filter_map(one).collect()
}

/// Returns the valid steps of a search over users.
fn steps(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let found = Breakpoint::open(dir).map_err(|e| e.to_string())?;
    let folders: Vec<PathBuf> =
        found.steps.iter().filter(|step| step.void.is_empty()).map(|step| dir.join(&step.folder)).collect();
    match folders.iter().find(|folder| !folder.join("run.json").is_file()) {
        // A search keeps its verdict without the steps' folders, but not the waits that a promise is checked against.
        Some(gone) => Err(format!("{}: it is not there, and without its answers no wait is known", gone.display())),
        None => Ok(folders),
    }
}

fn runs(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |e: std::io::Error| format!("it cannot be read: {e}");
    let entries = std::fs::read_dir(dir).map_err(wrong)?.collect::<std::io::Result<Vec<_>>>().map_err(wrong)?;
    let mut folders: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join("run.json").is_file());
    folders.sort();
    Ok(folders)
}

/// Converts a run to a level.
fn level(run: &Results) -> Result<Level, String> {
    if let Some(why) = run.run.void.first() {
        return Err(format!("the run is void: {why}"));
    }
    if run.run.targets.len() != 1 {
        return Err(format!("it has {} targets: expected one", run.run.targets.len()));
    }
    let scenario = Scenario::parse(&run.scenario, "scenario.toml", &[]).map_err(|e| e.to_string())?;
    let users = scenario.population.iter().map(|population| match population.arrival {
        Arrival::Closed { users, think_s: 0.0, .. } => Ok(f64::from(users)),
        _ => Err("expected users that ask again at once (arrival kind \"closed\", think_s = 0)".to_owned()),
    });
    let users = users.sum::<Result<f64, String>>()?;
    let (throughput, waits) = answered(run).map_err(|e| e.to_string())?;
    Level::of(users, throughput, waits).ok_or_else(|| "nothing was measured".to_owned())
}

/// Returns sound responses per second that arrived within the measured phase, over all trials, and the waits of the
/// questions due in it.
fn answered(run: &Results) -> Result<(f64, Vec<f64>)> {
    let windows: Vec<[i64; 2]> = run.run.trials.iter().map(|trial| trial.measured_us).collect();
    let (mut sound, mut waits) = (0_u64, Vec::new());
    let is_sound = |record: &Record| record.outcome == Outcome::Sound;
    for batch in run.records()? {
        for record in batch? {
            let window = windows.get(usize::from(record.trial));
            let within = window.zip(record.done).is_some_and(|([from, to], done)| (*from..=*to).contains(&done));
            sound += u64::from(within && is_sound(&record));
            if record.phase == Phase::Measured && record.attempt == 0 {
                let wait = record.latency().filter(|_| is_sound(&record));
                waits.push(wait.map_or(f64::INFINITY, |us| us as f64 / 1e6));
            }
        }
    }
    let span_us: i64 = windows.iter().map(|[from, to]| to - from).sum();
    Ok((sound as f64 * 1e6 / span_us.max(1) as f64, waits))
}
