//! A digest of a run's records for a report, gathered in one walk and in bounded memory.

mod again;
mod series;
mod thinned;
mod time_line;

pub(super) use again::Again;
pub(super) use series::Series;
pub(super) use thinned::{Scatter, Subsample};
pub(super) use time_line::{Bar, CLASSES_PER_DECADE, Flow, Heat, TimeLine};

use crate::record::{Micros, Outcome, Phase, Record};
use crate::stats::mode::RequestTiming;
use std::collections::BTreeMap;
use time_line::fit;

/// Max requests that are examined one by one for the modes of the trials; of a longer run, the first ones.
pub(super) const COURSES_MAX: usize = 1_000_000;

/// Trial, target and population.
pub(super) type CourseKey = (u16, u16, u16);

/// All data of a run for pictures and text.
#[derive(Debug)]
pub(super) struct Digest {
    /// Measured records by outcome.
    pub(super) outcomes: [u64; Outcome::ALL.len()],
    /// Requests that were sent again within their attempt.
    pub(super) resends: u64,
    /// Reasons of unsound answers.
    pub(super) reasons: BTreeMap<String, u64>,
    /// By target and population.
    pub(super) series: BTreeMap<(u16, u16), Series>,
    /// By target and population, the time line of its first trial.
    pub(super) lines: BTreeMap<(u16, u16), TimeLine>,
    /// Figures of each time interval.
    pub(super) flow: Flow,
    /// Measured requests of each trial, target and population, for its modes.
    pub(super) courses: BTreeMap<CourseKey, Vec<RequestTiming>>,
    /// Total number of these; at most [`COURSES_MAX`] are kept.
    pub(super) in_courses: usize,
    /// By target and population, the requests of the repeat after the load.
    pub(super) again: BTreeMap<(u16, u16), Again>,
    /// First and last time of each phase on the trials' clock.
    pub(super) phases: BTreeMap<Phase, (Micros, Micros)>,
}

impl Digest {
    /// Creates an empty digest.
    pub(super) fn new() -> Digest {
        Digest {
            outcomes: [0; Outcome::ALL.len()],
            resends: 0,
            reasons: BTreeMap::new(),
            series: BTreeMap::new(),
            lines: BTreeMap::new(),
            flow: Flow { width: 50_000, stretches: Vec::new() },
            courses: BTreeMap::new(),
            in_courses: 0,
            again: BTreeMap::new(),
            phases: BTreeMap::new(),
        }
    }

    /// Adds one record.
    pub(super) fn add(&mut self, record: &Record) {
        let phase = self.phases.entry(record.phase).or_insert((record.intended, record.intended));
        *phase = (phase.0.min(record.intended), phase.1.max(record.done.unwrap_or(record.intended)));
        let outcome = usize::from(record.outcome.code());
        let flow = &mut self.flow;
        let stretch = fit(&mut flow.width, &mut flow.stretches, record.intended, |into, from| {
            into.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        });
        stretch[outcome] += 1;
        let key = (record.target, record.population);
        let line = self.lines.entry(key).or_insert_with(|| TimeLine::of(record.trial));
        // Trials start at the same times of their own clocks, and would be drawn over each other.
        if line.trial == record.trial {
            line.add(record);
        }
        if record.phase == Phase::Again {
            self.again.entry(key).or_default().add(record);
        }
        if record.phase != Phase::Measured {
            return;
        }
        self.outcomes[outcome] += 1;
        self.resends += u64::from(record.resends);
        if let Some(detail) = record.detail.as_ref().filter(|_| record.outcome != Outcome::Sound) {
            *self.reasons.entry(detail.clone()).or_insert(0) += 1;
        }
        if let Some(timing) = RequestTiming::of(record) {
            if self.in_courses < COURSES_MAX {
                self.courses.entry((record.trial, record.target, record.population)).or_default().push(timing);
            }
            self.in_courses += 1;
        }
        self.series.entry(key).or_insert_with(|| Series::new(record.trial)).add(record);
    }

    /// Returns the number of measured requests.
    pub(super) fn measured(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Returns the number of measured requests with one outcome.
    pub(super) fn with(&self, outcome: Outcome) -> u64 {
        self.outcomes[usize::from(outcome.code())]
    }
}

#[cfg(test)]
mod tests;
