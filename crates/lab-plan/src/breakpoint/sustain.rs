//! The sustainable rate: the max rate at which the backlog does not grow, however long the load lasts.
//!
//! Objectives of a short step hold above that rate too, because a queue takes a while to build up. At a rate L above
//! the capacity C each wait is longer than the previous one. Over the time at which requests are due it rises by
//! `L / C - 1` per second. So every step in which waits rise measures the capacity, C = L / (1 + rise). Steps slightly above
//! it measure it best: their queue is never empty, and a server that degrades under more load does not do so yet.

use super::Step;
use super::backlog::Backlog;
use super::result::{Breakpoint, short};
use meridian_lab_results::stats::{Estimate, percentile};

/// Steps above the capacity required for its interval.
const WANTED: usize = 4;
/// Loads relative to the capacity, and which of them are near enough.
const NEAR: [f64; 2] = [1.08, 1.6];
/// Loads to try, relative to the capacity as far as it is known.
const TRIED: [f64; 4] = [1.2, 1.3, 1.15, 1.25];
/// While no backlog has grown, the load is raised by this factor, at most this often.
const RAISE: f64 = 1.5;
const RAISES: usize = 3;
/// Returns the valid steps, with their backlogs.
fn measured(steps: &[Step]) -> impl Iterator<Item = (f64, Backlog)> {
    let sound = steps.iter().filter(|step| step.void.is_empty() && step.cut_short.is_none());
    sound.filter_map(|step| Some((step.load, step.backlog?)))
}

/// Returns the capacity as far as it is known: the median rate served by steps with a growing backlog.
fn middle(steps: &[Step]) -> Option<f64> {
    let mut served: Vec<f64> =
        measured(steps).filter(|(_, backlog)| backlog.grows).map(|(_, backlog)| backlog.served_per_s.value).collect();
    served.sort_by(f64::total_cmp);
    served.get(served.len() / 2).copied()
}

/// Returns the rates served by the steps nearest above the capacity.
fn saturated(steps: &[Step], near: f64) -> Vec<Estimate> {
    let over = |most: f64| -> Vec<Estimate> {
        let above = measured(steps).filter(|(load, backlog)| backlog.grows && *load >= near * NEAR[0] && *load <= most);
        above.map(|(_, backlog)| backlog.served_per_s).collect()
    };
    let close = over(near * NEAR[1]);
    // A search with large steps may have skipped the near ones. Far steps show a lower bound at best, but nothing
    // better is known.
    if close.is_empty() { over(f64::INFINITY) } else { close }
}

/// Returns the next load that narrows the sustainable rate, at most `most`; `None` if it is known well enough, or
/// cannot be narrowed.
pub(super) fn next(steps: &[Step], most: f64, raised: usize) -> Option<f64> {
    let load = match middle(steps) {
        Some(near) => {
            let close = measured(steps).filter(|(load, _)| (near * NEAR[0]..=near * NEAR[1]).contains(load)).count();
            if close >= WANTED {
                return None;
            }
            near * TRIED[close % TRIED.len()]
        }
        None if raised < RAISES => measured(steps).map(|(load, _)| load).max_by(f64::total_cmp)? * RAISE,
        None => return None,
    };
    let scale = 10f64.powf(3.0 - load.log10().floor());
    let load = (load * scale).round() / scale;
    (load <= most).then_some(load)
}

/// Returns the max rate at which the backlog does not grow, and its 95 % confidence interval. `None` if no backlog
/// grew.
pub(super) fn edge(steps: &[Step]) -> Option<Estimate> {
    let near = middle(steps)?;
    let served = saturated(steps, near);
    let mut edge = match served[..] {
        [] => return None,
        [only] => only,
        _ => percentile::over_repeats(&served.iter().map(|one| one.value).collect::<Vec<_>>())?,
    };
    // A rate served without a growing backlog is sustainable, even if less was served under more load.
    let calm = measured(steps).filter(|(_, backlog)| !backlog.grows).map(|(_, backlog)| backlog.served_per_s.low);
    edge.high = calm.fold(edge.high, f64::max);
    // Likewise, a rate at which the backlog mostly grew is not sustainable.
    let below: Vec<(f64, bool)> = measured(steps)
        .filter(|(load, _)| (edge.low * 0.85..edge.low * 0.98).contains(load))
        .map(|(load, backlog)| (load, backlog.grows))
        .collect();
    let grew = below.iter().filter(|(_, grows)| *grows).count();
    // One step that grew may be chance, so two are required, and more than half of the neighbours.
    if grew >= 2 && 2 * grew > below.len() {
        edge.low = below.iter().filter(|(_, grows)| *grows).map(|(load, _)| *load).fold(edge.low, f64::min);
    }
    edge.low = edge.low.max(0.0);
    Some(edge)
}

/// Returns the largest load at which no backlog grew.
fn most_calm(steps: &[Step]) -> Option<f64> {
    measured(steps).filter(|(_, backlog)| !backlog.grows).map(|(load, _)| load).max_by(f64::total_cmp)
}

