//! The record that candidates replace in turn.

use crate::policy::complete::Complete;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A lease record: its holder, and how long it is valid after the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// Name of the owner's node.
    pub node: String,
    /// Number unique to this start of the process: a restarted node is another owner.
    pub process: u64,
    /// Address of the owner.
    pub address: String,
    /// Epoch, greater than that of every earlier owner.
    pub epoch: u64,
    /// How long it is valid without renewal, in milliseconds.
    pub ttl_ms: u64,
    /// Counter of renewals, so that a record always differs from the previous one.
    pub counter: u64,
    /// Whether the owner has given it up: the next candidate need not wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resigned: bool,
    /// The process that the lease passes to: its owner is about to give it up, or has. Others leave it to that
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heir: Option<u64>,
    /// Level of the owner's program (`policy::level`); 0 for programs that predate levels.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub level: u32,
    /// Time up to which the owner's flushed writes were complete when it wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete: Option<Complete>,
}

impl Term {
    /// How long it is valid without renewal.
    pub fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// The record, renewed.
    pub fn renewed(&self) -> Term {
        Term { counter: self.counter + 1, ..self.clone() }
    }

    /// The record, given up.
    pub fn given_up(&self) -> Term {
        Term { resigned: true, ..self.renewed() }
    }

    /// The record, renewed, with the process that it passes to.
    pub fn for_heir(&self, heir: Option<u64>) -> Term {
        Term { heir, ..self.renewed() }
    }
}

fn is_zero(level: &u32) -> bool {
    *level == 0
}

/// The epoch of a new owner: above every epoch seen in lease, manifest and log.
pub fn next_epoch(lease: u64, manifest: u64, log: u64) -> u64 {
    lease.max(manifest).max(log) + 1
}
