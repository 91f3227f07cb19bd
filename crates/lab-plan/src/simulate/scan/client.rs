//! A client and its scan.

use super::costs::{Batch, Scan};
use crate::simulate::events::Micros;
use meridian_model::policy::selector::ScanAttempts;
use std::time::Duration;

/// An attempt of a client's scan: the key by which servers know a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) client: u32,
    pub(super) scan: u32,
    pub(super) attempt: usize,
}

/// A client, with one scan at a time.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) begun: Micros,
    pub(super) scans: u32,
    pub(super) tablet: u32,
    pub(super) attempts: ScanAttempts,
    /// The server of each attempt.
    pub(super) asked: Vec<u32>,
    /// The attempt that started.
    pub(super) attempt: usize,
    pub(super) batches: u32,
    /// Costs of the running scan's batches, and of the next batch.
    pub(super) costs: Scan,
    pub(super) batch: Batch,
    /// Share of the current batch that was not in the server's cache.
    pub(super) missing: f64,
    pub(super) busy: u32,
    pub(super) share: f64,
}

impl Client {
    pub(super) fn new() -> Client {
        Client {
            begun: 0,
            scans: 0,
            tablet: 0,
            attempts: ScanAttempts::new("", Duration::ZERO),
            asked: Vec::new(),
            attempt: 0,
            batches: 0,
            costs: Scan::default(),
            batch: Batch::default(),
            missing: 1.0,
            busy: 0,
            share: 0.0,
        }
    }

    pub(super) fn key(&self, client: u32, attempt: usize) -> Key {
        Key { client, scan: self.scans, attempt }
    }

    /// Returns the attempt that started.
    pub(super) fn current(&self, client: u32) -> Key {
        self.key(client, self.attempt)
    }

    /// Returns its server.
    pub(super) fn server(&self) -> u32 {
        self.asked[self.attempt]
    }
}
