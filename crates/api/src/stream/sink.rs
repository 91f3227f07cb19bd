//! Where a question puts its answer.

use super::pipe::{Gone, Pipe};
use super::readers;
use super::turn::Seat;
use crate::limiter;
use crate::problem::{Kind, Problem, Result};
use crate::state::AppState;
use axum::http::HeaderMap;
use bytes::Bytes;
use meridian_admission::ByteShare;
use std::sync::Arc;

/// Where a question puts its answer. Bytes are collected in [`Sink::buffer`] and leave as chunks.
pub struct Sink {
    /// The chunk being filled; append to it, then call [`Sink::offer`].
    pub buffer: Vec<u8>,
    state: AppState,
    pipe: Arc<Pipe>,
    chunk_bytes: usize,
    /// The head, until it leaves with the first bytes.
    head: Option<Box<HeaderMap>>,
    sent: bool,
    /// Where work that cannot be interrupted waits for its client.
    seat: Option<Seat>,
}

impl Sink {
    pub(super) fn new(state: &AppState, pipe: Arc<Pipe>, seat: Option<Seat>) -> Sink {
        let chunk_bytes = chunk_bytes(state);
        let buffer = Vec::with_capacity(chunk_bytes * 5 / 4);
        Sink { buffer, state: state.clone(), pipe, chunk_bytes, head: None, sent: false, seat }
    }

    /// Sets the answer's head. Call it once, before any data; an error before the first bytes leave is a clean refusal.
    pub fn begin(&mut self, headers: HeaderMap) {
        self.head = Some(Box::new(headers));
    }

    /// Sends what has been collected if it is worth a chunk. The first bytes leave at once: nobody knows how long it takes
    /// to find the next.
    pub fn offer(&mut self) -> Result<()> {
        if self.buffer.len() >= self.chunk_bytes || (!self.sent && !self.buffer.is_empty()) {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends what has been collected.
    pub fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() && self.head.is_none() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.chunk_bytes * 5 / 4));
        self.send(buffer, false)
    }

    /// Sends the rest: the answer is whole.
    pub(super) fn end(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.send(buffer, true)
    }

    /// Whether the client is to take something before more is made.
    pub(super) fn is_full(&self) -> bool {
        self.pipe.is_full()
    }

    pub(super) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    fn send(&mut self, buffer: Vec<u8>, last: bool) -> Result<()> {
        if let Some(seat) = &mut self.seat
            && self.pipe.is_full()
        {
            seat.wait(&self.state, &self.pipe)?;
        }
        self.sent = true;
        let pieces = held(&self.state, buffer)?;
        self.pipe.put(self.head.take(), pieces.into_iter(), last).map_err(|Gone| gone())
    }
}

impl Drop for Sink {
    /// A question that ends without a word, by a panic, must not leave its reader waiting.
    fn drop(&mut self) {
        if !self.pipe.has_ended() {
            self.pipe.fail(Problem::internal("a question ended without an answer"));
        }
    }
}

/// Aimed size of a piece.
pub(super) fn chunk_bytes(state: &AppState) -> usize {
    state.config.chunk_bytes.max(1024)
}

/// What is said where nobody listens.
pub(super) fn gone() -> Problem {
    Problem::new(Kind::Internal, "the client has gone")
}

/// Pieces of about a chunk, which count against the memory for answers until the connection lets go of them.
///
/// Each is in memory of its own: what the connection has in hand, which a cut cannot take back, does not keep the others.
pub(super) fn held(state: &AppState, mut bytes: Vec<u8>) -> Result<Vec<Bytes>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    // What is counted is what is held, and a chunk's buffer may be much larger than what stands in it.
    if bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
    let Some(mut held) = readers::hold(state, bytes.capacity()) else {
        return Err(limiter::overloaded(
            "the answers that clients have not taken yet fill the memory set aside for them: try again".to_owned(),
            state.config.requests_running_max,
        ));
    };
    let chunk_bytes = chunk_bytes(state);
    if bytes.len() <= 2 * chunk_bytes {
        return Ok(vec![Bytes::from_owner(Owned { bytes, _held: Some(held) })]);
    }
    let (mut pieces, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(if rest.len() > 2 * chunk_bytes { chunk_bytes } else { rest.len() });
        pieces.push(Bytes::from_owner(Owned { bytes: piece.to_vec(), _held: Some(held.split(piece.len())) }));
        rest = left;
    }
    Ok(pieces)
}

struct Owned {
    bytes: Vec<u8>,
    _held: Option<ByteShare>,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
