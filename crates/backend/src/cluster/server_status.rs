//! The status that a server with clients reports to the others, in the bucket of its cluster.

use meridian_model::policy::part::Needs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A server's status report. It is rewritten while the server runs, and is a hint: nothing that is stored depends on
/// it.
///
/// Members are optional, so that servers of two versions understand each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerStatus {
    /// `gateway` or `scan`.
    pub role: Option<String>,
    /// Its name.
    pub node: Option<String>,
    /// Address where it listens for clients.
    pub address: Option<String>,
    /// Its version of Meridian.
    pub version: Option<String>,
    /// Its work.
    pub load: Option<ServerLoad>,
    /// Its demand on the quotas of tenants.
    pub needs: BTreeMap<String, Needs>,
    /// Where other gateways reach it, if it is a gateway.
    pub gateway: Option<GatewayEndpoint>,
}

/// How other gateways reach one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayEndpoint {
    /// Its number, which is part of the ids of its searches.
    pub number: u64,
    /// Its URL.
    pub url: String,
    /// Key by which it recognises requests of other gateways. Every process that can read the bucket knows it.
    pub key: String,
}

impl fmt::Debug for GatewayEndpoint {
    /// Without its key, which stands for any client.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the gateway {} at {:?}", self.number, self.url)
    }
}

/// The work of a server. Sums count from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerLoad {
    /// Slots for requests that compute.
    pub slots: u64,
    /// Requests that hold one.
    pub running: u64,
    /// Requests that wait for one.
    pub waiting: u64,
    /// Requests that got none, in sum.
    pub refused: u64,
    /// Open connections.
    pub connections: u64,
    /// Its caches of blocks; null of a server that reads no segments.
    pub caches: Option<Caches>,
    /// Its eventual reads; null of a server that asks no scan servers.
    pub scan_reads: Option<ScanReads>,
}

/// Hits of a server's block caches, and bytes fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Caches {
    /// Blocks that were found, in sum.
    pub hits: u64,
    /// Blocks that were fetched, in sum.
    pub misses: u64,
    /// Bytes that were fetched, in sum.
    pub bytes_fetched: u64,
}

impl Caches {
    /// Returns the share of blocks that were cached, in percent rounded down; `None` before the first block.
    pub fn hit_percent(&self) -> Option<u64> {
        percent(self.hits, self.hits.saturating_add(self.misses))
    }
}

/// Eventual reads that a gateway sent to scan servers. A question is of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScanReads {
    /// Questions, in sum.
    pub questions: u64,
    /// Requests to scan servers for these, in sum.
    pub attempts: u64,
    /// Requests that were answered busy, in sum.
    pub busy: u64,
    /// Requests that failed, in sum.
    pub failed: u64,
    /// Second requests beside one that was slow to begin, in sum.
    pub hedges: u64,
    /// Questions that went to the owner, in sum: there was no scan server, none could be reached, or all refused.
    pub fallbacks: u64,
    /// Questions that got 503 for one of these reasons, in sum: the owner was not to answer, or took no more.
    pub refused: u64,
}

impl ScanReads {
    /// Returns the share of requests answered busy, in percent rounded down; `None` before the first request.
    pub fn busy_percent(&self) -> Option<u64> {
        percent(self.busy, self.attempts)
    }

    /// Returns the share of queries with a second request, in percent rounded down; `None` before the first query.
    pub fn hedge_percent(&self) -> Option<u64> {
        percent(self.hedges, self.questions)
    }

    /// Returns the share of queries that went to the owner, in percent rounded down; `None` before the first query.
    pub fn fallback_percent(&self) -> Option<u64> {
        percent(self.fallbacks, self.questions)
    }
}

fn percent(part: u64, all: u64) -> Option<u64> {
    (all > 0).then(|| (u128::from(part) * 100 / u128::from(all)) as u64)
}

impl ServerStatus {
    /// Encodes the report.
    pub fn write(&self) -> Vec<u8> {
        // Only numbers and names, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a report; returns an empty one for invalid bytes.
    pub fn read(bytes: &[u8]) -> ServerStatus {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_in_the_debug_text_of_a_report() {
        let gateway = GatewayEndpoint { number: 7, url: "http://10.0.0.1:7117".to_owned(), key: "a secret".to_owned() };
        let told = format!("{:?}", ServerStatus { gateway: Some(gateway), ..ServerStatus::default() });
        assert!(told.contains("10.0.0.1") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn a_statement_is_read_back_and_what_is_none_says_nothing() {
        let load =
            ServerLoad { slots: 4, caches: Some(Caches { hits: 9, ..Caches::default() }), ..ServerLoad::default() };
        let said = ServerStatus { role: Some("gateway".to_owned()), load: Some(load), ..ServerStatus::default() };
        assert_eq!(ServerStatus::read(&said.write()), said);
        let reads = ScanReads { questions: 8, attempts: 9, busy: 3, hedges: 2, fallbacks: 1, ..ScanReads::default() };
        let shares = (reads.busy_percent(), reads.hedge_percent(), reads.fallback_percent());
        assert_eq!(shares, (Some(33), Some(25), Some(12)));
        assert_eq!(ScanReads::default().busy_percent(), None);
        // A later version reports more; an earlier one only named tenants.
        assert_eq!(ServerStatus::read(br#"{"role":"scan","more":{}}"#).role.as_deref(), Some("scan"));
        for other in [&br#"{"harbour":{"streams":3}}"#[..], b"damaged", b"", br#"{"role":7}"#] {
            assert_eq!(ServerStatus::read(other), ServerStatus::default());
        }
    }
}
