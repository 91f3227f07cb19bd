//! The course of a trial: flat, growing, or timing out (Turner 2019), and whether it stalled meanwhile.

pub use super::stall::Stall;
pub use super::timing::RequestTiming;
use super::{slope, stall};
use crate::record::Record;
use serde::{Deserialize, Serialize};

/// The mode of a trial, or of a stretch of it; later variants are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The wait is constant.
    Flat,
    /// No response arrived for a while, though requests waited.
    Stall,
    /// Each request waits longer than the previous one.
    Growing,
    /// Requests get no results.
    TimingOut,
}

impl Mode {
    /// Returns the mode as text.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Flat => "flat",
            Mode::Stall => "stall",
            Mode::Growing => "growing",
            Mode::TimingOut => "timing out",
        }
    }
}

/// A run of requests without results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// The last request before it with results (0: none).
    pub after_n: u32,
    /// Intended time of the first request of the run, in seconds of the trial.
    pub start_s: f64,
    /// Number of requests without results.
    pub lost: u32,
    /// Seconds to the first result of the request after the run: the level at which it starts again.
    pub restart_s: Option<f64>,
}

/// Consecutive requests of one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// Their mode.
    pub mode: Mode,
    /// The first of them.
    pub from_n: u32,
    /// Number of requests.
    pub requests: u32,
    /// Due time of the first of them, in seconds of the trial.
    pub start_s: f64,
    /// Due time of the first of the next stretch, or of the last request of all.
    pub end_s: f64,
    /// Growth of the wait in seconds per request, if it grows.
    pub growth: Option<slope::Line>,
}

/// The mode of a trial as a whole, and stretch by stretch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialModes {
    /// The worst mode that it reached as a whole.
    pub mode: Mode,
    /// Growth of the time to the first result, in seconds per request, before the first request without results.
    pub growth: Option<slope::Line>,
    /// The first request without results.
    pub first_failure: Option<u32>,
    /// Runs of requests without results.
    pub bursts: Vec<Burst>,
    /// Periods without any response, though requests waited.
    pub stalls: Vec<Stall>,
    /// Its modes in order, without gaps.
    pub stretches: Vec<Stretch>,
}

/// Number of blocks of answered requests. Breaks are found from block medians, so that a few slow responses make none.
const BLOCKS: usize = 60;
/// Min blocks between two breaks.
const SHORTEST: usize = 6;
/// Share of the residual squares of one line below which two lines make a break.
const BETTER: f64 = 0.5;
/// Share of the blocks' mean below which the error of one line is small enough.
const NEAR: f64 = 0.05;

/// Reads the measured requests of one trial and population. A request got nothing if no result arrived and the
/// response was not a sound empty one. Refused and unsent requests are left out, because they did not wait. Growth is
/// claimed on two conditions, over the trial or a stretch of it. Its interval lies above zero, and it adds at least a
/// tenth of the first waits. Users do not feel less.
pub fn of(records: &[Record]) -> TrialModes {
    course(records.iter().filter_map(RequestTiming::of).collect())
}

/// Like `read`, from digested records.
pub fn course(mut timings: Vec<RequestTiming>) -> TrialModes {
    // By number, not by response time: a queue shows in how the waits follow the order of arrival.
    timings.sort_by_key(|one| (one.n, one.attempt));
    let first_failure = timings.iter().find(|one| one.wait.is_none()).map(|one| one.n);
    let stalls = stall::of(&timings);
    // Requests delayed by a stall prove nothing about growth: they would tilt the line.
    let caught = stall::caught(&timings, &stalls);
    let flowing = timings.iter().zip(&caught).take_while(|(one, _)| one.wait.is_some()).filter(|(_, caught)| !**caught);
    let flowing: Vec<(f64, f64)> = flowing.filter_map(|(one, _)| one.point()).collect();
    let growth = slope::fit_in_order(&flowing);
    let mode = match (first_failure, grows(growth, &flowing)) {
        (Some(_), _) => Mode::TimingOut,
        (None, true) => Mode::Growing,
        (None, false) if !stalls.is_empty() => Mode::Stall,
        (None, false) => Mode::Flat,
    };
    TrialModes {
        mode,
        growth,
        first_failure,
        bursts: bursts(&timings),
        stretches: stretches(&timings, &caught),
        stalls,
    }
}

