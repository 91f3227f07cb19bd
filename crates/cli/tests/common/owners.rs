//! The processes of a cluster, over a bucket of their own.

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
    /// With its log in the bucket.
    pub fn new() -> Cluster {
        Cluster::with("bucket", |_| String::new())
    }

    /// With this log, and further settings, given the folder of all.
    pub fn with(log: &'static str, settings: impl FnOnce(&Path) -> String) -> Cluster {
        let mut cluster = Cluster::over("", log, settings);
        cluster.bucket = format!("file://{}", cluster.path("bucket"));
        cluster
    }

    /// The same over the bucket at this address.
    pub fn over(bucket: &str, log: &'static str, settings: impl FnOnce(&Path) -> String) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path());
        let cluster = Cluster { folder, log, bucket: bucket.to_owned(), environment: Vec::new() };
        cluster.set(&settings);
        cluster
    }

    /// A variable of the environment of processes that start from now on.
    pub fn environment(&mut self, name: &'static str, value: &'static str) {
        self.environment.push((name, value));
    }

    /// Other settings, for processes that start from now on.
    pub fn set(&self, settings: &str) {
        // Shorter than by default, so that a takeover takes little of the test's time, unless the test needs another.
        let lease = if settings.contains("lease = ") { "" } else { "lease = \"1s\"\n" };
        std::fs::write(self.path("settings.toml"), format!("[cluster]\n{lease}{settings}")).unwrap();
    }

    /// A path below the folder of all.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The arguments of a process of this role.
    pub fn arguments(&self, role: &str, data: &str) -> Vec<String> {
        let (data, settings) = (self.path(data), self.path("settings.toml"));
        let all = ["--role", role, "--log", self.log, "--bucket", &self.bucket, "--data", &data, "--config", &settings];
        all.map(str::to_owned).to_vec()
    }

    /// A gateway or a scan server.
    pub fn server(&self, role: &str) -> Server {
        self.server_of(Version::This, role, role)
    }

    /// The same of a version, with this data folder.
    pub fn server_of(&self, version: Version, role: &str, data: &str) -> Server {
        let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
        serve.args(self.arguments(role, data)).envs(version.environment()).envs(self.environment.iter().copied());
        Server::run(serve)
    }

    /// A process that would be the owner.
    pub fn owner(&self, name: &str) -> Owner {
        self.owner_of(Version::This, name)
    }

    /// The same of a version.
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
    /// The program as one of the next level. It says so, and adds a field that no program knows to the objects that it writes as JSON.
    Next,
}

impl Version {
    fn environment(self) -> Option<(&'static str, &'static str)> {
        (self == Version::Next).then_some(("MERIDIAN_TEST_NEXT_LEVEL", "1"))
    }
}

/// A process that is, or would be, the owner.
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

    /// Waits for its end; its code, if it ended by itself.
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

/// Waits until a path is answered well.
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
