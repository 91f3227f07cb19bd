//! Scan tiers: clients that scan tablets, servers that read them from shared storage, and the selector between them.
//!
//! A scan reads a range of a tablet in batches. Its first batch waits in a server's queue for at most the busy
//! timeout. A server that has not started it by then responds busy, and the client tries the selector's next one. Once
//! started, every further batch goes to the end of the same server's queue, and no timeout applies. A batch first
//! reads from a storage node, then takes processor time, which the batches in work share. Cached data is neither read
//! nor unpacked again. Immediate scans go to the tablet server that holds the tablet. Clients run on machines of their
//! own, whose cores start scans and process batches.

mod client;
mod clients;
mod costs;
mod outcome;
mod run;
mod server;
mod shared;
#[cfg(test)]
mod tests;

pub use costs::{Batch, Costs};
pub use outcome::ScanOutcome;
pub use run::{each, run};
pub use shared::{SharedCores, Work};

use super::draw::Sizes;
use super::events::micros;
use meridian_model::policy::selector::{Hedging, Profiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A scan tier and its load: the format of the scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Always `scan-tier`.
    pub kind: String,
    /// Title for the page of results.
    #[serde(default)]
    pub about: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// The entry of `workloads` that the clients run.
    pub workload: String,
    /// Number of tablets over which the scans spread.
    pub tablets: u32,
    /// Number of scan servers.
    pub servers: u32,
    /// Number of candidate servers of the first attempt.
    pub initial: u32,
    /// Busy timeout of the attempts before the one that may take any server.
    pub busy_ms: u32,
    /// Number of clients, each with one scan at a time.
    pub threads: u32,
    /// Whether a server caches the blocks it has read.
    #[serde(default)]
    pub data_cache: bool,
    /// Whether scans go to the tablets' own servers instead.
    #[serde(default)]
    pub immediate: bool,
    /// Number of tablet servers, which hold equally many tablets.
    #[serde(default = "one")]
    pub tablet_servers: u32,
    /// Attempts up to the one that may take any server; the sets of servers grow by a constant factor in between.
    pub attempts: u32,
    /// A profile list in the format of API.md; it replaces `initial`, `busy_ms` and `attempts`.
    #[serde(default)]
    pub profiles: Option<String>,
    /// Scans of each client that are excluded at the beginning.
    pub warm_up_scans: u32,
    /// Scans of each client that are counted.
    pub measured_scans: u32,
    /// The machines.
    pub machine: Machine,
    /// The clients' machines; unlimited by default.
    #[serde(default)]
    pub clients: Option<Clients>,
    /// Second attempts for scans that are slow to start; none by default.
    #[serde(default)]
    pub hedge: Option<Hedge>,
    /// Costs common to all workloads, in place of `cpu_ms`, `storage_ms` and `tablet_server_factor` of each.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// The workloads of the clients, by name.
    pub workloads: BTreeMap<String, Workload>,
}

/// The machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Processor cores of a server.
    pub cores: u32,
    /// Max batches in work on a server; the others wait.
    pub executor_threads: u32,
    /// Number of storage nodes; each serves one read at a time.
    pub storage_nodes: u32,
    /// Max entries of a batch.
    pub batch_entries: u32,
    /// Entries of a tablet.
    pub tablet_entries: f64,
    /// Bytes of a tablet.
    pub tablet_bytes: f64,
    /// Bytes of a server's data cache.
    pub cache_bytes: f64,
}

/// The machines of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// Number of machines, over which the clients are spread.
    pub nodes: u32,
    /// Processor cores of each.
    pub cores: u32,
    /// Processor time to start a scan (choose a server and send the first request), in milliseconds.
    pub scan_ms: f64,
}

/// The rule for sending a scan to a second server, and its budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hedge {
    /// Time without a start after which an attempt is hedged, in milliseconds.
    pub after_ms: f64,
    /// Max share of all scans.
    pub share: f64,
    /// Burst allowance after quiet times.
    pub burst: f64,
}

fn one() -> u32 {
    1
}

/// A kind of scan and its cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Entries that a scan reads.
    pub entries: Sizes,
    /// Share of the entries read that are returned.
    pub returned: f64,
    /// How much more a scan reads for each tablet past the first, as it then crosses borders.
    #[serde(default)]
    pub growth_per_tablet: f64,
    /// Processor time of a scan of mean size on a scan server, in milliseconds.
    #[serde(default)]
    pub cpu_ms: Option<f64>,
    /// Time at a storage node of a scan of mean size, in milliseconds.
    #[serde(default)]
    pub storage_ms: Option<f64>,
    /// Time between a batch's end and the next one's arrival at the server, in milliseconds. The client processes it,
    /// which holds one of its machine's cores if `clients` specifies those.
    pub turnaround_ms: f64,
    /// Processor time on the tablet server over that on a scan server.
    #[serde(default)]
    pub tablet_server_factor: Option<f64>,
    /// Share of a batch's processor time spent on reading and unpacking its blocks, which a cache saves.
    #[serde(default)]
    pub unpack: f64,
    /// Number of scans of the probe whose busy responses were counted.
    pub probe_scans: f64,
}

