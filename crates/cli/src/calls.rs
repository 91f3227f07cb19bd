//! The threads for calls to the bucket of a cluster and to NATS.

use crate::failure::Failure;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of these calls. It lives as long as the process: a call may end after the server that made it.
///
/// The server's own runtime has a bounded number of threads. Changes that wait for each other could occupy all of them,
/// which leaves none for the call that the first one waits for.
///
/// Must be called on a thread that may block: if two runtimes are made at once, one is dropped.
pub fn calls() -> Result<Handle, Failure> {
    static CALLS: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = CALLS.get() {
        return Ok(runtime.handle().clone());
    }
    let made = Builder::new_multi_thread().worker_threads(2).thread_name("calls").enable_all().build();
    let made = made.map_err(|e| Failure::Refused(format!("cannot start threads: {e}")))?;
    Ok(CALLS.get_or_init(|| made).handle().clone())
}
