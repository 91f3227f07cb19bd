//! One process: starts it, ends it, and shows its last output.

use super::super::nodes::{Kind, Node};
use super::super::private;
use super::plan::Plan;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// A log of this size is rotated at the next start of its process.
const LOG_MAX: u64 = 16 << 20;
/// Bytes read from the end of a log, and max lines shown.
const END_BYTES: u64 = 8 << 10;
const END_LINES: usize = 8;

/// A running process; killed when dropped.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    /// Starts a process.
    pub(super) fn start(plan: &Plan, node: &Node) -> io::Result<Process> {
        let settings = plan.settings_of(node);
        let mut command = match (node.role, &plan.server) {
            (Kind::Log, Some(server)) => {
                let mut command = Command::new(server);
                command.arg("-c").arg(settings);
                command
            }
            (role, _) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["serve", "--role", role.name(), "--config"]).arg(settings);
                command
            }
        };
        let log = log_of(&node.log_file)?;
        // An empty file. The process inherits its lock, which ends with the last process that holds the file.
        command.stdin(plan.running.try_clone()?).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C at a terminal is for this program only, which stops the others in order.
        command.process_group(0);
        end_with_parent(&mut command);
        command.spawn().map(Process)
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns its exit status; `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        // Its status is kept once it has been waited for.
        self.0.try_wait().ok().flatten()
    }

    /// Sends SIGTERM; returns true if it was running.
    pub(super) fn terminate(&mut self) -> bool {
        // Once it has been waited for, another process may have its id.
        let runs = self.ended().is_none();
        if runs {
            terminate(&self.0);
        }
        runs
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes a process end when this one does, for whatever reason.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the standard library gives no other access to what happens between fork and exec")]
fn end_with_parent(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let parent = getpid();
    let ask = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // A parent that ended before the call sends no signal.
        match getppid() == Some(parent) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    };
    // Sound: between fork and exec there are two system calls, and nothing is allocated.
    unsafe {
        command.pre_exec(ask);
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_: &mut Command) {}

#[cfg(target_os = "linux")]
fn terminate(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // If it has just ended, that is fine.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
}

#[cfg(not(target_os = "linux"))]
fn terminate(child: &Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
}

/// Opens the log of a process for appending.
fn log_of(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|log| log.len() > LOG_MAX) {
        let mut old = path.as_os_str().to_owned();
        old.push(".1");
        std::fs::rename(path, PathBuf::from(old))?;
    }
    private::open(path, OpenOptions::new().create(true).append(true))
}

/// Returns the last lines of a log, each behind a bar.
pub(super) fn last_lines(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(END_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        // A log may grow meanwhile.
        file.take(END_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(END_LINES)..];
    shown.iter().map(|line| format!("\n  | {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_process_that_ended_gets_no_signal() {
        let start = |program: &str| Process(Command::new(program).arg("60").stdin(Stdio::null()).spawn().unwrap());
        let end = |process: &mut Process| {
            while process.ended().is_none() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        let mut process = start("sleep");
        assert!(process.terminate());
        end(&mut process);
        assert!(!process.ended().unwrap().success());
        assert!(!process.terminate());
        let mut process = start("true");
        end(&mut process);
        assert!(!process.terminate() && process.ended().unwrap().success());
    }

    #[test]
    fn the_end_of_a_log_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        assert_eq!(last_lines(&path), "");
        let lines: Vec<String> = (0..5_000).map(|n| format!("line {n}")).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let end = last_lines(&path);
        assert_eq!(end.lines().filter(|line| line.starts_with("  | line ")).count(), END_LINES);
        assert!(end.ends_with("line 4999"), "{end}");
        std::fs::write(&path, vec![b'x'; LOG_MAX as usize + 1]).unwrap();
        assert_eq!(log_of(&path).unwrap().metadata().unwrap().len(), 0);
        assert!(folder.path().join("x.log.1").is_file());
    }
}
