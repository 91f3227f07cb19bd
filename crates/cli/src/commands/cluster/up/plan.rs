//! The layout of a cluster: names, ports and settings of its processes.

use super::super::nodes::{Kind, Node, Nodes};
use super::super::private;
use super::authority::{self, Identity};
use super::ports::Ports;
use super::running::{self, lock_file};
use super::{UpArgs, server};
use crate::config::Config;
use crate::failure::Failure;
use meridian_store::seams::read_named_text;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Two servers of the log stop as soon as one of them does, so with fewer than three nodes there is one.
const SERVERS_MIN: u8 = 3;
/// User name of the log's servers.
const USER: &str = "meridian";
/// Min memory for cached blocks of a process.
const CACHE_MIN: u64 = 64 << 20;

/// The processes to run.
pub(super) struct Plan {
    /// Folder of the cluster.
    pub(super) folder: PathBuf,
    pub(super) nodes: Nodes,
    /// The NATS server, if it is used for the log.
    pub(super) server: Option<PathBuf>,
    /// The password of the log's servers, new at each start.
    password: String,
    /// Whether the processes have certificates, new at each start.
    tls: bool,
    /// File locked as long as a process of the folder runs: each of them inherits it.
    pub(super) running: File,
    /// Locked until the end, so that no second cluster runs in the folder.
    _lock: File,
}

