//! How a trial went over time: flat, growing, or timing out (Turner 2019).

use super::slope;
use crate::record::{Outcome, Phase, Record};
use serde::{Deserialize, Serialize};

/// The mode of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The wait stays what it is.
    Flat,
    /// Each request waits longer than the one before.
    Growing,
    /// Requests get nothing.
    TimingOut,
}

impl Mode {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Flat => "flat",
            Mode::Growing => "growing",
            Mode::TimingOut => "timing out",
        }
    }
}

/// A run of requests that got nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// The last request before it that got something (0: none).
    pub after_n: u32,
    /// When the first request of the run was intended, in seconds of the trial.
    pub start_s: f64,
    /// Requests that got nothing.
    pub lost: u32,
    /// Seconds to the first result of the request after the run: the level at which it starts again.
    pub restart_s: Option<f64>,
}

/// A trial read as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Course {
    /// The worst mode that it came to.
    pub mode: Mode,
    /// Growth of the time to the first result, in seconds per request, before the first request that got nothing.
    pub growth: Option<slope::Line>,
    /// The first request that got nothing.
    pub first_failure: Option<u32>,
    /// Runs of requests that got nothing.
    pub bursts: Vec<Burst>,
}

/// Reads the measured requests of one trial and population. A request got nothing where no result came and the answer was not a
/// sound one that holds none; what was refused or never sent is left out, because it did not wait. Growth is claimed where its interval lies above zero and it adds at least a
/// tenth of the first waits over the trial: less is not felt.
pub fn of(records: &[Record]) -> Course {
    let mut asked: Vec<&Record> = records
        .iter()
        .filter(|r| r.phase == Phase::Measured && !matches!(r.outcome, Outcome::Refused | Outcome::NotSent))
        .collect();
    asked.sort_by_key(|r| (r.n, r.attempt));
    let wait = |r: &Record| r.to_something().map(|us| us as f64 / 1e6);
    let first_failure = asked.iter().find(|r| wait(r).is_none()).map(|r| r.n);
    let flowing: Vec<(f64, f64)> = asked.iter().map_while(|r| wait(r).map(|s| (f64::from(r.n), s))).collect();
    let growth = slope::fit(&flowing);
    let grows = growth.is_some_and(|line| {
        let first = line.intercept + line.slope.value * flowing[0].0;
        line.slope.low > 0.0 && line.slope.value * flowing.len() as f64 > 0.1 * first
    });
    let mode = match (first_failure, grows) {
        (Some(_), _) => Mode::TimingOut,
        (None, true) => Mode::Growing,
        (None, false) => Mode::Flat,
    };
    Course { mode, growth, first_failure, bursts: bursts(&asked, wait) }
}

fn bursts(asked: &[&Record], wait: impl Fn(&Record) -> Option<f64>) -> Vec<Burst> {
    let mut out: Vec<Burst> = Vec::new();
    let (mut after_n, mut open) = (0, false);
    for record in asked {
        match (wait(record), open) {
            (Some(restart), true) => {
                open = false;
                if let Some(burst) = out.last_mut() {
                    burst.restart_s = Some(restart);
                }
                after_n = record.n;
            }
            (Some(_), false) => after_n = record.n,
            (None, true) => {
                if let Some(burst) = out.last_mut() {
                    burst.lost += 1;
                }
            }
            (None, false) => {
                open = true;
                let start_s = record.intended as f64 / 1e6;
                out.push(Burst { after_n, start_s, lost: 1, restart_s: None });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Scenario, pipeline};

    const SEARCH: &str = include_str!("../../../../bench/studies/search-pipeline.toml");

    /// The simulator writes the rows that a real run would write, so its own account is the oracle.
    fn course(sets: &[&str]) -> (Course, pipeline::Answer) {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let Scenario::Pipeline(pipeline) = Scenario::read(SEARCH, &sets).unwrap() else { panic!("no pipeline") };
        let trial = pipeline::run(&pipeline);
        (of(&trial.records(pipeline.packets())), pipeline::Answer::of(&trial))
    }

    #[test]
    fn the_three_modes_of_the_search_study_are_told_apart() {
        let (flat, _) = course(&["workers=80", "arrival.count=100"]);
        assert_eq!((flat.mode, flat.first_failure), (Mode::Flat, None));
        let (growing, answer) = course(&["workers=32", "arrival.count=100"]);
        assert_eq!(growing.mode, Mode::Growing);
        assert!((growing.growth.unwrap().slope.value - answer.growth_per_request_s.unwrap()).abs() < 1e-9);
        let (failing, answer) = course(&["workers=16"]);
        assert_eq!((failing.mode, failing.first_failure), (Mode::TimingOut, answer.first_absent));
        let of_course: Vec<_> = failing.bursts.iter().map(|b| (b.after_n, b.lost, b.restart_s)).collect();
        let of_answer: Vec<_> = answer.bursts.iter().map(|b| (b.after_n, b.lost, b.restart_first_s)).collect();
        assert_eq!(of_course, of_answer);
    }

    #[test]
    fn what_was_refused_or_never_sent_did_not_wait() {
        let sound = |n: u32| Record { n, first_result: Some(1_000_000), ..Record::default() };
        let mut records: Vec<Record> = (1..=10).map(sound).collect();
        records[4] = Record { n: 5, outcome: Outcome::Refused, ..Record::default() };
        records[5] = Record { n: 6, outcome: Outcome::NotSent, ..Record::default() };
        assert_eq!((of(&records).mode, of(&records).bursts.len()), (Mode::Flat, 0));
        records[9] = Record { n: 10, outcome: Outcome::TimedOut, ..Record::default() };
        let course = of(&records);
        assert_eq!((course.mode, course.first_failure), (Mode::TimingOut, Some(10)));
        assert_eq!((course.bursts[0].after_n, course.bursts[0].restart_s), (9, None));
        assert_eq!(of(&[]).mode, Mode::Flat);
    }

    #[test]
    fn a_sound_answer_that_holds_nothing_is_not_nothing() {
        let empty = |n: u32| Record { n, done: Some(1_000_000), ..Record::default() };
        let mut records: Vec<Record> = (1..=10).map(empty).collect();
        assert_eq!((of(&records).mode, of(&records).first_failure), (Mode::Flat, None));
        records[3].outcome = Outcome::Failed;
        assert_eq!((of(&records).mode, of(&records).first_failure), (Mode::TimingOut, Some(4)));
    }
}
