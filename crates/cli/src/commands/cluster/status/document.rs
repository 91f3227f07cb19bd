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
    /// Of a folder of `meridian cluster up`; `None`: none was named.
    pub(super) processes: Option<Vec<Process>>,
}

/// A process of `meridian cluster up`.
#[derive(Debug, Serialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) role: Kind,
    pub(super) pid: Option<u32>,
    pub(super) address: String,
    /// Whether it is alive; `None`: it is an owner that stands by.
    pub(super) answers: Option<bool>,
    /// Whether it says that it is ready; `None` of owners, which do not say, and of one that does not answer.
    pub(super) ready: Option<bool>,
    /// Why it is not ready, as it says.
    pub(super) reason: Option<String>,
}

impl Document {
    /// It as JSON.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        serde_json::to_value(self).map_err(|e| Failure::Refused(format!("the status cannot be written as JSON: {e}")))
    }

    /// Bad if something is damaged, and a mistake if the bucket is that of no cluster.
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
