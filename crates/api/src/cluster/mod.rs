//! `/admin/cluster`: the owner, the collections and the servers of a cluster, as its bucket shows them.
//!
//! Like `/admin/load`, it is available as a document for programs and as a page without scripts. Each survey of the
//! bucket costs calls for each collection, so requests share one. Two surveys never run at once, and a result is reused
//! for a second.

mod page;

use crate::contract::{AnsweringServer, ClusterAnswer};
use crate::html::live;
use crate::params::Params;
use crate::params::format::{self, Format, PAGES};
use crate::problem::{Kind, Problem, Result};
use crate::request::Context;
use crate::respond;
use crate::scope::Scope;
use axum::response::Response;
use meridian_backend::StoreError;
use meridian_backend::cluster::{Cluster, ClusterSurvey};
use meridian_model::time;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

/// How long a result is reused for other requests.
const FRESH: Duration = Duration::from_secs(1);
/// How long a request waits for a survey, which continues without it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server's membership in its cluster.
#[derive(Debug)]
pub struct Member {
    role: &'static str,
    node: String,
    survey: Arc<ClusterSurvey>,
    latest: Arc<Mutex<Option<Found>>>,
}

#[derive(Debug)]
struct Found {
    at: Instant,
    cluster: Arc<Cluster>,
}

impl Member {
    /// Creates a server with this role (`gateway` or `scan`) and name, which surveys the bucket of its cluster.
    pub fn new(role: &'static str, node: String, survey: ClusterSurvey) -> Member {
        Member { role, node, survey: Arc::new(survey), latest: Arc::default() }
    }

    /// Returns the state of the cluster, at most a second old.
    async fn cluster(&self) -> Result<Arc<Cluster>> {
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
                *latest = Some(Found { at: Instant::now(), cluster: cluster.clone() });
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

/// `GET /admin/cluster`
pub async fn get(state: Scope, context: Context) -> Result<Response> {
    let mut params = Params::parse(context.query.as_deref())?;
    let format = format::choose(params.take("f"), &context.headers, PAGES)?;
    let is_live = live::is_live(&mut params)?;
    params.finish()?;
    let member = state.member.as_ref();
    let cluster = match member {
        Some(member) => Some(member.cluster().await?),
        None => None,
    };
    let response = match (format, &cluster) {
        (Format::Html, Some(cluster)) => respond::page(&state, page::page(cluster, is_live)),
        (Format::Html, None) => respond::page(&state, page::alone(&time::format_instant(state.now()), is_live)),
        _ => {
            let server = match member {
                Some(member) => AnsweringServer { role: member.role, node: Some(&member.node) },
                None => AnsweringServer { role: "all", node: None },
            };
            respond::json("application/json", &ClusterAnswer { server, cluster: cluster.as_deref() })?
        }
    };
    Ok(live::of_a_moment(response, format == Format::Html && is_live))
}
