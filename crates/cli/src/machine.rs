//! What the machine has, for defaults that follow it.

use std::path::Path;

/// Memory in bytes that this process may use: the machine's, or the least limit of the control groups (version 2) that it is in.
/// `None` where neither can be told.
pub fn memory() -> Option<u64> {
    let whole = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
        least_limit(Path::new("/sys/fs/cgroup"), &path)
    });
    whole.into_iter().chain(group).min()
}

/// Has the system read this program's file into its cache, on a thread of its own. A server that starts where nothing is cached would
/// otherwise wait for the disk at each part of the program that it touches for the first time. Nothing fails where it cannot be done.
pub fn read_program_ahead() {
    #[cfg(target_os = "linux")]
    std::thread::spawn(|| {
        use rustix::fs::{Advice, fadvise};
        if let Ok(program) = std::fs::File::open("/proc/self/exe") {
            let _ = fadvise(&program, 0, None, Advice::WillNeed);
        }
    });
}

/// `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least `memory.max` of a group and those above it.
fn least_limit(root: &Path, group: &str) -> Option<u64> {
    let own = root.join(group);
    let groups = own.ancestors().take_while(|above| above.starts_with(root));
    groups.filter_map(|dir| std::fs::read_to_string(dir.join("memory.max")).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       24000000 kB\n"), Some(24_576_000_000));
        assert_eq!(total_of("MemTotal: many"), None);
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(least_limit(root.path(), "outer/inner"), None);
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        std::fs::write(root.path().join("outer/memory.max"), "1073741824\n").unwrap();
        assert_eq!(least_limit(root.path(), "outer/inner"), Some(1 << 30));
        assert_eq!(least_limit(root.path(), ""), None);
    }
}
