//! Answers that are all there before the first byte leaves.

use super::pipe::{Pipe, Reader};
use super::readers::Readers;
use super::sink;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use meridian_query::CancelFlag;
use std::sync::Arc;

/// A finished answer that counts against the memory for answers until the client has taken it, left, or was let go
/// because it did not read while others needed the memory.
pub fn finished(state: &AppState, headers: HeaderMap, bytes: Vec<u8>) -> Result<Response> {
    let (length, chunk_bytes) = (bytes.len(), sink::chunk_bytes(state));
    let body = if length <= 2 * chunk_bytes {
        Body::from(sink::held(state, bytes)?)
    } else {
        // In pieces of their own, so that what the connection has in hand does not keep all of it.
        let pieces: Result<Vec<Bytes>> =
            bytes.chunks(chunk_bytes).map(|piece| sink::held(state, piece.to_vec())).collect();
        let pieces = pieces?;
        drop(bytes);
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
