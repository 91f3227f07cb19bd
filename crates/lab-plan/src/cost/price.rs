//! Pricing: every size under every pattern, and the cheapest that keeps each promise.

use super::hour::Hour;
use super::{Machine, Model, Pattern, Plan};
use serde::Serialize;
use toml::Value;

/// The cost of a size under a pattern, and how well it keeps a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bill {
    /// The size.
    pub size: u64,
    /// Cost of a day.
    pub per_day: f64,
    /// Cost of a thousand satisfied requests; null if none is satisfied.
    pub per_thousand_satisfied: Option<f64>,
    /// Share of the day's requests that are satisfied.
    pub satisfied_share: f64,
    /// The same share in the worst hours.
    pub worst_share: f64,
    /// Its lower bound (95 %, one-sided), if a measured machine was simulated: a promise requires the bound.
    pub worst_sure: f64,
    /// Whether some hours exceed the measured load; they count as not kept.
    pub beyond_measured: bool,
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
    /// The cheapest size that keeps the promise; null if none does.
    pub cheapest: Option<Bill>,
}

/// A plan with its prices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PricedPlan {
    /// The currency.
    pub currency: String,
    /// The resource bought, as the plan names it.
    pub size: String,
    /// The machine, if one was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Each pattern with each promise, in the plan's order.
    pub offers: Vec<Offer>,
}

impl Plan {
    /// Prices the plan.
    pub fn price(&self, model: &Model) -> Result<PricedPlan, String> {
        if let Some(promise) = self.promise.iter().find(|promise| promise.first_s.is_some())
            && !matches!(model, Model::Simulated(base) if base.get("kind").and_then(Value::as_str) == Some("pipeline"))
        {
            let name = &promise.name;
            return Err(format!("promise {name}: first_s: only a pipeline has first packets: expected whole_s"));
        }
        if let Model::Measured(machine) = model
            && self.prices.gigabyte > 0.0
            && self.answer_bytes(machine).is_none()
        {
            return Err("prices.gigabyte: the runs do not say how large answers are: expected packet_bytes beside it"
                .to_owned());
        }
        let mut offers = Vec::new();
        for pattern in &self.pattern {
            // Outer: sizes; inner: parts of the day.
            let mut days = Vec::new();
            for size in &self.sizes {
                let hours: Vec<Option<Hour>> =
                    pattern.part.iter().map(|part| self.hour(model, *size, part)).collect::<Result<_, _>>()?;
                days.push((*size, hours));
            }
            for (nth, promise) in self.promise.iter().enumerate() {
                let bills: Vec<Bill> = days.iter().map(|(size, hours)| self.bill(*size, pattern, hours, nth)).collect();
                // By the bound, not by the mean: half of all sizes bought by the mean would break the promise.
                let kept = bills.iter().filter(|bill| bill.worst_sure >= promise.share);
                let cheapest = kept.min_by(|a, b| a.per_day.total_cmp(&b.per_day)).cloned();
                let (pattern, promise) = (pattern.name.clone(), promise.name.clone());
                offers.push(Offer { pattern, promise, bills, cheapest });
            }
        }
        let machine = match model {
            Model::Measured(machine) => Some(machine.clone()),
            Model::Simulated(_) => None,
        };
        Ok(PricedPlan { currency: self.prices.currency.clone(), size: self.size.clone(), machine, offers })
    }

    fn bill(&self, size: u64, pattern: &Pattern, hours: &[Option<Hour>], promise: usize) -> Bill {
        let prices = &self.prices;
        let machines = prices.machines.unwrap_or_else(|| size.div_ceil(prices.size_per_machine)) as f64;
        let mut per_day = (machines * prices.machine_hour + size as f64 * prices.size_hour) * 24.0;
        let (mut requests, mut satisfied, mut worst, mut sure) = (0.0, 0.0, 1.0f64, 1.0f64);
        for (part, hour) in pattern.part.iter().zip(hours) {
            let Some(hour) = hour else { continue };
            per_day += part.hours * (hour.calls * prices.outside_call + hour.bytes / 1e9 * prices.gigabyte);
            requests += part.hours * hour.requests;
            satisfied += part.hours * hour.requests * hour.shares[promise];
            // The promise applies to every hour. A mean over the day would let quiet nights pay for broken evenings.
            worst = worst.min(hour.shares[promise]);
            sure = sure.min(hour.sure[promise]);
        }
        Bill {
            size,
            per_day,
            per_thousand_satisfied: (satisfied > 0.0).then(|| per_day / satisfied * 1_000.0),
            satisfied_share: satisfied / requests,
            worst_share: worst,
            worst_sure: sure,
            beyond_measured: hours.iter().flatten().any(|hour| !hour.is_known),
        }
    }
}
