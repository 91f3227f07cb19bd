//! The two sides of a comparison: two results folders, or the two targets of one.

use crate::error::{LabError, Result};
use crate::folder::{self, Run};
use crate::record::{Outcome, Phase, Record};
use crate::stats::compare::{REPEATS, RUN_SD};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Population, request and target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct RequestKey {
    /// The population's name.
    pub population: String,
    /// The request's name.
    pub request: String,
    /// The target's name; empty if its side has only one.
    pub target: String,
}

/// Milliseconds that measured questions waited, repeat by repeat (trials, rounds or runs), each in order of intended
/// time; infinite without a sound response.
pub type Waits = BTreeMap<u16, Vec<f64>>;

/// One run, or one target of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// Name of the folder, or of the target.
    pub name: String,
    /// The part of the response that was waited for; only equal ones are compared.
    pub waits: BTreeMap<RequestKey, Waits>,
    /// Whether its repeats are trials of one run, which do not show how much runs differ.
    pub one_run: bool,
}

/// A and B.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sides {
    /// The baseline.
    pub a: Side,
    /// The judged side.
    pub b: Side,
    /// Whether trials of the same number ran in alternation, A B A B.
    pub paired: bool,
    /// Warnings to the reader of a comparison.
    pub warnings: Vec<String>,
    /// Reasons for judging nothing: void runs.
    pub void: Vec<String>,
}

/// A folder's measured questions by target, population and request.
struct Folder {
    name: String,
    run: Run,
    waits: BTreeMap<(u16, u16, u16), Waits>,
}

impl Sides {
    /// Compares two results folders, or folders of several runs that are repeats of each other. If runs have several
    /// targets, each is compared with the one of the same name.
    pub fn of_runs(a: &Path, b: &Path) -> Result<Sides> {
        let mut sides = Sides::default();
        for (letter, dir) in [("A", a), ("B", b)] {
            let runs = Folder::all(dir)?;
            let side = if letter == "A" { &mut sides.a } else { &mut sides.b };
            side.name = dir.display().to_string();
            side.one_run = runs.len() == 1;
            let void = |folder: &Folder| Some(folder.run.void.first()?.clone());
            let all_void = runs.iter().all(|run| void(run).is_some());
            // The figures of void runs are shown, but not judged.
            let good = runs.iter().filter(|run| all_void || void(run).is_none());
            match &runs[..] {
                [one] => {
                    side.waits = one.side(|_| true, one.run.targets.len() > 1);
                    sides.void.extend(void(one).map(|why| format!("{letter} is void: {why}")));
                }
                several => {
                    side.waits = by_run(good);
                    let left_out = several.iter().filter_map(|run| Some((run.name.clone(), void(run)?)));
                    sides
                        .warnings
                        .extend(left_out.map(|(run, why)| format!("{letter}: {run} is void and left out: {why}")));
                    if all_void {
                        sides.void.push(format!("all runs of {letter} are void"));
                    }
                }
            }
        }
        if sides.a.one_run || sides.b.one_run {
            sides.warnings.push(format!(
                "one run does not tell how much runs differ: the interval allows for {:.0} %, or for what its trials differ by where \
                 that is more; folders of {REPEATS} runs each would tell",
                RUN_SD * 100.0
            ));
        }
        Ok(sides)
    }

    /// Compares the two targets of one folder, the first of which is A.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or holds another number of targets.
    pub fn of_targets(dir: &Path) -> Result<Sides> {
        let folder = Folder::open(dir)?;
        let [a, b] = folder.run.targets.as_slice() else {
            return Err(LabError::scenario(format!(
                "{}: the run has {} target(s): expected two to hold against each other, or a second folder",
                dir.display(),
                folder.run.targets.len()
            )));
        };
        let turns: Vec<u16> = folder.run.trials.iter().map(|trial| trial.target).collect();
        // From the order in which trials actually ran: a scenario that specifies turns may have been cut short.
        let paired = turns.len() > 1 && turns.chunks_exact(2).all(|round| round[0] != round[1]);
        let mut sides = Sides { paired, ..Sides::default() };
        sides.void.extend(folder.run.void.first().map(|why| format!("the run is void: {why}")));
        (sides.a.one_run, sides.b.one_run) = (true, true);
        for (number, name, side) in [(0, a, &mut sides.a), (1, b, &mut sides.b)] {
            side.name.clone_from(name);
            side.waits = folder.side(|target| target == number, false);
            if paired {
                side.waits.values_mut().for_each(|waits| *waits = by_round(std::mem::take(waits), turns.len() / 2));
            }
        }
        if paired && turns.len() % 2 == 1 {
            sides.warnings.push("the last trial has no partner: it is left out".to_owned());
        }
        Ok(sides)
    }
}

