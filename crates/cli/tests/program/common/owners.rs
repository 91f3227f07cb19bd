//! The processes of a cluster over a new bucket.

use super::{PATIENCE, Server, command, send};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The bucket and the folders of a cluster's processes.
pub struct Cluster {
    folder: TempDir,
    log: &'static str,
    bucket: String,
    environment: Vec<(&'static str, &'static str)>,
}

impl Cluster {
    /// Makes a cluster with its log in the bucket.
    pub fn new() -> Cluster {
        Cluster::with("bucket", |_| String::new())
    }

    /// Makes a cluster with this log, and further settings, given the cluster's folder.
    pub fn with(log: &'static str, settings: impl FnOnce(&Path) -> String) -> Cluster {
        let mut cluster = Cluster::over("", log, settings);
        cluster.bucket = format!("file://{}", cluster.path("bucket"));
        cluster
    }

    /// As [`Cluster::with`], over the bucket at this address.
    pub fn over(bucket: &str, log: &'static str, settings: impl FnOnce(&Path) -> String) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let cluster = Cluster { folder, log, bucket: bucket.to_owned(), environment: Vec::new() };
        cluster.set(&settings);
        cluster
    }

    /// Sets an environment variable of processes started from now on.
    pub fn environment(&mut self, name: &'static str, value: &'static str) {
        self.environment.push((name, value));
    }

    /// Replaces the settings of processes started from now on.
    pub fn set(&self, settings: &str) {
        // Shorter than the default, to keep takeovers short, unless the test sets its own.
        let lease = if settings.contains("lease = ") { "" } else { "lease = \"1s\"\n" };
        std::fs::write(self.path("settings.toml"), format!("[cluster]\n{lease}{settings}")).unwrap();
    }

    /// Returns a path below the cluster's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the arguments of a process with this role.
    pub fn arguments(&self, role: &str, data: &str) -> Vec<String> {
        let (data, settings) = (self.path(data), self.path("settings.toml"));
        let all = ["--role", role, "--log", self.log, "--bucket", &self.bucket, "--data", &data, "--config", &settings];
        all.map(str::to_owned).to_vec()
    }

    /// Starts a gateway or a scan server.
    pub fn server(&self, role: &str) -> Server {
        self.server_of(Version::This, role, role)
    }

    /// As [`Cluster::server`], in this version, with this data folder.
    pub fn server_of(&self, version: Version, role: &str, data: &str) -> Server {
        let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
        serve.args(self.arguments(role, data)).envs(version.environment()).envs(self.environment.iter().copied());
        Server::run(serve)
    }

    /// Starts a process that competes to be the owner.
    pub fn owner(&self, name: &str) -> Owner {
        self.owner_of(Version::This, name)
    }

    /// As [`Cluster::owner`], in this version.
    pub fn owner_of(&self, version: Version, name: &str) -> Owner {
        let mut serve = command(&["serve", "--flight", "127.0.0.1:0"]);
        serve.envs(version.environment()).envs(self.environment.iter().copied());
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let mut child = serve.args(self.arguments("owner", name)).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (tell, said) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Owner { name: name.to_owned(), child, said }
    }
}

/// The version of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The program as it is.
    This,
    /// The program posing as the next level. It reports that level, and adds a field unknown to any program to the
    /// objects it writes as JSON.
    Next,
}

impl Version {
    fn environment(self) -> Option<(&'static str, &'static str)> {
        (self == Version::Next).then_some(("MERIDIAN_TEST_NEXT_LEVEL", "1"))
    }
}

/// A process that is, or competes to be, the owner.
pub struct Owner {
    name: String,
    child: Child,
    said: Receiver<String>,
}

impl Owner {
    /// Waits for a line that begins with these words.
    #[track_caller]
    pub fn says(&self, words: &str) -> String {
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with(words) => return line,
                Ok(_) => {}
                Err(_) => panic!("{} never said {words:?}", self.name),
            }
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its name in the cluster.
    pub fn node(&self) -> String {
        format!("owner-{}", self.child.id())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        send(self.child.id(), signal);
    }

    /// Waits for its end; returns its exit code, if it ended by itself.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "{} does not end", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a path succeeds, and returns the body.
#[track_caller]
pub fn answered(server: &Server, path: &str) -> String {
    let begun = Instant::now();
    loop {
        let (status, body) = server.get(path);
        if status == 200 {
            return body;
        }
        assert!(begun.elapsed() < PATIENCE, "{path}: {status} {body}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
