//! Work on separate threads, where a panic ends a task but not the target.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::runtime::Runtime;

/// Number of panics of this process, including caught ones.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

/// The runtime of servers.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    &RUNTIME
}

/// Waits for work and checks that no part of it panics, on any thread.
pub fn finish<T>(work: impl Future<Output = T>) -> T {
    let before = PANICS.load(Ordering::Relaxed);
    let done = runtime().block_on(work);
    assert_eq!(PANICS.load(Ordering::Relaxed), before, "a task has panicked");
    done
}
