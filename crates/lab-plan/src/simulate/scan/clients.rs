//! The clients' own machines: what they can send is limited by their cores.

use super::Tier;
use crate::simulate::events::{Micros, micros};

/// Cores of the clients' machines, and when each is free.
#[derive(Debug)]
pub(super) struct Cores {
    /// By machine; none where clients have no limit.
    nodes: Vec<Vec<Micros>>,
    /// Time to begin a scan.
    begin: Micros,
}

impl Cores {
    pub(super) fn of(tier: &Tier) -> Cores {
        let node = |cores: u32| vec![0; cores as usize];
        let nodes = tier.clients.map_or_else(Vec::new, |of| vec![node(of.cores); of.nodes as usize]);
        Cores { nodes, begin: tier.clients.map_or(0, |of| micros(of.scan_ms / 1e3)) }
    }

    /// When a client that begins a scan now has sent its first request.
    pub(super) fn begins(&mut self, client: u32, now: Micros) -> Micros {
        self.works(client, now, self.begin)
    }

    /// When a client that works for so long from now on is done: it waits for the core of its machine that is free first. Without a limit it
    /// has its own core.
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
