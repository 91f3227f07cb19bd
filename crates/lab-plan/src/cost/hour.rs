//! An hour at one size: the number of requests, the resources they use, and how many are satisfied.

use super::{Machine, Model, Part, Plan, ServiceLevel};
use crate::simulate::{Scenario, events, pipeline, scan, settings};
use toml::{Table, Value};

/// One part of a day at one size, for an hour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hour {
    pub requests: f64,
    pub calls: f64,
    /// Bytes sent to users.
    pub bytes: f64,
    /// Share satisfied, for each promise.
    pub shares: Vec<f64>,
    /// Lower bound of those shares.
    pub sure: Vec<f64>,
    /// Whether the load lies within the measurements. Beyond them nothing is known.
    pub is_known: bool,
}

/// The simulation's figures, over all seeds.
#[derive(Default)]
struct Tally {
    span_s: f64,
    requests: f64,
    calls: f64,
    packets: f64,
    /// Number of requests that kept each promise.
    kept: Vec<f64>,
}

impl Plan {
    /// Returns an hour of a part of the day; `None` if it is idle.
    pub(super) fn hour(&self, model: &Model, size: u64, part: &Part) -> Result<Option<Hour>, String> {
        match model {
            _ if part.idle => Ok(None),
            Model::Simulated(base) => self.simulate(base, size, part).map(Some),
            Model::Measured(machine) => {
                let rate = part.rate().unwrap_or(0.0);
                let keep = |promise| move |wait_s: Option<f64>| ServiceLevel::is_kept(promise, wait_s, wait_s);
                let keeps: Vec<_> = self.promise.iter().map(keep).collect();
                let keeps: Vec<&dyn Fn(Option<f64>) -> bool> =
                    keeps.iter().map(|keep| keep as &dyn Fn(_) -> _).collect();
                // Requests arrive by chance at several machines, and so at each of them. A random split of a Poisson
                // process gives Poisson processes, so one machine at its part of the rate represents all.
                let kept = machine.at(rate / size as f64, self.seeds, &keeps);
                let is_known = kept.is_some();
                let none = vec![0.0; self.promise.len()];
                let (shares, sure) = kept.map_or_else(|| (none.clone(), none.clone()), |kept| (kept.shares, kept.sure));
                let requests = rate * 3_600.0;
                Ok(Some(Hour {
                    requests,
                    calls: requests * self.prices.calls_per_request.unwrap_or(0.0),
                    bytes: requests * self.answer_bytes(machine).unwrap_or(0.0),
                    shares,
                    sure,
                    is_known,
                }))
            }
        }
    }

    fn simulate(&self, base: &Table, size: u64, part: &Part) -> Result<Hour, String> {
        let mut tally = Tally { kept: vec![0.0; self.promise.len()], ..Tally::default() };
        for seed in 1..=self.seeds {
            let mut table = base.clone();
            for (key, value) in &part.set {
                settings::set(&mut table, key, value.clone())?;
            }
            settings::set(&mut table, &self.size, Value::Integer(size as i64))?;
            settings::set(&mut table, "seed", Value::Integer(i64::from(seed)))?;
            match Scenario::of(table)? {
                Scenario::Pipeline(pipeline) => tally.pipeline(&pipeline, &self.promise),
                Scenario::Scan(tier) => tally.tier(&tier, &self.promise),
                Scenario::Tenants(_) | Scenario::Closed(_) => {
                    return Err("kind: expected \"pipeline\" or \"scan-tier\", which have a price".to_owned());
                }
            }
        }
        Ok(tally.hour(self.prices.packet_bytes))
    }

    /// Returns the bytes of a response of a measured machine.
    pub(super) fn answer_bytes(&self, machine: &Machine) -> Option<f64> {
        Some(self.prices.packet_bytes).filter(|bytes| *bytes > 0.0).or(machine.answer_bytes)
    }
}

impl Tally {
    fn pipeline(&mut self, pipeline: &pipeline::Pipeline, promises: &[ServiceLevel]) {
        let (trial, whole) = (pipeline::run(pipeline), pipeline.packets() as usize);
        self.span_s += pipeline.arrival.span_s();
        self.calls += trial.calls as f64;
        for (start, packets) in trial.starts.iter().zip(&trial.packets) {
            self.packets += packets.len() as f64;
            let after = |at: &events::Micros| events::seconds(at - start);
            let last = packets.last().filter(|_| packets.len() == whole);
            self.request(promises, packets.first().map(after), last.map(after));
        }
    }

    /// Clients of a tier ask again at once, so the number of requests follows from their waits. A scan is one
    /// response.
    fn tier(&mut self, tier: &scan::Tier, promises: &[ServiceLevel]) {
        let mut waited_s = 0.0;
        scan::each(tier, &mut |ms| {
            let whole_s = Some(ms / 1e3);
            waited_s += ms / 1e3;
            self.packets += 1.0;
            self.request(promises, whole_s, whole_s);
        });
        // Each thread waits without a break, so the elapsed time is the sum of all waits over the threads.
        self.span_s += waited_s / f64::from(tier.threads);
    }

    fn request(&mut self, promises: &[ServiceLevel], first_s: Option<f64>, whole_s: Option<f64>) {
        self.requests += 1.0;
        for (kept, promise) in self.kept.iter_mut().zip(promises) {
            *kept += f64::from(u8::from(promise.is_kept(first_s, whole_s)));
        }
    }

    fn hour(self, packet_bytes: f64) -> Hour {
        let per_hour = 3_600.0 / self.span_s;
        Hour {
            requests: self.requests * per_hour,
            calls: self.calls * per_hour,
            bytes: self.packets * per_hour * packet_bytes,
            shares: self.kept.iter().map(|kept| kept / self.requests).collect(),
            sure: self.kept.iter().map(|kept| kept / self.requests).collect(),
            is_known: true,
        }
    }
}
