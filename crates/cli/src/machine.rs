//! What the machine has, for defaults that follow it.

use std::ffi::{c_int, c_long};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

/// Memory in bytes that this process may use: the machine's, or the least limit of the control groups that it is in.
/// `None` where neither can be told.
pub fn memory() -> Option<u64> {
    let whole = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().filter_map(|line| limit_of(Path::new("/sys/fs/cgroup"), line));
    whole.into_iter().chain(limits).min()
}

/// Lets freed memory go back to the system after this long instead of a second, on which a server that takes in a million events a second
/// keeps 300 MB. It costs such a server a fifth of its pace, so it is for processes that have little memory.
pub fn return_memory_soon(delay: Duration) {
    #[allow(unsafe_code, reason = "the allocator has no other door to its options")]
    // Sound: the function is mimalloc's, which is linked into this program; it writes one number of a static table that
    // threads read atomically, and checks the index.
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

/// Has the system read the parts of this program's file that are mapped into its cache, on a thread of its own. A program that starts
/// where nothing is cached would otherwise wait for the disk at each part of it that is touched for the first time. Nothing fails where
/// it cannot be done.
pub fn read_program_ahead() {
    #[cfg(target_os = "linux")]
    std::thread::spawn(|| {
        use rustix::fs::{Advice, fadvise};
        let Ok(program) = std::fs::File::open("/proc/self/exe") else { return };
        let mapped = std::env::current_exe().ok().zip(std::fs::read_to_string("/proc/self/maps").ok());
        let end = mapped.and_then(|(path, maps)| mapped_end(&maps, path.to_str()?));
        let _ = fadvise(&program, 0, end, Advice::WillNeed);
    });
}

/// The byte of a file before which all that lies that is mapped of it, by the lines of `/proc/self/maps`: symbols lie behind it.
#[cfg(any(test, target_os = "linux"))]
fn mapped_end(maps: &str, path: &str) -> Option<NonZeroU64> {
    let ends = maps.lines().filter(|line| line.ends_with(path)).filter_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let offset = words.nth(1)?;
        let [from, to, offset] = [from, to, offset].map(|number| u64::from_str_radix(number, 16).ok());
        offset?.checked_add(to?.checked_sub(from?)?)
    });
    NonZeroU64::new(ends.max()?)
}

/// `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of the group in a line of `/proc/self/cgroup`, and of those above it: `0::PATH` of version 2, or
/// `NUMBER:memory:PATH` of version 1.
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
    #[allow(unsafe_code, reason = "the allocator has no other door to its options")]
    fn the_option_is_that_of_the_delay() {
        // Sound: reads one number of a static table. A second is the allocator's default of this option alone.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 1000);
        return_memory_soon(Duration::from_millis(10));
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 10);
    }

    #[test]
    fn what_is_mapped_of_a_file_ends_where_its_last_part_does() {
        let maps = "55d0-55e0 r--p 00000000 fd:00 7 /bin/meridian\n55e0-5610 r-xp 00000010 fd:00 7 /bin/meridian\n\
                    7f00-7fff r--p 00001000 fd:00 8 /lib/libc.so.6\nnonsense /bin/meridian\n";
        assert_eq!(mapped_end(maps, "/bin/meridian"), NonZeroU64::new(0x40));
        assert_eq!(mapped_end(maps, "/bin/other"), None);
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
