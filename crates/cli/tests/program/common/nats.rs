//! A real NATS server, in the version built by `scripts/nats.sh`.

use super::{PATIENCE, root};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Returns the path of the program, which is built if missing.
#[track_caller]
pub fn program() -> PathBuf {
    let made = Command::new(root().join("scripts/nats.sh")).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(
        made.status.success() && Path::new(&said).is_file(),
        "there is no nats-server: scripts/nats.sh has to build it from Go modules, and could not; what it said is above"
    );
    PathBuf::from(said)
}

/// Returns a port that was free a moment ago.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A running server; killed when dropped.
pub struct Nats {
    program: PathBuf,
    settings: PathBuf,
    log: PathBuf,
    child: Child,
    pub url: String,
    pub monitor: String,
    port: u16,
}

impl Nats {
    /// Starts a server with its data in a folder. `sync`: the setting `sync_interval`.
    #[track_caller]
    pub fn start(folder: &Path, sync: &str) -> Nats {
        let (clients, http) = (port(), port());
        let settings = folder.join("nats.conf");
        let text = format!(
            "listen: 127.0.0.1:{clients}\nhttp: 127.0.0.1:{http}\njetstream {{ store_dir: {:?}, sync_interval: {sync} }}\n",
            folder.join("jetstream")
        );
        std::fs::write(&settings, text).unwrap();
        let (program, log) = (program(), folder.join("nats.log"));
        let child = run(&program, &settings, &log);
        let (url, monitor) = (format!("nats://127.0.0.1:{clients}"), format!("http://127.0.0.1:{http}"));
        let server = Nats { program, settings, log, child, url, monitor, port: clients };
        server.answers();
        server
    }

    /// Kills and restarts the server.
    #[track_caller]
    pub fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.child = run(&self.program, &self.settings, &self.log);
        self.answers();
    }

    #[track_caller]
    fn answers(&self) {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "nats-server does not start:\n{}", log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn run(program: &Path, settings: &Path, log: &Path) -> Child {
    let said = std::fs::File::options().create(true).append(true).open(log).unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(settings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.spawn().unwrap()
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
