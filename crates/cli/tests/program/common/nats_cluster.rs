//! Three NATS servers that store each message three times. Each can be killed, paused and restarted separately.

use super::nats::program;
use super::{PATIENCE, agent, send};
use serde_json::Value;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of servers.
pub const SERVERS: usize = 3;

/// One of the servers.
struct Server {
    folder: PathBuf,
    clients: SocketAddr,
    monitor: SocketAddr,
    child: Option<Child>,
}

/// The servers; killed when dropped.
pub struct NatsCluster {
    program: PathBuf,
    servers: Vec<Server>,
}

impl NatsCluster {
    /// Starts the servers, and waits until they form a cluster.
    #[track_caller]
    pub fn start(folder: &Path) -> NatsCluster {
        // All at once, so that no two get the same port.
        let free: Vec<_> =
            (0..3 * SERVERS).map(|_| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let ports: Vec<SocketAddr> = free.iter().map(|listener| listener.local_addr().unwrap()).collect();
        drop(free);
        let routes: Vec<String> = (0..SERVERS).map(|n| format!("nats://{}", ports[3 * n + 2])).collect();
        let mut cluster = NatsCluster { program: program(), servers: Vec::new() };
        for n in 0..SERVERS {
            let (clients, monitor, own) = (ports[3 * n], ports[3 * n + 1], ports[3 * n + 2]);
            let folder = folder.join(format!("n{n}"));
            std::fs::create_dir_all(&folder).unwrap();
            let mut text = format!("server_name: n{n}\nlisten: \"{clients}\"\nhttp: \"{monitor}\"\n");
            let store = folder.join("jetstream");
            writeln!(text, "jetstream {{ store_dir: {store:?}, sync_interval: always }}").unwrap();
            // Clients keep the addresses they have: those of their links.
            writeln!(text, "cluster {{ name: chaos, listen: \"{own}\", no_advertise: true, routes: {routes:?} }}")
                .unwrap();
            std::fs::write(folder.join("nats.conf"), text).unwrap();
            cluster.servers.push(Server { folder, clients, monitor, child: None });
            cluster.revive(n);
        }
        cluster.leads();
        cluster
    }

    /// Returns the address for clients of a server.
    pub fn clients(&self, n: usize) -> SocketAddr {
        self.servers[n].clients
    }

    /// Returns the URLs of their monitors.
    pub fn monitors(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("http://{}", server.monitor)).collect()
    }

    /// `kill -9`; does nothing if it is not running.
    pub fn kill(&mut self, n: usize) {
        if let Some(mut child) = self.servers[n].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Pauses a running server.
    pub fn pause(&self, n: usize) {
        self.servers[n].child.iter().for_each(|child| send(child.id(), "STOP"));
    }

    /// Makes a server run, whether it was killed, paused or neither.
    pub fn revive(&mut self, n: usize) {
        let server = &mut self.servers[n];
        match &server.child {
            Some(child) => send(child.id(), "CONT"),
            None => {
                let log = std::fs::File::options().create(true).append(true).open(server.folder.join("log")).unwrap();
                let mut command = Command::new(&self.program);
                command.arg("-c").arg(server.folder.join("nats.conf")).stdin(Stdio::null()).stdout(Stdio::null());
                server.child = Some(command.stderr(log).spawn().unwrap());
            }
        }
    }

    /// Returns the end of the servers' logs.
    pub fn logs(&self) -> String {
        let log = |server: &Server| std::fs::read_to_string(server.folder.join("log")).unwrap_or_default();
        let last = |text: String| {
            text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        self.servers.iter().map(|server| last(log(server))).collect::<Vec<_>>().join("\n--\n")
    }

    /// Waits until one of them leads: before that no stream can be created.
    #[track_caller]
    fn leads(&self) {
        let begun = Instant::now();
        let leads = |monitor: &String| {
            let mut answer = agent().get(format!("{monitor}/jsz")).call().ok()?;
            let said: Value = serde_json::from_str(&answer.body_mut().read_to_string().ok()?).ok()?;
            let meta = &said["meta_cluster"];
            (meta["cluster_size"] == SERVERS && meta["leader"].as_str().is_some_and(|name| !name.is_empty()))
                .then_some(())
        };
        while !self.monitors().iter().all(|monitor| leads(monitor).is_some()) {
            assert!(begun.elapsed() < PATIENCE, "the NATS servers do not become one:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for NatsCluster {
    fn drop(&mut self) {
        (0..SERVERS).for_each(|n| self.kill(n));
    }
}
