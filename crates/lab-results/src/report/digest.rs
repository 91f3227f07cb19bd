//! What a report needs of a run's records, gathered in one walk and in bounded memory.

use super::again::Again;
use crate::record::{Micros, Outcome, Phase, Record};
use crate::stats::mode::RequestTiming;
use crate::stats::slope::{Line, Sums};
use crate::stats::{Estimate, percentile};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Longest latency that is told apart: a day.
const LATENCY_MAX_US: u64 = 86_400_000_000;
/// Points of a scatter that are kept, bars of a time line: more cannot be told apart by eye.
const POINTS_MAX: usize = 3_000;
const BARS_MAX: usize = 400;
/// Most trials of which percentiles are kept apart.
const TRIALS_MAX: usize = 64;
/// Most requests that are read one by one for the modes of the trials; of a longer run the first ones are.
pub(super) const COURSES_MAX: usize = 1_000_000;
/// Columns of a heat map, at most; each then covers twice the time.
const COLUMNS_MAX: usize = 160;
/// Latency classes of the heat map: eight to a factor of ten, from 1 µs on.
pub(super) const CLASSES_PER_DECADE: f64 = 8.0;

/// Trial, target and population.
pub(super) type CourseKey = (u16, u16, u16);

/// Everything of a run that pictures and words are made of.
#[derive(Debug)]
pub(super) struct Digest {
    /// Measured records by outcome.
    pub(super) outcomes: [u64; Outcome::ALL.len()],
    /// Requests that were sent again within their try.
    pub(super) resends: u64,
    /// Reasons of those that were not sound.
    pub(super) reasons: BTreeMap<String, u64>,
    /// By target and population.
    pub(super) series: BTreeMap<(u16, u16), Series>,
    /// By target and population, the time line of its first trial.
    pub(super) lines: BTreeMap<(u16, u16), TimeLine>,
    /// What each stretch of time brought.
    pub(super) flow: Flow,
    /// Measured requests of each trial, target and population, for its modes.
    pub(super) courses: BTreeMap<CourseKey, Vec<RequestTiming>>,
    /// How many of them there were; no more than [`COURSES_MAX`] are kept.
    pub(super) in_courses: usize,
    /// By target and population, what was asked again after the load.
    pub(super) again: BTreeMap<(u16, u16), Again>,
    /// First and last time of each phase on the trials' clock.
    pub(super) phases: BTreeMap<Phase, (Micros, Micros)>,
}

/// Measured requests of one population at one target.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) count: u64,
    pub(super) sound: u64,
    /// Of sound answers, from the intended time.
    pub(super) latency: Histogram<u64>,
    /// The same from the real send.
    pub(super) naive: Histogram<u64>,
    pub(super) first_result: Histogram<u64>,
    pub(super) last_result: Histogram<u64>,
    /// From the first result to the last, of requests with both.
    pub(super) between: Histogram<u64>,
    /// Latency as above of each trial, as long as there are few.
    pub(super) trials: BTreeMap<u16, Histogram<u64>>,
    /// Latency of sound answers over the intended time, of the first trial that came.
    pub(super) over_time: Thinned<(f64, f64)>,
    first_trial: u16,
    /// First and last result over the intended time.
    pub(super) firsts: Thinned<(f64, f64)>,
    pub(super) lasts: Thinned<(f64, f64)>,
    /// Latency over requests in flight, over results.
    pub(super) by_concurrency: Scatter,
    pub(super) by_results: Scatter,
}

/// The first trial of one population at one target, request by request, in all phases.
#[derive(Debug)]
pub(super) struct TimeLine {
    /// The trial.
    pub(super) trial: u16,
    /// A record every few.
    pub(super) bars: Thinned<Bar>,
    /// When sound answers took how long, and when the others ended.
    pub(super) heat: Heat,
    pub(super) not_sound: Heat,
}

/// One request on the time line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) n: f64,
    pub(super) intended: f64,
    pub(super) sent: f64,
    pub(super) first: Option<f64>,
    pub(super) done: f64,
    pub(super) outcome: Outcome,
}

/// Points, and the least-squares line through all of them, kept or not.
#[derive(Debug, Default)]
pub(super) struct Scatter {
    pub(super) points: Thinned<(f64, f64)>,
    sums: Sums,
}

/// At most some number of items, evenly chosen from all that came.
#[derive(Debug)]
pub(super) struct Thinned<T> {
    pub(super) kept: Vec<T>,
    most: usize,
    step: u64,
    seen: u64,
}

impl<T> Thinned<T> {
    fn new(most: usize) -> Thinned<T> {
        Thinned { kept: Vec::new(), most, step: 1, seen: 0 }
    }

    fn add(&mut self, item: T) {
        if self.seen.is_multiple_of(self.step) {
            if self.kept.len() == self.most {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step *= 2;
            }
            if self.seen.is_multiple_of(self.step) {
                self.kept.push(item);
            }
        }
        self.seen += 1;
    }

    /// Of how many items one was kept.
    pub(super) fn step(&self) -> u64 {
        self.step
    }
}

