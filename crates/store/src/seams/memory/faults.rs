//! Fault injection for tests.

use std::io;
use std::path::Path;

/// The calls that fail, with EIO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// `sync` and `sync_dir`.
    SyncFails,
    /// `read_at`.
    ReadFails,
    /// `write_at` and `set_len`.
    WriteFails,
    /// Calls by name: `open`, `rename`, `remove` and `list`.
    NameFails,
}

#[derive(Debug)]
struct Fault {
    kind: FaultKind,
    /// Part of the path that the fault applies to.
    path: String,
    /// Number of calls that succeed first.
    after: u64,
    /// Number of calls that fail after those.
    times: u64,
}

/// The faults of a disk.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, kind: FaultKind, path: &str, after: u64, times: u64) {
        self.0.push(Fault { kind, path: path.to_owned(), after, times });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Fails if an injected fault applies to a call of this kind on this path now.
    pub(super) fn meet(&mut self, kind: FaultKind, path: &Path) -> io::Result<()> {
        let path = path.to_string_lossy();
        for fault in self.0.iter_mut().filter(|f| f.kind == kind && f.times > 0 && path.contains(&f.path)) {
            if fault.after == 0 {
                fault.times -= 1;
                return Err(eio());
            }
            fault.after -= 1;
        }
        Ok(())
    }
}

pub(super) fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}
