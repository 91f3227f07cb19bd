//! The protocols against real servers: PostgreSQL, nginx, NATS and Redis, as `make test` installs them.

mod nats;
mod nginx;
mod postgres;
mod redis;

use super::tls::Authority;
use super::*;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Timeout for a server to start; generous for busy machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server started by this test; stopped when dropped.
struct Running {
    child: Child,
    /// Its port, or ports.
    ports: Vec<u16>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Stopped gracefully first: PostgreSQL has processes and shared memory of its own to clean up.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let begun = Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds the program, which must exist; `make test` installs it.
fn need(program: &Path, package: &str) {
    let found = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok(), "{} is needed: apt-get install {package} (make test does it)", program.display());
}

/// Starts a server that cannot choose its own ports on free ones. Another process may take one first, so the start is
/// retried. Its standard error goes to a file of `folder`, which is shown if it fails to start.
fn start(folder: &Path, ports: usize, command: impl Fn(&[u16]) -> Command) -> Running {
    let log = folder.join("log");
    for _ in 0..5 {
        // All at once, so that they differ; released before the server starts.
        let held: Vec<TcpListener> = (0..ports).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let free: Vec<u16> = held.iter().map(|one| one.local_addr().expect("an address").port()).collect();
        drop(held);
        let said = std::fs::File::create(&log).expect("a file");
        let child = command(&free).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().expect("starts");
        let mut running = Running { child, ports: free };
        if is_there(&mut running) {
            return running;
        }
    }
    panic!("the server does not come up:\n{}", std::fs::read_to_string(&log).unwrap_or_default());
}

/// Waits until all ports accept connections; returns false if the server ended instead.
fn is_there(running: &mut Running) -> bool {
    let begun = Instant::now();
    while !running.ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok()) {
        if running.child.try_wait().expect("a child").is_some() {
            return false;
        }
        assert!(begun.elapsed() < PATIENCE, "the server takes no connections");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.child.try_wait().expect("a child").is_none()
}

/// Returns the requests of a run that did not end as expected; `due` holds the expected outcome, by request.
fn others<'a>(ran: &'a Ran, due: &[(Came, u64, &str)]) -> Vec<&'a Record> {
    let is_due = |record: &&Record| {
        let (outcome, results, detail) = due[usize::from(record.request)];
        let said = record.detail.as_deref().unwrap_or_default();
        (record.outcome, record.results) == (outcome, results) && said.starts_with(detail)
    };
    ran.records.iter().filter(|record| !is_due(record)).collect()
}
