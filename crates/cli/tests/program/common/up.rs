//! Runs `meridian cluster up` for tests.

use super::batches::Batches;
use super::{PATIENCE, agent, command, counted, meridian, send};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A running `meridian cluster up`; killed when dropped.
pub struct Up {
    child: Child,
    pub folder: PathBuf,
    said: Receiver<String>,
    /// The URL that it printed.
    pub url: String,
}

impl Up {
    /// Starts `nodes` nodes in a folder, and waits until all of them serve.
    #[track_caller]
    pub fn start(folder: &Path, nodes: u8, more: &[&str]) -> Up {
        std::fs::create_dir_all(folder).unwrap();
        // Shorter than the default, to keep takeovers and flushes in tests short.
        let settings = folder.join("short.toml");
        std::fs::write(&settings, "[cluster]\nlease = \"1s\"\nstaleness_max = \"1s\"\n").unwrap();
        let mut up = command(&["cluster", "up", "--nodes", &nodes.to_string(), "--dir"]);
        up.arg(folder).arg("--config").arg(settings).args(more);
        let log = std::fs::File::create(folder.join("up.log")).unwrap();
        let mut child = up.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (tell, said) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut up = Up { child, folder: folder.to_owned(), said, url: String::new() };
        up.url = up.says("ready http://").strip_prefix("ready ").unwrap().to_owned();
        up
    }

    /// Waits for a line that begins with these words.
    #[track_caller]
    pub fn says(&self, words: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with(words) => return line,
                Ok(line) => before.push(line),
                Err(_) => {
                    let log = std::fs::read_to_string(self.folder.join("up.log")).unwrap_or_default();
                    panic!("it never said {words:?}:\n{}\n{log}", before.join("\n"));
                }
            }
        }
    }

    /// `cluster.json`.
    pub fn nodes(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.folder.join("cluster.json")).unwrap()).unwrap()
    }

    /// Returns the processes of a role.
    pub fn of(&self, role: &str) -> Vec<Value> {
        let nodes = self.nodes();
        nodes["nodes"].as_array().unwrap().iter().filter(|node| node["role"] == role).cloned().collect()
    }

    /// Returns the output of `meridian cluster status`.
    #[track_caller]
    pub fn status(&self) -> Value {
        let folder = self.folder.display().to_string();
        let run = meridian(&["cluster", "status", "--dir", &folder, "--json"]).ended(0);
        serde_json::from_str(&run.out).unwrap()
    }

    /// Waits until the status satisfies this.
    #[track_caller]
    pub fn becomes(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if so(&status) {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "never {what}: {status:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Writes a batch of one event, until it is accepted.
    #[track_caller]
    pub fn write(&self, batches: &Batches, batch: &str) {
        let begun = Instant::now();
        loop {
            let sent = batches.send(&self.url, batch, 1);
            if matches!(&sent, Ok((200 | 201, _))) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{batch}: {sent:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until a process finds `events` events.
    #[track_caller]
    pub fn finds(&self, node: &Value, events: u64) {
        let begun = Instant::now();
        let url = format!("http://{}/collections/events/aggregate?function=count", node["address"].as_str().unwrap());
        loop {
            let mut answer = agent().get(&url).call().unwrap();
            let (status, body) = (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap());
            if status == 200 && counted(&serde_json::from_str(&body).unwrap()) == events {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{url}: {status} {body}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Stops it, and checks that nothing of it is left.
    #[track_caller]
    pub fn stop(mut self, signal: &str) {
        let nodes = self.nodes();
        send(self.child.id(), signal);
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(status.code(), if signal == "KILL" { None } else { Some(0) });
        for node in nodes["nodes"].as_array().unwrap() {
            let process = format!("/proc/{}", node["pid"].as_u64().unwrap());
            // After KILL they end by themselves, and someone has to reap them.
            let runs = || {
                let state = std::fs::read_to_string(format!("{process}/stat")).unwrap_or_default();
                state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
            };
            while runs() {
                assert!(signal == "KILL" && begun.elapsed() < PATIENCE, "{node} is left");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Its processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