impl Plan {
    /// Chooses names and ports, and writes the settings of each process.
    pub(super) fn make(args: &UpArgs) -> Result<Plan, Failure> {
        let base = base(args.config.as_deref())?;
        let named = args.folder();
        let failed = |what: &str, e: std::io::Error| Failure::Usage(format!("--dir {}: {what}: {e}", named.display()));
        // An existing folder may be open to others; settings and logs in it are not.
        private::missing_folder(&named).map_err(|e| failed("cannot be made", e))?;
        // The bucket's address is the same wherever a process runs.
        let folder = named.canonicalize().map_err(|e| failed("cannot be opened", e))?;
        let lock = lock_file(&folder.join("lock")).map_err(|e| failed("its file lock cannot be opened", e))?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => Failure::Refused(format!(
                "--dir {}: another `meridian cluster up` runs there: stop that one, or name another folder",
                named.display()
            )),
            TryLockError::Error(e) => failed("its file lock cannot be locked", e),
        })?;
        let running = lock_file(&folder.join("running")).map_err(|e| failed("its file running cannot be opened", e))?;
        let before = Nodes::read(&folder)?;
        let log = log_of(args, before.as_ref())?;
        let servers = match log.as_str() {
            "nats" if args.nodes < SERVERS_MIN => 1,
            "nats" => args.nodes,
            _ => 0,
        };
        if let Some(before) = before.as_ref().filter(|before| before.log == "nats") {
            let there = before.count(Kind::Log);
            if there != usize::from(servers) {
                return Err(Failure::Usage(format!(
                    "--nodes {}: the log in {} is of {there} NATS servers, and their number stays: expected {}",
                    args.nodes,
                    named.display(),
                    if there == 1 { "1 or 2".to_owned() } else { there.to_string() }
                )));
            }
        }
        let server = (servers > 0).then(|| server::find(args.nats_server.as_deref())).transpose()?;
        running::wait_for_the_last(&running, before.as_ref(), &named, running::LEFT_MAX)?;
        let mut ports = Ports::new(before.as_ref());
        let mut nodes = Vec::new();
        for (role, count) in
            [(Kind::Gateway, args.nodes), (Kind::Owner, args.nodes), (Kind::Scan, args.nodes), (Kind::Log, servers)]
        {
            for number in 1..=count {
                nodes.push(ports.node(&folder, role, number)?);
            }
        }
        drop(ports);
        let urls = |node: &Node| (node.role == Kind::Gateway).then(|| format!("http://{}", node.address));
        let gateways = nodes.iter().filter_map(urls).collect();
        let bucket = format!("file://{}", folder.join("bucket").display());
        let nodes = Nodes { gateways, bucket, log, nodes };
        let plan = Plan { folder, nodes, server, password: password()?, tls: args.tls, running, _lock: lock };
        plan.write_settings(&base)?;
        plan.nodes.write(&plan.folder)?;
        Ok(plan)
    }

    /// Returns the folder of a process.
    pub(super) fn folder_of(&self, node: &Node) -> PathBuf {
        self.folder.join(&node.name)
    }

    /// Returns the settings file of a process.
    pub(super) fn settings_of(&self, node: &Node) -> PathBuf {
        self.folder_of(node).join(if node.role == Kind::Log { "nats.conf" } else { "settings.toml" })
    }

    /// Returns the file with the password of the log's servers.
    fn password_file(&self) -> PathBuf {
        self.folder.join("nats-password")
    }

    fn write_settings(&self, base: &Table) -> Result<(), Failure> {
        let failed =
            |path: &Path, e: &std::io::Error| Failure::Refused(format!("{} cannot be written: {e}", path.display()));
        let logs = self.folder.join("logs");
        private::folder(&logs).map_err(|e| failed(&logs, &e))?;
        if self.nodes.log == "nats" {
            let path = self.password_file();
            private::write(&path, &format!("{}\n", self.password)).map_err(|e| failed(&path, &e))?;
        }
        if self.tls {
            authority::certify(&self.folder, self.nodes.nodes.iter().map(|node| node.name.as_str()))?;
        }
        for node in &self.nodes.nodes {
            let (folder, path) = (self.folder_of(node), self.settings_of(node));
            private::folder(&folder).map_err(|e| failed(&folder, &e))?;
            let text = match node.role {
                Kind::Log => self.of_server(node, &folder),
                _ => self.of_process(node, &folder, base).to_string(),
            };
            private::write(&path, &text).map_err(|e| failed(&path, &e))?;
            if node.role != Kind::Log {
                let config = Config::read(&path)?;
                config.cluster.check(config.role, config.store.ephemeral)?;
            }
        }
        Ok(())
    }

    /// Returns the caches of the bucket, each with the number of processes that share the default size.
    fn shared_caches(&self) -> [(&'static str, u64, u64); 2] {
        let (cache, nodes) = (Config::default().cluster.cache, self.nodes.count(Kind::Owner).max(1) as u64);
        [("memory", cache.memory, 2 * nodes), ("trees", cache.trees, nodes)]
    }

    /// Returns the settings of a process: those of the user, and those that make it a part of this cluster.
    fn of_process(&self, node: &Node, folder: &Path, base: &Table) -> Table {
        let mut table = base.clone();
        let text = |text: &str| Value::String(text.to_owned());
        set(&mut table, &["server", "role"], text(node.role.name()));
        set(&mut table, &["store", "data"], text(&folder.join("data").display().to_string()));
        set(&mut table, &["cluster", "log"], text(&self.nodes.log));
        set(&mut table, &["cluster", "bucket"], text(&self.nodes.bucket));
        set(&mut table, &["cluster", "node"], text(&node.name));
        let listen = if node.role == Kind::Owner { ["cluster", "flight"] } else { ["server", "listen"] };
        set(&mut table, &listen, text(&node.address));
        set(&mut table, &["cluster", "flight_advertise"], text(""));
        // The ones in the user's settings are for other hosts.
        let [cert, key, ca] = self.identity(node).map(|file| text(&file));
        for (name, value) in [("cert", cert), ("key", key), ("ca", ca), ("names", Value::Array(Vec::new()))] {
            set(&mut table, &["cluster", "tls", name], value);
        }
        set(&mut table, &["cluster", "tls", "allow_plain"], Value::Boolean(false));
        set(&mut table, &["cluster", "advertise"], text(""));
        // Gateways find it by its pin, so any port will do.
        let scans = if node.role == Kind::Scan { "127.0.0.1:0" } else { "" };
        set(&mut table, &["cluster", "scan", "listen"], text(scans));
        set(&mut table, &["cluster", "scan", "advertise"], text(""));
        if base.get("store").is_none_or(|store| store.get("cache_bytes").is_none()) {
            // By default each takes a quarter of the machine's memory. Owners and scan servers share that.
            let sharers = 2 * self.nodes.count(Kind::Owner).max(1) as u64;
            let bytes = (Config::default().store.cache_bytes / sharers).max(CACHE_MIN);
            set(&mut table, &["store", "cache_bytes"], Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)));
        }
        let cache = base.get("cluster").and_then(|cluster| cluster.get("cache"));
        for (key, bytes, sharers) in self.shared_caches() {
            if cache.is_none_or(|cache| cache.get(key).is_none()) {
                let bytes = i64::try_from((bytes / sharers).max(CACHE_MIN)).unwrap_or(i64::MAX);
                set(&mut table, &["cluster", "cache", key], Value::Integer(bytes));
            }
        }
        if self.nodes.log == "nats" {
            let scheme = if self.tls { "tls" } else { "nats" };
            let servers = || self.nodes.nodes.iter().filter(|node| node.role == Kind::Log);
            let urls = servers().map(|node| text(&format!("{scheme}://{}", node.address))).collect();
            let monitors = servers().filter_map(|node| node.monitor.as_ref());
            let monitors = monitors.map(|monitor| text(&format!("http://{monitor}"))).collect();
            set(&mut table, &["cluster", "nats", "urls"], Value::Array(urls));
            set(&mut table, &["cluster", "nats", "monitor"], Value::Array(monitors));
            set(&mut table, &["cluster", "nats", "user"], text(USER));
            set(&mut table, &["cluster", "nats", "password_file"], text(&self.password_file().display().to_string()));
            // The ones in the user's settings are for other servers.
            let [cert, key, ca] = self.identity(node);
            for (name, value) in [("credentials", String::new()), ("tls_ca", ca), ("tls_cert", cert), ("tls_key", key)]
            {
                set(&mut table, &["cluster", "nats", name], Value::String(value));
            }
            let replicas = if servers().count() < usize::from(SERVERS_MIN) { 1 } else { 3 };
            set(&mut table, &["cluster", "nats", "replicas"], Value::Integer(replicas));
        }
        table
    }

    /// Returns the files of certificate, key and authority of a process; empty without TLS.
    fn identity(&self, node: &Node) -> [String; 3] {
        let Identity { certificate, key, authority } = Identity::of(&self.folder, &node.name);
        let named = |file: PathBuf| if self.tls { file.display().to_string() } else { String::new() };
        [certificate, key, authority].map(named)
    }

    /// Returns the settings of a server of the log. It listens on loopback only, and other users of this machine do not
    /// know the password.
    fn of_server(&self, node: &Node, folder: &Path) -> String {
        let password = &self.password;
        let authorization = format!("authorization {{ user: {USER:?}, password: {password:?} }}");
        let tls = match self.tls {
            true => {
                let [cert, key, ca] = self.identity(node);
                format!("tls {{ cert_file: {cert:?}, key_file: {key:?}, ca_file: {ca:?}, verify: true }}")
            }
            false => String::new(),
        };
        let mut text = format!(
            "server_name: {:?}\nlisten: {:?}\nhttp: {:?}\n{authorization}\n{tls}\n\
             jetstream {{ store_dir: {:?}, sync_interval: always }}\n",
            node.name,
            node.address,
            node.monitor.as_deref().unwrap_or_default(),
            folder.join("jetstream").display().to_string()
        );
        let routes: Vec<String> = self.nodes.nodes.iter().filter_map(|node| node.routes.clone()).collect();
        if let Some(own) = node.routes.as_ref().filter(|_| routes.len() > 1) {
            let urls: Vec<String> = routes.iter().map(|route| format!("nats://{USER}:{password}@{route}")).collect();
            text.push_str(&format!(
                "cluster {{\n  name: \"meridian\"\n  listen: {own:?}\n  {authorization}\n  {tls}\n  routes: {urls:?}\n}}\n"
            ));
        }
        text
    }
}

