//! The real program, run as a user runs it.

pub mod authority;
pub mod batches;
pub mod clients;
pub mod collector;
pub mod faults;
#[path = "../../../../bucket/tests/gateway/mod.rs"]
pub mod gateway;
pub mod grid;
pub mod group;
pub mod history;
pub mod mount;
pub mod nats;
pub mod nats_cluster;
pub mod nodes;
pub mod owners;
pub mod proxy;
pub mod registers;
pub mod relay;
pub mod saved;
pub mod source;
pub mod spots;
pub mod strict;
pub mod up;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The program under test.
pub const MERIDIAN: &str = env!("CARGO_BIN_EXE_meridian");

/// Max duration of anything before a test gives up; generous, for machines with other load.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the path of a file of the project's real data.
pub fn data(path: &str) -> PathBuf {
    root().join("data").join(path)
}

/// Output and exit code of a run of the program.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Asserts that the run ended with this exit code; shows standard error otherwise.
    #[track_caller]
    pub fn ended(self, code: i32) -> Run {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that standard error contains all of these.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Run {
        for word in words {
            assert!(self.err.contains(word), "expected {word:?} in:\n{}", self.err);
        }
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns a command of the program with these arguments, without the tester's settings of a server or of a store's
/// region.
pub fn command<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(MERIDIAN);
    command.args(args).stdin(Stdio::null());
    for name in ["MERIDIAN_CA", "MERIDIAN_TOKEN", "MERIDIAN_URL", "AWS_REGION", "AWS_DEFAULT_REGION"] {
        command.env_remove(name);
    }
    command
}

/// Runs the program to its end.
pub fn meridian<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Run {
    command(args).output().unwrap().into()
}

/// Returns a token, created by the owner of a folder.
#[track_caller]
pub fn token(folder: &Path, options: &[&str]) -> String {
    let data = folder.display().to_string();
    let run = meridian(&[&["token", "create", "--data", &data], options].concat()).ended(0);
    // The last word printed.
    run.out.split_whitespace().last().unwrap().to_owned()
}

/// Runs the program to its end, as the holder of a token.
#[track_caller]
pub fn as_holder<S: AsRef<std::ffi::OsStr>>(token: &str, args: &[S]) -> Run {
    command(args).env("MERIDIAN_TOKEN", token).output().unwrap().into()
}

/// Runs the program with bytes on its standard input.
pub fn meridian_with_input<S: AsRef<std::ffi::OsStr>>(args: &[S], input: &[u8]) -> Run {
    let mut child = command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The program may end before it has read everything, which is no error.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap().into()
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    log: PathBuf,
    /// Its output so far.
    said: Arc<Mutex<String>>,
}

impl Server {
    /// Starts `meridian serve` on a free port over this folder.
    pub fn start(folder: &Path) -> Server {
        Server::start_with(&["--data", folder.to_str().unwrap()])
    }

    /// Starts `meridian serve` on a free port with these arguments.
    #[track_caller]
    pub fn start_with(args: &[&str]) -> Server {
        Server::start_logging("", args)
    }

    /// As [`Server::start_with`], with a filter of log lines: that of `MERIDIAN_LOG`.
    #[track_caller]
    pub fn start_logging(filter: &str, args: &[&str]) -> Server {
        let mut serve = command(&["serve", "--listen", "127.0.0.1:0"]);
        serve.args(args).envs((!filter.is_empty()).then_some(("MERIDIAN_LOG", filter)));
        Server::run(serve)
    }

    /// Runs a command that becomes a server.
    #[track_caller]
    pub fn run(mut serve: Command) -> Server {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("meridian-test-{}-{n}.log", std::process::id()));
        let mut child = serve.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url_in = |line: &str| {
            let mut words = line.split_whitespace();
            words.find(|word| word.starts_with("http://") || word.starts_with("https://")).map(str::to_owned)
        };
        // A gateway first prints that it waits for an owner.
        let mut first = String::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                let _ = child.wait();
                panic!("the server did not start: {first}\n{}", std::fs::read_to_string(&log).unwrap_or_default());
            };
            first = if first.is_empty() { line } else { format!("{first}\n{line}") };
            if let Some(url) = first.lines().last().and_then(url_in) {
                break url;
            }
        };
        // The rest of its output is read, so that it never blocks on the pipe.
        let said = Arc::new(Mutex::new(first));
        let rest = said.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| *rest.lock().unwrap() += &format!("\n{line}"))
        });
        Server { child, url, log, said }
    }

    /// Returns its output, once it contains these words.
    #[track_caller]
    pub fn said(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = self.said.lock().unwrap().clone();
            if said.contains(words) {
                return said;
            }
            assert!(begun.elapsed() < PATIENCE, "expected {words:?} in:\n{said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal and waits for the end; returns the exit code.
    pub fn stop(mut self, signal: &str) -> Option<i32> {
        send(self.child.id(), signal);
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not end at {signal}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a GET; returns status and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        answer(agent().get(format!("{}{path}", self.url)).call())
    }

    /// Sends a GET for JSON, which must succeed.
    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Creates a collection from a spec.
    #[track_caller]
    pub fn create(&self, collection: &str, spec: &str) {
        meridian(&["create", collection, "--schema", spec, "--url", &self.url]).ended(0);
    }

    /// Posts a body; returns status and response, or the failure.
    pub fn post(&self, path: &str, kind: &str, key: Option<&str>, body: &[u8]) -> Result<(u16, String), String> {
        post(&self.url, path, kind, key, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Posts a body to a server by its address.
pub fn post(url: &str, path: &str, kind: &str, key: Option<&str>, body: &[u8]) -> Result<(u16, String), String> {
    let headers: Vec<_> = key.map(|key| ("Idempotency-Key", key.to_owned())).into_iter().collect();
    post_with(url, path, kind, &headers, body)
}

/// Posts a body with headers to a server by its address.
pub fn post_with(
    url: &str,
    path: &str,
    kind: &str,
    headers: &[(&str, String)],
    body: &[u8],
) -> Result<(u16, String), String> {
    let mut request = agent().post(format!("{url}{path}")).content_type(kind);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let mut response = request.send(body).map_err(|e| e.to_string())?;
    let text = response.body_mut().read_to_string().map_err(|e| e.to_string())?;
    Ok((response.status().as_u16(), text))
}

/// Returns a client that treats refusals as responses.
pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> (u16, String) {
    let mut response = response.unwrap();
    let mut body = Vec::new();
    response.body_mut().with_config().limit(u64::MAX).reader().read_to_end(&mut body).unwrap();
    // Tiles are not text.
    (response.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
}

/// Sends a signal to a process that this test started.
pub fn send(pid: u32, signal: &str) {
    let status = Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status().unwrap();
    assert!(status.success());
}

/// Asserts that the program exists; `make test` installs it.
#[track_caller]
pub fn need(program: &str, package: &str) {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok(), "{program} is needed: apt-get install {package} (make test does it)");
}

/// Returns the number of events of a collection, counted by the program over a folder.
#[track_caller]
pub fn count_in_folder(collection: &str, folder: &Path) -> u64 {
    let run = meridian(&["aggregate", collection, "--data", folder.to_str().unwrap(), "--format", "json"]).ended(0);
    counted(&serde_json::from_str(&run.out).unwrap())
}

/// Returns the count of an aggregate with a single group.
#[track_caller]
pub fn counted(answer: &Value) -> u64 {
    answer["groups"][0]["count"].as_u64().unwrap_or_else(|| panic!("no count in {answer}"))
}

/// A small random number generator, so that a failed run can be repeated from its seed.
pub struct Random(pub u64);

impl Random {
    /// Seeds it from `MERIDIAN_TEST_SEED`, or from the clock.
    pub fn new() -> Random {
        let seed = std::env::var("MERIDIAN_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(|| {
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64
        });
        println!("MERIDIAN_TEST_SEED={seed}");
        Random(seed | 1)
    }

    /// Returns the next number (xorshift64*).
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A running `meridian lab mock`; killed when dropped.
pub struct Mock(Child, pub String);

impl Mock {
    /// Starts it on a free port with these arguments; its URL is the second field.
    pub fn start(args: &[&str]) -> Mock {
        let args = [&["lab", "mock", "--listen", "127.0.0.1:0"], args].concat();
        let mut child = command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit_once(' ').unwrap().1.to_owned();
        Mock(child, url)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
