//! The operator's settings of the server, with every limit that bounds memory or time.

mod base_map;

pub use base_map::BaseMap;

use crate::gateways::Gateways;
use crate::guard::{HostName, WebOrigin};
use crate::network::Network;
use meridian_admission::gate::Settings as Admission;
use meridian_admission::identity::SessionLimits;
use meridian_admission::identity::jwt::IssuerSettings;
use meridian_backend::Durability;
use meridian_federation::Settings;
use meridian_saved::SavedSettings;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the HTTP server. [`ServerConfig::default`] suits one machine with a few cores.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// URL under which clients reach the server, without a final slash (`https://events.example.org`), for links.
    /// When absent, links are made from each request's `Host`.
    pub public_url: Option<String>,
    /// Host names that the server accepts, besides the names that [`crate::Hosts`] derives; others get 421.
    pub hosts: Vec<HostName>,
    /// Origins whose pages may read responses, write and open WebSockets, besides the server's own and that of its public
    /// URL.
    pub origins: Vec<WebOrigin>,
    /// Origins whose pages may embed the server's pages.
    pub frame_ancestors: Vec<WebOrigin>,
    /// The base map of the map page, in place of the one in the program.
    pub base_map: Option<BaseMap>,
    /// Origins that its style loads tiles, glyphs and pictures from, besides its own.
    pub base_map_origins: Vec<WebOrigin>,
    /// Proxies whose statements about their clients are trusted (`Forwarded`, `X-Forwarded-For`, `X-Forwarded-Proto`).
    pub proxies: Vec<Network>,
    /// The other gateways of a cluster; `None` outside of one, and of a server that only reads.
    pub gateways: Option<Arc<Gateways>>,
    /// Durability of the collection `places` when the places profile creates it.
    pub places_durability: Durability,
    /// Number of partitions of a new collection whose request names none.
    pub partitions: u16,

    /// Max open connections; further ones get a 503 and are closed. Over TLS they are closed at once: an answer would need the
    /// handshake that they are refused.
    pub connections_max: usize,
    /// Max open connections of one address, or of one /64 of IPv6; further ones are refused as above. A proxy's
    /// connections are those of its clients, so they do not count.
    pub connections_per_address_max: usize,
    /// Max requests running at once. As many run as there are processors, and up to four times as many while they wait
    /// for a disk.
    pub requests_running_max: usize,
    /// The processors that slots are counted by; `None`: all that this process may use. A gateway of a study whose requests only wait has more.
    pub processors: Option<usize>,
    /// Max requests that wait for a permit; further ones get 503 at once.
    pub requests_waiting_max: usize,
    /// Max wait of an interactive request for a permit; then 503. While the server is overloaded a quarter of it.
    pub admission_wait: Duration,

    /// Deadline of a request that names none.
    pub timeout_default: Duration,
    /// Deadline of a response that streams a complete result (no `limit`) when the request names none.
    pub timeout_stream: Duration,
    /// Max deadline that a request may ask for.
    pub timeout_max: Duration,

    /// Max time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// How long browsers use only https for the server's name (`Strict-Transport-Security`, RFC 6797); zero: no such
    /// header.
    pub hsts: Duration,
    /// Max time for the head of a request to arrive; also how long an idle connection is kept.
    pub head_timeout: Duration,
    /// Max size of a request body in bytes; a larger one gets 413.
    pub body_bytes_max: usize,
    /// Max bytes of request bodies in memory, all requests together.
    pub body_bytes_total: usize,
    /// Max bytes of events that are being read from bodies and are not stored yet, all requests together; each counts
    /// [`crate::BATCH_TIMES`]. A request for which there is no room gets 503.
    pub batch_bytes_total: usize,
    /// Max bytes of a compressed request body once decompressed; a larger one gets 413.
    pub unfolded_bytes_max: u64,
    /// Max pause within a request body; then 408.
    pub body_stall: Duration,
    /// After this long a request body must have arrived at [`ServerConfig::body_rate_min`] on average; else 408.
    pub body_grace: Duration,
    /// Min average speed of a request body in bytes a second.
    pub body_rate_min: u64,
    /// Max time that a client may take nothing of its response; then the connection is closed.
    pub write_stall: Duration,

    /// Max bytes that queries collect before they can answer (sorts, groups, grids), all together; a query for which
    /// there is no room gets 503.
    pub query_bytes_total: u64,

    /// Target size of one chunk of a streamed response, in bytes.
    pub chunk_bytes: usize,
    /// Max chunks of one response that wait for a slow client.
    pub chunks_waiting_max: usize,
    /// Max bytes of responses that wait for slow clients, all requests together. Where more is needed, the client
    /// that has taken nothing for longest is evicted. An eighth is for the conditions of streams.
    pub answer_bytes_total: usize,
    /// Whether responses are compressed for clients that accept it.
    pub compress: bool,
    /// Min speed in bytes a second at which a client takes a streamed response once [`ServerConfig::write_stall`] has
    /// passed; a slower client is disconnected.
    pub answer_rate_min: u64,

    /// Max open streams of events (`/collections/{c}/stream`); further ones get 503.
    pub streams_max: usize,
    /// Min number of moving objects that a stream caches if it reports transitions; the state of others is read from
    /// the store.
    pub stream_objects_max: usize,
    /// Max duration of a stream of events; its client reconnects at its last position.
    pub stream_lifetime: Duration,

    /// Issuers whose JSON Web Tokens are credentials.
    pub issuers: Vec<IssuerSettings>,
    /// How long sessions of users last.
    pub session: SessionLimits,

    /// Federated searches: outside sources, limits.
    pub search: Settings,
    /// Saved searches.
    pub saved: SavedSettings,

    /// Requests that take the server longer are logged with their cost; zero: none.
    pub slow: Duration,
    /// Whether that line has the request's query string, and with it what its client looked for.
    pub slow_literals: bool,

    /// How long a shutdown waits for running requests.
    pub shutdown_grace: Duration,
}

