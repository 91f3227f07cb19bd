//! A server's place in its cluster, and its view of the cluster.

use crate::protocol::problem::{Kind, Problem, Result};
use meridian_backend::StoreError;
use meridian_backend::cluster::{Cluster, ClusterSurvey};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

/// How long a result is reused for other requests.
const FRESH: Duration = Duration::from_secs(1);
/// How long a request waits for a survey, which continues without it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server's place in its cluster.
#[derive(Debug)]
pub struct Member {
    /// `gateway` or `scan`.
    pub role: &'static str,
    /// Its name.
    pub node: String,
    survey: Arc<ClusterSurvey>,
    latest: Arc<Mutex<Option<CachedSurvey>>>,
}

#[derive(Debug)]
struct CachedSurvey {
    at: Instant,
    cluster: Arc<Cluster>,
}

impl Member {
    /// Creates a server with this role (`gateway` or `scan`) and name, which surveys the bucket of its cluster.
    pub fn new(role: &'static str, node: String, survey: ClusterSurvey) -> Member {
        Member { role, node, survey: Arc::new(survey), latest: Arc::default() }
    }

    /// Returns the state of the cluster, at most a second old.
    ///
    /// # Errors
    /// The bucket cannot be read, or takes too long.
    pub async fn cluster(&self) -> Result<Arc<Cluster>> {
        let latest = self.latest.clone();
        let survey = self.survey.clone();
        let look = async {
            let mut latest = latest.lock_owned().await;
            if let Some(found) = latest.as_ref().filter(|found| found.at.elapsed() < FRESH) {
                return Ok(found.cluster.clone());
            }
            // The survey owns the lock: if its request is dropped, no second survey starts beside it.
            let look = move || -> std::result::Result<_, StoreError> {
                let cluster = Arc::new(survey.run()?);
                *latest = Some(CachedSurvey { at: Instant::now(), cluster: cluster.clone() });
                Ok(cluster)
            };
            tokio::task::spawn_blocking(look).await.map_err(Problem::internal)?.map_err(unread)
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            Err(Problem::new(Kind::Overloaded, format!("the bucket took longer than {seconds} s to read: try again")))
        })
    }
}

/// Returns the problem for a bucket that cannot be read. Only operators see it, so it names the object.
fn unread(error: StoreError) -> Problem {
    let kind = if matches!(error, StoreError::Corrupt { .. }) { Kind::Damaged } else { Kind::Overloaded };
    Problem::new(kind, format!("the bucket of the cluster cannot be read: {error}"))
}
