//! The resources of the machine, for defaults that depend on it.

use std::ffi::{c_int, c_long};
use std::path::Path;
use std::time::Duration;

/// Returns the memory in bytes available to this process: the machine's, or the smallest limit of its control groups.
/// `None` if neither is known.
pub fn memory() -> Option<u64> {
    let whole = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| limit_of(Path::new("/sys/fs/cgroup"), line));
    whole.into_iter().chain(limits).min()
}

/// Returns freed memory to the system after this delay. With the default of a second, a server that ingests a million
/// events a second keeps 300 MB. At 50 ms or less, such a server is slower by a fifth to a quarter, so this is for
/// processes with little memory.
pub fn return_memory_soon(delay: Duration) {
    #[allow(unsafe_code, reason = "the allocator takes its options in no other way")]
    // Sound: the function is that of mimalloc, which is linked into this program. It checks the index, and writes one
    // number of a static table that threads read atomically.
    unsafe {
        mi_option_set(PURGE_DELAY, delay.as_millis() as c_long);
    }
}

#[allow(unsafe_code, reason = "as in mimalloc.h")]
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
    #[cfg(test)]
    fn mi_option_get(option: c_int) -> c_long;
}

/// `mi_option_purge_delay` of mimalloc.h, versions 2 and 3: milliseconds.
const PURGE_DELAY: c_int = 15;

/// Raises the limit of open files to the max of this process, and returns it; `None` if there is none. Each connection
/// is a file, and the usual limit of 1,024 is meant for programs that call `select`.
pub fn raise_open_files() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        getrlimit(Resource::Nofile).current
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Loads this program's file into the system's cache, on a separate thread. With a cold cache, a server would otherwise
/// wait for the disk at each new part of the program. Failures are ignored.
pub fn read_program_ahead() {
    #[cfg(target_os = "linux")]
    std::thread::spawn(|| {
        use rustix::fs::{Advice, fadvise};
        if let Ok(program) = std::fs::File::open("/proc/self/exe") {
            let _ = fadvise(&program, 0, None, Advice::WillNeed);
        }
    });
}

/// Parses `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the smallest limit of the group in a line of `/proc/self/cgroup`, and of its ancestors: `0::PATH` in version
/// 2, or `NUMBER:memory:PATH` in version 1.
fn limit_of(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (root, file) = match parts.next()? {
        "" => (root.to_owned(), "memory.max"),
        controllers if controllers.split(',').any(|c| c == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
        _ => return None,
    };
    let own = root.join(parts.next()?.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|above| above.starts_with(&root));
    groups.filter_map(|group| std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
    use super::*;

    #[test]
    #[allow(unsafe_code, reason = "the allocator takes its options in no other way")]
    fn the_option_is_that_of_the_delay() {
        // Sound: reads one number of a static table. A second is the allocator's default of this option alone.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 1000);
        return_memory_soon(Duration::from_millis(10));
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 10);
    }

    #[test]
    fn the_tightest_limit_counts() {
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       24000000 kB\n"), Some(24_576_000_000));
        assert_eq!(total_of("MemTotal: many"), None);
        for (line, name, file) in [
            ("0::/outer/inner", "outer", "memory.max"),
            ("4:cpu,memory:/outer/inner", "memory/outer", "memory.limit_in_bytes"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let inner = root.path().join(name).join("inner");
            std::fs::create_dir_all(&inner).unwrap();
            assert_eq!(limit_of(root.path(), line), None);
            std::fs::write(inner.join(file), "max\n").unwrap();
            std::fs::write(inner.join("..").join(file), "1073741824\n").unwrap();
            assert_eq!(limit_of(root.path(), line), Some(1 << 30));
            assert_eq!(limit_of(root.path(), "3:cpuset:/outer/inner"), None);
            assert_eq!(limit_of(root.path(), "0::/"), None);
        }
    }
}
