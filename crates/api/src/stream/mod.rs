//! Runs queries on blocking threads and streams their responses to clients in bounded chunks.
//!
//! A query runs with a permit of the [`meridian_admission::gate::Gate`], so the number of permits bounds the number of
//! busy threads. Its chunks pass through a short [`pipe`]. When a slow client lets the pipe fill up, the query releases
//! its permit and its thread. It is then parked until the client has read some of the chunks (`job.rs`). When the
//! client disconnects, the response body is dropped, which raises the query's cancel flag at once. An error after the
//! first chunk aborts the transfer, so that a truncated response never looks complete.

mod finished;
mod job;
mod memory;
mod pipe;
mod reader;
mod sink;

pub use finished::finished;
pub use job::Source;
#[cfg(feature = "flight")]
pub use reader::BrokenOff;
pub use sink::Sink;

use crate::problem::{Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use job::{BlockingWait, Job};
use memory::QueryMemory;
use meridian_admission::gate::Permit;
use meridian_backend::PermitScheduler;
use meridian_model::policy::quota::Quota;
use meridian_observe::{self as observe, Current};
use meridian_query::{CancelFlag, Control};
use pipe::Pipe;
use reader::Reader;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Raises a query's cancel flag when the task that waits for the response is dropped.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What a query needs to run: its deadline, its cancel flag and its permit.
pub struct Run {
    /// Deadline and cancellation of the query.
    pub control: Control,
    deadline: Instant,
    permit: Permit,
    turns: Arc<PermitScheduler>,
    /// The work to which its threads belong.
    current: Current,
}

impl Run {
    /// Creates a run of the current work, with a permit.
    pub fn new(state: &AppState, permit: Permit, deadline: Instant) -> Run {
        let left = deadline.saturating_duration_since(Instant::now());
        let turns = PermitScheduler::of(&permit);
        let control = Control::new(state.clock.clone(), left, CancelFlag::new())
            .sharing(QueryMemory::of(&state.memory.of(permit.account().ledger.tenant())))
            .scheduled_by(turns.clone());
        let bytes_max = permit.account().ledger.limit(Quota::ScannedBytesPerRequest);
        let control = match bytes_max {
            Some(bytes) => control.reading_at_most(bytes),
            None => control,
        };
        // Waits for other processes give the permit back meanwhile.
        observe::hold(&turns);
        Run { control, deadline, permit, turns, current: observe::current() }
    }
}

/// Runs `work` on a blocking thread and waits for its result. If the caller is dropped, the work is cancelled.
pub async fn run<T: Send + 'static>(run: Run, work: impl FnOnce(&Control) -> Result<T> + Send + 'static) -> Result<T> {
    let Run { control, permit, current, .. } = run;
    let guard = CancelOnDrop(control.cancel_flag().clone());
    let outcome = tokio::task::spawn_blocking(move || {
        permit.meter().begin();
        let outcome = current.run(|| work(&control));
        // Released by the thread, not by the waiting task, which may be dropped earlier. A query that still computes
        // must keep its permit, or more threads would run than there are permits.
        drop(permit);
        outcome
    })
    .await;
    // Contained here: the panic of one query must not end its connection.
    let outcome = outcome.unwrap_or_else(|e| Err(Problem::internal(format!("a query panicked: {e}"))));
    drop(guard);
    outcome
}

/// Streams what a query writes to its sink. `open` starts the response and returns the source of the rest, if any. The
/// rest is computed step by step, as the client reads.
///
/// Waits for the head of the response, so that an earlier error can still set the status.
pub async fn stream(
    state: &AppState,
    run: Run,
    arrived: Instant,
    open: impl FnOnce(&mut Sink, &Control) -> Result<Option<Box<dyn Source>>> + Send + 'static,
) -> Result<Response> {
    let Run { control, deadline, permit, turns, current } = run;
    let (pipe, reader) = connect(state, &permit, &control);
    let sink = Sink::new(state, pipe.clone(), None);
    let job = Job { source: None, sink, control, turns, state: state.clone(), deadline, arrived, current };
    tokio::task::spawn_blocking(move || job.current.clone().run(|| job.start(permit, open)));
    respond(state, &pipe, reader).await
}

/// Like [`stream`], for work that cannot be interrupted. While its client does not read, it keeps its thread but not
/// its permit. The caller must bound the number of such streams.
pub async fn stream_blocking(
    state: &AppState,
    run: Run,
    arrived: Instant,
    work: impl FnOnce(&mut Sink, &Control) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let Run { control, deadline, permit, turns, current } = run;
    let (pipe, reader) = connect(state, &permit, &control);
    let wait = BlockingWait::new(permit, turns.clone(), Handle::current(), deadline);
    let sink = Sink::new(state, pipe.clone(), Some(wait));
    let job = Job { source: None, sink, control, turns, state: state.clone(), deadline, arrived, current };
    tokio::task::spawn_blocking(move || job.current.clone().run(|| job.run_blocking(work)));
    respond(state, &pipe, reader).await
}

fn connect(state: &AppState, permit: &Permit, control: &Control) -> (Arc<Pipe>, Reader) {
    // At least one chunk: a pipe without capacity would always be full, and its query would never run.
    let capacity = state.config.chunks_waiting_max.max(1) * sink::chunk_bytes(state);
    let answers = state.answers.of(permit.account().ledger.tenant());
    let pipe = Arc::new(Pipe::new(capacity, answers));
    (pipe.clone(), Reader::new(pipe, control.cancel_flag().clone()))
}

async fn respond(state: &AppState, pipe: &Arc<Pipe>, reader: Reader) -> Result<Response> {
    let headers = reader.head().await?;
    // A response that fits in one chunk is already complete. It is sent with its length, and needs no place in the
    // registry, because there is nothing to evict.
    let body = match reader.take_complete() {
        Some(data) => Body::from(data),
        None => Body::new(reader.registered(state.readers.register(pipe.clone()))),
    };
    let mut response = body.into_response();
    *response.headers_mut() = *headers;
    Ok(response)
}
