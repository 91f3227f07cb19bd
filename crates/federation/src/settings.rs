//! Operator settings of searches, including every limit on their memory and time.

use crate::declaration::SourceDeclaration;
use meridian_labels::Classifier;
use std::sync::Arc;
use std::time::Duration;

/// Settings of searches. [`Settings::default`] has no remote provider.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The remote providers, parsed and validated.
    pub providers: Vec<Arc<SourceDeclaration>>,
    /// Max concurrent searches; more are refused at once.
    pub searches_max: usize,
    /// Max time that work may wait for a processor before new searches are refused.
    pub delay_max: Duration,
    /// Default timeout of a search, from its arrival.
    pub deadline: Duration,
    /// Max timeout that a search may request.
    pub deadline_max: Duration,
    /// Default number of results of each provider.
    pub limit: usize,
    /// Max number of results of each provider that a question may request.
    pub limit_max: usize,
    /// Max size of a packet, in bytes.
    pub packet_bytes: usize,
    /// Max bytes of packets kept for each search: unread ones, and read ones kept for reconnects.
    pub buffer_bytes: usize,
    /// Max bytes of packets of all searches together.
    pub buffer_bytes_total: usize,
    /// Max bytes of unparsed responses of remote sources, all together.
    pub answer_bytes_total: usize,
    /// Time after its start within which a search is joined by the same question of the same client. Zero disables
    /// joining.
    pub join: Duration,
    /// Time without a reader, after the last one left, until a search stops.
    pub gone: Duration,
    /// Time until a search stops to which no reader ever attached.
    pub wait: Duration,
    /// Time for which a search can still be read after its end.
    pub keep: Duration,
    /// Max queued work of a stage, for each tenant and priority.
    pub queue: usize,
    /// Concurrent work of a stage. Calls to sources have their own limits.
    pub at_once: usize,
    /// Collection for geocoding addresses, with field `name` and optionally `postal_code`, `country`, `admin1`,
    /// `admin2`.
    pub addresses: String,
    /// Collection of place names to find in texts of results without a place, with field `name` and optionally
    /// `population`. Empty: none.
    pub gazetteer: String,
    /// Min population of places in the gazetteer, if it has populations.
    pub gazetteer_population: u64,
    /// The model that labels images of results. Without it, no image is fetched.
    pub images: Option<Arc<Classifier>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            providers: Vec::new(),
            searches_max: 256,
            delay_max: Duration::from_millis(500),
            deadline: Duration::from_secs(20),
            deadline_max: Duration::from_secs(120),
            limit: 100,
            limit_max: 1_000,
            packet_bytes: 10_240,
            buffer_bytes: 2 << 20,
            buffer_bytes_total: 256 << 20,
            answer_bytes_total: 256 << 20,
            join: Duration::from_secs(1),
            // A disconnect is noticed at once, so work ends within a second, including the time to stop.
            gone: Duration::from_millis(750),
            wait: Duration::from_secs(5),
            keep: Duration::from_secs(60),
            queue: 64,
            at_once: 2,
            addresses: "postal-places".to_owned(),
            gazetteer: "capitals".to_owned(),
            gazetteer_population: 100_000,
            images: None,
        }
    }
}
