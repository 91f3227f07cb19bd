//! Simulation: predicts the behaviour at an untested size.
//!
//! Four models, each a discrete-event simulation on an integer microsecond clock with one seeded random source. So a
//! seed gives the same run everywhere. [`pipeline`] has staged queues, and workers that are held while outside sources
//! respond. [`scan`] has scan servers before shared storage, chosen by the selector of `model`. [`tenants`] has
//! questions of tenants that share a server, admitted by the scheduler of `model`. [`closed`] has users who wait for
//! each response of processes on machines. [`calibrate`] fits a few of a scenario's numbers to published or measured
//! figures and reports how well the others are predicted. [`forecast`] compares every trial of such a table with its
//! simulation.
//!
//! A scenario is a TOML file; [`Scenario::read`] reads it with the changes of `--set`. `docs/simulate.md` lists the
//! effects that the models leave out.

pub mod calibrate;
pub mod closed;
pub mod draw;
pub mod edge;
pub mod events;
pub mod forecast;
mod keep;
pub mod measured;
pub mod pipeline;
pub mod scan;
pub mod settings;
mod show;
pub mod spans;
pub mod tenants;

pub use keep::keep;

use std::collections::BTreeMap;
use toml::{Table, Value};

/// For each of the first three bursts ([`pipeline::PipelineOutcome::joined_bursts`]): the first request without
/// results, their number, and the first packet after.
const BURSTS: [[&str; 3]; 3] = [
    ["burst_1_absent", "burst_1_lost", "burst_1_restart_s"],
    ["burst_2_absent", "burst_2_lost", "burst_2_restart_s"],
    ["burst_3_absent", "burst_3_lost", "burst_3_restart_s"],
];

/// A scenario that can be simulated.
#[derive(Debug, Clone, PartialEq)]
pub enum Scenario {
    /// Queues, workers and outside sources.
    Pipeline(Box<pipeline::Pipeline>),
    /// Scan servers before shared storage.
    Scan(Box<scan::Tier>),
    /// Tenants that share a server.
    Tenants(Box<tenants::SharedServer>),
    /// Users who wait for each response.
    Closed(Box<closed::ClosedNetwork>),
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// Result of a pipeline.
    Pipeline(pipeline::PipelineOutcome),
    /// Result of a scan tier.
    Scan(scan::ScanOutcome),
    /// Result of tenants.
    Tenants(tenants::TenantsOutcome),
    /// Result of waiting users.
    Closed(closed::ClosedOutcome),
}

impl Scenario {
    /// Reads a scenario's text. The error is a sentence.
    pub fn read(text: &str, sets: &[String]) -> Result<Scenario, String> {
        Scenario::of(table(text, sets)?)
    }

