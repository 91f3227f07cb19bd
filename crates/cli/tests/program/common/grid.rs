//! A cluster whose processes reach each other over links that can fail. It has two owners, two gateways, a scan server,
//! their bucket or its store, and NATS servers if the log is there.

use super::Random;
use super::gateway::{BUCKET, Gateway as Store, REGION};
use super::mount::Mount;
use super::nats_cluster::{NatsCluster, SERVERS};
use super::nodes::{Node, Pids, door};
use super::proxy::{Fault, Proxy};
use super::{PATIENCE, meridian};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Length of an owner's lease. Shorter than the default, to keep takeovers in tests short.
pub const LEASE: Duration = Duration::from_secs(1);
/// Size of the disk with the bucket.
const DISK: &str = "size=128m";
/// Poll interval of conditions.
const LOOK: Duration = Duration::from_millis(50);

/// Skew of a cluster's clocks: the time of day in milliseconds, the rate in parts per million. A candidate allows for
/// rates that differ by an eighth.
const AHEAD_MS: u64 = 2_000;
const FASTER_PPM: u64 = 50_000;

/// Storage of a cluster, and the accuracy of its clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bucket and log in a folder.
    Folder,
    /// Bucket in a folder, log in NATS; skewed clocks.
    Nats,
    /// Bucket and log in an S3-compatible store; skewed clocks.
    S3,
}

impl Kind {
    /// Returns its name in file names.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Folder => "bucket",
            Kind::Nats => "nats",
            Kind::S3 => "s3",
        }
    }
}

/// A link between two processes.
pub struct Link {
    /// Name of caller and server.
    pub name: String,
    proxy: Arc<Proxy>,
    caller: String,
}

/// The cluster.
pub struct Grid {
    // In the order in which they are dropped: processes first.
    pub nodes: Vec<Node>,
    pub nats: Option<NatsCluster>,
    pub store: Option<Store>,
    pub links: Vec<Link>,
    /// The disk of the bucket, if it has its own.
    disk: Option<Mount>,
    bucket: String,
    folder: TempDir,
}

impl Grid {
    /// Starts a cluster. Its processes may not be ready yet.
    #[track_caller]
    pub fn start(kind: Kind, random: &mut Random) -> Grid {
        let folder = tempfile::tempdir().unwrap();
        let disk = (kind != Kind::S3).then(|| Mount::new(&["-t", "tmpfs", "-o", DISK, "none"])).flatten();
        let path = disk.as_ref().map_or(folder.path(), Mount::path).join("bucket");
        let bucket = match kind {
            Kind::S3 => format!("s3://{BUCKET}/chaos"),
            _ => format!("file://{}", path.display()),
        };
        let nats = (kind == Kind::Nats).then(|| NatsCluster::start(folder.path()));
        let store = (kind == Kind::S3).then(|| Store::start(folder.path(), None));
        let mut grid = Grid { nodes: Vec::new(), nats, store, links: Vec::new(), disk, bucket, folder };
        // For the status, which uses its own link that never fails.
        if let Some(store) = &grid.store {
            std::fs::write(grid.settings(), s3_settings(store, &store.endpoint())).unwrap();
        }
        let pids = Pids::default();
        for (name, role) in [("o1", "owner"), ("o2", "owner"), ("g1", "gateway"), ("g2", "gateway"), ("s1", "scan")] {
            let skew = match kind {
                Kind::Folder => String::new(),
                _ => {
                    let mut within = |max: u64| random.below(2 * max) as i64 - max as i64;
                    format!("{},{}", within(AHEAD_MS), within(FASTER_PPM))
                }
            };
            if !skew.is_empty() {
                println!("clock of {name}: {skew} (ms ahead, ppm faster)");
            }
            grid.add((name, role), kind, skew, &pids);
        }
        grid.nodes.iter_mut().for_each(Node::revive);
        grid
    }

    /// Returns the file with settings for commands.
    fn settings(&self) -> PathBuf {
        self.folder.path().join("commands.toml")
    }

