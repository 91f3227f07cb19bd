//! Responses that are complete before their first byte is sent.

use super::pipe::Pipe;
use super::reader::Reader;
use super::readers::Readers;
use super::sink;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use meridian_query::CancelFlag;
use std::sync::Arc;

/// A complete response. It counts against the memory for responses until the client has taken it or disconnected, or
/// was evicted.
pub fn finished(state: &AppState, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    let length = bytes.len();
    let mut chunks = sink::charged(state, bytes)?;
    let body = if chunks.len() < 2 {
        Body::from(chunks.pop().unwrap_or_default())
    } else {
        let pipe = Arc::new(Pipe::new(usize::MAX));
        let put = pipe.put(None, chunks.into_iter(), true);
        put.map_err(|_| Problem::new(Kind::Internal, "a new pipe is closed"))?;
        let reader = Reader::new(pipe.clone(), CancelFlag::new()).with_length(length as u64);
        Body::new(reader.registered(Readers::register(state, &pipe)))
    };
    let mut response = body.into_response();
    *response.headers_mut() = headers;
    Ok(response)
}
