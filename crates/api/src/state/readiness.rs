//! What of the collections keeps a server from being ready.

use crate::protocol::problem::{Problem, Result};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

/// How long a result is reused: anyone may ask, and finding it visits every collection of every tenant.
const FRESH: Duration = Duration::from_millis(250);

/// The collections that keep a server from being ready.
#[derive(Debug, Default)]
pub struct CollectionFaults {
    /// Collections that take no writes, with the reasons.
    pub refusing: Vec<String>,
    /// Collections that cannot be opened, with the reasons.
    pub damaged: Vec<String>,
}

/// The latest result, and when it was found.
type Latest = Option<(Instant, Result<Arc<CollectionFaults>>)>;

/// Finds the faults of collections, at most once at a time and once in [`FRESH`].
#[derive(Debug, Default)]
pub struct Readiness(Arc<Mutex<Latest>>);

impl Readiness {
    /// Returns the latest result, or that of `find`, which may block.
    ///
    /// # Errors
    /// The errors of `find`.
    pub async fn faults(
        &self,
        find: impl FnOnce() -> Result<CollectionFaults> + Send + 'static,
    ) -> Result<Arc<CollectionFaults>> {
        let mut latest = self.0.clone().lock_owned().await;
        if let Some((_, found)) = latest.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return found.clone();
        }
        // It owns the lock: if its request is dropped, no second one starts beside it.
        let find = move || {
            let found = find().map(Arc::new);
            *latest = Some((Instant::now(), found.clone()));
            found
        };
        tokio::task::spawn_blocking(find).await.map_err(Problem::internal)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_probes_visits_the_collections_once_in_a_while() {
        let (readiness, visits) = (Readiness::default(), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let visits = visits.clone();
            readiness.faults(move || {
                visits.fetch_add(1, Ordering::Relaxed);
                Ok(CollectionFaults::default())
            })
        };
        for _ in 0..100 {
            ask().await.unwrap();
        }
        assert_eq!(visits.load(Ordering::Relaxed), 1);
        tokio::time::advance(FRESH).await;
        ask().await.unwrap();
        assert_eq!(visits.load(Ordering::Relaxed), 2);
    }
}
