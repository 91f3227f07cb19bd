//! What a satisfied user costs, and which size is the cheapest that keeps a promise.
//!
//! A folder's `cost.toml` ([`Plan`]) names a scenario of the simulator, the number in it that can be bought (workers, servers), prices,
//! patterns of arrival over a day and promises in order of strictness. [`Plan::price`] simulates every size under every hour of every
//! pattern. A request is satisfied when it keeps the promise whole; who got something late or in part pays nothing, but what it
//! cost is spent. So cost per thousand satisfied requests falls with size while size buys satisfaction, and rises
//! when it only buys idleness: the curve has a bottom, and the cheapest size that keeps the promise lies at it or to its right.

mod price;
mod show;
#[cfg(test)]
mod tests;

pub use price::{Bill, Offer, Priced};

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// `cost.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The pipeline scenario, relative to the folder.
    pub scenario: String,
    /// Changes of the scenario for every run.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Dotted key of the number that is bought.
    pub size: String,
    /// Sizes that are tried, rising.
    pub sizes: Vec<u32>,
    /// Runs with different seeds at each point; their requests are counted together.
    pub seeds: u32,
    /// What things cost.
    pub prices: Prices,
    /// Promises, each stricter than the one before.
    pub promise: Vec<Promise>,
    /// How requests arrive over a day.
    pub pattern: Vec<Pattern>,
}

/// What things cost, in one currency.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Its name, for the text.
    pub currency: String,
    /// A machine for an hour.
    pub machine_hour: f64,
    /// How much of the size one machine holds; machines are bought whole.
    pub size_per_machine: u32,
    /// A call of an outside source.
    #[serde(default)]
    pub outside_call: f64,
    /// A gigabyte sent to users.
    #[serde(default)]
    pub gigabyte: f64,
    /// Bytes of a result packet.
    #[serde(default)]
    pub packet_bytes: f64,
}

/// What a satisfied user gets.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// Its name.
    pub name: String,
    /// The first packet comes within so many seconds.
    pub first_s: f64,
    /// Every packet comes.
    #[serde(default)]
    pub complete: bool,
    /// Share of requests, in every hour, for which that has to hold.
    pub share: f64,
}

/// A day of arrivals: its hours add up to 24.
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
    /// How many hours of the day.
    pub hours: f64,
    /// How requests arrive in them: changes of the scenario.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Hours without any request.
    #[serde(default)]
    pub idle: bool,
}

/// Sizes, seeds, patterns and parts together may ask for so many runs.
const RUNS_MAX: usize = 20_000;

impl Plan {
    /// Reads and checks a plan. The error is a sentence that names the key.
    pub fn read(text: &str) -> Result<Plan, String> {
        let plan: Plan = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_owned())?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        let rising = self.sizes.windows(2).all(|pair| pair[0] < pair[1]);
        if self.sizes.is_empty() || self.sizes[0] == 0 || !rising {
            return Err("sizes: expected a rising list of numbers above 0".to_owned());
        }
        if self.seeds == 0 || self.prices.size_per_machine == 0 {
            return Err("seeds and prices.size_per_machine: expected at least 1".to_owned());
        }
        let prices = &self.prices;
        for (name, price) in [
            ("machine_hour", prices.machine_hour),
            ("outside_call", prices.outside_call),
            ("gigabyte", prices.gigabyte),
            ("packet_bytes", prices.packet_bytes),
        ] {
            if !(price.is_finite() && price >= 0.0) {
                return Err(format!("prices.{name} = {price}: expected at least 0"));
            }
        }
        if self.promise.is_empty() || self.pattern.is_empty() {
            return Err("expected at least one [[promise]] and one [[pattern]]".to_owned());
        }
        for promise in &self.promise {
            if !(promise.first_s > 0.0 && promise.share > 0.0 && promise.share <= 1.0) {
                return Err(format!("promise {}: expected first_s above 0 and a share of (0, 1]", promise.name));
            }
        }
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
}
