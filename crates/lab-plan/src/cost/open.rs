//! Simulates random arrivals at a measured machine.
//!
//! A run of closed users without think time holds their number constant. Requests of a public service arrive at random
//! (a Poisson process), so their number varies. The number of users is simulated, and the speed of each was measured
//! at that number. A request at the quantile u with n users progresses by 1 / (wait of u at n) per second. With a
//! constant number of users that reproduces the measured distributions (the flow-equivalent server of Chandy, Herzog
//! and Woo 1975, with quantiles for means). If throughput shows a fixed number of workers, they are simulated as such:
//! a queue, and service times as measured without waiting.

use super::law::{Level, Machine, ServiceModel};
use meridian_lab_results::random::SeededRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests of a simulation, and the number of uncounted ones before them.
const REQUESTS: usize = 20_000;
const BEFORE: usize = 2_000;
/// Number of batches of requests, whose shares are treated as independent.
const BATCHES: usize = 20;

/// How many requests kept each promise.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PromiseShares {
    /// Share of requests, for each promise.
    pub shares: Vec<f64>,
    /// Lower bound of these shares (95 %, one-sided).
    pub sure: Vec<f64>,
}

impl Machine {
    /// Simulates the waits at a rate (per second) and compares them with each promise; `None` if the rate exceeds the
    /// measured ones.
    pub(super) fn at(&self, rate: f64, seeds: u32, keeps: &[&dyn Fn(Option<f64>) -> bool]) -> Option<PromiseShares> {
        if rate > self.rate_most {
            return None;
        }
        let mut batches: Vec<Vec<f64>> = vec![Vec::new(); keeps.len()];
        for seed in 1..=seeds {
            let waits = self.waits(rate, &mut SeededRng::new(u64::from(seed)));
            // Neighbours share a queue, so single requests are no independent samples. Batch means of this length
            // nearly are.
            for batch in waits.chunks(waits.len().div_ceil(BATCHES).max(1)) {
                for (shares, keep) in batches.iter_mut().zip(keeps) {
                    let kept = batch.iter().filter(|wait| keep(Some(**wait).filter(|wait| wait.is_finite()))).count();
                    shares.push(kept as f64 / batch.len() as f64);
                }
            }
        }
        let mean = |shares: &Vec<f64>| shares.iter().sum::<f64>() / shares.len() as f64;
        let sure = |shares: &Vec<f64>| {
            let (n, mean) = (shares.len() as f64, mean(shares));
            let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
            // Student's t for nineteen degrees of freedom and more.
            (mean - 1.729 * (variance / n).sqrt()).max(0.0)
        };
        Some(PromiseShares { shares: batches.iter().map(mean).collect(), sure: batches.iter().map(sure).collect() })
    }

    /// Returns the seconds that requests wait, in the order in which they ended. Infinite for failures, and for
    /// arrivals at more concurrent users than were measured.
    fn waits(&self, rate: f64, rng: &mut SeededRng) -> Vec<f64> {
        let most = self.users_most as usize;
        let mut out = match self.serves {
            ServiceModel::Workers(workers) => queued(self.unqueued(workers), workers, rate, most, rng),
            ServiceModel::Shared => shared(self, rate, most, rng),
        };
        out.drain(..BEFORE.min(out.len()));
        out
    }

    /// Returns the level with the most users at which no request waited for a worker.
    fn unqueued(&self, workers: u32) -> &Level {
        // With more users than workers the measured waits contain the queue, which the simulation adds itself.
        let below = self.levels.iter().rfind(|level| level.users <= f64::from(workers));
        below.unwrap_or(&self.levels[0])
    }
}

/// Simulates `workers` workers with the measured service times, and at most `most` concurrent requests.
fn queued(served: &Level, workers: u32, rate: f64, most: usize, rng: &mut SeededRng) -> Vec<f64> {
    let mut free: BinaryHeap<Reverse<u64>> = (0..workers).map(|_| Reverse(0)).collect();
    let mut there: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let (mut now, mut out) = (0.0, Vec::with_capacity(REQUESTS + BEFORE));
    // Integers, since a heap needs a total order and floats have none.
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    for _ in 0..REQUESTS + BEFORE {
        now += rng.exponential(1.0 / rate);
        while there.peek().is_some_and(|Reverse(end)| *end <= ns(now)) {
            there.pop();
        }
        let takes = served.wait(rng.fraction());
        // Beyond the largest measured load nothing is known, so the request fails rather than being priced by a guess.
        if there.len() >= most {
            out.push(f64::INFINITY);
            continue;
        }
        let Some(Reverse(worker)) = free.pop() else { break };
        // A failed request held its worker for as long as others do.
        let holds = if takes.is_finite() { takes } else { served.wait(0.0) };
        let end = worker.max(ns(now)) + ns(holds);
        free.push(Reverse(end));
        there.push(Reverse(end));
        out.push(if takes.is_finite() { end as f64 / 1e9 - now } else { f64::INFINITY });
    }
    out
}

