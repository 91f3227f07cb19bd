//! What an operator can set about the server; every limit that bounds memory or time is here.

use crate::doors::{HostName, WebOrigin};
use meridian_backend::Durability;
use meridian_federation::Settings;
use meridian_saved::SavedSettings;
use std::time::Duration;

/// Settings of the HTTP server. [`ServerConfig::default`] suits one machine with a few cores.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Tenant whose collections are served.
    pub tenant: String,
    /// Address under which clients reach the server, without a final slash (`https://events.example.org`), for links.
    /// When absent, links are made from each request's `Host`.
    pub public_url: Option<String>,
    /// Names under which the server answers, besides those that [`crate::Hosts`] knows by itself; others get 421.
    pub hosts: Vec<HostName>,
    /// Origins whose pages may write and open WebSockets, besides the server's own and that of its public URL.
    pub origins: Vec<WebOrigin>,
    /// Origins whose pages may embed the server's pages.
    pub frame_ancestors: Vec<WebOrigin>,
    /// Durability of the collection `places` when the places profile makes it.
    pub places_durability: Durability,

    /// Most connections held at once; later ones get a 503 and are closed.
    pub connections_max: usize,
    /// Most requests worked on at once.
    pub requests_running_max: usize,
    /// Most requests that wait for a place; later ones get 503 at once.
    pub requests_waiting_max: usize,
    /// Longest wait for a place; then 503.
    pub admission_wait: Duration,

    /// Deadline of a request that names none.
    pub timeout_default: Duration,
    /// Deadline of an answer that streams a whole result (no `limit`) when the request names none.
    pub timeout_stream: Duration,
    /// Longest deadline that a request may ask for.
    pub timeout_max: Duration,

    /// Longest time that the head of a request may take to arrive; also how long an idle connection is kept.
    pub head_timeout: Duration,
    /// Largest request body in bytes; a longer one gets 413.
    pub body_bytes_max: usize,
    /// Bytes of request bodies held at once by all requests together.
    pub body_bytes_total: usize,
    /// Most bytes that a compressed request body may unfold to; a longer one gets 413.
    pub unfolded_bytes_max: u64,
    /// Longest silence within a request body; then 408.
    pub body_stall: Duration,
    /// After this long a request body must have arrived at [`ServerConfig::body_rate_min`] on average; else 408.
    pub body_grace: Duration,
    /// Least average speed of a request body in bytes a second.
    pub body_rate_min: u64,
    /// Longest time that a client may take nothing of its answer; then the connection is closed.
    pub write_stall: Duration,

    /// Bytes that questions collect before they can answer (sorts, groups, grids), all together; a question for which there
    /// is no room gets 503.
    pub query_bytes_total: u64,

    /// Aimed size of one chunk of a streamed answer, in bytes.
    pub chunk_bytes: usize,
    /// Chunks of one answer that may wait for a slow client.
    pub chunks_waiting_max: usize,
    /// Bytes of answers that may wait for slow clients, all requests together. Where more is needed, the client that has
    /// taken nothing for longest is let go.
    pub answer_bytes_total: usize,
    /// Least speed in bytes a second at which a client takes a streamed answer once [`ServerConfig::write_stall`] is
    /// over; a slower one is let go.
    pub answer_rate_min: u64,

    /// Most streams of events (`/collections/{c}/stream`) open at once; more get 503.
    pub streams_max: usize,
    /// Moving objects that a stream remembers where comings and leavings are told, at least; others are looked up in the store.
    pub stream_objects_max: usize,
    /// Longest time that a stream of events lasts; its client comes back to where it was.
    pub stream_lifetime: Duration,

    /// Federated searches: outside sources, limits.
    pub search: Settings,
    /// Saved searches.
    pub saved: SavedSettings,

    /// How long a shutdown waits for running requests.
    pub shutdown_grace: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        ServerConfig {
            tenant: "default".to_owned(),
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            frame_ancestors: Vec::new(),
            places_durability: Durability::Local,
            connections_max: 10_000,
            requests_running_max: 64,
            requests_waiting_max: 256,
            admission_wait: Duration::from_secs(2),
            timeout_default: Duration::from_secs(60),
            timeout_stream: Duration::from_secs(15 * 60),
            timeout_max: Duration::from_secs(60 * 60),
            head_timeout: Duration::from_secs(30),
            body_bytes_max: 64 * MIB,
            body_bytes_total: 512 * MIB,
            unfolded_bytes_max: 512 * MIB as u64,
            body_stall: Duration::from_secs(15),
            body_grace: Duration::from_secs(10),
            body_rate_min: 1024,
            write_stall: Duration::from_secs(30),
            query_bytes_total: 256 * MIB as u64,
            chunk_bytes: 64 * 1024,
            chunks_waiting_max: 4,
            answer_bytes_total: 256 * MIB,
            answer_rate_min: 4096,
            streams_max: 256,
            stream_objects_max: 8192,
            stream_lifetime: Duration::from_secs(60 * 60),
            search: Settings::default(),
            saved: SavedSettings::default(),
            shutdown_grace: Duration::from_secs(20),
        }
    }
}