/// Returns trials by their round: one of A and one of B that ran consecutively.
fn by_round(trials: Waits, rounds: usize) -> Waits {
    let rounds =
        trials.into_iter().map(|(trial, waits)| (trial / 2, waits)).filter(|(round, _)| usize::from(*round) < rounds);
    rounds.collect()
}

/// Returns each run as one repeat.
fn by_run<'a>(runs: impl Iterator<Item = &'a Folder>) -> BTreeMap<RequestKey, Waits> {
    let mut out: BTreeMap<RequestKey, Waits> = BTreeMap::new();
    for (number, folder) in (0..).zip(runs) {
        for (asked, waits) in folder.side(|_| true, folder.run.targets.len() > 1) {
            out.entry(asked).or_default().insert(number, waits.into_values().flatten().collect());
        }
    }
    out
}

impl Folder {
    /// Returns the results folder at a place, or those within it.
    fn all(dir: &Path) -> Result<Vec<Folder>> {
        let is_run = |dir: &Path| dir.join("run.json").is_file();
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut within: Vec<PathBuf> =
            if is_run(dir) { Vec::new() } else { entries.filter(|dir| is_run(dir)).collect() };
        within.sort();
        match within.is_empty() {
            true => Ok(vec![Folder::open(dir)?]),
            false => within.iter().map(|dir| Folder::open(dir)).collect(),
        }
    }

    fn open(dir: &Path) -> Result<Folder> {
        let folder = folder::open(dir)?;
        let mut records = Vec::new();
        for batch in folder.records()? {
            let waited = |r: Record| Some((((r.target, r.population, r.request), r.trial, r.intended), wait(&r)?));
            records.extend(batch?.into_iter().filter_map(waited));
        }
        // Requests are written as they end. Later steps rely on the order in which they were due.
        records.sort_by_key(|(when, _)| *when);
        let mut waits: BTreeMap<(u16, u16, u16), Waits> = BTreeMap::new();
        for ((asked, trial, _), ms) in records {
            waits.entry(asked).or_default().entry(trial).or_default().push(ms);
        }
        let name = dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Folder { name, run: folder.run, waits })
    }

    /// Returns the waits at some of the targets, with the names of the requests.
    fn side(&self, keep: impl Fn(u16) -> bool, with_target: bool) -> BTreeMap<RequestKey, Waits> {
        let named = |names: &[String], at: u16| names.get(usize::from(at)).cloned().unwrap_or_else(|| at.to_string());
        let kept = self.waits.iter().filter(|((target, ..), _)| keep(*target));
        let asked = |(target, population, request): &(u16, u16, u16)| RequestKey {
            population: named(&self.run.populations, *population),
            request: named(&self.run.requests, *request),
            target: if with_target { named(&self.run.targets, *target) } else { String::new() },
        };
        kept.map(|(key, waits)| (asked(key), waits.clone())).collect()
    }
}

/// Returns how long a measured question waited; `None` if the record is not a question of the measured phase.
fn wait(record: &Record) -> Option<f64> {
    if record.phase != Phase::Measured || record.attempt > 0 {
        return None;
    }
    match (record.outcome, record.latency()) {
        (Outcome::Sound, Some(us)) => Some(us as f64 / 1e3),
        // Left out, a server that fails its slow requests would look fast.
        _ => Some(f64::INFINITY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_the_measured_phase_wait_from_their_intended_time() {
        let sound = Record { intended: 1_000, sent: Some(5_000), done: Some(9_000), ..Record::default() };
        assert_eq!(wait(&sound), Some(8.0));
        assert_eq!(wait(&Record { outcome: Outcome::NotSent, ..Record::default() }), Some(f64::INFINITY));
        assert_eq!(wait(&Record { phase: Phase::WarmUp, ..sound.clone() }), None);
        assert_eq!(wait(&Record { attempt: 1, ..sound }), None);
    }
}
