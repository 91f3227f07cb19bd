//! The scenario: populations, their requests and rates, and the definition of a sound response, in one TOML file.
//!
//! A first scenario needs three tables:
//!
//! ```toml
//! [target]
//! url = "http://127.0.0.1:7117"
//!
//! [arrival]
//! kind = "constant"
//! rate = 100                      # a second
//!
//! [request]
//! path = "/collections/quakes/items?limit=10"
//! ```
//!
//! All other settings have defaults. [`Scenario::load`] reads a file, overlays `--set`, fills in defaults and checks
//! the whole. The resolved form is written beside the results and can be run again unchanged.

mod arrival;
mod beside;
mod check;
mod generator;
mod objective;
mod read;
mod sampler;
mod seconds;
mod target;

pub use arrival::{Arrival, ThinkTime};
pub(crate) use beside::anchored;
pub use check::Check;
pub use generator::Generator;
pub use objective::{Metric, Objective};
pub use sampler::Sampler;
pub use target::Target;

use meridian_lab_results::error::{LabError, Result};
pub(crate) use read::mistake;
use read::one_or_many;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A workload. Times are in seconds, as their names state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name in reports; by default the file's name.
    #[serde(default)]
    pub name: String,
    /// The seed of all randomness.
    #[serde(default = "one")]
    pub seed: u64,
    /// The arrival process of a scenario with one population; with several, `[[population]]` holds it.
    pub arrival: Option<Arrival>,
    /// The phases of the load, and which of them are counted.
    #[serde(default)]
    pub phases: Phases,
    /// Repeats, and the order of targets.
    #[serde(default)]
    pub trials: Trials,
    /// Limits at which the run stops early.
    #[serde(default)]
    pub limits: Limits,
    /// The servers; `[target]` for one, `[[target]]` for several.
    #[serde(deserialize_with = "one_or_many")]
    pub target: Vec<Target>,
    /// The requests; several make a mix by their weights.
    #[serde(default, deserialize_with = "one_or_many")]
    pub request: Vec<Request>,
    /// Named sources of values for `{name}` in paths and bodies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generate: BTreeMap<String, Generator>,
    /// The populations; by default one named `users` with the scenario's arrival.
    #[serde(default, deserialize_with = "one_or_many")]
    pub population: Vec<Population>,
    /// Samples read from the target's machine during the run.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub sampler: Vec<Sampler>,
    /// Conditions for exit code 0.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub objective: Vec<Objective>,
}

/// The parts of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Phases {
    /// Wait before the load of each trial until its target is idle by its own metric; a target's own setting takes
    /// precedence.
    pub wait_idle: Option<WaitIdle>,
    /// Length of the load before the measured part.
    pub warm_up_s: f64,
    /// Length of the measured load. Arrivals that end by themselves (burst, onoff, replay) last until their end
    /// instead.
    pub measured_s: f64,
    /// Length of the load after the measured part, so that the last measured requests do not end without load.
    pub cool_down_s: f64,
    /// Pause after the load before the first measurement is repeated.
    pub again_after_s: f64,
    /// Length of that repeat; 0: none.
    pub again_s: f64,
    /// State of the target's caches at the start, for the reader: `cold` or `warm`. The lab only records it.
    pub start: Option<Start>,
}

impl Default for Phases {
    fn default() -> Self {
        Phases {
            wait_idle: None,
            warm_up_s: 0.0,
            measured_s: 10.0,
            cool_down_s: 0.0,
            again_after_s: 0.0,
            again_s: 0.0,
            start: None,
        }
    }
}

/// Whether the target's caches were filled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Just started, nothing read.
    Cold,
    /// It has served such requests before.
    Warm,
}

/// When a target counts as idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitIdle {
    /// URL of its metrics, in the Prometheus text format.
    pub url: String,
    /// The metric, with labels if they matter; the sum over all series of that name.
    pub metric: String,
    /// Max value of the metric while idle.
    pub at_most: f64,
    /// Min duration of that state.
    #[serde(default = "one_second")]
    pub for_s: f64,
    /// Max wait.
    #[serde(default = "five_minutes")]
    pub limit_s: f64,
}

/// Repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trials {
    /// Trials of each target.
    pub repeats: u16,
    /// The order of targets.
    pub order: Order,
    /// Pause between trials.
    pub pause_s: f64,
}

impl Default for Trials {
    fn default() -> Self {
        Trials { repeats: 1, order: Order::Alternate, pause_s: 0.0 }
    }
}

