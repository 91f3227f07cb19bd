//! The sink to which a query writes its response.

use super::pipe::{Pipe, ReaderGone};
use super::wait::{BlockingWait, disconnected};
use crate::protocol::problem::{Problem, Result};
use crate::request::overload::no_room;
use crate::response::whole;
use crate::state::AppState;
use axum::http::HeaderMap;
use bytes::Bytes;
use meridian_admission::ByteBudget;
use std::sync::Arc;

/// The sink to which a query writes its response. Bytes are collected in [`Sink::buffer`] and sent as chunks.
pub struct Sink {
    /// The chunk being filled; append to it, then call [`Sink::offer`].
    pub buffer: Vec<u8>,
    state: AppState,
    pipe: Arc<Pipe>,
    chunk_bytes: usize,
    /// The head, until it is sent with the first bytes.
    head: Option<Box<HeaderMap>>,
    sent: bool,
    /// How work that cannot be interrupted waits for its client.
    wait: Option<BlockingWait>,
}

impl Sink {
    pub(super) fn new(state: &AppState, pipe: Arc<Pipe>, wait: Option<BlockingWait>) -> Sink {
        let chunk_bytes = chunk_bytes(state);
        let buffer = Vec::with_capacity(chunk_bytes * 5 / 4);
        Sink { buffer, state: state.clone(), pipe, chunk_bytes, head: None, sent: false, wait }
    }

    /// Sets the head of the response. Call it once, before any data. An error before the first bytes are sent can still
    /// set the status.
    pub fn begin(&mut self, headers: HeaderMap) {
        self.head = Some(Box::new(headers));
    }

    /// Sends the buffer if it holds enough for a chunk. The first bytes are sent at once, because finding the next may
    /// take long.
    pub fn offer(&mut self) -> Result<()> {
        if self.buffer.len() >= self.chunk_bytes || (!self.sent && !self.buffer.is_empty()) {
            self.flush()?;
        }
        Ok(())
    }

    /// Sets the buffer aside if it holds enough for a chunk, before the head is known; the client gets it after the
    /// head.
    pub fn collect(&mut self) -> Result<()> {
        match self.buffer.len() >= self.chunk_bytes {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends the buffer.
    pub fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() && self.head.is_none() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.chunk_bytes * 5 / 4));
        self.send(buffer, false)
    }

    /// Sends the rest and marks the response as complete.
    pub(super) fn end(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.send(buffer, true)
    }

    /// Returns whether the client must read something before more is produced.
    pub(super) fn is_full(&self) -> bool {
        self.pipe.is_full()
    }

    pub(super) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    fn send(&mut self, buffer: Vec<u8>, last: bool) -> Result<()> {
        if let Some(wait) = &mut self.wait
            && self.pipe.is_full()
        {
            // Only work that cannot be interrupted waits here. A query that runs in steps is parked between two of
            // them.
            wait.for_room(&self.state, &self.pipe)?;
        }
        self.sent = true;
        // Reserved before the pipe is locked: a reservation may sleep, and may lock other pipes to evict their readers.
        let chunks = charged(&self.state, self.pipe.answers(), buffer)?;
        self.pipe.put(self.head.take(), chunks.into_iter(), last).map_err(|ReaderGone| disconnected())
    }
}

impl Drop for Sink {
    /// Ends the pipe, because a query that ends without a result, by a panic, must not leave its reader waiting.
    fn drop(&mut self) {
        if !self.pipe.has_ended() {
            self.pipe.fail(Problem::internal("a query ended without a response"));
        }
    }
}

/// Returns the target size of a chunk in bytes.
pub(super) fn chunk_bytes(state: &AppState) -> usize {
    state.config.chunk_bytes.max(1024)
}

/// Splits bytes into chunks that are charged to the memory for responses until the connection releases them.
///
/// Each chunk has its own allocation: the connection may still hold one after a cut, which must not keep the others in
/// memory.
pub(super) fn charged(state: &AppState, answers: &ByteBudget, mut bytes: Vec<u8>) -> Result<Vec<Bytes>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    // The budget counts capacity, which may be much larger than the length.
    if bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
    let Some(mut share) = state.readers.reserve(&*state.clock, answers, bytes.capacity()) else {
        return Err(no_room(state));
    };
    let chunk_bytes = chunk_bytes(state);
    // Up to two chunks in one: a copy would cost more than the finer granularity saves.
    if bytes.len() <= 2 * chunk_bytes {
        return Ok(vec![whole::of_share(bytes, share)]);
    }
    let (mut chunks, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(if rest.len() > 2 * chunk_bytes { chunk_bytes } else { rest.len() });
        chunks.push(whole::of_share(chunk.to_vec(), share.split(chunk.len())));
        rest = left;
    }
    Ok(chunks)
}
