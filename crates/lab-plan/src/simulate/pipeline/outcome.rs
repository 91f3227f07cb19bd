//! The outcome of a pipeline trial for its users: the JSON defined by the contract.

use super::SimulatedTrial;
use crate::simulate::events::seconds;
use meridian_lab_results::record::{Outcome, Record};
use serde::Serialize;

/// The result of `lab simulate` for a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineOutcome {
    /// Every request, in order.
    pub requests: Vec<RequestOutcome>,
    /// Least-squares fit of `first_s` over requests 1 to the last before the first absent one; null for fewer than
    /// two.
    pub growth_per_request_s: Option<f64>,
    /// The first request without results.
    pub first_absent: Option<u32>,
    /// Runs of requests without results.
    pub bursts: Vec<Burst>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestOutcome {
    /// Its number, from 1.
    pub n: u32,
    /// Start time.
    pub start_s: f64,
    /// Seconds from its start to its first packet; null if none arrived.
    pub first_s: Option<f64>,
    /// Seconds from its start to its last packet; null if none arrived.
    pub last_s: Option<f64>,
    /// Number of packets received.
    pub packets: u32,
}

/// A run of requests without results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// The last request before it with results (0: none).
    pub after_n: u32,
    /// Seconds to that request's first packet.
    pub before_first_s: Option<f64>,
    /// Number of requests without results.
    pub lost: u32,
    /// Seconds to the first packet of the request after the run; null if the trial ended with it.
    pub restart_first_s: Option<f64>,
}

impl PipelineOutcome {
    /// Reads a trial.
    pub fn of(trial: &SimulatedTrial) -> PipelineOutcome {
        let requests: Vec<RequestOutcome> = trial
            .starts
            .iter()
            .zip(&trial.packets)
            .enumerate()
            .map(|(i, (start, packets))| RequestOutcome {
                n: i as u32 + 1,
                start_s: seconds(*start),
                first_s: packets.first().map(|at| seconds(at - start)),
                last_s: packets.last().map(|at| seconds(at - start)),
                packets: packets.len() as u32,
            })
            .collect();
        let first_absent = requests.iter().find(|request| request.first_s.is_none()).map(|request| request.n);
        // Past the first loss the queue is shortened by drops, and waits no longer grow with each request.
        let flowing = first_absent.map_or(requests.len(), |n| n as usize - 1);
        let points: Vec<(f64, f64)> =
            requests[..flowing].iter().filter_map(|r| Some((f64::from(r.n), r.first_s?))).collect();
        PipelineOutcome { growth_per_request_s: slope(&points), first_absent, bursts: bursts(&requests), requests }
    }
}

/// Min answered requests between two bursts: the study's trials had no fewer (114 to 115 of 24 workers are five).
const APART: u32 = 5;

impl PipelineOutcome {
    /// Returns the bursts as a reader of the study would count them. One or two requests that still get through at the
    /// edge of a drop do not separate bursts.
    pub fn joined_bursts(&self) -> Vec<Burst> {
        let mut out: Vec<Burst> = Vec::new();
        // The last request of the previous burst, with or without results.
        let mut ended = 0;
        for burst in &self.bursts {
            match out.last_mut() {
                Some(last) if burst.after_n < ended + APART => {
                    last.lost += burst.lost;
                    last.restart_first_s = burst.restart_first_s;
                }
                _ => out.push(burst.clone()),
            }
            ended = burst.after_n + burst.lost;
        }
        out
    }
}

impl SimulatedTrial {
    /// Returns the trial as the rows that a real run would have written.
    pub fn records(&self, complete: u32) -> Vec<Record> {
        let rows = self.starts.iter().zip(&self.packets).enumerate();
        rows.map(|(i, (start, packets))| Record {
            n: i as u32 + 1,
            intended: *start as i64,
            sent: Some(*start as i64),
            first_byte: packets.first().map(|at| *at as i64),
            first_result: packets.first().map(|at| *at as i64),
            last_result: packets.last().map(|at| *at as i64),
            done: Some(packets.last().copied().unwrap_or(self.end) as i64),
            packets: packets.len() as u32,
            results: packets.len() as u64,
            outcome: match packets.len() as u32 {
                0 => Outcome::Absent,
                n if n < complete => Outcome::Partial,
                _ => Outcome::Sound,
            },
            ..Record::default()
        })
        .collect()
    }
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    if points.len() < 2 {
        return None;
    }
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    Some(sxy / sxx)
}

fn bursts(requests: &[RequestOutcome]) -> Vec<Burst> {
    let mut out: Vec<Burst> = Vec::new();
    let mut before: Option<&RequestOutcome> = None;
    let mut lost = 0;
    let burst = |before: Option<&RequestOutcome>, lost, restart_first_s| Burst {
        after_n: before.map_or(0, |request| request.n),
        before_first_s: before.and_then(|request| request.first_s),
        lost,
        restart_first_s,
    };
    for request in requests {
        if request.first_s.is_none() {
            lost += 1;
            continue;
        }
        if lost > 0 {
            out.push(burst(before, lost, request.first_s));
            lost = 0;
        }
        before = Some(request);
    }
    if lost > 0 {
        out.push(burst(before, lost, None));
    }
    out
}
