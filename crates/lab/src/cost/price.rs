//! Pricing: every size under every pattern, and the cheapest that keeps each promise.

use super::{Part, Pattern, Plan, Promise};
use crate::simulate::{Scenario, agenda, pipeline, settings};
use serde::Serialize;
use toml::{Table, Value};

/// What a size costs under a pattern, and how well it keeps a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bill {
    /// The size.
    pub size: u32,
    /// Cost of a day.
    pub per_day: f64,
    /// Cost of a thousand satisfied requests; null where none is satisfied.
    pub per_thousand_satisfied: Option<f64>,
    /// Share of the day's requests that are satisfied.
    pub satisfied_share: f64,
    /// The same in the hours in which it is least.
    pub worst_share: f64,
}

/// A promise under a pattern: all sizes, and the one to buy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Offer {
    /// The pattern.
    pub pattern: String,
    /// The promise.
    pub promise: String,
    /// Every size in order.
    pub bills: Vec<Bill>,
    /// The cheapest size that keeps the promise; null where none does.
    pub cheapest: Option<Bill>,
}

/// A plan with its prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Priced {
    /// The currency.
    pub currency: String,
    /// What is bought, as the plan names it.
    pub size: String,
    /// Each pattern with each promise, in the plan's order.
    pub offers: Vec<Offer>,
}

/// One part of a day at one size: what was simulated, per hour.
struct Hour {
    requests: f64,
    calls: f64,
    packets: f64,
    /// Share satisfied, for each promise.
    shares: Vec<f64>,
}

impl Plan {
    /// Prices the plan. `scenario` is the scenario's text.
    pub fn price(&self, scenario: &str) -> Result<Priced, String> {
        let mut base: Table = toml::from_str(scenario).map_err(|e| format!("{}: {e}", self.scenario))?;
        for (key, value) in &self.set {
            settings::set(&mut base, key, value.clone())?;
        }
        let mut offers = Vec::new();
        for pattern in &self.pattern {
            // Outer: sizes; inner: parts of the day.
            let mut days = Vec::new();
            for size in &self.sizes {
                let hours: Vec<Option<Hour>> =
                    pattern.part.iter().map(|part| self.hour(&base, *size, part)).collect::<Result<_, _>>()?;
                days.push((*size, hours));
            }
            for (nth, promise) in self.promise.iter().enumerate() {
                let bills: Vec<Bill> = days.iter().map(|(size, hours)| self.bill(*size, pattern, hours, nth)).collect();
                let kept = bills.iter().filter(|bill| bill.worst_share >= promise.share);
                let cheapest = kept.min_by(|a, b| a.per_day.total_cmp(&b.per_day)).cloned();
                let (pattern, promise) = (pattern.name.clone(), promise.name.clone());
                offers.push(Offer { pattern, promise, bills, cheapest });
            }
        }
        Ok(Priced { currency: self.prices.currency.clone(), size: self.size.clone(), offers })
    }

    fn hour(&self, base: &Table, size: u32, part: &Part) -> Result<Option<Hour>, String> {
        if part.idle {
            return Ok(None);
        }
        let mut kept = vec![0.0; self.promise.len()];
        let (mut requests, mut span_s, mut calls, mut packets) = (0.0, 0.0, 0.0, 0.0);
        for seed in 1..=self.seeds {
            let mut table = base.clone();
            for (key, value) in &part.set {
                settings::set(&mut table, key, value.clone())?;
            }
            settings::set(&mut table, &self.size, Value::Integer(i64::from(size)))?;
            settings::set(&mut table, "seed", Value::Integer(i64::from(seed)))?;
            let Scenario::Pipeline(pipeline) = Scenario::of(table)? else {
                return Err(format!("{}: expected a scenario of kind \"pipeline\"", self.scenario));
            };
            let trial = pipeline::run(&pipeline);
            let whole = pipeline.packets();
            span_s += pipeline.arrival.span_s();
            requests += trial.starts.len() as f64;
            calls += trial.calls as f64;
            for (start, delivered) in trial.starts.iter().zip(&trial.packets) {
                packets += delivered.len() as f64;
                let first_s = delivered.first().map(|at| agenda::seconds(at - start));
                for (count, promise) in kept.iter_mut().zip(&self.promise) {
                    *count += f64::from(u8::from(satisfied(promise, first_s, delivered.len() as u32 == whole)));
                }
            }
        }
        let per_hour = 3_600.0 / span_s;
        Ok(Some(Hour {
            requests: requests * per_hour,
            calls: calls * per_hour,
            packets: packets * per_hour,
            shares: kept.iter().map(|count| count / requests).collect(),
        }))
    }

    fn bill(&self, size: u32, pattern: &Pattern, hours: &[Option<Hour>], promise: usize) -> Bill {
        let prices = &self.prices;
        let machines = f64::from(size.div_ceil(prices.size_per_machine));
        let mut per_day = machines * prices.machine_hour * 24.0;
        let (mut requests, mut satisfied, mut worst) = (0.0, 0.0, 1.0f64);
        for (part, hour) in pattern.part.iter().zip(hours) {
            let Some(hour) = hour else { continue };
            let gigabytes = hour.packets * prices.packet_bytes / 1e9;
            per_day += part.hours * (hour.calls * prices.outside_call + gigabytes * prices.gigabyte);
            requests += part.hours * hour.requests;
            satisfied += part.hours * hour.requests * hour.shares[promise];
            worst = worst.min(hour.shares[promise]);
        }
        Bill {
            size,
            per_day,
            per_thousand_satisfied: (satisfied > 0.0).then(|| per_day / satisfied * 1_000.0),
            satisfied_share: satisfied / requests,
            worst_share: worst,
        }
    }
}

fn satisfied(promise: &Promise, first_s: Option<f64>, whole: bool) -> bool {
    first_s.is_some_and(|first| first <= promise.first_s) && (whole || !promise.complete)
}