impl<T> Default for Thinned<T> {
    fn default() -> Self {
        Thinned::new(POINTS_MAX)
    }
}

impl Scatter {
    fn add(&mut self, x: f64, y: f64) {
        self.points.add((x, y));
        self.sums.add(x, y);
    }

    /// The least-squares line; `None` where all points share an x.
    pub(super) fn line(&self) -> Option<Line> {
        self.sums.line()
    }
}

/// Counts by stretch of time and class of latency.
#[derive(Debug)]
pub(super) struct Heat {
    /// Microseconds of a column.
    pub(super) width: Micros,
    pub(super) columns: Vec<BTreeMap<u16, u32>>,
}

impl TimeLine {
    fn of(trial: u16) -> TimeLine {
        let heat = || Heat { width: 50_000, columns: Vec::new() };
        TimeLine { trial, bars: Thinned::new(BARS_MAX), heat: heat(), not_sound: heat() }
    }

    fn add(&mut self, record: &Record) {
        let heat = if record.outcome == Outcome::Sound { &mut self.heat } else { &mut self.not_sound };
        if let Some(latency) = record.latency() {
            heat.add(record.intended, latency);
        }
        let done = record.done.unwrap_or(record.intended) as f64;
        self.bars.add(Bar {
            n: f64::from(record.n),
            intended: record.intended as f64,
            sent: record.sent.map_or(done, |sent| sent as f64),
            first: record.first_result.map(|first| first as f64),
            done,
            outcome: record.outcome,
        });
    }
}

impl Heat {
    fn add(&mut self, at: Micros, latency: Micros) {
        let column = fit(&mut self.width, &mut self.columns, at, |into, from| {
            from.into_iter().for_each(|(class, n)| *into.entry(class).or_insert(0) += n);
        });
        let class = ((latency.max(1) as f64).log10() * CLASSES_PER_DECADE) as u16;
        *column.entry(class).or_insert(0) += 1;
    }
}

/// Counts by stretch of time and outcome, by the time at which requests were intended.
#[derive(Debug)]
pub(super) struct Flow {
    /// Microseconds of a stretch.
    pub(super) width: Micros,
    pub(super) stretches: Vec<[u64; Outcome::ALL.len()]>,
}

/// The entry of a row of stretches for a time; the stretches are doubled until there are few enough.
fn fit<'a, T: Default>(
    width: &mut Micros,
    stretches: &'a mut Vec<T>,
    at: Micros,
    mut join: impl FnMut(&mut T, T),
) -> &'a mut T {
    let at = at.max(0);
    while at / *width >= COLUMNS_MAX as Micros {
        let mut joined: Vec<T> = Vec::with_capacity(COLUMNS_MAX / 2);
        for (i, stretch) in std::mem::take(stretches).into_iter().enumerate() {
            match joined.last_mut() {
                Some(last) if i % 2 == 1 => join(last, stretch),
                _ => joined.push(stretch),
            }
        }
        *stretches = joined;
        *width *= 2;
    }
    let index = (at / *width) as usize;
    if stretches.len() <= index {
        stretches.resize_with(index + 1, T::default);
    }
    &mut stretches[index]
}

pub(super) fn histogram() -> Histogram<u64> {
    // The bounds are constants that the library takes.
    #[expect(clippy::expect_used, reason = "constants")]
    Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("three digits up to a day are within its limits")
}

pub(super) fn note(histogram: &mut Histogram<u64>, time: Option<Micros>) {
    if let Some(time) = time {
        histogram.saturating_record(time.clamp(1, LATENCY_MAX_US as Micros) as u64);
    }
}

impl Series {
    fn new(first_trial: u16) -> Series {
        Series {
            trials: BTreeMap::new(),
            over_time: Thinned::default(),
            first_trial,
            count: 0,
            sound: 0,
            latency: histogram(),
            naive: histogram(),
            first_result: histogram(),
            last_result: histogram(),
            between: histogram(),
            firsts: Thinned::default(),
            lasts: Thinned::default(),
            by_concurrency: Scatter::default(),
            by_results: Scatter::default(),
        }
    }

    /// A quantile of the latency of sound answers in microseconds: over repeats where there are several trials, within the run
    /// where there is one.
    pub(super) fn interval(&self, q: f64) -> Option<Estimate> {
        let figures: Vec<f64> = self.trials.values().map(|trial| trial.value_at_quantile(q) as f64).collect();
        match figures.len() {
            0 | 1 => percentile::within_histogram(&self.latency, q),
            _ => percentile::over_repeats(&figures),
        }
    }

