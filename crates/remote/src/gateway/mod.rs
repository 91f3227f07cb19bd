//! The client: a backend whose collections the owners have.

mod answer;
mod append;
mod backend;
mod calls;
mod changes;
mod collection;
mod engine;
mod failed;
mod groups;
mod link;
mod mirror;
mod part;
mod prior;
mod remote;
mod retry;
mod rows;
mod scans;
mod subscription;
mod uses;

pub use backend::RemoteBackend;
pub use groups::GroupsBackend;
pub use scans::{ScanAt, ScanOptions};

use crate::tls::Security;
use meridian_backend::Random;
use std::sync::Arc;
use std::time::Duration;

/// Where a gateway finds the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerAt {
    /// Its host and port.
    pub address: String,
    /// The process that the lease names; another one that answers there owns other data. `None`: it is not checked.
    pub process: Option<u64>,
    /// It is about to pass the data on to another process, or has: a call that it refuses waits for that one.
    pub leaves: bool,
}

impl From<String> for OwnerAt {
    /// Whatever process answers there.
    fn from(address: String) -> OwnerAt {
        OwnerAt { address, process: None, leaves: false }
    }
}

/// How a gateway asks.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// For the number under which this gateway's writes are known, and for keys of hashes.
    pub random: Arc<dyn Random>,
    /// How long a call may take that has no deadline of its own.
    pub timeout: Duration,
    /// What is demanded of the owner.
    pub security: Security,
    /// What answers eventual reads. `None`: the owner does, as all others.
    pub scans: Option<ScanOptions>,
}

impl RemoteOptions {
    /// Options with the default time for calls, for an owner on this machine.
    pub fn new(random: Arc<dyn Random>) -> RemoteOptions {
        RemoteOptions { random, timeout: Duration::from_secs(10), security: Security::default(), scans: None }
    }
}
