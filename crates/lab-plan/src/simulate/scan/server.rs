//! A server's own state in a trial: its executor, and the cores that its batches share.

use super::Tier;
use super::client::Key;
use super::shared::{SharedCores, Work};
use crate::simulate::events::Micros;
use meridian_model::policy::busy::{Executor, Limits};

#[derive(Debug)]
pub(super) struct Server {
    pub(super) executor: Executor<Key>,
    /// Share of each tablet that is in the cache.
    pub(super) cached: Vec<f64>,
    /// Incremented when the computing batches change: an end scheduled before is void.
    pub(super) change: u32,
    /// By client.
    cores: SharedCores<u32>,
}

impl Server {
    pub(super) fn of(tier: &Tier) -> Server {
        // Two attempts of each client, if scans are hedged.
        let clients = tier.threads as usize * 2;
        let places = tier.machine.executor_threads as usize;
        Server {
            executor: Executor::new(Limits { places, started: clients, waiting: clients }),
            cached: vec![0.0; tier.tablets as usize],
            change: 0,
            cores: SharedCores::new(tier.machine.cores),
        }
    }

    /// Adds a client's batch to the computing ones.
    pub(super) fn compute(&mut self, client: u32, work: Work, now: Micros) {
        self.cores.begin(client, work, now);
    }

    /// Returns the clients whose batches are done by now.
    pub(super) fn done(&mut self, now: Micros) -> Vec<u32> {
        self.cores.done(now)
    }

    /// Returns how long the next batch still takes if nothing changes, and the number of the change for which that
    /// holds.
    pub(super) fn next_done(&mut self) -> Option<(Micros, u32)> {
        // Each arrival changes when the next batch ends.
        self.change += 1;
        self.cores.next_done().map(|time| (time, self.change))
    }
}
