//! Staged pipelines: requests become jobs in queues, served by workers that are held while an outside source responds.
//!
//! A request enters the first stage. A finished job creates the jobs of the next stage: one, one for each source
//! (`each = "source"`), or one for each packet (`each = "packet"`). Workers take jobs by [`Class`], then first in,
//! first out. An idle worker polls for work every `poll_s` seconds. A worker that has just finished polls at once.

mod outcome;
mod run;
#[cfg(test)]
mod tests;

pub use outcome::{Burst, PipelineOutcome, RequestOutcome};
pub use run::{SimulatedTrial, run};

use super::draw::Times;
use meridian_model::policy::queue::Class;
use serde::{Deserialize, Serialize};

/// A pipeline and its arrivals: the format of the scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Always `pipeline`.
    pub kind: String,
    /// Title for the page of results.
    #[serde(default)]
    pub about: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of workers that serve all queues.
    pub workers: u32,
    /// Seconds between two polls of an idle worker.
    pub poll_s: f64,
    /// Worker time to drop a job, in seconds.
    #[serde(default)]
    pub drop_s: f64,
    /// Whether workers may die as [`Death`] specifies.
    #[serde(default)]
    pub worker_death: bool,
    /// How workers die.
    #[serde(default)]
    pub death: Death,
    /// Random crashes of workers; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
    /// The arrivals.
    pub arrival: Arrival,
    /// Stages in order.
    pub stage: Vec<Stage>,
    /// Outside sources.
    pub source: Vec<Source>,
}

/// Death of a worker that had to drop a job.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Death {
    /// Probability for each job dropped.
    pub probability: f64,
    /// Seconds until a new worker replaces it.
    pub restart_s: f64,
    /// Probability that it is not replaced.
    pub for_good: f64,
}

impl Default for Death {
    fn default() -> Self {
        Death { probability: 0.02, restart_s: 30.0, for_good: 0.1 }
    }
}

/// Crashes of workers: the current job is lost, and a new worker replaces the crashed one after a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Mean seconds between two crashes of one worker; crashes are memoryless.
    pub every_s: f64,
    /// Seconds until a new worker replaces it.
    pub restart_s: f64,
}

/// How requests arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrival {
    /// `single`: `count` requests in sequence; `onoff`: bursts sent at once, with gaps.
    pub kind: ArrivalKind,
    /// Requests of a single burst.
    pub count: u32,
    /// Seconds between the response to a request itself (not its results) and the next request.
    pub interval_s: f64,
    /// Seconds from a request until its first job is queued.
    #[serde(default)]
    pub submit_s: f64,
    /// Bursts of an on/off pattern.
    #[serde(default)]
    pub bursts: u32,
    /// Requests in each burst.
    #[serde(default)]
    pub per_burst: u32,
    /// Seconds from the last response to a request of a burst to the next burst.
    #[serde(default)]
    pub gap_s: f64,
}

/// The pattern of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalKind {
    /// In sequence.
    Single,
    /// Bursts sent at once, with gaps.
    OnOff,
}

/// One stage of the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name, for dotted keys and errors.
    pub name: String,
    /// `quick`, `default` or `background`.
    pub queue: String,
    /// The unit of one job of the stage.
    #[serde(default)]
    pub each: JobUnit,
    /// The worker's own time for a job, besides source calls.
    pub service: Times,
    /// Whether the worker is held during source calls.
    #[serde(default)]
    pub calls_source: bool,
    /// Age since its creation at which a job is dropped when its turn comes.
    pub timeout_s: Option<f64>,
    /// Time since the request began at which a job is dropped when its turn comes.
    pub deadline_s: Option<f64>,
}

/// The unit of one job of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobUnit {
    /// One for each job of the previous stage (the first stage: one for each request).
    #[default]
    Job,
    /// One for each source.
    Source,
    /// One for each packet of the previous job.
    Packet,
}

/// One or more identical outside sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its name, for dotted keys.
    pub name: String,
    /// Number of sources.
    #[serde(default = "one")]
    pub count: u32,
    /// Consecutive calls while the worker waits. A source with none does not take the request.
    pub calls: u32,
    /// Duration of a call.
    #[serde(default)]
    pub call: Call,
    /// Result packets per call.
    #[serde(default)]
    pub packets: u32,
}

