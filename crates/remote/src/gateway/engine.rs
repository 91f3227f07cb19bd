//! The threads of calls, and the wait for them from threads that block.
//!
//! Calls run on threads of their own, so that a caller may wait on any thread of any runtime. A caller that gives up drops
//! the call, which the owner sees as a stream that was reset.

use crate::wire::fault::Fault;
use meridian_query::Control;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often a waiting thread looks whether its caller has gone.
const LOOK: Duration = Duration::from_millis(20);
/// How much longer than its deadline a call is waited for: the owner knows better why it ended.
const GRACE: Duration = Duration::from_millis(500);
/// Threads for all connections: they wait and copy, and compute nothing.
const THREADS: usize = 2;

/// The threads of all calls. Dropped without a wait, from any thread.
#[derive(Debug)]
pub(super) struct Engine(Option<Runtime>, Handle);

impl Engine {
    /// Starts them.
    pub(super) fn start() -> io::Result<Arc<Engine>> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let runtime = threads.worker_threads(THREADS).thread_name("remote").enable_all().build()?;
        let handle = runtime.handle().clone();
        Ok(Arc::new(Engine(Some(runtime), handle)))
    }
}

impl Engine {
    /// Runs work on them.
    pub(super) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.1.spawn(work)
    }

    /// For what needs their runtime.
    pub(super) fn handle(&self) -> &Handle {
        &self.1
    }

    /// Waits for work on them; drops it when the caller gives up.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        patience: &Patience,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (done, outcome) = sync_channel(1);
        let task = self.spawn(async move { drop(done.send(work.await)) });
        let receive = || loop {
            match outcome.recv_timeout(LOOK) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(Fault::internal("a call to the owner failed")),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(fault) = patience.is_over() {
                        task.abort();
                        return Err(fault);
                    }
                    // The owner works for the question: a long one gives its slot to others here as it does there.
                    if let Some(control) = &patience.control {
                        control.waited(LOOK);
                    }
                }
            }
        };
        // On a worker of the server's runtime, its other tasks go to another thread meanwhile.
        match Handle::try_current() {
            Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(receive),
            _ => receive(),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// How long a caller waits.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    until: Option<Instant>,
    /// Of a question, which takes turns with others while it waits.
    control: Option<Control>,
}

impl Patience {
    pub(super) fn of(control: &Control) -> Patience {
        Patience { control: Some(control.clone()), ..Patience::within(control.time_left()) }
    }

    pub(super) fn within(time: Duration) -> Patience {
        Patience { until: Instant::now().checked_add(time), control: None }
    }

    pub(super) fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Why the caller waits no longer, if so.
    fn is_over(&self) -> Option<Fault> {
        if self.control.as_ref().is_some_and(|control| control.cancel_flag().is_cancelled()) {
            return Some(Fault::Cancelled);
        }
        // The grace is the owner's: it says the deadline has passed where it knows, as it does most times.
        self.until.is_some_and(|until| Instant::now() >= until + GRACE).then_some(Fault::Deadline)
    }
}
