//! What an operator can set about saved searches.

use std::time::Duration;

/// Limits of saved searches, in memory and in what they do to others.
#[derive(Debug, Clone)]
pub struct SavedSettings {
    /// Whether this process looks after them; where not, they stay on disk as they are.
    pub enabled: bool,
    /// Most saved searches.
    pub max: usize,
    /// Bytes of new events that wait to be looked at; what is over is dropped, counted and told.
    pub queue_bytes: usize,
    /// Events of a collection that came while nobody looked, and are looked at when the server starts; of more the newest.
    pub catch_up: usize,
    /// Bytes of packets kept for each saved search; the oldest give way.
    pub buffer_bytes: usize,
    /// The same for all together.
    pub buffer_bytes_total: usize,
    /// Objects, and questions that they are in, that are remembered to tell who comes and who leaves.
    pub objects_max: usize,
    /// Least time between two polls of a saved search.
    pub poll_min: Duration,
    /// Polls at once.
    pub polls_at_once: usize,
    /// Webhooks.
    pub webhook: WebhookSettings,
}

/// How packets are sent to webhooks.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Time for one call.
    pub timeout: Duration,
    /// Pause after the first failure of a packet; it doubles with each further one, up to an hour.
    pub wait: Duration,
    /// Calls made for one packet before it is given up; as it is, `age` comes first.
    pub tries: u32,
    /// Time after the first call from which a packet is given up.
    pub age: Duration,
    /// Bytes of dead letters of all saved searches; the oldest give way.
    pub dead_bytes_total: usize,
    /// Calls at once.
    pub at_once: usize,
    /// Call private addresses as well.
    pub allow_private: bool,
}

impl Default for SavedSettings {
    fn default() -> Self {
        SavedSettings {
            enabled: true,
            max: 100_000,
            queue_bytes: 64 << 20,
            catch_up: 100_000,
            buffer_bytes: 256 << 10,
            buffer_bytes_total: 256 << 20,
            objects_max: 1_000_000,
            poll_min: Duration::from_secs(60),
            polls_at_once: 4,
            webhook: WebhookSettings::default(),
        }
    }
}

impl Default for WebhookSettings {
    fn default() -> Self {
        WebhookSettings {
            timeout: Duration::from_secs(10),
            wait: Duration::from_secs(1),
            tries: 50,
            age: Duration::from_secs(86_400),
            dead_bytes_total: 64 << 20,
            at_once: 32,
            allow_private: false,
        }
    }
}
