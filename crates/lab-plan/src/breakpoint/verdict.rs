//! The verdict over all steps of a search: the breakpoint, its confidence, and which objective failed first and how.

use super::result::{Breakpoint, Conclusion, FORMAT_VERSION, Shape, ShapeKind, short};
use super::search::narrowness;
use super::{Load, Options, Step, sustain};
use meridian_lab_drive::scenario::Scenario;
use meridian_lab_results::record::Outcome;
use meridian_lab_results::stats::Estimate;
use meridian_lab_results::stats::mode::Mode;
use meridian_lab_results::stats::usl::{self, Law, Point};
use std::collections::BTreeMap;

/// Factor by which a percentile grows past an abrupt breakpoint.
const ABRUPT: f64 = 3.0;
/// A server whose throughput falls below this share of its best under more load is degrading.
const GIVES_WAY: f64 = 0.9;

pub(super) fn found(
    scenario: &Scenario,
    load: Load,
    options: &Options,
    (conclusion, breakpoint): (Conclusion, Option<Estimate>),
    started: String,
    steps: Vec<Step>,
) -> Breakpoint {
    let most_held = sound(&steps).filter(|step| step.held).map(|step| step.load).max_by(f64::total_cmp);
    let mut found = Breakpoint {
        format_version: FORMAT_VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        name: scenario.name.clone(),
        started,
        ended: jiff::Timestamp::now().to_string(),
        unit: load.unit().to_owned(),
        is_rate: load.is_rate(),
        conclusion,
        sentence: String::new(),
        within: breakpoint.as_ref().map(narrowness),
        wanted_within: options.within,
        sustainable: if load.is_rate() { sustain::edge(&steps) } else { None },
        measured_s: scenario.phases.measured_s,
        objective: first_to_fail(&steps),
        shape: breakpoint.and_then(|at| shape(&steps, at, load)),
        breakpoint,
        most_held,
        law: if load.closed() { law(&steps) } else { None },
        steps,
    };
    found.sentence = sentence(&found);
    found
}

/// Returns the valid steps.
fn sound(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.void.is_empty() && step.cut_short.as_deref() != Some("interrupted"))
}