    fn add(&mut self, record: &Record) {
        self.count += 1;
        note(&mut self.first_result, record.to_first_result());
        note(&mut self.last_result, record.to_last_result());
        note(&mut self.between, record.last_result.zip(record.first_result).map(|(last, first)| last - first));
        let at = record.intended as f64;
        if let Some(first) = record.to_first_result() {
            self.firsts.add((at, first as f64));
        }
        if let Some(last) = record.to_last_result() {
            self.lasts.add((at, last as f64));
        }
        if record.outcome == Outcome::Sound {
            self.sound += 1;
            note(&mut self.latency, record.latency());
            note(&mut self.naive, record.naive_latency());
            if self.trials.len() < TRIALS_MAX || self.trials.contains_key(&record.trial) {
                note(self.trials.entry(record.trial).or_insert_with(histogram), record.latency());
            }
            if let Some(latency) = record.latency() {
                if record.trial == self.first_trial {
                    self.over_time.add((at, latency as f64));
                }
                self.by_concurrency.add(f64::from(record.in_flight), latency as f64);
                self.by_results.add(record.results as f64, latency as f64);
            }
        }
    }
}

impl Digest {
    /// Nothing gathered yet.
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

    /// Takes one record.
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

    /// Measured requests.
    pub(super) fn measured(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Measured requests with one outcome.
    pub(super) fn with(&self, outcome: Outcome) -> u64 {
        self.outcomes[usize::from(outcome.code())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u32, intended: Micros, took: Micros) -> Record {
        let (sent, done) = (Some(intended + 10), Some(intended + took));
        Record { n, intended, sent, done, in_flight: n % 7, results: u64::from(n % 7), ..Record::default() }
    }

    #[test]
    fn nothing_is_lost_when_stretches_are_joined() {
        let mut digest = Digest::new();
        for n in 0..20_000 {
            digest.add(&record(n, Micros::from(n) * 10_000, 1_000 + Micros::from(n % 7) * 500));
        }
        // 200 s, in at most 160 stretches.
        assert!(digest.flow.stretches.len() <= COLUMNS_MAX && digest.flow.width >= 200_000_000 / COLUMNS_MAX as Micros);
        let flow: u64 = digest.flow.stretches.iter().flatten().sum();
        let line = &digest.lines[&(0, 0)];
        let heat: u64 = line.heat.columns.iter().flat_map(|c| c.values()).map(|n| u64::from(*n)).sum();
        assert_eq!((flow, heat, digest.measured()), (20_000, 20_000, 20_000));
        // Each stretch has its own.
        let first = digest.flow.stretches[0].iter().sum::<u64>() as Micros;
        assert_eq!(first, digest.flow.width / 10_000);
        let series = &digest.series[&(0, 0)];
        assert!(series.by_concurrency.points.kept.len() <= POINTS_MAX && line.bars.kept.len() <= BARS_MAX);
    }

    #[test]
    fn the_line_is_that_of_all_points_not_of_those_kept() {
        let mut digest = Digest::new();
        (0..50_000).for_each(|n| digest.add(&record(n, Micros::from(n), 1_000 + Micros::from(n % 7) * 500)));
        let line = digest.series[&(0, 0)].by_concurrency.line().unwrap();
        assert!((line.intercept - 1_000.0).abs() < 1e-6 && (line.slope.value - 500.0).abs() < 1e-6, "{line:?}");
    }

    #[test]
    fn a_time_line_is_of_one_trial_and_population_and_what_is_not_sound_stands_apart() {
        let mut digest = Digest::new();
        for n in 0..300 {
            let (trial, population) = (u16::from(n >= 200), (n % 2) as u16);
            let outcome = if n % 10 == 0 { Outcome::Failed } else { Outcome::Sound };
            let took = if population == 0 { 1_100_000 } else { 1_100 };
            digest.add(&Record { trial, population, outcome, ..record(n, Micros::from(n) * 1_000, took) });
        }
        let classes = |heat: &Heat| -> Vec<(u16, u32)> {
            let mut found = BTreeMap::new();
            heat.columns.iter().flatten().for_each(|(class, n)| *found.entry(*class).or_insert(0) += *n);
            found.into_iter().collect()
        };
        let [load, probe] = [0, 1].map(|population| &digest.lines[&(0, population)]);
        // A second is class 48, a millisecond class 24; of the 200 requests of the first trial a tenth failed, all of the load.
        assert_eq!((classes(&load.heat), classes(&load.not_sound)), (vec![(48, 80)], vec![(48, 20)]));
        assert_eq!((classes(&probe.heat), classes(&probe.not_sound)), (vec![(24, 100)], Vec::new()));
        assert_eq!((load.bars.kept.len(), probe.bars.kept.len()), (100, 100));
    }

    #[test]
    fn only_measured_sound_requests_count_as_fast() {
        let mut digest = Digest::new();
        digest.add(&Record { phase: Phase::WarmUp, ..record(1, 0, 5) });
        digest.add(&Record { outcome: Outcome::Unsound, detail: Some("7 results, 8 due".into()), ..record(2, 10, 5) });
        digest.add(&record(3, 20, 50_000));
        assert_eq!((digest.measured(), digest.with(Outcome::Unsound)), (2, 1));
        assert_eq!(digest.series[&(0, 0)].latency.len(), 1);
        assert!(digest.series[&(0, 0)].latency.min() > 40_000);
        assert_eq!(digest.reasons["7 results, 8 due"], 1);
    }
}
