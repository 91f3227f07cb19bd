//! What Linux tells of processes and the machine (proc(5)). Elsewhere every reading is `None`.

use std::fs;

/// Ticks of `/proc` a second; Linux has shown 100 to user space on every architecture since 2.6.
const TICKS: f64 = 100.0;

/// One reading of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    /// Processor time so far, seconds.
    pub cpu_s: f64,
    /// Resident set, bytes.
    pub resident: u64,
    /// Open descriptors; `None` where it is not ours to see.
    pub descriptors: Option<u64>,
}

/// One reading of the machine: seconds of processor time so far, over all cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Worked.
    pub busy_s: f64,
    /// Taken by the host.
    pub steal_s: f64,
    /// All.
    pub total_s: f64,
}

/// Seconds for which the calling thread ran, and was ready to run but did not.
pub fn thread() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse::<f64>().ok());
    Some((words.next()?? / 1e9, words.next()?? / 1e9))
}

/// A process; `None` where it is not (any more).
pub fn process(pid: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything; the fields after it are numbers.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let resident = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = resident.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) * 1024;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok().map(|entries| entries.count() as u64);
    Some(Process { cpu_s: (number(11)? + number(12)?) / TICKS, resident, descriptors })
}

/// The machine.
pub fn machine() -> Option<Machine> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<f64> =
        text.lines().next()?.split_ascii_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is within user's.
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields.as_slice() else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(Machine { busy_s: busy / TICKS, steal_s: steal / TICKS, total_s: (busy + idle + iowait + steal) / TICKS })
}

/// How many descriptors this process may have.
pub fn descriptors_allowed() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The process of this machine that listens on a TCP port.
pub fn listener_of(port: u16) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|text| text.lines().filter_map(|line| listening(line, port)).collect::<Vec<_>>())
        .collect();
    let mut pids =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        links
            .filter_map(|link| fs::read_link(link.path()).ok())
            .any(|link| sockets.iter().any(|s| link.as_os_str() == s.as_str()))
    })
}

/// The inode of a line of `/proc/net/tcp`, where it is a socket that listens on the port.
fn listening(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let local = fields.get(1)?.rsplit_once(':')?.1;
    (u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == "0A")
        .then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_and_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(listener_of(port), Some(std::process::id()));
        let own = process(std::process::id()).expect("this process");
        assert!(own.resident > 1 << 20 && own.descriptors.is_some_and(|n| n >= 3));
        let machine = machine().expect("a machine");
        assert!(machine.total_s >= machine.busy_s && machine.busy_s > 0.0);
        assert!(descriptors_allowed().is_some_and(|n| n > 16) && thread().is_some());
    }
}
