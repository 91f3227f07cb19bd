//! The processes of the last start in a folder, and the wait until none of them runs.

use super::super::nodes::{Node, Nodes};
use super::super::private;
use crate::failure::Failure;
use crate::output::say;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long processes of a killed start may take to end: an owner flushes, the others finish their requests.
pub(super) const LEFT_MAX: Duration = Duration::from_secs(60);
/// Poll interval of that wait.
const LEFT_LOOK: Duration = Duration::from_millis(100);

/// Opens a lock file.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    private::open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

/// Locks the file that processes inherit. If their supervisor was killed, they end by themselves, and until then hold
/// this file, their ports and their folders. Their process ids prove nothing, as other processes may have them by now.
pub(super) fn wait_for_the_last(
    running: &File,
    before: Option<&Nodes>,
    named: &Path,
    max: Duration,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut told = false;
    loop {
        match running.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => {
                let named = named.display();
                return Err(Failure::Usage(format!("--dir {named}: its file running cannot be locked: {e}")));
            }
        }
        if begun.elapsed() >= max {
            let with_pid = |node: &Node| node.pid.map(|pid| format!("{} (pid {pid})", node.name));
            let last: Vec<String> = before.iter().flat_map(|before| &before.nodes).filter_map(with_pid).collect();
            let last = if last.is_empty() { String::new() } else { format!("; they were {}", last.join(", ")) };
            return Err(Failure::Refused(format!(
                "--dir {}: processes of the last start run yet: expected that they end{last}",
                named.display()
            )));
        }
        if !told {
            say(&format!("waiting for processes of the last start, {} s at most", max.as_secs()));
            told = true;
        }
        std::thread::sleep(LEFT_LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::nodes::Kind;
    use std::path::PathBuf;

    #[test]
    fn processes_of_the_last_start_are_awaited_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("running");
        let wait = |max: u64| {
            let node = Node {
                name: "owner-1".to_owned(),
                role: Kind::Owner,
                pid: Some(7),
                address: "127.0.0.1:1".to_owned(),
                monitor: None,
                routes: None,
                log_file: PathBuf::from("x"),
            };
            let before =
                Nodes { gateways: Vec::new(), bucket: String::new(), log: "bucket".to_owned(), nodes: vec![node] };
            let file = lock_file(&path).unwrap();
            wait_for_the_last(&file, Some(&before), folder.path(), Duration::from_millis(max))
        };
        let mut child = {
            let held = lock_file(&path).unwrap();
            held.try_lock().unwrap();
            // As inherited by a process of the cluster.
            std::process::Command::new("sleep").arg("60").stdin(held).spawn().unwrap()
        };
        let refused = wait(150).unwrap_err();
        assert_eq!(refused.code(), 3);
        assert!(
            refused.to_string().contains("run yet") && refused.to_string().contains("owner-1 (pid 7)"),
            "{refused}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        wait(60_000).unwrap();
    }
}