    /// Checks a scenario.
    pub fn of(table: Table) -> Result<Scenario, String> {
        let kind = table.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "pipeline" => {
                let pipeline: pipeline::Pipeline = table.try_into().map_err(sentence)?;
                pipeline.check()?;
                Ok(Scenario::Pipeline(Box::new(pipeline)))
            }
            "scan-tier" => {
                let tier: scan::Tier = table.try_into().map_err(sentence)?;
                tier.check()?;
                Ok(Scenario::Scan(Box::new(tier)))
            }
            "tenants" => {
                let server: tenants::SharedServer = table.try_into().map_err(sentence)?;
                server.check()?;
                Ok(Scenario::Tenants(Box::new(server)))
            }
            "closed" => {
                let network: closed::ClosedNetwork = table.try_into().map_err(sentence)?;
                network.check()?;
                Ok(Scenario::Closed(Box::new(network)))
            }
            _ => Err(format!("kind = {kind:?}: expected \"pipeline\", \"scan-tier\", \"tenants\" or \"closed\"")),
        }
    }

    /// Simulates the scenario.
    pub fn run(&self) -> Prediction {
        match self {
            Scenario::Pipeline(pipeline) => {
                Prediction::Pipeline(pipeline::PipelineOutcome::of(&pipeline::run(pipeline)))
            }
            Scenario::Scan(tier) => Prediction::Scan(scan::run(tier)),
            Scenario::Tenants(server) => Prediction::Tenants(tenants::run(server)),
            Scenario::Closed(network) => Prediction::Closed(closed::run(network)),
        }
    }

    /// Returns the figures of one run by which scenarios are calibrated. A figure that did not occur is left out,
    /// except for `first_absent`, which is then one past the last request.
    pub fn figures(&self) -> BTreeMap<&'static str, f64> {
        let mut out = BTreeMap::new();
        match self {
            Scenario::Pipeline(pipeline) => {
                let trial = pipeline::run(pipeline);
                let answer = pipeline::PipelineOutcome::of(&trial);
                let first = trial.packets.first().filter(|packets| !packets.is_empty());
                if let (Some(packets), Some(start)) = (first, trial.starts.first()) {
                    let at = |share: f64| {
                        let place = (share * packets.len() as f64).ceil() as usize;
                        events::seconds(packets[place.clamp(1, packets.len()) - 1] - start)
                    };
                    out.extend([("first_s", at(0.0)), ("packets_10_s", at(0.1)), ("packets_90_s", at(0.9))]);
                    out.insert("last_s", at(1.0));
                }
                let mut waits: Vec<f64> = trial
                    .starts
                    .iter()
                    .zip(&trial.packets)
                    .map(|(start, packets)| packets.last().map_or(f64::INFINITY, |at| events::seconds(at - start)))
                    .collect();
                waits.sort_by(f64::total_cmp);
                for (name, wait) in measured::NAMES.into_iter().zip(measured::of_waits(&waits)) {
                    out.extend(wait.map(|wait| (name, wait)));
                }
                out.extend(answer.growth_per_request_s.map(|growth| ("growth_per_request_s", growth)));
                let absent = answer.first_absent.map_or(answer.requests.len() as f64 + 1.0, f64::from);
                out.insert("first_absent", absent);
                if let Some(burst) = answer.bursts.first() {
                    out.insert("first_lost", f64::from(burst.lost));
                    out.extend(burst.before_first_s.map(|s| ("before_first_s", s)));
                    out.extend(burst.restart_first_s.map(|s| ("restart_first_s", s)));
                }
                for (burst, [absent, lost, restart]) in answer.joined_bursts().iter().zip(BURSTS) {
                    out.extend([(absent, f64::from(burst.after_n + 1)), (lost, f64::from(burst.lost))]);
                    out.extend(burst.restart_first_s.map(|s| (restart, s)));
                }
            }
            Scenario::Scan(tier) => {
                let answer = scan::run(tier);
                out.extend([("mean_ms", answer.mean_ms), ("sd_ms", answer.sd_ms)]);
                out.extend([("min_ms", answer.min_ms), ("max_ms", answer.max_ms)]);
                out.insert("busy_events", answer.busy_events as f64);
            }
            Scenario::Tenants(server) => {
                let answer = tenants::run(server);
                out.extend([("good_per_s", answer.good_per_s), ("used", answer.used)]);
            }
            Scenario::Closed(network) => {
                let answer = closed::run(network);
                out.insert("per_second", answer.per_second);
                let p95 = answer.populations.iter().map(|population| population.p95_ms);
                out.insert("p95_ms", p95.fold(0.0, f64::max));
            }
        }
        out
    }
}

impl Prediction {
    /// Returns the JSON defined by the contract.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        match self {
            Prediction::Pipeline(answer) => serde_json::to_string(answer),
            Prediction::Scan(answer) => serde_json::to_string(answer),
            Prediction::Tenants(answer) => serde_json::to_string(answer),
            Prediction::Closed(answer) => serde_json::to_string(answer),
        }
    }
}

/// Returns a scenario's text after `--set`.
pub fn table(text: &str, sets: &[String]) -> Result<Table, String> {
    let mut table: Table = toml::from_str(text).map_err(sentence)?;
    for text in sets {
        let (key, value) = settings::assignment(text)?;
        settings::set(&mut table, key, value)?;
    }
    Ok(table)
}

fn sentence(error: toml::de::Error) -> String {
    error.to_string().trim_end().to_owned()
}
