//! Evaluates objectives.

use crate::scenario::{Metric, Objective};
use meridian_lab_results::folder::{Run, Summary};
use serde::Serialize;

/// One objective and its measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectiveVerdict {
    /// The objective, as a sentence.
    pub objective: String,
    /// The measured value; `None` if there is none or users waited for ever.
    pub value: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
}

/// Evaluates every objective over all measured records of its kind.
pub fn judge(objectives: &[Objective], summary: &Summary, run: &Run) -> Vec<ObjectiveVerdict> {
    objectives.iter().map(|objective| one(objective, summary, run)).collect()
}

fn one(objective: &Objective, summary: &Summary, run: &Run) -> ObjectiveVerdict {
    let named = |wanted: &Option<String>, names: &[String], index: u16| {
        wanted.as_ref().is_none_or(|wanted| names.get(usize::from(index)) == Some(wanted))
    };
    let keep = |target: u16, population: u16, request: u16| {
        named(&objective.target, &run.targets, target)
            && named(&objective.population, &run.populations, population)
            && named(&objective.request, &run.requests, request)
    };
    let group = summary.measured(run, keep);
    let percentile = |share: f64, first: bool| summary.percentile_of_all(share, first, keep);
    #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
    let value = match objective.metric {
        Metric::P50Ms => percentile(0.5, false),
        Metric::P95Ms => percentile(0.95, false),
        Metric::P99Ms => percentile(0.99, false),
        Metric::FirstP95Ms => percentile(0.95, true),
        Metric::SoundShare => group.map(|group| {
            let sound = group.outcomes.get("sound").copied().unwrap_or(0);
            sound as f64 / group.arrivals.max(1) as f64
        }),
        Metric::SoundRate => group.map(|group| group.sound_per_s),
    };
    let holds = value.is_some_and(|value| {
        objective.at_most.is_none_or(|max| value <= max) && objective.at_least.is_none_or(|min| value >= min)
    });
    let bound = match (objective.at_most, objective.at_least) {
        (Some(most), _) => format!("at most {most}"),
        (None, Some(least)) => format!("at least {least}"),
        (None, None) => String::new(),
    };
    let of = [("population", &objective.population), ("request", &objective.request), ("target", &objective.target)];
    let of: String = of.iter().filter_map(|(what, name)| Some(format!(" of {what} {}", name.as_ref()?))).collect();
    ObjectiveVerdict { objective: format!("{}{of} {bound}", objective.metric.name()), value, holds }
}
