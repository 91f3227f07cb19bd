//! Processes of a cluster that are killed, paused and restarted, each behind its own proxy.

use super::proxy::{Proxy, caller_of};
use super::{command, send};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a process that ended by itself stays down.
const DOWN: Duration = Duration::from_millis(500);

/// Process ids of running processes, by name.
pub type Pids = Arc<Mutex<HashMap<String, u32>>>;

/// Returns a proxy with a link for each of these processes.
pub fn door(pids: &Pids) -> Arc<Proxy> {
    let pids = pids.clone();
    Arc::new(Proxy::by_caller(Arc::new(move |peer, own| {
        let all: Vec<(String, u32)> = pids.lock().unwrap().iter().map(|(name, pid)| (name.clone(), *pid)).collect();
        caller_of(peer, own, &all)
    })))
}

/// A process. Killed when dropped.
pub struct Node {
    pub name: String,
    pub role: &'static str,
    /// Where others reach it, on whatever port it listens.
    pub door: Arc<Proxy>,
    arguments: Vec<String>,
    /// Skew of its clock; empty for none.
    clock: String,
    log: PathBuf,
    pids: Pids,
    child: Option<(Child, JoinHandle<()>)>,
    /// Whether it was told to stop, and has not ended yet.
    is_stopping: bool,
    /// When it ended by itself.
    ended: Option<Instant>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Node {
    /// Makes a process that is not started yet. `clock`: its clock skew, for `MERIDIAN_TEST_CLOCK`. `log`: the file of
    /// its standard error.
    pub fn new(
        name: &str,
        role: &'static str,
        door: Arc<Proxy>,
        (arguments, clock): (Vec<String>, String),
        log: PathBuf,
        pids: &Pids,
    ) -> Node {
        Node {
            name: name.to_owned(),
            role,
            door,
            arguments,
            clock,
            log,
            pids: pids.clone(),
            child: None,
            is_stopping: false,
            ended: None,
            said: Arc::default(),
        }
    }

    /// Returns the URL of a gateway or a scan server.
    pub fn url(&self) -> String {
        format!("http://{}", self.door.address)
    }

    /// Makes it run, whether it was killed, paused or neither.
    pub fn revive(&mut self) {
        self.ended = None;
        if let Some((child, _)) = &self.child {
            send(child.id(), "CONT");
            return;
        }
        let log = std::fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let mut serve = command(&["serve"]);
        if !self.clock.is_empty() {
            serve.env("MERIDIAN_TEST_CLOCK", &self.clock);
        }
        let mut child = serve.args(&self.arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        self.pids.lock().unwrap().insert(self.name.clone(), child.id());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (said, door) = (self.said.clone(), self.door.clone());
        let reading = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    door.turn(Some(address));
                }
                said.lock().unwrap().push(line);
            }
        });
        self.child = Some((child, reading));
    }

    /// `kill -9`; it stays down. Does nothing if it is not running.
    pub fn kill(&mut self) {
        self.ended = None;
        if let Some((child, _)) = &mut self.child {
            child.kill().unwrap();
        }
        self.gone();
    }

    /// Pauses it if it is running.
    pub fn pause(&self) {
        self.child.iter().for_each(|(child, _)| send(child.id(), "STOP"));
    }

    /// Tells it to stop; it is restarted once it has ended.
    pub fn stop(&mut self) {
        if let Some((child, _)) = &self.child {
            send(child.id(), "TERM");
            self.is_stopping = true;
        }
    }

    /// Returns true if it was told to stop and has not ended yet.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Restarts it if it has ended by itself, as the supervisor of a server does. It may give up, but must not crash.
    #[track_caller]
    pub fn tend(&mut self) {
        let status = self.child.as_mut().and_then(|(child, _)| child.try_wait().unwrap());
        if let Some(status) = status {
            let is_sound = status.code().is_some_and(|code| (0..=3).contains(&code));
            assert!(is_sound, "{} crashed, {status}:\n{}", self.name, self.log());
            self.gone();
            self.ended = Some(Instant::now());
        }
        if self.ended.is_some_and(|at| at.elapsed() > DOWN) {
            self.revive();
        }
    }

    /// Returns the number of lines it has printed.
    pub fn mark(&self) -> usize {
        self.said.lock().unwrap().len()
    }

    /// Returns true if it has printed a line with this prefix, after the first `mark` ones.
    pub fn has_said(&self, mark: usize, words: &str) -> bool {
        self.said.lock().unwrap().iter().skip(mark).any(|line| line.starts_with(words))
    }

    /// Returns its output, and the end of its standard error.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(30).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("-- {} --\n{}\n{}", self.name, self.said.lock().unwrap().join("\n"), last.join("\n"))
    }

    /// Returns true if one of its threads ever panicked.
    pub fn has_panicked(&self) -> bool {
        std::fs::read_to_string(&self.log).unwrap_or_default().contains("panicked at")
    }

    /// Waits for a process that is ending.
    fn gone(&mut self) {
        self.is_stopping = false;
        if let Some((mut child, reading)) = self.child.take() {
            child.wait().unwrap();
            // Its output is read completely, so nothing of it follows the output of the next one.
            reading.join().unwrap();
            self.pids.lock().unwrap().remove(&self.name);
            self.door.turn(None);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the address at which a process reports that it listens.
fn address_in(line: &str) -> Option<SocketAddr> {
    if let Some((_, rest)) = line.split_once("answers gateways on ") {
        return rest.split([',', ')']).next()?.parse().ok();
    }
    line.split_whitespace().find_map(|word| word.strip_prefix("http://")?.parse().ok())
}
