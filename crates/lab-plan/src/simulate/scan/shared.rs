//! Cores that batches share, in virtual or real time.

use crate::simulate::events::Micros;

/// Units of a core's work per nanosecond, so that sharing it keeps integers.
pub type Work = u64;

/// The cores of a server. Up to one batch per core, each has its own; more batches share all cores equally.
#[derive(Debug)]
pub struct SharedCores<K> {
    cores: u64,
    /// Computing batches: the value of `given` at which each ends, and its name.
    computing: Vec<(Work, K)>,
    /// Work received by each computing batch since the start.
    given: Work,
    settled: Micros,
}

impl<K: Copy + PartialEq> SharedCores<K> {
    /// Creates `cores` idle cores.
    pub fn new(cores: u32) -> SharedCores<K> {
        SharedCores { cores: u64::from(cores), computing: Vec::new(), given: 0, settled: 0 }
    }

    /// Adds a computing batch.
    pub fn begin(&mut self, name: K, work: Work, now: Micros) {
        self.settle(now);
        // In a time that slows down with the load, its end stays the same when others come or go.
        self.computing.push((self.given + work, name));
    }

    /// Removes and returns the batches that are done by now.
    pub fn done(&mut self, now: Micros) -> Vec<K> {
        self.settle(now);
        let given = self.given;
        let mut done = Vec::new();
        self.computing.retain(|(at, name)| {
            if *at <= given {
                done.push(*name);
            }
            *at > given
        });
        done
    }

    /// Returns how long the next batch still takes if nothing changes.
    pub fn next_done(&self) -> Option<Micros> {
        self.computing.iter().map(|(at, _)| *at).min().map(|at| self.time_until(at))
    }

    /// Returns how long a batch still takes if nothing changes; `None` if it does not compute.
    pub fn time_left(&self, name: K) -> Option<Micros> {
        self.computing.iter().find(|(_, of)| *of == name).map(|(at, _)| self.time_until(*at))
    }

    /// Returns whether batches share cores.
    pub fn are_shared(&self) -> bool {
        self.computing.len() as u64 > self.cores
    }

    fn time_until(&self, at: Work) -> Micros {
        let n = self.computing.len() as u64;
        let left = at.saturating_sub(self.given);
        let time = if n <= self.cores { left } else { (left * n).div_ceil(self.cores) };
        time.div_ceil(1_000)
    }

    /// Adds the processor time since the last call to the computing batches: a core each, or an equal share.
    fn settle(&mut self, now: Micros) {
        let passed = now.saturating_sub(self.settled) * 1_000;
        let n = self.computing.len() as u64;
        if n > 0 {
            self.given += if n <= self.cores { passed } else { passed * self.cores / n };
        }
        self.settled = self.settled.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_had_whole_up_to_their_number_and_shared_beyond() {
        let mut cores = SharedCores::new(2);
        cores.begin('a', 6_000_000, 0);
        cores.begin('b', 9_000_000, 0);
        assert_eq!((cores.next_done(), cores.time_left('b'), cores.are_shared()), (Some(6_000), Some(9_000), false));
        // After 3 ms: a has 3 ms left, b 6 ms, and c takes a third of the two cores.
        cores.begin('c', 2_000_000, 3_000);
        assert!(cores.are_shared());
        assert_eq!((cores.time_left('c'), cores.time_left('a')), (Some(3_000), Some(4_500)));
        assert_eq!(cores.done(5_997), []);
        assert_eq!(cores.done(6_000), ['c']);
        // Each had 2 ms: 1 ms is left of a, 4 ms of b, with a core each.
        assert_eq!(
            (cores.time_left('a'), cores.time_left('b'), cores.time_left('c')),
            (Some(1_000), Some(4_000), None)
        );
        assert_eq!(cores.done(7_000), ['a']);
        assert_eq!(cores.done(10_000), ['b']);
        assert_eq!(cores.next_done(), None);
    }
}
