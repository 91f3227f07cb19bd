//! The operator's settings of the server, including every limit on memory or time.

mod base_map;
pub mod network;

pub use base_map::BaseMap;

use crate::cluster::gateways::Gateways;
use crate::config::network::Network;
use crate::protocol::host_name::HostName;
use crate::protocol::web_origin::WebOrigin;
use meridian_admission::gate::Settings as Admission;
use meridian_admission::identity::SessionLimits;
use meridian_admission::identity::jwt::IssuerSettings;
use meridian_backend::Durability;
use meridian_federation::Settings;
use meridian_saved::SavedSettings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Memory for requests and responses of operators who administer the server.
pub const ADMINISTRATION_BYTES: usize = 4 << 20;

/// Settings of the HTTP server. [`ServerConfig::default`] suits one machine with a few cores.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// URL under which clients reach the server, without a trailing slash (`https://events.example.org`), for links. If
    /// absent, links are derived from each request's `Host`.
    pub public_url: Option<String>,
    /// Host names that the server accepts besides those derived by [`crate::Hosts`]; requests for others get 421.
    pub hosts: Vec<HostName>,
    /// Origins whose pages may read responses, write and open WebSockets, besides the server's own origin and that of
    /// its public URL.
    pub origins: Vec<WebOrigin>,
    /// Origins whose pages may embed the server's pages.
    pub frame_ancestors: Vec<WebOrigin>,
    /// The base map of the map page, in place of the built-in one.
    pub base_map: Option<BaseMap>,
    /// Origins from which its style loads tiles, glyphs and pictures, besides its own.
    pub base_map_origins: Vec<WebOrigin>,
    /// Proxies whose headers about their clients are trusted (`Forwarded`, `X-Forwarded-For`, `X-Forwarded-Proto`).
    pub proxies: Vec<Network>,
    /// The other gateways of a cluster; `None` outside a cluster and for a read-only server.
    pub gateways: Option<Arc<Gateways>>,
    /// Durability of the collection `places` when the places profile creates it.
    pub places_durability: Durability,
    /// Number of partitions of a new collection whose request names none.
    pub partitions: u16,

    /// Max open connections; further ones get a 503 and are closed. Over TLS they are closed at once: a response would
    /// require the handshake that they are refused.
    pub connections_max: usize,
    /// Max open connections per address, or per /64 of IPv6; further ones are refused as above. A proxy's connections
    /// belong to its clients, so they do not count.
    pub connections_per_address_max: usize,
    /// Max requests running at once. As many run as there are processors, and up to four times as many while they wait
    /// for a disk.
    pub requests_running_max: usize,
    /// Number of processors from which slots are derived; `None` for all that this process may use. A gateway in a
    /// study, whose requests only wait, has more.
    pub processors: Option<usize>,
    /// Max requests that wait for a permit; further ones get 503 at once.
    pub requests_waiting_max: usize,
    /// Max time that an interactive request waits for a permit before it gets 503. Under overload, a quarter of it.
    pub admission_wait: Duration,

    /// Deadline of a request that names none.
    pub timeout_default: Duration,
    /// Deadline of a response that streams a complete result (no `limit`), if the request names none.
    pub timeout_stream: Duration,
    /// Max deadline that a request may ask for.
    pub timeout_max: Duration,

    /// Max time for a TLS handshake.
    pub handshake_timeout: Duration,
    /// How long browsers must use https for the server's name (`Strict-Transport-Security`, RFC 6797); zero omits the
    /// header.
    pub hsts: Duration,
    /// Max time for the head of a request to arrive; also the time after which an idle connection is closed.
    pub head_timeout: Duration,
    /// Max size of a request body in bytes; a larger one gets 413.
    pub body_bytes_max: usize,
    /// Max total bytes of request bodies in memory.
    pub body_bytes_total: usize,
    /// Max total bytes of events read from bodies and not stored yet; each byte counts [`crate::BATCH_TIMES`] times. A
    /// request that does not fit gets 503.
    pub batch_bytes_total: usize,
    /// Max bytes of a compressed request body once decompressed; a larger one gets 413.
    pub unfolded_bytes_max: u64,
    /// Max pause within a request body; a longer one gets 408.
    pub body_stall: Duration,
    /// Time after which a request body must have arrived at [`ServerConfig::body_rate_min`] on average; otherwise it
    /// gets 408.
    pub body_grace: Duration,
    /// Min average speed of a request body, in bytes per second.
    pub body_rate_min: u64,
    /// Max time for which a client may read nothing of its response before the connection is closed.
    pub write_stall: Duration,

    /// Max total bytes that queries collect before they can respond (sorts, groups, grids). A query that does not fit
    /// gets 503.
    pub query_bytes_total: u64,

    /// Target size of one chunk of a streamed response, in bytes.
    pub chunk_bytes: usize,
    /// Max chunks per response that wait for a slow client.
    pub chunks_waiting_max: usize,
    /// Max total bytes of responses that wait for slow clients. When more is needed, the client that has read nothing
    /// for longest is evicted. An eighth is reserved for the conditions of streams.
    pub answer_bytes_total: usize,
    /// Max size in bytes of a response that is made in a file before it is sent; a larger one gets 400.
    pub answer_file_bytes_max: u64,
    /// Max total bytes of these files, on disk; a response whose file does not fit gets 503.
    pub answer_file_bytes_total: usize,
    /// Min bytes of their disk that these files leave free, for writes; a response whose file would leave less
    /// gets 507.
    pub answer_disk_free_min: u64,
    /// Folder for these files, which is the server's own: files in it are removed at a start. If absent, they are made
    /// in the system's folder for temporary files.
    pub answer_folder: Option<PathBuf>,
    /// Whether responses are compressed for clients that accept it.
    pub compress: bool,
    /// Min speed, in bytes per second, at which a client must read a response. One that falls behind by twice
    /// [`ServerConfig::write_stall`] is disconnected, one of a stream of events earlier.
    pub answer_rate_min: u64,

    /// Max open streams of events and of packets of searches; further ones get 503.
    pub streams_max: usize,
    /// Min number of moving objects cached by a stream that reports transitions; the state of others is read from the
    /// store.
    pub stream_objects_max: usize,
    /// Max duration of a stream of events; its client reconnects at its last position.
    pub stream_lifetime: Duration,

    /// Issuers whose JSON Web Tokens are credentials.
    pub issuers: Vec<IssuerSettings>,
    /// How long user sessions last.
    pub session: SessionLimits,

    /// Settings of federated searches: outside sources and limits.
    pub search: Settings,
    /// Saved searches.
    pub saved: SavedSettings,

    /// Requests that take longer than this are logged with their cost; zero disables it.
    pub slow: Duration,
    /// Whether that line includes the request's query string, and with it what its client searched for.
    pub slow_literals: bool,

    /// How long a shutdown waits for running requests.
    pub shutdown_grace: Duration,
}

/// Min memory for streams of HTTP/2 beyond the reserves of their connections.
const HTTP2_BYTES_MIN: usize = 2 << 20;

impl ServerConfig {
    /// Returns the memory for streams of HTTP/2 beyond the reserves of their connections, in bytes. It is beside that for
    /// responses: their readers give way to each other, and a stream that waits does not.
    pub fn http2_bytes(&self) -> usize {
        (self.answer_bytes_total / 16).max(HTTP2_BYTES_MIN)
    }

    /// Returns the settings of the gate, for the processors that this process may use.
    pub fn admission(&self) -> Admission {
        let machine = || std::thread::available_parallelism().map_or(1, usize::from);
        let processors = self.processors.unwrap_or_else(machine);
        let slots_max = self.requests_running_max.clamp(1, 4 * processors);
        let slots = processors.min(slots_max);
        // A paused request keeps its thread and its memory. No tenant may have all threads, but each has two per slot:
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
            // An eighth of all: slow clients with a few large files leave room for others of their tenant.
            answer_file_bytes_max: 512 * MIB as u64,
            answer_file_bytes_total: 4096 * MIB,
            answer_disk_free_min: 1024 * MIB as u64,
            answer_folder: None,
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
