//! A control group that limits the memory of a server.

use super::{MERIDIAN, Server};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";

/// A new group, of version 2 if that limits memory, else of version 1; removed when dropped.
pub struct Group {
    folder: PathBuf,
    is_second: bool,
}

impl Group {
    /// Makes a group limited to `bytes` bytes. Returns `None` if that is impossible, which is reported on the terminal.
    pub fn new(name: &str, bytes: u64) -> Option<Group> {
        let mut reasons = String::new();
        for (above, is_second) in places() {
            let group = Group { folder: above.join(format!("meridian-{name}-{}", std::process::id())), is_second };
            match group.make(&above, bytes) {
                Ok(()) => return Some(group),
                Err(error) => reasons += &format!(" at {}: {error};", group.folder.display()),
            }
        }
        // Bypasses the test's captured output: its reader should know which of two tests has run.
        let text = format!("\nnot limited by a control group, as none can be made{reasons} run as root\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        None
    }

    fn make(&self, above: &Path, bytes: u64) -> std::io::Result<()> {
        if self.is_second {
            std::fs::write(above.join("cgroup.subtree_control"), "+memory")?;
        }
        std::fs::create_dir(&self.folder)?;
        if self.is_second {
            // Swapped-out memory would not be counted; a system without swap has no such file.
            let _ = std::fs::write(self.folder.join("memory.swap.max"), "0");
        }
        self.limit(bytes)?;
        // Who may make a group may still not enter it.
        let entered = Command::new("sh").args(["-c", &self.entry()]).stderr(Stdio::null()).status()?;
        if entered.success() { Ok(()) } else { Err(std::io::Error::other("it cannot be entered")) }
    }

    /// Returns the command by which a shell enters it.
    fn entry(&self) -> String {
        format!("echo $$ > '{}/cgroup.procs'", self.folder.display())
    }

    /// Sets its limit.
    pub fn limit(&self, bytes: u64) -> std::io::Result<()> {
        std::fs::write(self.file("memory.max", "memory.limit_in_bytes"), bytes.to_string())
    }

    /// Starts a server in it.
    pub fn serve(&self, args: &[&str]) -> Server {
        let enter = format!("{} && exec \"$@\"", self.entry());
        let mut serve = Command::new("sh");
        serve.args(["-c", &enter, "sh", MERIDIAN, "serve", "--listen", "127.0.0.1:0"]).args(args).stdin(Stdio::null());
        Server::run(serve)
    }

    /// Number of its processes killed by the kernel for lack of memory.
    pub fn killed(&self) -> u64 {
        let text = std::fs::read_to_string(self.file("memory.events", "memory.oom_control")).unwrap();
        let counts = text.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        counts.map(|count| count.parse::<u64>().unwrap()).sum()
    }

    fn file(&self, second: &str, first: &str) -> PathBuf {
        self.folder.join(if self.is_second { second } else { first })
    }
}

/// Returns the folders in which a group may be made, and whether it is of version 2: the root, and those above this
/// process, one of which its session may own.
fn places() -> Vec<(PathBuf, bool)> {
    let root = Path::new(ROOT);
    let limits_memory = |above: &Path| {
        let controllers = std::fs::read_to_string(above.join("cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|controller| controller == "memory")
    };
    if !limits_memory(root) {
        return vec![(root.join("memory"), false)];
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let own = root.join(own);
    let above = own.ancestors().take_while(|above| above.starts_with(root)).filter(|above| limits_memory(above));
    let mut places: Vec<_> = above.map(|above| (above.to_owned(), true)).collect();
    places.reverse();
    places
}

impl Drop for Group {
    fn drop(&mut self) {
        // Ended processes leave a group with a delay.
        let (begun, folder) = (Instant::now(), &self.folder);
        while folder.exists() && std::fs::remove_dir(folder).is_err() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
