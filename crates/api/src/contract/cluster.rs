//! The cluster of a server.

use meridian_backend::cluster::Cluster;
use schemars::JsonSchema;
use serde::Serialize;

/// The server that answers, and its cluster.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClusterAnswer<'a> {
    /// The server that answers.
    pub server: AnsweringServer<'a>,
    /// Its cluster, as `meridian cluster status --json` prints it; null of a server that is one process.
    pub cluster: Option<&'a Cluster>,
}

/// The server that answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AnsweringServer<'a> {
    /// `all`: one process, without a cluster; `gateway` or `scan`.
    pub role: &'static str,
    /// Its name in its cluster; null of one process.
    pub node: Option<&'a str>,
}