/// Order of trials over targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// A A B B.
    Given,
    /// A B A B: drift of the machine affects both equally.
    Alternate,
    /// Drawn from the seed.
    Shuffled,
}

/// Limits at which a run stops early; 0 means no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Max seconds over all trials.
    pub total_s: f64,
    /// Max requests over all trials.
    pub requests: u64,
    /// Max failed requests over all trials.
    pub errors: u64,
    /// Max 99th percentile of the lab's own lateness before the run counts as void.
    pub late_ms: f64,
    /// Max share of the machine's time used by others, or stolen by the host, before the run counts as void.
    pub other_load: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { total_s: 0.0, requests: 0, errors: 0, late_ms: 10.0, other_load: 0.05 }
    }
}

/// A request of the mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Its name in reports; by default its path.
    pub name: String,
    /// HTTP method.
    pub method: String,
    /// Path and query, with `{name}` or `{name.field}` of `[generate.name]`.
    pub path: String,
    /// Its share of the mix.
    pub weight: f64,
    /// Body, with the same placeholders.
    pub body: Option<String>,
    /// Headers besides the target's, with the same placeholders.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Unit of a result in the response's body.
    pub result: ResultUnit,
    /// JSON pointer (RFC 6901) of an address in the response, such as `/packets`. The lab requests it next and takes
    /// that for the response.
    pub follow: Option<String>,
    /// Conditions of a sound response.
    pub check: Check,
}

/// Unit of a result in the body of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultUnit {
    /// The whole body, if not empty.
    #[default]
    Body,
    /// Each non-empty line (NDJSON, CSV, RFC 8142 text sequences), each row of a PostgreSQL server, each element of a
    /// Redis reply.
    #[serde(alias = "row")]
    Line,
    /// Each GeoJSON feature: occurrences of `"Feature"`.
    Feature,
    /// Each event of a Server-Sent Events stream, or each message of a WebSocket.
    Event,
    /// Each packet of kind `results` of a search, up to the packet of kind `complete`, whose `state` is authoritative.
    Packet,
}

/// A group of users with records of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Its name in reports.
    pub name: String,
    /// Its arrival process.
    pub arrival: Arrival,
    /// The target of its requests; by default that of the trial.
    pub target: Option<String>,
    /// The requests of its mix, by name; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// When its users give up; by default the target's time limit.
    pub patience_s: Option<f64>,
    /// Max concurrent connections of an open arrival; further requests wait for one, and count as not sent if their
    /// patience ends first.
    #[serde(default = "thousand")]
    pub connections: usize,
    /// The retries of its users.
    #[serde(default)]
    pub retry: Retry,
}

/// Retries after an unusable response (neither sound nor partial).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Max retries.
    pub times: u8,
    /// Whether to retry until success or the end of the load.
    pub forever: bool,
    /// Pause before the first retry.
    pub wait_s: f64,
    /// Factor from one pause to the next; 0 counts as 1.
    pub factor: f64,
    /// Whether no pause is shorter than the response's `Retry-After`.
    pub after: bool,
}

fn one() -> u64 {
    1
}
fn one_second() -> f64 {
    1.0
}
fn five_minutes() -> f64 {
    300.0
}
fn thousand() -> usize {
    1000
}

impl Default for Request {
    fn default() -> Self {
        Request {
            name: String::new(),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            weight: 1.0,
            body: None,
            headers: BTreeMap::new(),
            result: ResultUnit::Body,
            follow: None,
            check: Check::default(),
        }
    }
}

impl Request {
    /// Creates a plain request, named after its path.
    pub(crate) fn plain(method: &str, path: &str) -> Request {
        Request { name: path.to_owned(), method: method.to_owned(), path: path.to_owned(), ..Request::default() }
    }
}

/// The name of requests from access logs.
pub(crate) const LOG: &str = "replay";

impl Scenario {
    /// Returns the request that represents the lines of access logs, if one is replayed: a line is checked only by its
    /// status. Its index follows those of `request`.
    pub(crate) fn log(&self) -> Option<Request> {
        let replays = self.population.iter().any(|population| population.arrival.is_replay());
        replays.then(|| Request { name: LOG.to_owned(), ..Request::default() })
    }

    /// Returns the name of a target's processes in samples.
    pub(crate) fn sampled_as(&self, target: &Target) -> String {
        if self.target.len() == 1 { "target".to_owned() } else { format!("target {}", target.name) }
    }

    /// Returns the resolved form, as TOML that [`Scenario::parse`] reads.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| LabError::scenario(format!("the scenario cannot be written: {e}")))
    }
}

mod resolve;
#[cfg(test)]
mod tests;