/// A request that shares the machine with others.
struct Job {
    came: f64,
    /// Its quantile among fast and slow requests.
    share: f64,
    /// The remaining work.
    left: f64,
}

fn shared(machine: &Machine, rate: f64, most: usize, rng: &mut SeededRng) -> Vec<f64> {
    let mut jobs: Vec<Job> = Vec::new();
    let (mut now, mut next, mut out) = (0.0, rng.exponential(1.0 / rate), Vec::with_capacity(REQUESTS + BEFORE));
    while out.len() < REQUESTS + BEFORE {
        // Looked up at every event: each request runs at the speed of the current number of requests, not of the
        // number at its arrival.
        let (from, to, way) = machine.around(jobs.len() as f64);
        let wait = |share: f64| match (from.wait(share), to.wait(share)) {
            (a, b) if a.is_finite() && b.is_finite() => a + (b - a) * way,
            // For concurrent requests, a failure takes as long as the fastest response.
            _ => from.wait(0.0),
        };
        let ends = jobs.iter().map(|job| now + job.left * wait(job.share));
        let first = ends.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        let until = first.map_or(next, |(_, end)| end.min(next));
        let passed = until - now;
        jobs.iter_mut().for_each(|job| job.left = (job.left - passed / wait(job.share)).max(0.0));
        now = until;
        match first {
            Some((at, end)) if end <= next => {
                let job = jobs.swap_remove(at);
                let failed = from.wait(job.share).is_infinite() || to.wait(job.share).is_infinite();
                out.push(if failed { f64::INFINITY } else { now - job.came });
            }
            _ => {
                match jobs.len() >= most {
                    true => out.push(f64::INFINITY),
                    false => jobs.push(Job { came: now, share: rng.fraction(), left: 1.0 }),
                }
                next = now + rng.exponential(1.0 / rate);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(users: f64, throughput: f64, wait: impl Fn(f64) -> f64) -> Level {
        let waits = (0..1_000).map(|i| wait((f64::from(i) + 0.5) / 1_000.0)).collect();
        Level::of(users, throughput, waits).unwrap()
    }

    fn share(machine: &Machine, rate: f64, within_s: f64) -> f64 {
        let keep = |wait: Option<f64>| wait.is_some_and(|wait| wait <= within_s);
        machine.at(rate, 3, &[&keep]).unwrap().shares[0]
    }

    /// Four workers of 20 ms each.
    fn workers() -> Machine {
        let of = |users: f64| level(users, 50.0 * users.min(4.0), |_| 0.02 * users.max(4.0) / 4.0);
        Machine::of([1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0].map(of).to_vec()).unwrap()
    }

    #[test]
    fn requests_that_come_by_chance_wait_though_the_mean_says_that_none_does() {
        let machine = workers();
        assert_eq!(machine.serves, ServiceModel::Workers(4));
        // A separate queue, by Lindley's recursion over four workers.
        for rate in [100.0, 160.0, 180.0] {
            let (mut rng, mut free, mut now, mut quick) = (SeededRng::new(77), [0.0_f64; 4], 0.0, 0);
            for _ in 0..200_000 {
                now += rng.exponential(1.0 / rate);
                let worker = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
                *worker = worker.max(now) + 0.02;
                quick += u32::from(*worker - now <= 0.03);
            }
            let (due, found) = (f64::from(quick) / 200_000.0, share(&machine, rate, 0.03));
            assert!((found - due).abs() < 0.03, "{rate}: {found}, {due} are due");
        }
        assert!(share(&machine, 180.0, 0.03) < 0.95 && share(&machine, 60.0, 0.03) > 0.97);
        // Load beyond the measurements is not sold, whatever a law predicts.
        assert_eq!(machine.at(200.1, 1, &[]), None);
    }

    #[test]
    fn what_is_shared_is_as_slow_as_was_measured_at_as_many() {
        // One processor that all share: n requests take n times as long, exponentially distributed; M/M/1 under
        // processor sharing.
        let of = |users: f64| level(users, 100.0, move |share| -0.01 * users * (1.0 - share).ln());
        let machine = Machine::of([1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 64.0].map(of).to_vec()).unwrap();
        let machine = Machine { serves: ServiceModel::Shared, ..machine };
        let mut rng = SeededRng::new(5);
        let waits = machine.waits(50.0, &mut rng);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        // 1 / (100 - 50) s on average.
        assert!((mean / 0.02 - 1.0).abs() < 0.1, "{mean}");
        // A lone user at 1 in 50 of that rate gets the distribution of the first level.
        assert!((share(&machine, 1.0, 0.01) - 0.632).abs() < 0.02, "{}", share(&machine, 1.0, 0.01));
    }

    #[test]
    fn what_failed_at_a_level_is_never_kept() {
        let of = |users: f64| level(users, 45.0 * users, |share| if share < 0.9 { 0.02 } else { f64::INFINITY });
        let machine = Machine::of([1.0, 2.0, 3.0, 4.0, 8.0, 16.0].map(of).to_vec()).unwrap();
        assert!((share(&machine, 100.0, 1.0) - 0.9).abs() < 0.02);
    }
}
