//! Responses that are complete before their first byte is sent.

use super::pipe::Pipe;
use super::reader::Reader;
use super::sink;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::scope::Scope;
use crate::response::whole::{self, MemoryMark};
use axum::body::Body;
use axum::http::{Extensions, HeaderMap};
use axum::response::{IntoResponse, Response};
use meridian_query::CancelFlag;
use std::sync::Arc;

/// Returns a complete response. It is charged to the memory for responses until the client has received it,
/// disconnects, or is evicted.
pub fn finished(state: &Scope, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    let (length, answers) = (bytes.len(), state.answers());
    let mut chunks = sink::charged(state, &answers, bytes)?;
    let mut extensions = Extensions::new();
    let body = if chunks.len() < 2 {
        whole::evictable(chunks.pop().unwrap_or_default(), whole::SMALL_BYTES, &answers, state, &mut extensions)
    } else {
        extensions.insert(MemoryMark::Evictable);
        let pipe = Arc::new(Pipe::new(usize::MAX, answers));
        let put = pipe.put(None, chunks.into_iter(), true);
        put.map_err(|_| Problem::new(Kind::Internal, "a new pipe is closed"))?;
        let reader = Reader::new(pipe.clone(), CancelFlag::new()).with_length(length as u64);
        Body::new(reader.registered(state.readers.register(pipe)))
    };
    let mut response = body.into_response();
    *response.headers_mut() = headers;
    *response.extensions_mut() = extensions;
    Ok(response)
}