    fn add(&mut self, (name, role): (&str, &'static str), kind: Kind, clock: String, pids: &Pids) {
        let mut link = |name: String, proxy: &Arc<Proxy>, caller: &str| {
            self.links.push(Link { name, proxy: proxy.clone(), caller: caller.to_owned() });
        };
        let door = if role == "owner" { door(pids) } else { Arc::new(Proxy::new()) };
        let mut settings = format!(
            "[requests]\ntimeout = \"5s\"\n[cluster]\nlease = \"{}ms\"\nstaleness_max = \"1s\"\nnode = {name:?}\nskew = \"{}ms\"\n",
            LEASE.as_millis(),
            if clock.is_empty() { 0 } else { 2 * AHEAD_MS }
        );
        match role {
            "owner" => ["g1", "g2"].iter().for_each(|gateway| link(format!("{gateway}>{name}"), &door, gateway)),
            _ => link(format!("clients>{name}"), &door, ""),
        }
        if let Some(nats) = &self.nats {
            let reached: Vec<String> = (0..SERVERS)
                .map(|n| {
                    let proxy = Arc::new(Proxy::new());
                    proxy.turn(Some(nats.clients(n)));
                    // Only owners write to the log.
                    if role == "owner" {
                        link(format!("{name}>n{n}"), &proxy, "");
                    }
                    format!("nats://{}", proxy.address)
                })
                .collect();
            settings += &format!("[cluster.nats]\nurls = {reached:?}\nmonitor = {:?}\nreplicas = 3\n", nats.monitors());
        }
        if let Some(store) = &self.store {
            let proxy = Arc::new(Proxy::new());
            proxy.turn(Some(store.address().parse().unwrap()));
            settings += &s3_settings(store, &format!("http://{}", proxy.address));
            link(format!("{name}>store"), &proxy, "");
        }
        let path = |end: &str| self.folder.path().join(format!("{name}{end}"));
        std::fs::write(path(".toml"), settings).unwrap();
        let log = if kind == Kind::Nats { "nats" } else { "bucket" };
        let mut arguments: Vec<String> = ["--role", role, "--log", log].map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        option("--bucket", self.bucket.clone());
        option("--config", path(".toml").display().to_string());
        option("--data", path("").display().to_string());
        if role == "owner" {
            option("--flight", "127.0.0.1:0".to_owned());
            option("--flight-advertise", door.address.to_string());
        } else {
            option("--listen", "127.0.0.1:0".to_owned());
        }
        self.nodes.push(Node::new(name, role, door, (arguments, clock), path(".log"), pids));
    }

    /// Returns the numbers of the processes of a role.
    pub fn of(&self, role: &str) -> Vec<usize> {
        (0..self.nodes.len()).filter(|n| self.nodes[*n].role == role).collect()
    }

    /// Returns the URLs of the processes of a role, as used by clients.
    pub fn urls(&self, role: &str) -> Vec<String> {
        self.of(role).into_iter().map(|n| self.nodes[n].url()).collect()
    }

    /// Creates a collection unless it exists.
    #[track_caller]
    pub fn create(&mut self, name: &str, spec: &str) {
        let url = self.urls("gateway").remove(0);
        self.until(&format!("collection {name}"), |_| {
            let there =
                super::clients::get(&format!("{url}/collections/{name}")).is_ok_and(|answer| answer.status == 200);
            there || meridian(&["create", name, "--schema", spec, "--url", &url]).code == 0
        });
    }

    /// Returns the number of the process that holds the lease, once there is one.
    #[track_caller]
    pub fn owner(&mut self) -> usize {
        let (bucket, settings) = (self.bucket.clone(), self.settings().display().to_string());
        let config: &[&str] = if self.store.is_some() { &["--config", &settings] } else { &[] };
        let mut found = None;
        self.until("an owner", |grid| {
            let run = meridian(&[&["cluster", "status", "--bucket", &bucket, "--json"], config].concat());
            let status: Value = serde_json::from_str(&run.out).unwrap_or_default();
            let owner = (status["owner"]["state"] == "held").then_some(&status["owner"]["node"]);
            found = owner.and_then(|name| grid.nodes.iter().position(|node| *name == node.name.as_str()));
            found.is_some()
        });
        found.unwrap()
    }

    /// Sets the fault of a link.
    pub fn fail(&self, link: usize, fault: Fault) {
        let Link { proxy, caller, .. } = &self.links[link];
        proxy.fail(caller, fault);
    }

    /// Returns true if the bucket's disk can be filled.
    pub fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Fills the bucket's disk to its last page.
    pub fn fill(&self) {
        let Some(disk) = &self.disk else { return };
        let mut ballast = std::fs::File::create(disk.path().join("ballast")).unwrap();
        for piece in [1 << 20, 4096] {
            while ballast.write_all(&vec![7; piece]).is_ok() {}
        }
    }

    /// Frees space on the bucket's disk.
    pub fn empty(&self) {
        if let Some(disk) = &self.disk {
            let _ = std::fs::remove_file(disk.path().join("ballast"));
        }
    }

    /// Lets time pass, and restarts processes that have ended. Ends early once `over`.
    #[track_caller]
    pub fn hold(&mut self, time: Duration, over: impl Fn() -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < time && !over() {
            self.tend();
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Grid) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{}", self.logs());
            self.tend();
            std::thread::sleep(LOOK);
        }
    }

    /// Ends all faults and waits until every process is ready.
    #[track_caller]
    pub fn settle(&mut self) {
        self.links.iter().for_each(|link| link.proxy.heal());
        self.empty();
        if let Some(nats) = &mut self.nats {
            (0..SERVERS).for_each(|n| nats.revive(n));
        }
        self.store.iter_mut().for_each(Store::restart);
        self.nodes.iter_mut().for_each(Node::revive);
        self.until("all processes are ready after the faults", |grid| {
            let ready =
                |url: String| super::clients::get(&format!("{url}/readyz")).is_ok_and(|answer| answer.status == 200);
            let stops = grid.nodes.iter().any(Node::is_stopping);
            !stops && ["gateway", "scan"].into_iter().flat_map(|role| grid.urls(role)).all(ready)
        });
    }

    #[track_caller]
    fn tend(&mut self) {
        self.nodes.iter_mut().for_each(Node::tend);
    }

    /// Returns the output and logs of all processes, at the end.
    pub fn logs(&self) -> String {
        let nats = self.nats.as_ref().map(NatsCluster::logs).unwrap_or_default();
        self.nodes.iter().map(Node::log).chain([nats]).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the settings of a process that reaches the store at this address.
fn s3_settings(store: &Store, endpoint: &str) -> String {
    let file = |name: &str| store.path(name).display().to_string();
    format!(
        "[cluster.s3]\nendpoint = {endpoint:?}\nregion = {REGION:?}\naccess_key_file = {:?}\nsecret_key_file = {:?}\n",
        file("access.key"),
        file("secret.key")
    )
}
