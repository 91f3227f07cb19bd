//! The cost of a satisfied user, and the cheapest size that keeps a promise.
//!
//! A folder's `cost.toml` ([`Plan`]) names the basis for predicting a size's behaviour ([`Model`]). That is a scenario
//! of the simulator, or runs of a real server at several numbers of users. It also names the unit that can be bought
//! (workers, servers, machines), prices, patterns of arrival over a day, and promises in order of strictness.
//! [`Plan::price`] evaluates every size for every hour of every pattern. A request is satisfied if it keeps the whole
//! promise; a late or partial one earns nothing, but its cost is spent. So the cost per thousand satisfied requests
//! falls while more size adds satisfaction, and rises when it only adds idleness. The curve has a min. The cheapest
//! size that keeps the promise is at the min or to its right.

mod hour;
mod law;
mod open;
mod price;
mod show;
#[cfg(test)]
mod tests;

pub use law::{Level, Machine, ServiceModel};
pub use price::{Bill, Offer, PricedPlan};

use crate::simulate::settings;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use toml::{Table, Value};

/// Contents of `cost.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The simulator's scenario, relative to the folder.
    pub scenario: Option<String>,
    /// Instead of a scenario: a folder of results folders, relative to this file's folder. They are of one machine at
    /// several numbers of users, or of a breakpoint search over users.
    pub measured: Option<String>,
    /// Changes of the scenario for every run.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Dotted key of the number that is bought; `machines` if they were measured.
    pub size: String,
    /// Sizes to try, ascending.
    pub sizes: Vec<u64>,
    /// Runs with different seeds at each point; their requests are counted together.
    #[serde(default = "one")]
    pub seeds: u32,
    /// Prices.
    pub prices: Prices,
    /// Promises, each stricter than the previous one.
    pub promise: Vec<ServiceLevel>,
    /// How requests arrive over a day.
    pub pattern: Vec<Pattern>,
}

/// Prices, in one currency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Name of the currency, for the text.
    pub currency: String,
    /// Price of a machine per hour.
    pub machine_hour: f64,
    /// How much of the size one machine holds; only whole machines are bought.
    #[serde(default = "one_u64")]
    pub size_per_machine: u64,
    /// Number of machines whatever the size, if the size is not made of machines.
    pub machines: Option<u64>,
    /// Price of one unit of the size per hour, besides machines: memory by the byte, for example.
    #[serde(default)]
    pub size_hour: f64,
    /// Price of a call of an outside source.
    #[serde(default)]
    pub outside_call: f64,
    /// Price of a gigabyte sent to users.
    #[serde(default)]
    pub gigabyte: f64,
    /// Bytes of a result packet, or of a response if machines were measured; if left out, as in the runs.
    #[serde(default)]
    pub packet_bytes: f64,
    /// Calls of outside sources per request, if machines were measured; the simulator counts its own.
    pub calls_per_request: Option<f64>,
}

/// The promise to a satisfied user.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceLevel {
    /// Its name.
    pub name: String,
    /// Max seconds until the first packet.
    pub first_s: Option<f64>,
    /// Max seconds until the whole response.
    pub whole_s: Option<f64>,
    /// Whether every packet must arrive, at any time.
    #[serde(default)]
    pub complete: bool,
    /// Share of requests, in every hour, for which this must hold.
    pub share: f64,
}

/// A day of arrivals, whose hours add up to 24.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Its name.
    pub name: String,
    /// Parts of the day that differ.
    pub part: Vec<Part>,
}

/// Hours of a day that are alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Number of hours of the day.
    pub hours: f64,
    /// Arrivals in these hours: changes of the scenario, or `rate` (requests per second) if machines were measured.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Whether these hours have no requests.
    #[serde(default)]
    pub idle: bool,
}

/// The model for a size.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// A scenario of the simulator, with the plan's changes.
    Simulated(Table),
    /// A measured machine, multiplied by the size.
    Measured(Machine),
}

/// Max runs over all sizes, seeds, patterns and parts.
const RUNS_MAX: usize = 20_000;
/// Max size that a number of the simulator holds exactly.
const SIZE_MAX: u64 = 1 << 53;

fn one() -> u32 {
    1
}
fn one_u64() -> u64 {
    1
}

impl Plan {
    /// Reads and checks a plan. The error is a sentence that names the key.
    pub fn read(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
        plan.check()?;
        Ok(plan)
    }

    /// Reads the files that the plan names, relative to its folder. `read` reads a scenario: bounded, and a regular file
    /// alone.
    pub fn model(&self, folder: &Path, read: impl FnOnce(&Path) -> io::Result<String>) -> Result<Model, String> {
        match (&self.scenario, &self.measured) {
            (Some(scenario), _) => {
                let text = read(&folder.join(scenario));
                self.simulated(&text.map_err(|e| format!("scenario = {scenario:?}: it cannot be read: {e}"))?)
            }
            (_, Some(runs)) => {
                Machine::read(&folder.join(runs)).map(Model::Measured).map_err(|e| format!("measured = {runs:?}: {e}"))
            }
            (None, None) => Err("expected scenario, or measured".to_owned()),
        }
    }

