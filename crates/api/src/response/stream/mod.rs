//! Runs queries on blocking threads and streams their responses to clients in bounded chunks.
//!
//! A query runs with a permit of the [`meridian_admission::gate::Gate`], so the number of permits bounds the number of
//! busy threads. Its chunks pass through a short [`pipe`]. When a slow client lets the pipe fill up, the query releases
//! its permit and its thread. It is then parked until the client has read some of the chunks (`job.rs`). When the
//! client disconnects, the response body is dropped, which raises the query's cancel flag at once. An error after the
//! first chunk aborts the transfer, so that a truncated response never looks complete. What is whole in a file is no
//! query any more: it is sent without a permit and without a deadline (`file.rs`).

#[cfg(feature = "geopackage")]
mod file;
mod finished;
mod job;
mod pipe;
mod reader;
mod sink;
mod wait;

#[cfg(feature = "geopackage")]
pub use file::{WholeFile, made_in_file};
pub use finished::{Finished, finished, finished_read};
pub use job::Source;
pub use pipe::BrokenOff;
pub use sink::Sink;

use crate::protocol::problem::Result;
use crate::request::blocking::Run;
use crate::request::brief;
use crate::response::whole;
use crate::state::AppState;
use crate::state::brief_runs::QueryKind;
use axum::body::Body;
use axum::http::Extensions;
use axum::response::{IntoResponse, Response};
use job::Job;
use meridian_admission::gate::Permit;
use meridian_backend::Collection;
use meridian_query::Control;
use pipe::Pipe;
use reader::Reader;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::time::Instant;
use wait::BlockingWait;

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

/// Like [`stream`]. If `open` writes the whole response in a short time, it runs on this thread. It may run twice.
pub async fn stream_read(
    state: &AppState,
    kind: QueryKind,
    collection: &dyn Collection,
    run: Run,
    arrived: Instant,
    open: impl Fn(&mut Sink, &Control) -> Result<Option<Box<dyn Source>>> + Send + 'static,
) -> Result<Response> {
    let attempted = brief::attempt(state, kind, collection, &run, |control| {
        let (pipe, reader) = connect(state, &run.permit, control);
        let mut sink = Sink::brief(state, pipe.clone());
        let opened = open(&mut sink, control).and_then(|rest| match rest {
            // A void response takes no memory.
            None if control.is_exceeded() => Ok(None),
            None => sink.end().map(|()| Some((pipe, reader))),
            Some(_) => Ok(None),
        });
        if sink.gave_up() { Ok(None) } else { opened }
    });
    match attempted {
        None => stream(state, run, arrived, open).await,
        Some(attempted) => {
            state.metrics.streams.record(arrived.elapsed());
            // Its work is done. From here on it waits for its client, without a permit.
            drop(run);
            let (pipe, reader) = attempted?;
            respond(state, &pipe, reader).await
        }
    }
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
    let answers = state.answers.of(permit.account().ledger.tenant());
    let pipe = Arc::new(Pipe::new(capacity(state), answers));
    (pipe.clone(), Reader::new(pipe, control.cancel_flag().clone()))
}

/// Returns the capacity of a pipe in bytes.
fn capacity(state: &AppState) -> usize {
    // At least one chunk: a pipe without capacity would always be full, and its query would never run.
    state.config.chunks_waiting_max.max(1) * sink::chunk_bytes(state)
}

async fn respond(state: &AppState, pipe: &Arc<Pipe>, reader: Reader) -> Result<Response> {
    let headers = reader.head().await?;
    let mut extensions = Extensions::new();
    // A response that fits in one chunk is already complete. It is sent with its length.
    let body = match reader.take_complete() {
        Some(data) => whole::evictable(data, whole::SMALL_BYTES, pipe.answers(), state, &mut extensions),
        None => Body::new(reader.registered(state.readers.register(pipe.clone()))),
    };
    let mut response = body.into_response();
    *response.headers_mut() = *headers;
    *response.extensions_mut() = extensions;
    Ok(response)
}