/// Durations of the calls of sources. The means of `count` sources lie evenly between `mean_s * (1 - spread)`
/// and `mean_s * (1 + spread)`. The calls of each vary by `cv`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Mean over the sources, in seconds.
    pub mean_s: f64,
    /// Coefficient of variation of one source's calls.
    #[serde(default)]
    pub cv: f64,
    /// Spread among the sources, in [0, 1].
    #[serde(default)]
    pub spread: f64,
}

fn one() -> u32 {
    1
}

impl Pipeline {
    /// Refuses an invalid scenario, with a sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, x: f64| match x.is_finite() && x > 0.0 {
            true => Ok(()),
            false => Err(format!("{name} = {x}: expected more than 0")),
        };
        let not_negative = |name: &str, x: f64| match x.is_finite() && x >= 0.0 {
            true => Ok(()),
            false => Err(format!("{name} = {x}: expected at least 0")),
        };
        let share = |name: &str, x: f64| match (0.0..=1.0).contains(&x) {
            true => Ok(()),
            false => Err(format!("{name} = {x}: expected 0 to 1")),
        };
        if !(1..=100_000).contains(&self.workers) {
            return Err(format!("workers = {}: expected 1 to 100000", self.workers));
        }
        positive("poll_s", self.poll_s)?;
        not_negative("drop_s", self.drop_s)?;
        share("death.probability", self.death.probability)?;
        share("death.for_good", self.death.for_good)?;
        not_negative("death.restart_s", self.death.restart_s)?;
        if let Some(crash) = self.crash {
            positive("crash.every_s", crash.every_s)?;
            not_negative("crash.restart_s", crash.restart_s)?;
        }
        for (name, x) in [
            ("arrival.interval_s", self.arrival.interval_s),
            ("arrival.submit_s", self.arrival.submit_s),
            ("arrival.gap_s", self.arrival.gap_s),
        ] {
            not_negative(name, x)?;
        }
        let requests = self.arrival.requests();
        if !(1..=10_000_000).contains(&requests) {
            return Err(format!(
                "arrival: {requests} requests: expected 1 to 10000000 (count, or bursts and per_burst)"
            ));
        }
        if self.stage.is_empty() || self.stage.len() > 100 {
            return Err(format!("stage: {} stages: expected 1 to 100", self.stage.len()));
        }
        for stage in &self.stage {
            let at = |detail: String| format!("stage {}: {detail}", stage.name);
            if Class::from_name(&stage.queue).is_none() {
                return Err(at(format!("queue = {:?}: expected quick, default or background", stage.queue)));
            }
            stage.service.check().map_err(at)?;
            if stage.timeout_s.is_some() && stage.deadline_s.is_some() {
                return Err(at("timeout_s and deadline_s: expected one of them".to_owned()));
            }
            for limit in [stage.timeout_s, stage.deadline_s].into_iter().flatten() {
                positive("timeout_s or deadline_s", limit).map_err(at)?;
            }
        }
        for source in &self.source {
            let at = |detail: String| format!("source {}: {detail}", source.name);
            if source.count > 10_000 || source.calls > 10_000 || source.packets > 10_000 {
                return Err(at("count, calls and packets: expected at most 10000".to_owned()));
            }
            Times { mean_s: source.call.mean_s, cv: source.call.cv }.check().map_err(at)?;
            share("call.spread", source.call.spread).map_err(at)?;
        }
        Ok(())
    }

    /// Returns the result packets of a complete response.
    pub fn packets(&self) -> u32 {
        self.source.iter().map(|source| source.count * source.calls * source.packets).sum()
    }
}

impl Arrival {
    /// Returns the total number of requests.
    pub fn requests(&self) -> u64 {
        match self.kind {
            ArrivalKind::Single => u64::from(self.count),
            ArrivalKind::OnOff => u64::from(self.bursts) * u64::from(self.per_burst),
        }
    }

    /// Returns the duration of the arrivals in seconds, including the pause after the last one.
    pub fn span_s(&self) -> f64 {
        match self.kind {
            ArrivalKind::Single => f64::from(self.count) * (self.interval_s + self.submit_s),
            ArrivalKind::OnOff => f64::from(self.bursts) * (self.gap_s + self.submit_s),
        }
    }

    /// Returns the start time of each request, in seconds.
    pub fn starts(&self) -> impl Iterator<Item = f64> + use<'_> {
        let (per_burst, step) = match self.kind {
            ArrivalKind::Single => (1, self.interval_s + self.submit_s),
            ArrivalKind::OnOff => (u64::from(self.per_burst.max(1)), self.gap_s + self.submit_s),
        };
        (0..self.requests()).map(move |n| (n / per_burst) as f64 * step)
    }
}
