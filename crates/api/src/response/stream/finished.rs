//! Responses that are complete before their first byte is sent.

use super::pipe::Pipe;
use super::reader::Reader;
use super::sink;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::brief;
use crate::request::scope::Scope;
use crate::response::whole::{self, MemoryMark};
use crate::state::brief_runs::QueryKind;
use axum::body::Body;
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use meridian_backend::Collection;
use meridian_query::{CancelFlag, Control};
use std::sync::Arc;

/// A response that is complete.
pub struct Finished {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub bytes: Vec<u8>,
}

/// Returns a complete response. It is charged to the memory for responses until the client has received it,
/// disconnects, or is evicted. Blocks while there is no room in that memory.
pub fn finished(state: &Scope, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    Finished { status: StatusCode::OK, headers, bytes }.respond(state)
}

/// Runs `work`, which only reads, and returns its complete response. It runs on this thread if it is short, else on a
/// blocking thread. It may run twice.
pub async fn finished_read(
    state: &Scope,
    kind: QueryKind,
    collection: &dyn Collection,
    run: Run,
    work: impl Fn(&Control) -> Result<Finished> + Send + 'static,
) -> Result<Response> {
    let shared = state.clone();
    let answers = state.answers();
    match brief::attempt(state, kind, collection, &run, |control| work(control).map(Some)) {
        Some(finished) => {
            let Finished { status, headers, bytes } = finished?;
            match sink::charged_now(state, &answers, bytes) {
                Ok(chunks) => respond(state, status, headers, chunks),
                Err(bytes) => {
                    // The time so far was measured on this thread.
                    run.permit.meter().stop();
                    let finished = Finished { status, headers, bytes };
                    blocking::run(run, move |_| finished.respond(&shared)).await
                }
            }
        }
        None => blocking::run(run, move |control| work(control)?.respond(&shared)).await,
    }
}

impl Finished {
    /// Returns the response, once there is room for it. Blocks.
    fn respond(self, state: &Scope) -> Result<Response> {
        let chunks = sink::charged(state, &state.answers(), self.bytes)?;
        respond(state, self.status, self.headers, chunks)
    }
}

fn respond(state: &Scope, status: StatusCode, headers: HeaderMap, mut chunks: Vec<Bytes>) -> Result<Response> {
    let (length, answers) = (chunks.iter().map(|chunk| chunk.len() as u64).sum(), state.answers());
    let mut extensions = Extensions::new();
    let body = if chunks.len() < 2 {
        whole::evictable(chunks.pop().unwrap_or_default(), whole::SMALL_BYTES, &answers, state, &mut extensions)
    } else {
        extensions.insert(MemoryMark::Evictable);
        let pipe = Arc::new(Pipe::new(usize::MAX, answers));
        let put = pipe.put(None, chunks.into_iter(), true);
        put.map_err(|_| Problem::new(Kind::Internal, "a new pipe is closed"))?;
        let reader = Reader::new(pipe.clone(), CancelFlag::new()).with_length(length);
        Body::new(reader.registered(state.readers.register(pipe)))
    };
    let mut response = body.into_response();
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    *response.extensions_mut() = extensions;
    Ok(response)
}