/// Returns the kind of log to use.
fn log_of(args: &UpArgs, before: Option<&Nodes>) -> Result<String, Failure> {
    match (&args.log, before) {
        (Some(log), Some(before)) if *log != before.log => Err(Failure::Usage(format!(
            "--log {log}: the cluster in {} has its log in {}, and it stays there: expected --log {}, or another folder",
            args.folder().display(),
            if before.log == "nats" { "NATS" } else { "the bucket" },
            before.log
        ))),
        (Some(log), _) => Ok(log.clone()),
        (None, Some(before)) => Ok(before.log.clone()),
        (None, None) => Ok("bucket".to_owned()),
    }
}

/// Reads and checks the user's settings, so that an error names the user's file.
fn base(file: Option<&Path>) -> Result<Table, Failure> {
    let Some(file) = file else { return Ok(Table::new()) };
    let config = Config::read(file)?;
    let refuse = |why: &str| Err(Failure::Usage(format!("--config: {}: {why}", file.display())));
    if config.tls.certificate.is_some() || config.tls.key.is_some() {
        return refuse("[tls]: a cluster for trial speaks plain HTTP on 127.0.0.1: leave the section out");
    }
    if config.metrics_listen.is_some() {
        return refuse("metrics.listen: its processes cannot share one address: leave the setting out");
    }
    let text = read_named_text(file);
    let text = text.map_err(|e| Failure::Usage(format!("--config: {} cannot be read: {e}", file.display())))?;
    text.parse::<Table>().map_err(|e| Failure::Usage(format!("--config: {}: {e}", file.display())))
}

