//! Readings of processes and the machine on Linux (proc(5)). Elsewhere every reading is `None`.

use crate::rest::rested;
use std::collections::{BTreeSet, HashMap};
use std::fs;

/// Ticks of `/proc` per second; Linux has shown 100 to user space on every architecture since 2.6.
const TICKS: f64 = 100.0;

/// Max length of a chain of ancestors; a longer one is invalid, as the process table changes while it is read.
const DEEPEST: usize = 100;

/// Processes read between two pauses.
const PIECE: usize = 16;

/// One reading of a process, or of all processes of a service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    /// Processor time so far, seconds.
    pub cpu_s: f64,
    /// Resident set, bytes.
    pub resident: u64,
    /// Open descriptors; `None` if not permitted.
    pub descriptors: Option<u64>,
}

/// One reading of the machine: seconds of processor time so far, over all cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Time worked.
    pub busy_s: f64,
    /// Time stolen by the host.
    pub steal_s: f64,
    /// Total time.
    pub total_s: f64,
}

/// Returns the seconds for which the calling thread ran, and was ready to run but did not.
pub fn thread() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse::<f64>().ok());
    Some((words.next()?? / 1e9, words.next()?? / 1e9))
}

/// A row of the process table.
#[derive(Debug, Clone, Copy)]
struct Entry {
    parent: u32,
    cpu_s: f64,
    /// Processor time of its children that have ended and were waited for.
    ended_s: f64,
}

/// Reads a process; `None` if it does not exist (any more).
pub fn process(pid: u32) -> Option<Process> {
    reading(pid, entry(pid)?.cpu_s)
}

/// Reads all processes of a service as one: the named ones and all their descendants. The time of ended ones counts
/// with the process that waited for them; memory shared by several counts in each. `None` if none of the named exists
/// (any more).
pub fn service(named: &BTreeSet<u32>) -> Option<Process> {
    if named.is_empty() {
        return None;
    }
    let (pids, mut all) = (pids().collect::<Vec<_>>(), HashMap::new());
    for some in pids.chunks(PIECE) {
        rested(|| all.extend(some.iter().filter_map(|pid| Some((*pid, entry(*pid)?)))));
    }
    let own = family(named, std::process::id(), &all);
    own.iter().filter_map(|pid| all.get(pid).and_then(|entry| reading(*pid, entry.cpu_s + entry.ended_s))).reduce(
        |sum, one| Process {
            cpu_s: sum.cpu_s + one.cpu_s,
            resident: sum.resident + one.resident,
            descriptors: match (sum.descriptors, one.descriptors) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            },
        },
    )
}

/// Returns the named processes and all their descendants. A named ancestor of `lab` (a service manager that holds the
/// port) counts without its descendants.
fn family(named: &BTreeSet<u32>, lab: u32, all: &HashMap<u32, Entry>) -> BTreeSet<u32> {
    let above: BTreeSet<u32> = line(lab, all).collect();
    // An ancestor of the lab is not a target with its descendants, which would include the lab.
    let heads = named - &above;
    let is_theirs = |pid: &u32| named.contains(pid) || line(*pid, all).any(|one| heads.contains(&one));
    all.keys().copied().filter(is_theirs).collect()
}