fn grows(line: Option<slope::Line>, points: &[(f64, f64)]) -> bool {
    line.zip(points.first()).is_some_and(|(line, (x, _))| {
        let first = line.intercept + line.slope.value * x;
        // Significant, and large enough to be felt: with many requests any slope is significant.
        line.slope.low > 0.0 && line.slope.value * points.len() as f64 > 0.1 * first
    })
}

fn stretches(timings: &[RequestTiming], caught: &[bool]) -> Vec<Stretch> {
    let mut out: Vec<Stretch> = Vec::new();
    let both: Vec<(RequestTiming, bool)> = timings.iter().copied().zip(caught.iter().copied()).collect();
    for part in both.chunk_by(|a, b| (a.0.wait.is_some(), a.1) == (b.0.wait.is_some(), b.1)) {
        let run: Vec<RequestTiming> = part.iter().map(|(one, _)| *one).collect();
        if part[0].1 {
            out.push(stalled(&run));
            continue;
        }
        let points: Vec<(f64, f64)> = run.iter().filter_map(RequestTiming::point).collect();
        // A run without results has no points, and so no breaks.
        let mut from = 0;
        for to in breaks(&points).into_iter().chain([run.len()]) {
            let line = points.get(from..to).and_then(slope::fit_in_order);
            let mode = match points.get(from..to) {
                None => Mode::TimingOut,
                Some(points) if grows(line, points) => Mode::Growing,
                Some(_) => Mode::Flat,
            };
            let requests = u32::try_from(to - from).unwrap_or(u32::MAX);
            match out.last_mut() {
                // A change of level is not growth.
                Some(last) if last.mode == Mode::Flat && mode == Mode::Flat => last.requests += requests,
                _ => out.push(Stretch {
                    mode,
                    from_n: run[from].n,
                    requests,
                    start_s: run[from].due_s(),
                    end_s: 0.0,
                    growth: line.filter(|_| mode == Mode::Growing),
                }),
            }
            from = to;
        }
    }
    let ends: Vec<f64> =
        out.iter().skip(1).map(|next| next.start_s).chain(timings.last().map(RequestTiming::due_s)).collect();
    out.iter_mut().zip(ends).for_each(|(stretch, end)| stretch.end_s = end);
    out
}

/// Returns the breaks in the course of the wait, as indexes of the points.
fn breaks(points: &[(f64, f64)]) -> Vec<usize> {
    let size = points.len().div_ceil(BLOCKS).max(1);
    let blocks: Vec<(f64, f64)> = points
        .chunks(size)
        .map(|block| {
            let mut waits: Vec<f64> = block.iter().map(|point| point.1).collect();
            waits.sort_by(f64::total_cmp);
            // The median of a block, as one slow request must not make a break.
            (block.iter().map(|point| point.0).sum::<f64>() / block.len() as f64, waits[waits.len() / 2])
        })
        .collect();
    let mut out = Vec::new();
    divide(&blocks, 0, &mut out);
    out.iter().map(|at| at * size).collect()
}

/// Divides blocks in two if that helps, and each half again.
fn divide(blocks: &[(f64, f64)], from: usize, out: &mut Vec<usize>) {
    if blocks.len() < 2 * SHORTEST {
        return;
    }
    let whole = rest(blocks);
    let mean = blocks.iter().map(|block| block.1).sum::<f64>() / blocks.len() as f64;
    // Close enough to one line: otherwise noise around a straight line would be divided further and further.
    if (whole / blocks.len() as f64).sqrt() < NEAR * mean {
        return;
    }
    let places = SHORTEST..=blocks.len() - SHORTEST;
    let left = places.map(|at| (at, rest(&blocks[..at]) + rest(&blocks[at..])));
    if let Some((at, left)) = left.min_by(|a, b| a.1.total_cmp(&b.1))
        && left < BETTER * whole
    {
        divide(&blocks[..at], from, out);
        out.push(from + at);
        divide(&blocks[at..], from + at, out);
    }
}

/// Returns the residual sum of squares of the least-squares line.
fn rest(points: &[(f64, f64)]) -> f64 {
    slope::fit(points)
        .map_or(0.0, |line| points.iter().map(|(x, y)| (y - line.intercept - line.slope.value * x).powi(2)).sum())
}

/// Returns the requests that a stall delayed, as one interval.
fn stalled(run: &[RequestTiming]) -> Stretch {
    let requests = u32::try_from(run.len()).unwrap_or(u32::MAX);
    Stretch { mode: Mode::Stall, from_n: run[0].n, requests, start_s: run[0].due_s(), end_s: 0.0, growth: None }
}

