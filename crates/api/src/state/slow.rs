//! The slow requests of the last few minutes, for `/admin/load`.

use axum::http::Method;
use meridian_observe::Stage;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::time::Duration;

/// Max requests kept.
const KEPT_MAX: usize = 256;
/// How long they are kept, in microseconds.
const KEPT_US: i64 = 15 * 60 * 1_000_000;

/// A request that took longer than `log.slow`.
#[derive(Debug, Clone)]
pub struct SlowRequest {
    /// When it ended, in microseconds since 1970.
    pub at: i64,
    /// Its caller's tenant.
    pub tenant: Arc<str>,
    /// Its method.
    pub method: Method,
    /// Its path in the route table.
    pub route: &'static str,
    /// Its status.
    pub status: u16,
    /// Its id.
    pub request: String,
    /// The server's time for it, excluding its client's.
    pub took: Duration,
    /// The time of each stage, indexed by [`Stage`].
    pub stages: [Option<Duration>; Stage::ALL.len()],
    /// Bytes of events read.
    pub bytes_read: u64,
    /// Tree nodes visited.
    pub nodes_visited: u64,
}

/// The slow requests of the last few minutes.
#[derive(Debug, Default)]
pub struct SlowRequests(Mutex<VecDeque<SlowRequest>>);

impl SlowRequests {
    /// Adds a request that has just ended.
    pub fn add(&self, request: SlowRequest) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(request);
    }

    /// Returns the slowest requests, slowest first.
    pub fn slowest(&self, now: i64, max: usize) -> Vec<SlowRequest> {
        let mut recent: Vec<SlowRequest> = {
            let mut kept = self.0.lock();
            while kept.front().is_some_and(|first| first.at < now - KEPT_US) {
                kept.pop_front();
            }
            // Copied, so that sorting does not hold the lock that ending requests need.
            kept.iter().cloned().collect()
        };
        recent.sort_by_key(|request| std::cmp::Reverse(request.took));
        recent.truncate(max);
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_the_last_minutes_are_kept() {
        let requests = SlowRequests::default();
        for n in 0..1_000_u64 {
            requests.add(SlowRequest {
                at: n as i64,
                tenant: "default".into(),
                method: Method::GET,
                route: "/",
                status: 200,
                request: n.to_string(),
                took: Duration::from_millis(n % 100),
                stages: Default::default(),
                bytes_read: 0,
                nodes_visited: 0,
            });
        }
        let slowest = requests.slowest(1_000, 3);
        assert_eq!(slowest.iter().map(|slow| slow.took.as_millis()).collect::<Vec<_>>(), [99, 99, 99]);
        assert_eq!(requests.slowest(1_000, 1_000).len(), KEPT_MAX);
        assert!(requests.slowest(2_000 + KEPT_US, 3).is_empty());
    }
}
