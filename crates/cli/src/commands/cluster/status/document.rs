//! The status, as `meridian cluster status --json` prints it.

use super::super::nodes::Kind;
use crate::failure::Failure;
use meridian_backend::cluster::Cluster;
use serde::Serialize;
use serde_json::Value;

/// A cluster, and its processes on this machine.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    #[serde(flatten)]
    pub(super) cluster: Cluster,
    /// Set for a folder of `meridian cluster up`; `None` if none was named.
    pub(super) processes: Option<Vec<Process>>,
}

/// A process of `meridian cluster up`.
#[derive(Debug, Serialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) role: Kind,
    pub(super) pid: Option<u32>,
    pub(super) address: String,
    /// Whether it is alive; `None` for a standby owner.
    pub(super) answers: Option<bool>,
    /// Whether it reports that it is ready; `None` for owners, which do not report it, and without a response.
    pub(super) ready: Option<bool>,
    /// The reason it reports for not being ready.
    pub(super) reason: Option<String>,
}

impl Document {
    /// Returns it as JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        serde_json::to_value(self).map_err(|e| Failure::Refused(format!("the status cannot be written as JSON: {e}")))
    }

    /// Fails if something is damaged; a usage error if the bucket belongs to no cluster.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let bucket = &self.cluster.bucket;
        // The folder of `meridian cluster up` names its own bucket, which no owner may have used yet.
        if self.cluster.empty && self.processes.is_none() {
            return Err(Failure::Usage(format!(
                "--bucket {bucket}: nothing of a cluster is there, neither an owner's lease nor collections, tokens or servers: expected \
                 the address of a cluster's bucket, with the prefix in it"
            )));
        }
        match self.cluster.unreadable() {
            0 => Ok(()),
            bad => Err(Failure::Bad(format!("{bucket}: {bad} objects do not read"))),
        }
    }
}
