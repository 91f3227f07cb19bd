//! The record that candidates replace in turn.

use crate::policy::complete::Complete;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A record of the lease: its holder, and for how long it holds after it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Name of the owner's node.
    pub node: String,
    /// The start of the process: a restarted node is another owner.
    pub process: u64,
    /// Where the owner is reached.
    pub address: String,
    /// Greater than that of every owner before.
    pub epoch: u64,
    /// How long it holds without being renewed, in milliseconds.
    pub ttl_ms: u64,
    /// Grows with each renewal, so that a record never looks like the previous one.
    pub counter: u64,
    /// The owner has given it up: the next candidate need not wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resigned: bool,
    /// The process that the lease passes to: its owner is about to give it up, or has. Others let that one take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heir: Option<u64>,
    /// Level of the owner's program (`policy::level`); 0: from before there were levels.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// Up to when the owner's flushed writes were complete when it wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

impl Term {
    /// How long it holds without being renewed.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// The same, renewed.
    pub fn renewed(&self) -> Term {
        Term { counter: self.counter + 1, ..self.clone() }
    }

    /// The same, given up.
    pub fn given_up(&self) -> Term {
        Term { resigned: true, ..self.renewed() }
    }

    /// The same, renewed, with the process that it passes to.
    pub fn for_heir(&self, heir: Option<u64>) -> Term {
        Term { heir, ..self.renewed() }
    }
}

fn is_zero(level: &u32) -> bool {
    *level == 0
}

/// The epoch of a new owner: above every epoch that lease, manifest and log have seen.
pub fn next_epoch(lease: u64, manifest: u64, log: u64) -> u64 {
    lease.max(manifest).max(log) + 1
}