fn bursts(timings: &[RequestTiming]) -> Vec<Burst> {
    let mut out: Vec<Burst> = Vec::new();
    let (mut after_n, mut open) = (0, false);
    for one in timings {
        match (one.point(), open) {
            (Some((_, restart)), true) => {
                open = false;
                if let Some(burst) = out.last_mut() {
                    burst.restart_s = Some(restart);
                }
                after_n = one.n;
            }
            (Some(_), false) => after_n = one.n,
            (None, true) => {
                if let Some(burst) = out.last_mut() {
                    burst.lost += 1;
                }
            }
            (None, false) => {
                open = true;
                out.push(Burst { after_n, start_s: one.due_s(), lost: 1, restart_s: None });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Outcome;

    #[test]
    fn a_trial_is_told_stretch_by_stretch() {
        let mut rng = crate::random::SeededRng::new(1);
        // Flat at 50 ms up to request 300, then 5 ms more with each, then no results, then flat again.
        let mut record = |n: u32| {
            let noise = 0.95 + 0.1 * rng.fraction();
            let wait_ms = match n {
                ..=300 => Some(50.0),
                301..=500 => Some(50.0 + 5.0 * f64::from(n - 300)),
                501..=530 => None,
                _ => Some(80.0),
            };
            let intended = i64::from(n) * 10_000;
            let first_result = wait_ms.map(|ms| intended + (ms * noise * 1e3) as i64);
            let outcome = if first_result.is_some() { Outcome::Sound } else { Outcome::TimedOut };
            Record { n, intended, first_result, outcome, ..Record::default() }
        };
        let records: Vec<Record> = (1..=600).map(&mut record).collect();
        let course = of(&records);
        let modes: Vec<Mode> = course.stretches.iter().map(|stretch| stretch.mode).collect();
        assert_eq!(modes, [Mode::Flat, Mode::Growing, Mode::TimingOut, Mode::Flat], "{:?}", course.stretches);
        let growing = &course.stretches[1];
        assert!((280..=320).contains(&growing.from_n), "{growing:?}");
        assert!((growing.growth.unwrap().slope.value / 0.005 - 1.0).abs() < 0.1, "{growing:?}");
        // They are consecutive without gaps, and lost requests have their exact place.
        assert_eq!((growing.end_s, course.stretches[2].start_s, course.stretches[2].end_s), (5.01, 5.01, 5.31));
        assert_eq!(
            (course.stretches[3].from_n, course.stretches[3].requests, course.stretches[3].end_s),
            (531, 70, 6.0)
        );
        assert_eq!(course.stretches.iter().map(|stretch| stretch.requests).sum::<u32>(), 600);
        let burst = Burst { after_n: 500, start_s: 5.01, lost: 30, restart_s: course.bursts[0].restart_s };
        assert_eq!((&course.bursts[..], course.first_failure), (&[burst][..], Some(501)));
        // One line is one stretch, however straight it is.
        assert_eq!(of(&records[320..500]).stretches.len(), 1);
        assert!(of(&[]).stretches.is_empty());
    }

    /// Waits of neighbours are correlated if there is a queue. At four fifths of the max load, a line through points
    /// treated as independent would call some twenty-three of 60 runs growing.
    #[test]
    fn a_queue_that_holds_is_not_said_to_grow() {
        let grow = |more: f64| {
            let of_seed = |seed: u64| {
                let mut rng = crate::random::SeededRng::new(seed);
                let mut exponential = |mean: f64| -mean * (1.0 - rng.fraction()).ln();
                let (mut wait, mut due, mut records) = (0.0_f64, 0.0, Vec::new());
                for n in 0..2_600_u32 {
                    let service = exponential(0.8);
                    if n >= 2_000 {
                        let took = wait + service + more * f64::from(n - 2_000);
                        let at = |s: f64| (s * 1e6) as i64;
                        records.push(Record {
                            n,
                            intended: at(due),
                            first_result: Some(at(due + took)),
                            ..Record::default()
                        });
                    }
                    let pause = exponential(1.0);
                    due += pause;
                    wait = (wait + service - pause).max(0.0);
                }
                of(&records).mode
            };
            (1..=60).filter(|seed| of_seed(*seed) == Mode::Growing).count()
        };
        assert!(grow(0.0) <= 10, "{} of 60", grow(0.0));
        assert!(grow(0.05) >= 55, "{} of 60", grow(0.05));
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
