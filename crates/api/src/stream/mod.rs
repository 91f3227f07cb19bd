//! Runs questions on blocking threads and carries their answers to clients, a bounded piece at a time.
//!
//! A question runs with a place of the [`crate::limiter::Limiter`], so the number of busy threads is bounded by the
//! number of places. Its pieces go through a short [`pipe`]: when a slow client has filled it, the question gives its
//! place and its thread back and rests until the client has taken something (`turn.rs`). When the client goes away, the
//! body that takes the pieces is dropped, and that raises the question's cancel flag at once, whether or not it has
//! anything to say. An error after the first piece breaks the transfer off, so that a cut answer never looks whole.

mod finished;
mod pipe;
mod readers;
mod sink;
mod turn;

pub use finished::finished;
pub use readers::Readers;
pub use sink::Sink;
pub use turn::Source;

use crate::limiter::Permit;
use crate::problem::{Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use meridian_query::{CancelFlag, Control};
use pipe::{Pipe, Reader};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use turn::{Job, Seat};

/// Raises a question's cancel flag when the task that waits for the answer is gone.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// How a question may run: its time, its flag, its place.
pub struct Run {
    /// Time and cancellation for the query.
    pub control: Control,
    /// Time spent waiting for a place.
    pub admission: Duration,
    deadline: Instant,
    permit: Permit,
}

impl Run {
    /// A run with a place that was waited for.
    pub fn new(state: &AppState, permit: Permit, admission: Duration, deadline: Instant) -> Run {
        let left = deadline.saturating_duration_since(Instant::now());
        let control = Control::new(state.clock.clone(), left, CancelFlag::new()).sharing(state.memory.clone());
        Run { control, admission, deadline, permit }
    }
}

/// Runs `work` on a blocking thread and waits for its result. When the caller is dropped, the work is cancelled.
pub async fn run<T: Send + 'static>(run: Run, work: impl FnOnce(&Control) -> Result<T> + Send + 'static) -> Result<T> {
    let Run { control, permit, .. } = run;
    let guard = CancelOnDrop(control.cancel_flag().clone());
    let outcome = tokio::task::spawn_blocking(move || {
        let outcome = work(&control);
        drop(permit);
        outcome
    })
    .await;
    let outcome = outcome.unwrap_or_else(|e| Err(Problem::internal(format!("a question panicked: {e}"))));
    drop(guard);
    outcome
}

/// Answers with what a question puts into its sink, as it puts it there. `open` begins the answer and says what is left
/// of it, if anything is; the rest is worked out by turns, as the client takes it.
///
/// Waits for the head of the answer, so that an error before it is a proper refusal.
pub async fn stream(
    state: &AppState,
    run: Run,
    arrived: Instant,
    open: impl FnOnce(&mut Sink, &Control) -> Result<Option<Box<dyn Source>>> + Send + 'static,
) -> Result<Response> {
    let Run { control, deadline, permit, .. } = run;
    let (pipe, reader) = connect(state, &control);
    let sink = Sink::new(state, pipe.clone(), None);
    let job = Job { source: None, sink, control, state: state.clone(), deadline, arrived };
    tokio::task::spawn_blocking(move || job.begin(permit, open));
    answer(state, &pipe, reader).await
}

/// The same of work that cannot be interrupted: while its client does not read it keeps its thread, but not its place.
/// The caller bounds how many there are.
pub async fn stream_at_once(
    state: &AppState,
    run: Run,
    arrived: Instant,
    work: impl FnOnce(&mut Sink, &Control) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let Run { control, deadline, permit, .. } = run;
    let (pipe, reader) = connect(state, &control);
    let seat = Seat::new(permit, Handle::current(), deadline);
    let sink = Sink::new(state, pipe.clone(), Some(seat));
    let job = Job { source: None, sink, control, state: state.clone(), deadline, arrived };
    tokio::task::spawn_blocking(move || job.whole(work));
    answer(state, &pipe, reader).await
}

fn connect(state: &AppState, control: &Control) -> (Arc<Pipe>, Reader) {
    let pipe = Arc::new(Pipe::new(state.config.chunks_waiting_max.max(1) * sink::chunk_bytes(state)));
    (pipe.clone(), Reader::new(pipe, control.cancel_flag().clone()))
}

async fn answer(state: &AppState, pipe: &Arc<Pipe>, reader: Reader) -> Result<Response> {
    let headers = reader.head().await?;
    let body = match reader.whole() {
        Some(data) => Body::from(data),
        None => Body::new(reader.with(Readers::enter(state, pipe))),
    };
    let mut response = body.into_response();
    *response.headers_mut() = *headers;
    Ok(response)
}