impl Tier {
    /// Returns the workload in use.
    pub fn work(&self) -> Option<&Workload> {
        self.workloads.get(&self.workload)
    }

    /// Refuses an invalid scenario, with a sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        let Some(work) = self.work() else {
            let names: Vec<&str> = self.workloads.keys().map(String::as_str).collect();
            return Err(format!("workload = {:?}: expected one of {}", self.workload, names.join(", ")));
        };
        for (name, x, most) in [
            ("tablets", self.tablets, 100_000),
            ("servers", self.servers, 10_000),
            ("initial", self.initial, 10_000),
            ("busy_ms", self.busy_ms, 3_600_000),
            ("threads", self.threads, 100_000),
            ("attempts", self.attempts, 100),
            ("measured_scans", self.measured_scans, 1_000_000),
            ("tablet_servers", self.tablet_servers, 10_000),
            ("clients.nodes", self.clients.map_or(1, |clients| clients.nodes), 100_000),
            ("clients.cores", self.clients.map_or(1, |clients| clients.cores), 10_000),
            ("machine.cores", self.machine.cores, 10_000),
            ("machine.executor_threads", self.machine.executor_threads, 10_000),
            ("machine.storage_nodes", self.machine.storage_nodes, 10_000),
            ("machine.batch_entries", self.machine.batch_entries, u32::MAX),
        ] {
            if x < 1 || x > most {
                return Err(format!("{name} = {x}: expected 1 to {most}"));
            }
        }
        let blame = |detail: String| format!("workloads.{}: {detail}", self.workload);
        work.entries.check().map_err(blame)?;
        for (name, x) in [
            ("returned", work.returned),
            ("growth_per_tablet", work.growth_per_tablet),
            ("turnaround_ms", work.turnaround_ms),
            ("probe_scans", work.probe_scans),
        ] {
            if !(x.is_finite() && (0.0..=1e9).contains(&x)) {
                return Err(blame(format!("{name} = {x}: expected 0 to 1e9")));
            }
        }
        for (name, x) in [
            ("cpu_ms", work.cpu_ms),
            ("storage_ms", work.storage_ms),
            ("tablet_server_factor", work.tablet_server_factor),
        ] {
            match (x, &self.costs) {
                // Both together would contradict each other.
                (Some(_), Some(_)) => return Err(blame(format!("{name}: expected it or [costs], not both"))),
                (None, None) => return Err(blame(format!("{name} is missing: expected it, or a table [costs]"))),
                (Some(x), None) if !(0.0..=1e9).contains(&x) => {
                    return Err(blame(format!("{name} = {x}: expected 0 to 1e9")));
                }
                _ => {}
            }
        }
        self.costs.map_or(Ok(()), |costs| costs.check())?;
        if !(0.0..=1.0).contains(&work.unpack) {
            return Err(blame(format!("unpack = {}: expected 0 to 1", work.unpack)));
        }
        if let Some(scan_ms) = self.clients.map(|clients| clients.scan_ms).filter(|ms| !(0.0..=1e6).contains(ms)) {
            return Err(format!("clients.scan_ms = {scan_ms}: expected 0 to 1e6"));
        }
        self.hedging()?;
        self.selector().map(|_| ())
    }

    /// Returns the rule and the budget of second attempts, over all clients.
    fn hedging(&self) -> Result<Option<Hedging>, String> {
        let Some(hedge) = self.hedge else { return Ok(None) };
        if !(0.0..=3.6e6).contains(&hedge.after_ms) {
            return Err(format!("hedge.after_ms = {}: expected 0 to 3600000", hedge.after_ms));
        }
        let after = Duration::from_micros(micros(hedge.after_ms / 1e3));
        Hedging::new(after, hedge.share, hedge.burst).map(Some).map_err(|error| format!("hedge: {error}"))
    }

    /// Returns the selector's profiles: as given, or built from `initial`, `busy_ms` and `attempts` like those of the
    /// study's selector (`initialServers`, `initialBusyTimeout`, `maxDepth`).
    pub fn selector(&self) -> Result<Profiles, String> {
        let json = self.profiles.clone().unwrap_or_else(|| {
            let (first, all) = (f64::from(self.initial.min(self.servers)), f64::from(self.servers));
            let step = |k: u32| match self.attempts {
                1 => first,
                n => first * (all / first).powf(f64::from(k) / f64::from(n - 1)),
            };
            let plans: Vec<String> = (0..self.attempts)
                .map(|k| format!(r#"{{"servers":"{}","busyTimeout":"{}ms"}}"#, step(k).round(), self.busy_ms))
                .collect();
            let plans = plans.join(",");
            format!(
                r#"[{{"isDefault":true,"maxBusyTimeout":"5m","busyTimeoutMultiplier":8,"attemptPlans":[{plans}]}}]"#
            )
        });
        Profiles::parse(&json).map_err(|error| format!("profiles: {error}"))
    }
}
