//! What is held against what: two results folders, or the two targets of one.

use crate::error::{LabError, Result};
use crate::record::{Outcome, Phase, Record};
use crate::results::{self, Run};
use std::collections::BTreeMap;
use std::path::Path;

/// Rounds of A and B from which on the interval knows how much trials differ by themselves.
const ROUNDS: usize = 5;

/// Who asked what of whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Asked {
    /// The population's name.
    pub population: String,
    /// The request's name.
    pub request: String,
    /// The target's name; empty where its side has no other.
    pub target: String,
}

/// Milliseconds that measured questions waited, trial by trial, each in order of its intended time; infinite without a sound answer.
pub type Waits = BTreeMap<u16, Vec<f64>>;

/// One run, or one target of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Side {
    /// The folder, or the target.
    pub name: String,
    /// What was waited for, never one thing with another.
    pub waits: BTreeMap<Asked, Waits>,
}

/// A and B.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sides {
    /// What is compared with.
    pub a: Side,
    /// What is judged.
    pub b: Side,
    /// Whether trials of the same number ran side by side, A B A B.
    pub paired: bool,
    /// What the reader has to know before believing a comparison.
    pub warnings: Vec<String>,
}

/// A folder's measured questions by target, population and request.
struct Folder {
    run: Run,
    waits: BTreeMap<(u16, u16, u16), Waits>,
}

impl Sides {
    /// Two results folders. Where both have several targets, each is held against that of its name.
    pub fn of_runs(a: &Path, b: &Path) -> Result<Sides> {
        let mut sides = Sides::default();
        for (letter, dir, side) in [("A", a, &mut sides.a), ("B", b, &mut sides.b)] {
            let folder = Folder::open(dir)?;
            sides.warnings.extend(folder.run.void.iter().map(|why| format!("{letter} is void: {why}")));
            let several = folder.run.targets.len() > 1;
            side.name = dir.display().to_string();
            side.waits = folder.side(|_| true, several);
        }
        Ok(sides)
    }

    /// The two targets of one folder, the first of which is A.
    ///
    /// # Errors
    /// Where it cannot be read or holds another number of targets.
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
        let paired = turns.len() > 1 && turns.chunks_exact(2).all(|round| round[0] != round[1]);
        let mut sides = Sides { paired, ..Sides::default() };
        sides.warnings.extend(folder.run.void.iter().map(|why| format!("the run is void: {why}")));
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
        if paired && turns.len() / 2 < ROUNDS {
            let rounds = turns.len() / 2;
            let text = format!(
                "of {rounds} round(s) it can hardly be told how much trials differ by themselves: repeats = {ROUNDS} or more can"
            );
            sides.warnings.push(text);
        }
        Ok(sides)
    }
}

/// Trials by their round: one of A and one of B that came one after the other.
fn by_round(trials: Waits, rounds: usize) -> Waits {
    let rounds =
        trials.into_iter().map(|(trial, waits)| (trial / 2, waits)).filter(|(round, _)| usize::from(*round) < rounds);
    rounds.collect()
}

impl Folder {
    fn open(dir: &Path) -> Result<Folder> {
        let folder = results::open(dir)?;
        let mut records = Vec::new();
        for batch in folder.records()? {
            let waited = |r: Record| Some((((r.target, r.population, r.request), r.trial, r.intended), wait(&r)?));
            records.extend(batch?.into_iter().filter_map(waited));
        }
        records.sort_by_key(|(when, _)| *when);
        let mut waits: BTreeMap<(u16, u16, u16), Waits> = BTreeMap::new();
        for ((asked, trial, _), ms) in records {
            waits.entry(asked).or_default().entry(trial).or_default().push(ms);
        }
        Ok(Folder { run: folder.run, waits })
    }

    /// The waits at some of the targets, with the names of what was asked.
    fn side(&self, keep: impl Fn(u16) -> bool, with_target: bool) -> BTreeMap<Asked, Waits> {
        let named = |names: &[String], at: u16| names.get(usize::from(at)).cloned().unwrap_or_else(|| at.to_string());
        let kept = self.waits.iter().filter(|((target, ..), _)| keep(*target));
        let asked = |(target, population, request): &(u16, u16, u16)| Asked {
            population: named(&self.run.populations, *population),
            request: named(&self.run.requests, *request),
            target: if with_target { named(&self.run.targets, *target) } else { String::new() },
        };
        kept.map(|(key, waits)| (asked(key), waits.clone())).collect()
    }
}

/// How long a measured question waited; none where the record is no question of the measured phase.
fn wait(record: &Record) -> Option<f64> {
    if record.phase != Phase::Measured || record.attempt > 0 {
        return None;
    }
    match (record.outcome, record.latency()) {
        (Outcome::Sound, Some(us)) => Some(us as f64 / 1e3),
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