/// Sets a setting in its section.
fn set(table: &mut Table, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => drop(table.insert((*key).to_owned(), value)),
        [section, rest @ ..] => {
            let inner = table.entry(*section).or_insert_with(|| Value::Table(Table::new()));
            // Anything else was refused when the user's file was read.
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Returns a random password.
fn password() -> Result<String, Failure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Failure::Refused(format!("the system gives no random numbers: {e}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn settings_of_the_user_stay_but_for_those_of_the_cluster() {
        let mut table: Table = "[cluster]\nlease = \"1s\"\nlog = \"nats\"\n[log]\nformat = \"json\"".parse().unwrap();
        set(&mut table, &["cluster", "log"], Value::String("bucket".to_owned()));
        set(&mut table, &["cluster", "nats", "replicas"], Value::Integer(3));
        set(&mut table, &["server", "role"], Value::String("owner".to_owned()));
        let back: Table = table.to_string().parse().unwrap();
        assert_eq!(back, table);
        assert_eq!(back["cluster"]["lease"].as_str(), Some("1s"));
        assert_eq!(back["cluster"]["log"].as_str(), Some("bucket"));
        assert_eq!(back["cluster"]["nats"]["replicas"].as_integer(), Some(3));
        assert_eq!(back["log"]["format"].as_str(), Some("json"));
    }

    #[test]
    fn servers_of_the_log_listen_on_this_machine_and_ask_for_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let mut ports = Ports::new(None);
        let nodes: Vec<Node> = (1..=3).map(|n| ports.node(folder.path(), Kind::Log, n).unwrap()).collect();
        drop(ports);
        let nodes = Nodes { gateways: Vec::new(), bucket: "file:///b".to_owned(), log: "nats".to_owned(), nodes };
        let lock = || lock_file(&folder.path().join("lock")).unwrap();
        let plan = Plan {
            folder: folder.path().to_owned(),
            nodes,
            server: None,
            password: password().unwrap(),
            tls: true,
            running: lock(),
            _lock: lock(),
        };
        assert!(plan.password.len() == 32 && plan.password != password().unwrap());
        let text = plan.of_server(&plan.nodes.nodes[0], Path::new("/f"));
        let listening: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("listen:")).collect();
        assert_eq!(listening.len(), 2, "{text}");
        assert!(listening.iter().all(|line| line.starts_with("listen: \"127.0.0.1:")), "{text}");
        assert!(text.contains("http: \"127.0.0.1:"), "{text}");
        // For clients and for the other servers.
        let asks = format!("authorization {{ user: \"meridian\", password: \"{}\" }}", plan.password);
        assert_eq!(text.matches(&asks).count(), 2, "{text}");
        // For clients and for the other servers as well: a caller without a certificate is refused.
        assert_eq!(text.matches("verify: true").count(), 2, "{text}");
        plan.write_settings(&Table::new()).unwrap();
        let node = Node { role: Kind::Owner, name: "owner-1".to_owned(), ..plan.nodes.nodes[0].clone() };
        let table = plan.of_process(&node, Path::new("/f"), &Table::new());
        let file = table["cluster"]["nats"]["password_file"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap().trim(), plan.password);
        assert!(!table.to_string().contains(&plan.password));
        let mode = |file: &str| {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            mode & 0o777
        };
        let key = plan.identity(&plan.nodes.nodes[0])[1].clone();
        assert_eq!((mode(&key), mode(folder.path().join("tls").to_str().unwrap())), (0o600, 0o700));
        assert_eq!(table["cluster"]["tls"]["ca"].as_str().map(|ca| ca.ends_with("/tls/ca.pem")), Some(true));
        let urls = table["cluster"]["nats"]["urls"].to_string();
        assert!(urls.contains("tls://127.0.0.1:") && !urls.contains("nats://"), "{urls}");
    }
}
