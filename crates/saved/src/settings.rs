//! Operator settings of saved searches.

use std::time::Duration;

/// Limits of saved searches on memory and on calls to others.
#[derive(Debug, Clone)]
pub struct SavedSettings {
    /// Whether this process runs saved searches. If not, they stay on disk unchanged.
    pub enabled: bool,
    /// Max saved searches.
    pub max: usize,
    /// Max bytes of queued events. Events beyond it are dropped, counted and reported.
    pub queue_bytes: usize,
    /// Max missed events of a collection that a start processes; if there are more, only the newest ones.
    pub catch_up: usize,
    /// Max bytes of packets of each saved search; the oldest are evicted.
    pub buffer_bytes: usize,
    /// Max bytes of packets of all saved searches.
    pub buffer_bytes_total: usize,
    /// Max objects, plus the questions they are in, remembered to detect entering and leaving.
    pub objects_max: usize,
    /// Min interval between two polls of a saved search.
    pub poll_min: Duration,
    /// Max concurrent polls.
    pub polls_at_once: usize,
    /// Webhooks.
    pub webhook: WebhookSettings,
}

/// Settings of webhook delivery.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Timeout of a call.
    pub timeout: Duration,
    /// Backoff after the first failure of a packet. It doubles with each further one, up to an hour.
    pub wait: Duration,
    /// Max calls for one packet. With the defaults, `age` is reached first.
    pub tries: u32,
    /// Age since the first call at which a packet is given up.
    pub age: Duration,
    /// Max bytes of dead letters of all saved searches; the oldest are evicted.
    pub dead_bytes_total: usize,
    /// Max concurrent calls.
    pub at_once: usize,
    /// Whether private addresses may be called.
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
