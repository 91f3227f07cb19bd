//! A cluster whose processes reach each other over links that can fail: two owners, two gateways, a scan server, their bucket, and
//! NATS servers where the log is there.

use super::mount::Mount;
use super::nodes::{Node, Pids, door};
use super::proxy::{Fault, Proxy};
use super::trio::{SERVERS, Trio};
use super::{PATIENCE, meridian};
use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// An owner's lease. Shorter than by default, so that a takeover takes little of the test's time.
pub const LEASE: Duration = Duration::from_secs(1);
/// Size of the disk that has the bucket.
const DISK: &str = "size=128m";
/// How often is looked whether something has happened.
const LOOK: Duration = Duration::from_millis(50);

/// A link between two processes.
pub struct Link {
    /// Who reaches whom.
    pub name: String,
    proxy: Arc<Proxy>,
    caller: String,
}

/// The cluster.
pub struct Grid {
    // In the order in which they end: processes first.
    pub nodes: Vec<Node>,
    pub nats: Option<Trio>,
    pub links: Vec<Link>,
    /// The disk of the bucket, if it is one of its own.
    disk: Option<Mount>,
    bucket: PathBuf,
    folder: TempDir,
}

impl Grid {
    /// Starts a cluster with its log in the bucket or in NATS. Its processes may not be ready yet.
    #[track_caller]
    pub fn start(log: &'static str) -> Grid {
        let folder = tempfile::tempdir().unwrap();
        let disk = Mount::new(&["-t", "tmpfs", "-o", DISK, "none"]);
        let bucket = disk.as_ref().map_or(folder.path(), Mount::path).join("bucket");
        let nats = (log == "nats").then(|| Trio::start(folder.path()));
        let mut grid = Grid { nodes: Vec::new(), nats, links: Vec::new(), disk, bucket, folder };
        let pids = Pids::default();
        for (name, role) in [("o1", "owner"), ("o2", "owner"), ("g1", "gateway"), ("g2", "gateway"), ("s1", "scan")] {
            grid.add(name, role, log, &pids);
        }
        grid.nodes.iter_mut().for_each(Node::revive);
        grid
    }

    fn add(&mut self, name: &str, role: &'static str, log: &str, pids: &Pids) {
        let mut link = |name: String, proxy: &Arc<Proxy>, caller: &str| {
            self.links.push(Link { name, proxy: proxy.clone(), caller: caller.to_owned() });
        };
        let door = if role == "owner" { door(pids) } else { Arc::new(Proxy::new()) };
        let mut settings = format!(
            "[requests]\ntimeout = \"5s\"\n[cluster]\nlease = \"{}ms\"\nstaleness_max = \"1s\"\nnode = {name:?}\n",
            LEASE.as_millis()
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
        let path = |end: &str| self.folder.path().join(format!("{name}{end}"));
        std::fs::write(path(".toml"), settings).unwrap();
        let mut arguments: Vec<String> = ["--role", role, "--log", log].map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        option("--bucket", format!("file://{}", self.bucket.display()));
        option("--config", path(".toml").display().to_string());
        option("--data", path("").display().to_string());
        if role == "owner" {
            option("--flight", "127.0.0.1:0".to_owned());
            option("--flight-advertise", door.address.to_string());
        } else {
            option("--listen", "127.0.0.1:0".to_owned());
        }
        self.nodes.push(Node::new(name, role, door, arguments, path(".log"), pids));
    }

    /// Numbers of the processes of a role.
    pub fn of(&self, role: &str) -> Vec<usize> {
        (0..self.nodes.len()).filter(|n| self.nodes[*n].role == role).collect()
    }

    /// URLs of the processes of a role, as their clients reach them.
    pub fn urls(&self, role: &str) -> Vec<String> {
        self.of(role).into_iter().map(|n| self.nodes[n].url()).collect()
    }

    /// Makes a collection, unless it is there.
    #[track_caller]
    pub fn create(&mut self, name: &str, spec: &str) {
        let url = self.urls("gateway").remove(0);
        self.until(&format!("collection {name}"), |_| {
            let there =
                super::clients::get(&format!("{url}/collections/{name}")).is_ok_and(|answer| answer.status == 200);
            there || meridian(&["create", name, "--schema", spec, "--url", &url]).code == 0
        });
    }

    /// The number of the process that holds the lease, once one does.
    #[track_caller]
    pub fn owner(&mut self) -> usize {
        let bucket = format!("file://{}", self.bucket.display());
        let mut found = None;
        self.until("an owner", |grid| {
            let run = meridian(&["cluster", "status", "--bucket", &bucket, "--json"]);
            let status: Value = serde_json::from_str(&run.out).unwrap_or_default();
            let owner = (status["owner"]["state"] == "held").then_some(&status["owner"]["node"]);
            found = owner.and_then(|name| grid.nodes.iter().position(|node| *name == node.name.as_str()));
            found.is_some()
        });
        found.unwrap()
    }

    /// Sets what is wrong with a link.
    pub fn fail(&self, link: usize, fault: Fault) {
        let Link { proxy, caller, .. } = &self.links[link];
        proxy.fail(caller, fault);
    }

    /// Whether the bucket's disk can be filled.
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

    /// Makes room on the bucket's disk.
    pub fn empty(&self) {
        if let Some(disk) = &self.disk {
            let _ = std::fs::remove_file(disk.path().join("ballast"));
        }
    }

    /// Lets time pass, in which processes that ended are started again; ends early once `over`.
    #[track_caller]
    pub fn hold(&mut self, time: Duration, over: impl Fn() -> bool) {
        let begun = Instant::now();
        while begun.elapsed() < time && !over() {
            self.tend();
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until something holds.
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

    /// What all processes printed and wrote, at the end.
    pub fn logs(&self) -> String {
        let nats = self.nats.as_ref().map(Trio::logs).unwrap_or_default();
        self.nodes.iter().map(Node::log).chain([nats]).collect::<Vec<_>>().join("\n")
    }
}
