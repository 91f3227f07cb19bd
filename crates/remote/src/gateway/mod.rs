//! The client: a backend whose collections belong to remote owners.

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
pub use scans::{ScanOptions, ScanServerLocation};

use crate::tls::Security;
use meridian_backend::Random;
use std::sync::Arc;
use std::time::Duration;

/// Location of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerLocation {
    /// Its host and port.
    pub address: String,
    /// Number of the process named by the lease. Any other process at this address owns other data. `None`: not
    /// checked.
    pub process: Option<u64>,
    /// Whether it is about to hand its data over, or has done so. A call it refuses then waits for its successor.
    pub leaves: bool,
}

impl From<String> for OwnerLocation {
    /// Any process at this address.
    fn from(address: String) -> OwnerLocation {
        OwnerLocation { address, process: None, leaves: false }
    }
}

/// Options of a gateway's calls.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Source of the producer number of this gateway's writes, and of hash keys.
    pub random: Arc<dyn Random>,
    /// Timeout of calls without a deadline of their own.
    pub timeout: Duration,
    /// Required security of the connection to the owner.
    pub security: Security,
    /// Scan servers for eventual reads. `None`: the owner serves these as well.
    pub scans: Option<ScanOptions>,
}

impl RemoteOptions {
    /// Returns options with the default timeout, for an owner on this machine.
    pub fn new(random: Arc<dyn Random>) -> RemoteOptions {
        RemoteOptions { random, timeout: Duration::from_secs(10), security: Security::default(), scans: None }
    }
}
