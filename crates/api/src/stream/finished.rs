//! Answers that are all there before the first byte leaves.

use super::pipe::{Pipe, Reader};
use super::readers::Readers;
use super::sink;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use meridian_query::CancelFlag;
use std::sync::Arc;

/// A finished answer that counts against the memory for answers until the client has taken it, left, or was let go
/// because it did not read while others needed the memory.
pub fn finished(state: &AppState, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    let length = bytes.len();
    let mut pieces = sink::held(state, bytes)?;
    let body = if pieces.len() < 2 {
        Body::from(pieces.pop().unwrap_or_default())
    } else {
        let pipe = Arc::new(Pipe::new(usize::MAX));
        let put = pipe.put(None, pieces.into_iter(), true);
        put.map_err(|_| Problem::new(Kind::Internal, "a new pipe is closed"))?;
        let reader = Reader::new(pipe.clone(), CancelFlag::new()).of_length(length as u64);
        Body::new(reader.with(Readers::enter(state, &pipe)))
    };
    let mut response = body.into_response();
    *response.headers_mut() = headers;
    Ok(response)
}
