//! Queries served by scan servers instead of the owner.
//!
//! Each partition is queried separately, by its own
//! [`ScanAttempts`](meridian_model::policy::selector::ScanAttempts). So if a server fails, only its part is requested
//! again from another one. `attempts.rs` executes them; this module has the shared state.

mod attempts;
mod route;

pub(super) use attempts::QueryAttempts;
pub(super) use route::QueryRoute;

use super::link::Link;
use super::{OwnerLocation, RemoteOptions};
use meridian_backend::{Metric, MetricKind, Random};
use meridian_model::policy::selector::{Fallback, Hedging, Profiles};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an unreachable server is skipped, as long as there are others. A killed one stays listed for a minute.
const AVOIDED: Duration = Duration::from_secs(3);

/// A scan server, as described by its pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanServerLocation {
    /// Process number, which calls name: any other process at its address refuses them.
    pub process: u64,
    /// Its host and port.
    pub address: String,
    /// The group it belongs to.
    pub group: String,
}

/// Options of a gateway's use of scan servers.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// The current servers, as they come and go.
    pub servers: watch::Receiver<Arc<[ScanServerLocation]>>,
    /// Selects the servers of a scan.
    pub profiles: Profiles,
    /// Behaviour of a scan without servers.
    pub fallback: Fallback,
    /// When a second server is asked in parallel.
    pub hedging: Hedging,
}

/// State shared by all scans of a gateway.
pub(super) struct Scans {
    servers: watch::Receiver<Arc<[ScanServerLocation]>>,
    profiles: Profiles,
    /// Budget of fallbacks to the owners. Locked only for a decision, never across a wait.
    fallback: Mutex<Fallback>,
    /// Budget of hedges, with the same lock rule. Shared by all queries, so that it bounds their total.
    hedging: Mutex<Hedging>,
    /// Connections, by process.
    links: Mutex<HashMap<u64, Arc<Link>>>,
    /// Processes to skip, each until this time.
    avoided: Mutex<HashMap<u64, Instant>>,
    random: Arc<dyn Random>,
    /// Start of the clock of attempts.
    begun: Instant,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    scans: AtomicU64,
    attempts: AtomicU64,
    busy: AtomicU64,
    failed: AtomicU64,
    hedges: AtomicU64,
    fallbacks: AtomicU64,
    absent: AtomicU64,
}

fn count(of: &AtomicU64) {
    // Relaxed: used only for metrics.
    of.fetch_add(1, Ordering::Relaxed);
}

impl Scans {
    fn new(options: ScanOptions, random: Arc<dyn Random>) -> Scans {
        let ScanOptions { servers, profiles, fallback, hedging } = options;
        Scans {
            servers,
            profiles,
            fallback: Mutex::new(fallback),
            hedging: Mutex::new(hedging),
            links: Mutex::default(),
            avoided: Mutex::default(),
            random,
            begun: Instant::now(),
            counts: Counts::default(),
        }
    }

    /// Moves the scan servers out of the options, since all groups share them.
    pub(super) fn take(options: &mut RemoteOptions) -> Option<Arc<Scans>> {
        let (scans, random) = (options.scans.take()?, options.random.clone());
        Some(Arc::new(Scans::new(scans, random)))
    }

    /// Clock of the attempts.
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns a random number below `n`.
    fn draw(&self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    /// Returns the servers of a group that are not being skipped; all of them if every one is.
    fn servers(&self, group: &str) -> Vec<ScanServerLocation> {
        let all: Vec<ScanServerLocation> =
            self.servers.borrow().iter().filter(|server| server.group == group).cloned().collect();
        let mut avoided = self.avoided.lock();
        // Expired entries go first: a server whose time is over gets queries again without any probe.
        let now = Instant::now();
        avoided.retain(|_, until| *until > now);
        if avoided.is_empty() || all.iter().all(|server| avoided.contains_key(&server.process)) {
            return all;
        }
        all.into_iter().filter(|server| !avoided.contains_key(&server.process)).collect()
    }

    fn avoid(&self, process: u64) {
        self.avoided.lock().insert(process, Instant::now() + AVOIDED);
    }

    /// Returns the connection to a server; drops those to servers that no longer exist.
    fn link(&self, server: &ScanServerLocation, owner: &Link) -> Arc<Link> {
        // Held until the link is stored, so that concurrent queries share one connection to a server.
        let mut links = self.links.lock();
        if let Some(link) = links.get(&server.process) {
            return link.clone();
        }
        let there = self.servers.borrow().clone();
        links.retain(|process, _| there.iter().any(|server| server.process == *process));
        let at = OwnerLocation { address: server.address.clone(), process: Some(server.process), leaves: false };
        let link = Arc::new(owner.to_scan_server(at));
        links.insert(server.process, link.clone());
        link
    }

    /// Totals of scans so far, for operators.
    pub(super) fn reads(&self) -> meridian_backend::cluster::ScanReads {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { scans, attempts, busy, failed, hedges, fallbacks, absent } = &self.counts;
        meridian_backend::cluster::ScanReads {
            questions: of(scans),
            attempts: of(attempts),
            busy: of(busy),
            failed: of(failed),
            hedges: of(hedges),
            fallbacks: of(fallbacks),
            refused: of(absent),
        }
    }

    /// The same totals as metrics.
    pub(super) fn figures(&self) -> Vec<Metric> {
        let counter = |name, help, of: &AtomicU64| Metric {
            kind: MetricKind::Counter,
            name,
            help,
            value: of.load(Ordering::Relaxed),
        };
        let Counts { scans, attempts, busy, failed, hedges, fallbacks, absent } = &self.counts;
        vec![
            Metric {
                kind: MetricKind::Gauge,
                name: "meridian_scan_servers",
                help: "Scan servers that this gateway knows.",
                value: self.servers.borrow().len() as u64,
            },
            counter("meridian_scans_total", "Questions of a partition that were to go to scan servers.", scans),
            counter("meridian_scan_attempts_total", "Requests to scan servers.", attempts),
            counter("meridian_scan_busy_total", "Requests that a scan server answered busy.", busy),
            counter(
                "meridian_scan_failures_total",
                "Requests that a scan server or the connection to it failed.",
                failed,
            ),
            counter("meridian_scan_hedges_total", "Second requests beside one that was slow to begin.", hedges),
            counter(
                "meridian_scan_fallbacks_total",
                "Questions that went to the owner: no scan server was there, could be reached, or had the data.",
                fallbacks,
            ),
            counter(
                "meridian_scan_refusals_total",
                "Questions refused: neither a scan server nor the owner was to answer.",
                absent,
            ),
        ]
    }
}
