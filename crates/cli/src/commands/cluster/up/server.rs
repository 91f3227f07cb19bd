//! Finds the NATS server.

use crate::failure::Failure;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "nats-server";
/// The oldest supported version.
const OLDEST: (u32, u32) = (2, 15);
/// Timeout of a version check, and its poll interval.
const ANSWER: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);
/// The advice to the operator.
const HOW: &str = "name one with --nats-server, put one into PATH, or build one from Go modules with scripts/nats.sh of the \
    sources, or with `go install github.com/nats-io/nats-server/v2@latest`";

/// Returns the program that is named, or else the first one that is new enough.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return match version(named) {
            Some(found) if found >= OLDEST => Ok(named.to_owned()),
            Some((major, minor)) => Err(Failure::Usage(format!(
                "--nats-server {}: its version is {major}.{minor}: expected {}.{} or newer",
                named.display(),
                OLDEST.0,
                OLDEST.1
            ))),
            None => Err(Failure::Usage(format!("--nats-server {}: it is no NATS server", named.display()))),
        };
    }
    let mut old = Vec::new();
    for program in in_path().chain(built()).filter(|program| program.is_file()) {
        match version(&program) {
            Some(found) if found >= OLDEST => return Ok(program),
            Some((major, minor)) => old.push(format!("{} is {major}.{minor}", program.display())),
            None => {}
        }
    }
    let there = if old.is_empty() { String::new() } else { format!(" ({})", old.join(", ")) };
    Err(Failure::Usage(format!("--log nats: there is no {NAME} {}.{} or newer{there}: {HOW}", OLDEST.0, OLDEST.1)))
}

fn in_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(NAME)).collect::<Vec<_>>().into_iter()
}

/// Returns candidates built by `scripts/nats.sh`: `tools/nats-VERSION` in the target folder.
fn built() -> impl Iterator<Item = PathBuf> {
    let program = std::env::current_exe().ok();
    // target/release/meridian
    let of_program = program.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    let of_variable = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    // Not from the current folder, which may belong to someone else.
    let targets = of_variable.into_iter().chain(of_program);
    let tools = targets.filter_map(|target| std::fs::read_dir(target.join("tools")).ok());
    let entries = tools.flat_map(|entries| entries.flatten());
    let folders = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("nats-"));
    folders.map(|entry| entry.path().join(NAME))
}

/// Returns the major and minor version of a program; `None` if its output is not that of a NATS server.
fn version(program: &Path) -> Option<(u32, u32)> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (mut child, begun) = (command.spawn().ok()?, Instant::now());
    // A program that prints more than a pipe holds waits for a reader, and is no NATS server.
    while child.try_wait().ok()?.is_none() {
        if begun.elapsed() > ANSWER {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(LOOK);
    }
    // A single read: a child it may have started keeps the pipe open.
    let mut said = [0; 256];
    let bytes = child.stdout.take()?.read(&mut said).ok()?;
    parse(&String::from_utf8_lossy(&said[..bytes]))
}

fn parse(said: &str) -> Option<(u32, u32)> {
    let version = said.trim().strip_prefix("nats-server:")?.trim().trim_start_matches('v');
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_say_them() {
        assert_eq!(parse("nats-server: v2.15.2\n"), Some((2, 15)));
        assert_eq!(parse("nats-server: v2.9.10"), Some((2, 9)));
        assert_eq!(parse("nats-server: v2.16.0-RC.1"), Some((2, 16)));
        assert_eq!((parse("redis 7.2"), parse("")), (None, None));
        assert!((2, 9) < OLDEST && (3, 0) > OLDEST);
    }

    #[test]
    fn a_program_that_is_none_is_named() {
        let error = find(Some(Path::new("/bin/true"))).unwrap_err();
        assert_eq!(error.code(), 2);
        assert!(error.to_string().contains("--nats-server /bin/true"), "{error}");
    }
}