    /// Returns the model of a scenario's text.
    fn simulated(&self, text: &str) -> Result<Model, String> {
        let named = |e: String| format!("{}: {e}", self.scenario.as_deref().unwrap_or("scenario"));
        let mut base: Table = toml::from_str(text).map_err(|e| named(e.to_string().trim_end().to_owned()))?;
        for (key, value) in &self.set {
            settings::set(&mut base, key, value.clone())?;
        }
        Ok(Model::Simulated(base))
    }

    fn check(&self) -> Result<(), String> {
        let rising = self.sizes.windows(2).all(|pair| pair[0] < pair[1]);
        if self.sizes.is_empty() || self.sizes[0] == 0 || self.sizes.iter().any(|size| *size > SIZE_MAX) || !rising {
            return Err("sizes: expected a rising list of numbers above 0".to_owned());
        }
        if self.seeds == 0 || self.prices.size_per_machine == 0 {
            return Err("seeds and prices.size_per_machine: expected at least 1".to_owned());
        }
        match (&self.scenario, &self.measured) {
            (Some(_), None) => self.check_simulated()?,
            (None, Some(_)) => self.check_measured()?,
            _ => return Err("expected either scenario (to be simulated) or measured (runs of a server)".to_owned()),
        }
        let prices = &self.prices;
        for (name, price) in [
            ("machine_hour", prices.machine_hour),
            ("size_hour", prices.size_hour),
            ("outside_call", prices.outside_call),
            ("gigabyte", prices.gigabyte),
            ("packet_bytes", prices.packet_bytes),
            ("calls_per_request", prices.calls_per_request.unwrap_or(0.0)),
        ] {
            if !(price.is_finite() && price >= 0.0) {
                return Err(format!("prices.{name} = {price}: expected at least 0"));
            }
        }
        if self.promise.is_empty() || self.pattern.is_empty() {
            return Err("expected at least one [[promise]] and one [[pattern]]".to_owned());
        }
        self.promise.iter().try_for_each(ServiceLevel::check)?;
        for pattern in &self.pattern {
            let hours: f64 = pattern.part.iter().map(|part| part.hours).sum();
            if pattern.part.iter().any(|part| part.hours <= 0.0) || (hours - 24.0).abs() > 1e-6 {
                return Err(format!("pattern {}: its parts have {hours} hours: expected 24", pattern.name));
            }
            if pattern.part.iter().all(|part| part.idle) {
                return Err(format!("pattern {}: expected a part that is not idle", pattern.name));
            }
        }
        let parts: usize = self.pattern.iter().map(|pattern| pattern.part.len()).sum();
        match parts * self.sizes.len() * self.seeds as usize {
            runs if runs > RUNS_MAX => {
                Err(format!("sizes, seeds and parts make {runs} runs: expected at most {RUNS_MAX}"))
            }
            _ => Ok(()),
        }
    }

    fn check_simulated(&self) -> Result<(), String> {
        if self.prices.calls_per_request.is_some() {
            return Err("prices.calls_per_request: the simulator counts calls itself: expected it with measured only"
                .to_owned());
        }
        if self.prices.gigabyte > 0.0 && self.prices.packet_bytes <= 0.0 {
            return Err("prices.gigabyte: expected packet_bytes beside it, the bytes of a packet".to_owned());
        }
        Ok(())
    }

    /// Machines are bought whole, and queried at a rate.
    fn check_measured(&self) -> Result<(), String> {
        if self.prices.outside_call > 0.0 && self.prices.calls_per_request.is_none() {
            return Err(
                "prices.outside_call: runs do not say what a server asks of others: expected calls_per_request beside it"
                    .to_owned(),
            );
        }
        if self.size != "machines" || !self.set.is_empty() {
            return Err("measured: expected size = \"machines\" and no [set]".to_owned());
        }
        for pattern in &self.pattern {
            for part in pattern.part.iter().filter(|part| !part.idle) {
                let only = part.set.len() == 1 && part.rate().is_some_and(|rate| rate > 0.0 && rate.is_finite());
                if !only {
                    return Err(format!(
                        "pattern {}: expected set = {{ rate = … }}, requests a second above 0",
                        pattern.name
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Part {
    /// Returns the requests per second, if machines were measured.
    fn rate(&self) -> Option<f64> {
        match self.set.get("rate")? {
            Value::Float(rate) => Some(*rate),
            Value::Integer(rate) => Some(*rate as f64),
            _ => None,
        }
    }
}

impl ServiceLevel {
    fn check(&self) -> Result<(), String> {
        let times = [self.first_s, self.whole_s];
        let sound = times.iter().flatten().all(|s| *s > 0.0) && times.iter().any(Option::is_some);
        match sound && self.share > 0.0 && self.share <= 1.0 {
            true => Ok(()),
            false => Err(format!("promise {}: expected first_s or whole_s above 0 and a share of (0, 1]", self.name)),
        }
    }

    /// Returns whether a request kept it, from the time of its first packet, and of its last if all arrived.
    fn is_kept(&self, first_s: Option<f64>, whole_s: Option<f64>) -> bool {
        let within = |limit: Option<f64>, at: Option<f64>| limit.is_none_or(|limit| at.is_some_and(|at| at <= limit));
        within(self.first_s, first_s) && within(self.whole_s, whole_s) && (whole_s.is_some() || !self.complete)
    }
}
