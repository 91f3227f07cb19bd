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
        let root = Path::new(ROOT);
        let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let is_second = controllers.split_whitespace().any(|controller| controller == "memory");
        let above = if is_second { root.to_owned() } else { root.join("memory") };
        let group = Group { folder: above.join(format!("meridian-{name}-{}", std::process::id())), is_second };
        let made = || {
            if is_second {
                std::fs::write(root.join("cgroup.subtree_control"), "+memory")?;
            }
            std::fs::create_dir(&group.folder)?;
            if is_second {
                // Swapped-out memory would not be counted; a system without swap has no such file.
                let _ = std::fs::write(group.folder.join("memory.swap.max"), "0");
            }
            group.limit(bytes)
        };
        match made() {
            Ok(()) => Some(group),
            Err(error) => {
                // Bypasses the test's captured output: a skipped test must not look like a successful one.
                let text = format!(
                    "\nNOT TESTED in a control group: none can be made at {}: {error}; run as root\n",
                    group.folder.display()
                );
                std::io::stderr().write_all(text.as_bytes()).unwrap();
                None
            }
        }
    }

    /// Sets its limit.
    pub fn limit(&self, bytes: u64) -> std::io::Result<()> {
        std::fs::write(self.file("memory.max", "memory.limit_in_bytes"), bytes.to_string())
    }

    /// Starts a server in it.
    pub fn serve(&self, args: &[&str]) -> Server {
        let enter = format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", self.folder.display());
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

impl Drop for Group {
    fn drop(&mut self) {
        // Ended processes leave a group with a delay.
        let begun = Instant::now();
        while std::fs::remove_dir(&self.folder).is_err() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