/// Returns the sustainable load, and the part of the breakpoint above it.
pub(super) fn words(found: &Breakpoint) -> String {
    let unit = &found.unit;
    let Some(edge) = &found.sustainable else {
        let most = most_calm(&found.steps).filter(|_| found.is_rate);
        return most.map_or_else(String::new, |most| format!(" No backlog grew, up to {} {unit}.", short(most)));
    };
    let mut text = format!(
        " The sustainable load, at which no backlog grows, is {} {unit} ({} to {} with 95 % confidence).",
        short(edge.value),
        short(edge.low),
        short(edge.high)
    );
    if found.breakpoint.is_some_and(|at| at.value > edge.high) {
        text += &format!(
            " Between the two the objectives hold for the {} s of a step only, because the queue grows.",
            short(found.measured_s)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::step;
    use super::*;
    use meridian_lab_results::random::SeededRng;
    use meridian_lab_results::record::{Micros, Outcome, Record};

    /// Simulates a step of a queue before four workers of 20 ms, which hold 200 per second; `random`: memoryless
    /// arrivals and services.
    fn queue(load: f64, seconds: f64, random: bool, rng: &mut SeededRng) -> Step {
        let mut free = [0.0_f64; 4];
        let (mut now, mut records) = (0.0, Vec::new());
        while now < seconds {
            now += if random { rng.exponential(1.0 / load) } else { 1.0 / load };
            let service = if random { rng.exponential(0.02) } else { 0.02 };
            let worker = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            *worker = worker.max(now) + service;
            let us = |s: f64| (s * 1e6) as Micros;
            records.push(Record { intended: us(now), done: Some(us(*worker)), ..Record::default() });
        }
        Step { backlog: Backlog::of(&records), ..step(load, true, None, &[]) }
    }

    /// Returns all steps of a search that begins with these loads.
    fn searched(loads: &[f64], seconds: f64, random: bool, rng: &mut SeededRng) -> Vec<Step> {
        let mut steps: Vec<Step> = loads.iter().map(|load| queue(*load, seconds, random, rng)).collect();
        let mut raised = 0;
        while let Some(load) = next(&steps, 1e6, raised) {
            raised += usize::from(middle(&steps).is_none());
            steps.push(queue(load, seconds, random, rng));
            assert!(steps.len() < loads.len() + 12, "it ends: {:?}", steps.iter().map(|s| s.load).collect::<Vec<_>>());
        }
        steps
    }

    #[test]
    fn what_a_queue_sustains_lies_in_the_interval_though_short_steps_hold_more() {
        // As the search for an objective left it: 220 held for such a short time.
        for (seconds, random, width) in [(0.6, false, 0.04), (10.0, false, 0.01), (20.0, true, 0.1)] {
            let mut rng = SeededRng::new(7);
            let (mut held, mut wide) = (0, 0.0);
            for _ in 0..60 {
                let steps = searched(&[100.0, 190.0, 215.0, 225.0, 400.0], seconds, random, &mut rng);
                let edge = edge(&steps).unwrap();
                held += u32::from(edge.low <= 200.5 && edge.high >= 199.5);
                wide += (edge.high - edge.low) / edge.value / 60.0;
            }
            assert!(held >= 54, "{held} of 60 hold 200, random: {random}, {seconds} s");
            assert!(wide < width, "{wide}, random: {random}, {seconds} s");
        }
    }

    #[test]
    fn a_backlog_that_never_grows_has_no_edge_and_the_load_is_raised_only_so_often() {
        let mut rng = SeededRng::new(1);
        let steps = searched(&[10.0, 20.0], 10.0, false, &mut rng);
        let loads: Vec<f64> = steps.iter().map(|step| step.load).collect();
        assert_eq!((loads, edge(&steps), most_calm(&steps)), (vec![10.0, 20.0, 30.0, 45.0, 67.5], None, Some(67.5)));
        assert_eq!(next(&steps[..2], 25.0, 0), None);
    }

    #[test]
    fn what_was_given_up_or_refused_is_no_answer_that_was_fast() {
        let mut rng = SeededRng::new(1);
        let Some(whole) = queue(300.0, 10.0, false, &mut rng).backlog else { panic!("no backlog") };
        assert!(whole.grows && (whole.served_per_s.value - 200.0).abs() < 1.0, "{whole:?}");
        // Patience of a second: from the third second on, all wait that long and get no response.
        let record = |n: i64, wait_ms: i64, outcome: Outcome| {
            let intended = n * 1_000_000 / 300;
            Record { intended, done: Some(intended + wait_ms * 1_000), outcome, ..Record::default() }
        };
        let course: Vec<Record> = (0..3_000)
            .map(|n| match 20 + n * 5 / 3 {
                wait if wait < 1_000 => record(n, wait, Outcome::Sound),
                _ => record(n, 1_000, Outcome::TimedOut),
            })
            .collect();
        let cut = Backlog::of(&course).unwrap();
        assert!(cut.grows && (cut.served_per_s.value - 200.0).abs() < 2.0, "{cut:?}");
        let refused: Vec<Record> = (0..300).map(|n| record(n, 1, Outcome::Refused)).collect();
        assert_eq!(Backlog::of(&refused), None);
    }
}
