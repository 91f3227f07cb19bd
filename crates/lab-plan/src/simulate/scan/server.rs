//! A server's own part of a trial: its executor, and cores that its batches share.

use super::Tier;
use super::client::Key;
use crate::simulate::events::Micros;
use meridian_model::policy::busy::{Executor, Limits};

/// A core's work in units of a nanosecond, so that sharing it keeps whole numbers.
pub(super) type Work = u64;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) executor: Executor<Key>,
    /// Share of each tablet that is in the cache.
    pub(super) cached: Vec<f64>,
    /// Grows with each change of what computes: the event that was entered for the next end before is void.
    pub(super) change: u32,
    cores: u64,
    /// Batches that compute: the virtual time at which each ends, and its client.
    computing: Vec<(Work, u32)>,
    /// Work that each computing batch has been given since the start.
    given: Work,
    settled: Micros,
}

impl Server {
    pub(super) fn of(tier: &Tier) -> Server {
        // Two attempts of each, where scans are hedged.
        let clients = tier.threads as usize * 2;
        let places = tier.machine.executor_threads as usize;
        Server {
            executor: Executor::new(Limits { places, started: clients, waiting: clients }),
            cached: vec![0.0; tier.tablets as usize],
            change: 0,
            cores: u64::from(tier.machine.cores),
            computing: Vec::new(),
            given: 0,
            settled: 0,
        }
    }

    /// A client's batch begins to compute.
    pub(super) fn compute(&mut self, client: u32, work: Work, now: Micros) {
        self.settle(now);
        // In the virtual time of the server, which slows down with its load. Its end stays the same when others come or go.
        self.computing.push((self.given + work, client));
    }

    /// The clients whose batches are done by now.
    pub(super) fn done(&mut self, now: Micros) -> Vec<u32> {
        self.settle(now);
        let given = self.given;
        let mut done = Vec::new();
        self.computing.retain(|(at, client)| {
            if *at <= given {
                done.push(*client);
            }
            *at > given
        });
        done
    }

    /// How long the next batch still takes if nothing changes, and the number of the change that this is said of.
    pub(super) fn next_done(&mut self) -> Option<(Micros, u32)> {
        // Each arrival changes when the next batch ends.
        self.change += 1;
        let next = self.computing.iter().map(|(at, _)| *at).min()?;
        let n = self.computing.len() as u64;
        let left = next.saturating_sub(self.given);
        let time = if n <= self.cores { left } else { (left * n).div_ceil(self.cores) };
        Some((time.div_ceil(1_000), self.change))
    }

    /// Gives computing batches the processor time that passed since it was last given: a core each, or an equal share.
    fn settle(&mut self, now: Micros) {
        let passed = (now - self.settled) * 1_000;
        let n = self.computing.len() as u64;
        if n > 0 {
            // Processor sharing: beyond as many batches as cores, each gets an equal share, and `given` counts the work
            // done for one.
            self.given += if n <= self.cores { passed } else { passed * self.cores / n };
        }
        self.settled = now;
    }
}