impl ServerConfig {
    /// The settings of the gate, for the processors that this process may use.
    pub fn admission(&self) -> Admission {
        let machine = || std::thread::available_parallelism().map_or(1, usize::from);
        let processors = self.processors.unwrap_or_else(machine);
        let slots_max = self.requests_running_max.clamp(1, 4 * processors);
        let slots = processors.min(slots_max);
        // A paused request keeps its thread and its memory. No tenant may have all threads, but each has two for every slot:
        // one for a paused request, one for a request that overtakes it.
        let threads_max = 4 * self.requests_running_max.max(1);
        Admission {
            slots,
            slots_max,
            started_max: (4 * slots_max).min(threads_max / 4).max(2 * slots_max),
            threads_max,
            waiting_max: self.requests_waiting_max,
            target: self.admission_wait / 4,
            patience: [1, 5, 30].map(|times| self.admission_wait * times),
            ..Admission::default()
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        ServerConfig {
            public_url: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            frame_ancestors: Vec::new(),
            base_map: None,
            base_map_origins: Vec::new(),
            proxies: Vec::new(),
            gateways: None,
            places_durability: Durability::Local,
            partitions: 1,
            connections_max: 10_000,
            connections_per_address_max: 2_500,
            processors: None,
            requests_running_max: 64,
            requests_waiting_max: 1024,
            admission_wait: Duration::from_secs(1),
            timeout_default: Duration::from_secs(60),
            timeout_stream: Duration::from_secs(15 * 60),
            timeout_max: Duration::from_secs(60 * 60),
            handshake_timeout: Duration::from_secs(10),
            hsts: Duration::ZERO,
            head_timeout: Duration::from_secs(30),
            body_bytes_max: 64 * MIB,
            body_bytes_total: 512 * MIB,
            batch_bytes_total: 512 * MIB,
            unfolded_bytes_max: 512 * MIB as u64,
            body_stall: Duration::from_secs(15),
            body_grace: Duration::from_secs(10),
            body_rate_min: 1024,
            write_stall: Duration::from_secs(30),
            query_bytes_total: 256 * MIB as u64,
            chunk_bytes: 64 * 1024,
            chunks_waiting_max: 4,
            answer_bytes_total: 256 * MIB,
            compress: true,
            answer_rate_min: 4096,
            streams_max: 256,
            stream_objects_max: 8192,
            stream_lifetime: Duration::from_secs(60 * 60),
            issuers: Vec::new(),
            session: SessionLimits::default(),
            search: Settings::default(),
            saved: SavedSettings::default(),
            slow: Duration::from_secs(1),
            slow_literals: false,
            shutdown_grace: Duration::from_secs(20),
        }
    }
}
