//! The outcome of a trial of tenants.

use super::SharedServer;
use crate::simulate::events::{Micros, micros};
use serde::Serialize;

/// The outcome of the questions of one entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) offered: u64,
    pub(super) refused: u64,
    pub(super) over_quota: u64,
    pub(super) late: u64,
    /// Processor time in nanoseconds.
    pub(super) used: u64,
    /// Arrival and wait of each completed question.
    answers: Vec<(Micros, Micros)>,
}

impl Tally {
    pub(super) fn answered(&mut self, arrived: Micros, took: Micros) {
        self.answers.push((arrived, took));
    }
}

/// The result of `lab simulate` for tenants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantsOutcome {
    /// Completed questions per second, within their clients' deadlines.
    pub good_per_s: f64,
    /// Share of the processors used by questions while questions arrived.
    pub used: f64,
    /// Results by entry.
    pub tenants: Vec<TenantOutcome>,
}

/// The outcome of the questions of one entry of a scenario. Times are those of responses within the deadline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantOutcome {
    /// Name of the entry.
    pub name: String,
    /// Number of questions, including retries.
    pub offered: u64,
    /// Responses within the deadline.
    pub good: u64,
    /// Refusals.
    pub refused: u64,
    /// Refusals by the tenant's quota among them.
    pub over_quota: u64,
    /// Questions whose clients left.
    pub late: u64,
    /// Responses per second.
    pub good_per_s: f64,
    /// Median response time.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Processor seconds.
    pub used_s: f64,
    /// Max response time among questions of the last second, or of the last tenth of a shorter trial.
    pub last_ms: f64,
}

impl TenantsOutcome {
    pub(super) fn of(server: &SharedServer, tallies: &[Tally]) -> TenantsOutcome {
        let end = micros(server.seconds);
        let last_from = end - (end / 10).min(1_000_000);
        let tenants: Vec<_> = server
            .tenant
            .iter()
            .zip(tallies)
            .map(|(tenant, tally)| {
                let mut waits: Vec<Micros> = tally.answers.iter().map(|(_, took)| *took).collect();
                waits.sort_unstable();
                let quantile = |q: f64| {
                    let place = (q * waits.len() as f64).ceil() as usize;
                    waits.get(place.max(1) - 1).map_or(0.0, |took| *took as f64 / 1000.0)
                };
                let last = tally.answers.iter().filter(|(arrived, _)| *arrived >= last_from).map(|(_, took)| *took);
                let length = (tenant.end_s(server.seconds) - tenant.from_s).max(1e-6);
                TenantOutcome {
                    name: tenant.name.clone(),
                    offered: tally.offered,
                    good: waits.len() as u64,
                    refused: tally.refused,
                    over_quota: tally.over_quota,
                    late: tally.late,
                    good_per_s: waits.len() as f64 / length,
                    p50_ms: quantile(0.5),
                    p95_ms: quantile(0.95),
                    p99_ms: quantile(0.99),
                    used_s: tally.used as f64 / 1e9,
                    last_ms: last.max().map_or(0.0, |took| took as f64 / 1000.0),
                }
            })
            .collect();
        let good: u64 = tenants.iter().map(|tenant| tenant.good).sum();
        let used: f64 = tenants.iter().map(|tenant| tenant.used_s).sum();
        TenantsOutcome {
            good_per_s: good as f64 / server.seconds,
            used: used / (server.seconds * f64::from(server.cores)),
            tenants,
        }
    }
}