/// Returns the objective that failed in most steps, among those at the smallest loads that failed.
fn first_to_fail(steps: &[Step]) -> Option<String> {
    // Far above the edge everything fails at once; only steps just above it show the first failure.
    let lowest = sound(steps).filter(|step| !step.held).map(|step| step.load).min_by(f64::total_cmp)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for failed in sound(steps).filter(|step| step.load <= lowest * 1.25).flat_map(|step| &step.failed) {
        *counts.entry(&failed.objective).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map(|(objective, _)| objective.to_owned())
}

/// Describes the failing step nearest to the breakpoint, and its neighbours.
fn shape(steps: &[Step], at: Estimate, load: Load) -> Option<Shape> {
    let failing = sound(steps).filter(|step| !step.held && step.load >= at.value);
    let near = failing.min_by(|a, b| a.load.total_cmp(&b.load))?;
    let before = sound(steps).filter(|step| step.held && step.load <= at.value);
    let before = before.max_by(|a, b| a.load.total_cmp(&b.load));
    let (mut kind, mut words) = of_requests(near);
    // Near the edge a queue may be too short to distinguish from noise; further out it is not.
    let further = sound(steps).filter(|step| step.load > near.load && step.load <= near.load * 2.0 + 1.0);
    let growing = |step: &&Step| step.mode == Mode::Growing && step.growth_ms.is_some();
    if let Some(step) =
        further.min_by(|a, b| a.load.total_cmp(&b.load)).filter(growing).filter(|_| kind == ShapeKind::Slower)
    {
        (kind, words) = of_requests(step);
    }
    let times = |step: &Step| step.p95_ms.map_or_else(|| "for ever".to_owned(), |ms| format!("{ms:.3} ms"));
    let mut abrupt = false;
    if let Some(before) = before {
        abrupt = match (before.p95_ms, near.p95_ms) {
            (Some(before), Some(near)) => near >= before * ABRUPT,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let how = if abrupt { "abruptly" } else { "gradually" };
        words += &format!(
            " It breaks {how}: 95 % wait at most {} at {}, {} at {}.",
            times(before),
            before.load,
            times(near),
            near.load
        );
    }
    let best = sound(steps).map(|step| step.sound_per_s).fold(0.0, f64::max);
    let furthest = sound(steps).max_by(|a, b| a.load.total_cmp(&b.load)).filter(|step| step.load > at.high)?;
    let gives_way = furthest.sound_per_s < best * GIVES_WAY && !load.ends();
    if !load.ends() {
        let (out, how) = (furthest.sound_per_s, if gives_way { "throughput falls" } else { "throughput holds" });
        words += &format!(
            " Under more load {how}: at {}, {out:.1} sound answers a second, {best:.1} at best.",
            furthest.load
        );
    }
    Some(Shape { kind, abrupt, gives_way, words })
}

fn of_requests(step: &Step) -> (ShapeKind, String) {
    let all: u64 = step.outcomes.values().sum();
    let share = |outcomes: &[Outcome]| -> f64 {
        let n: u64 = outcomes.iter().filter_map(|outcome| step.outcomes.get(outcome.name())).sum();
        n as f64 / all.max(1) as f64
    };
    let kinds = [
        (ShapeKind::Refusing, share(&[Outcome::Refused]), "are refused"),
        (ShapeKind::TimingOut, share(&[Outcome::TimedOut, Outcome::Absent]), "get nothing in time"),
        (ShapeKind::Failing, share(&[Outcome::Failed]), "get an error"),
        (
            ShapeKind::Unsound,
            share(&[Outcome::Unsound, Outcome::Partial]),
            "get an answer that is not right or not whole",
        ),
        (ShapeKind::NotSent, share(&[Outcome::NotSent]), "cannot be sent for lack of connections"),
    ];
    let at = step.load;
    match kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((kind, share, words)) if share > 0.005 => {
            (kind, format!("At {at}, {:.1} % of requests {words}.", share * 100.0))
        }
        _ => match (step.mode, step.growth_ms) {
            (Mode::Growing, Some(growth)) => (
                ShapeKind::Queue,
                format!("A queue builds up: at {at} each request waits {growth:.3} ms longer than the one before."),
            ),
            (Mode::Stall, _) => {
                let longest = step.stalls.iter().map(|stall| stall.length_s).fold(0.0, f64::max);
                (ShapeKind::Slower, format!("At {at} it stalls: for {longest:.1} s nothing is answered."))
            }
            _ => (ShapeKind::Slower, format!("At {at} answers take longer, by about the same throughout.")),
        },
    }
}

fn law(steps: &[Step]) -> Option<Law> {
    let points = sound(steps).filter(|step| step.sound_per_s > 0.0);
    let points: Vec<Point> =
        points.map(|step| Point { n: step.load, throughput: step.sound_per_s, sd: None }).collect();
    usl::fit(&points).ok()
}

fn sentence(found: &Breakpoint) -> String {
    let unit = &found.unit;
    let objective = found.objective.as_deref().unwrap_or("an objective");
    let interval = |at: &Estimate| {
        let within = narrowness(at) * 100.0;
        format!(
            "{} {unit} ({} to {} with 95 % confidence, ±{within:.1} %)",
            short(at.value),
            short(at.low),
            short(at.high)
        )
    };
    let so_far = || match (&found.breakpoint, found.most_held) {
        (Some(at), _) => format!(" By the steps so far the breakpoint lies at {}.", interval(at)),
        (None, Some(most)) => format!(" It held up to {most} {unit}."),
        (None, None) => String::new(),
    };
    let mut text = match (found.conclusion, &found.breakpoint) {
        (Conclusion::Found, Some(at)) => {
            format!("The breakpoint lies at {}. Beyond it, \"{objective}\" fails first.", interval(at))
        }
        (Conclusion::Wide, Some(at)) => format!(
            "The breakpoint lies at {}, wider than the ±{:.1} % that were requested: steps at the same load did not agree, or there \
             were too few. \"{objective}\" fails first.",
            interval(at),
            found.wanted_within * 100.0
        ),
        (Conclusion::Above, _) => {
            format!("Every load held, up to {} {unit}: the breakpoint lies above.", found.most_held.unwrap_or_default())
        }
        (Conclusion::Below, _) => {
            let lowest = sound(&found.steps).map(|step| step.load).fold(f64::INFINITY, f64::min);
            format!("Every load failed, down to {lowest} {unit}: \"{objective}\" does not hold even there.")
        }
        (Conclusion::Void, _) => {
            let why = found.steps.last().map(|step| step.void.join("; ")).unwrap_or_default();
            format!("The search was abandoned, because this machine was not fit to measure: {why}.{}", so_far())
        }
        (Conclusion::Interrupted, _) => format!("The search was interrupted.{}", so_far()),
        (Conclusion::Gone, _) => {
            let last = found.steps.last().map_or(0.0, |step| step.load);
            format!("After {last} {unit} the target could no longer be reached.{}", so_far())
        }
        (Conclusion::Found | Conclusion::Wide, None) => "There were too few steps for a breakpoint.".to_owned(),
    };
    text += &sustain::words(found);
    if let Some(shape) = &found.shape {
        text.push(' ');
        text += &shape.words;
    }
    if let Some(law) = &found.law {
        text.push(' ');
        text += &law.words();
        // A law that does not fit is not reported.
        if law.fits() {
            text += &match law.peak_n {
                Some(peak) => format!(
                    " By this law throughput peaks at {} users, {:.1} a second.",
                    short(peak),
                    law.throughput(peak)
                ),
                None => " By this law throughput has no peak in the range tried.".to_owned(),
            };
        }
    }
    text
}