/// Returns a process, its parent, that one's parent, and so on.
fn line(pid: u32, all: &HashMap<u32, Entry>) -> impl Iterator<Item = u32> {
    // Bounded: processes change while they are read, and a reused parent id may close a cycle.
    std::iter::successors(Some(pid), move |pid| Some(all.get(pid)?.parent)).take(DEEPEST)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Process names may contain any bytes.
fn text(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

fn entry(pid: u32) -> Option<Entry> {
    let text = text(&format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may contain anything; the fields after it are numbers.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let seconds = |at: usize| Some(fields.get(at)?.parse::<f64>().ok()? / TICKS);
    Some(Entry {
        parent: fields.get(1)?.parse().ok()?,
        cpu_s: seconds(11)? + seconds(12)?,
        ended_s: seconds(13)? + seconds(14)?,
    })
}

fn reading(pid: u32, cpu_s: f64) -> Option<Process> {
    let status = text(&format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|entries| entries.count() as u64);
    Some(Process { cpu_s, resident, descriptors })
}

/// Reads the machine.
pub fn machine() -> Option<Machine> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<f64> =
        text.lines().next()?.split_ascii_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is within user's.
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields.as_slice() else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(Machine { busy_s: busy / TICKS, steal_s: steal / TICKS, total_s: (busy + idle + iowait + steal) / TICKS })
}

/// Returns how many descriptors this process may have.
pub fn descriptors_allowed() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the processes of this machine that listen on a TCP port.
pub fn listeners_of(port: u16) -> BTreeSet<u32> {
    let sockets: BTreeSet<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|text| text.lines().filter_map(|line| listening(line, port)).collect::<Vec<_>>())
        .collect();
    let listens = |pid: &u32| {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = links.filter_map(|link| fs::read_link(link.path()).ok());
        links.any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
    };
    if sockets.is_empty() { BTreeSet::new() } else { pids().filter(listens).collect() }
}

/// Returns the inode of a line of `/proc/net/tcp`, if it is a socket that listens on the port.
fn listening(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let local = fields.get(1)?.rsplit_once(':')?.1;
    (u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == "0A")
        .then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn this_process_is_seen_and_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert!(listeners_of(port).contains(&std::process::id()));
        let own = process(std::process::id()).expect("this process");
        assert!(own.resident > 1 << 20 && own.descriptors.is_some_and(|n| n >= 3));
        let machine = machine().expect("a machine");
        assert!(machine.total_s >= machine.busy_s && machine.busy_s > 0.0);
        assert!(descriptors_allowed().is_some_and(|n| n > 16) && thread().is_some());
    }

    #[test]
    fn a_family_is_all_that_came_of_the_named_but_for_the_lab() {
        // 1 started 10 (a server with 11, which has 12) and 20 (a shell with the lab, 21). 30 and 31 changed while
        // they were read.
        let of = |(pid, parent): (u32, u32)| (pid, Entry { parent, cpu_s: 0.0, ended_s: 0.0 });
        let all = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1), (21, 20), (22, 21), (30, 31), (31, 30)];
        let all: HashMap<u32, Entry> = all.map(of).into();
        let family = |named: &[u32]| family(&named.iter().copied().collect(), 21, &all).into_iter().collect::<Vec<_>>();
        assert_eq!(family(&[10]), [10, 11, 12]);
        assert_eq!(family(&[11, 30]), [11, 12, 30, 31]);
        assert_eq!(family(&[1, 11]), [1, 11, 12]);
        assert!(family(&[99]).is_empty());
    }

    fn until(what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_service_has_the_time_of_its_children_while_they_work_and_when_they_have_ended() {
        // A shell that only waits; the worker is the child of its child.
        let works = "timeout 60 sh -c 'while :; do :; done' & echo $!; wait; read line";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", works]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().expect("a shell");
        let mut child = String::new();
        BufReader::new(shell.stdout.take().expect("a pipe")).read_line(&mut child).expect("a line");
        let (child, named) = (child.trim().to_owned(), BTreeSet::from([shell.id()]));
        let cpu_s = || service(&named).map_or(0.0, |all| all.cpu_s);
        until("the child's time does not count", || cpu_s() >= 0.2);
        assert!(process(shell.id()).is_some_and(|alone| alone.cpu_s < 0.1));
        assert!(Command::new("kill").arg(&child).status().expect("kill").success());
        let child: u32 = child.parse().expect("a number");
        until("the child does not end", || process(child).is_none());
        assert!(cpu_s() >= 0.2);
        drop(shell.stdin.take());
        shell.wait().expect("ends");
    }
}
