//! The server's current load.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The server's current work, and the tenants behind it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Load {
    /// When this was so.
    pub time: String,
    /// Seconds that recent figures cover; absent where there are none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Requests that compute, and requests that wait.
    pub requests: RequestLoad,
    /// Open connections.
    pub connections: Level,
    /// Open streams of events and packets.
    pub streams: Level,
    /// Running searches.
    pub searches: Level,
    /// How long the oldest queued work of searches has waited, in milliseconds.
    pub search_wait_ms: f64,
    /// Memory by purpose.
    pub memory: Vec<MemoryLoad>,
    /// The tenants with running, waiting or recently refused requests, busiest first; at most 20.
    pub tenants: Vec<TenantLoad>,
    /// All tenants.
    pub tenants_in_all: u64,
    /// The slowest requests of the last 15 minutes that took longer than `log.slow`, slowest first; at most 20.
    pub slow: Vec<SlowRequest>,
}

/// Requests of all tenants.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RequestLoad {
    /// Slots that there are now.
    pub slots: u64,
    /// Requests that hold one.
    pub running: u64,
    /// Requests that began and were overtaken.
    pub paused: u64,
    /// Requests that have not begun.
    pub waiting: u64,
    /// Requests that got no slot, since the start.
    pub refused: u64,
}

/// How many there are, of how many there may be.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Level {
    /// Now.
    pub now: u64,
    /// At most.
    pub max: u64,
    /// Refused since the start, where that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
}

/// Memory for one purpose.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryLoad {
    /// `bodies`, `batches`, `answers`, `conditions` (of streams), `queries`, `packets` or `writes`.
    pub purpose: &'static str,
    /// Bytes held.
    pub held: u64,
    /// Bytes that there may be; absent for `writes`, which the store bounds (`store.memory_bytes`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantLoad {
    /// Its name.
    pub name: String,
    /// Its share of the server beside others.
    pub weight: u32,
    /// Its requests by class; classes without one are left out.
    pub classes: Vec<ClassLoad>,
    /// Processor time since the start, in seconds.
    pub processor_s: f64,
    /// Processors used recently, on average; absent until that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
    /// Requests refused since the start, by reason: a quota, or `queue_full`, `waited` and `deadline` for want of a
    /// slot.
    pub refused: BTreeMap<&'static str, u64>,
    /// The same over the last seconds; absent until that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_of_late: Option<BTreeMap<&'static str, u64>>,
    /// The quotas that are set.
    pub quotas: Vec<QuotaLoad>,
    /// Bytes of memory that it holds, by purpose.
    pub memory: BTreeMap<&'static str, u64>,
    /// Open streams of events and packets.
    pub streams: u64,
    /// Running searches.
    pub searches: u64,
}

/// The requests of one class of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassLoad {
    /// `interactive`, `batch` or `background`.
    pub class: &'static str,
    /// Requests that hold a slot.
    pub running: u64,
    /// Requests that began and were overtaken.
    pub paused: u64,
    /// Requests that have not begun.
    pub waiting: u64,
    /// How long the first of those has waited, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_wait_ms: Option<f64>,
}

/// A quota of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuotaLoad {
    /// Its name.
    pub quota: &'static str,
    /// Its limit.
    pub limit: u64,
    /// Its use: current, in all, or, for a quota by the second, the unpaid use, which may exceed the limit. Absent if
    /// it holds for each request alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// A request that took longer than `log.slow`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SlowRequest {
    /// When it ended.
    pub time: String,
    /// Its caller's tenant.
    pub tenant: String,
    /// Its method.
    pub method: String,
    /// Its path in the route table.
    pub route: &'static str,
    /// Its status; 499 where its client left first.
    pub status: u16,
    /// Its id, as in the header `X-Request-Id` and in log lines.
    pub request_id: String,
    /// Milliseconds that the server took for it, without those of its client.
    pub ms: f64,
    /// Milliseconds by stage.
    pub stages: BTreeMap<&'static str, f64>,
    /// Bytes of events read.
    pub bytes_read: u64,
    /// Tree nodes visited.
    pub nodes_visited: u64,
}
