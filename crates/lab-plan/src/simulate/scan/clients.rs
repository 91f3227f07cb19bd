//! The clients' own machines, whose cores limit the request rate.

use super::Tier;
use crate::simulate::events::{Micros, micros};

/// Cores of the clients' machines, and the time at which each is free.
#[derive(Debug)]
pub(super) struct Cores {
    /// By machine; empty if clients have no limit.
    nodes: Vec<Vec<Micros>>,
    /// Time to start a scan.
    begin: Micros,
}

impl Cores {
    pub(super) fn of(tier: &Tier) -> Cores {
        let node = |cores: u32| vec![0; cores as usize];
        let nodes = tier.clients.map_or_else(Vec::new, |of| vec![node(of.cores); of.nodes as usize]);
        Cores { nodes, begin: tier.clients.map_or(0, |of| micros(of.scan_ms / 1e3)) }
    }

    /// Returns when a client that starts a scan now has sent its first request.
    pub(super) fn begins(&mut self, client: u32, now: Micros) -> Micros {
        self.works(client, now, self.begin)
    }

    /// Returns when a client that works for this long from now is done. It waits for the first free core of its
    /// machine; without a limit it has its own core.
    pub(super) fn works(&mut self, client: u32, now: Micros, time: Micros) -> Micros {
        let count = self.nodes.len().max(1);
        let cores = self.nodes.get_mut(client as usize % count);
        match cores.and_then(|cores| cores.iter_mut().min()) {
            Some(free) => {
                *free = now.max(*free) + time;
                *free
            }
            None => now + time,
        }
    }
}
