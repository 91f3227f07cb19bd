//! The sink to which a query writes its response.

use super::pipe::{Pipe, ReaderGone};
use super::wait::{BlockingWait, disconnected};
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::overload::no_room;
use crate::response::whole;
use crate::state::AppState;
use axum::http::HeaderMap;
use bytes::Bytes;
use meridian_admission::{ByteBudget, ByteShare};
use std::sync::Arc;

/// Capacity of the first buffer in bytes.
const FIRST_BYTES: usize = 16 << 10;

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
    /// Whether its thread must not wait, as others need it soon.
    brief: bool,
    /// Whether it gave up because of that.
    gave_up: bool,
}

impl Sink {
    pub(super) fn new(state: &AppState, pipe: Arc<Pipe>, wait: Option<BlockingWait>) -> Sink {
        let chunk_bytes = chunk_bytes(state);
        // Most responses are small: a whole chunk would be cut to their size, which copies them.
        let buffer = Vec::with_capacity(FIRST_BYTES.min(chunk_bytes));
        Sink {
            buffer,
            state: state.clone(),
            pipe,
            chunk_bytes,
            head: None,
            sent: false,
            wait,
            brief: false,
            gave_up: false,
        }
    }

    /// Creates the sink of a query that is tried on a thread that others need soon. It takes a whole response that
    /// finds room at once. Otherwise it fails, and [`Sink::gave_up`].
    pub(super) fn brief(state: &AppState, pipe: Arc<Pipe>) -> Sink {
        let mut sink = Sink::new(state, pipe, None);
        sink.brief = true;
        sink
    }

    /// Returns whether the sink takes nothing but a whole response.
    pub fn is_brief(&self) -> bool {
        self.brief
    }

    /// Returns whether the query must run again with another sink.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
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
        let chunks = match self.brief {
            false => charged(&self.state, self.pipe.answers(), buffer)?,
            true => {
                let chunks = if last { charged_now(&self.state, self.pipe.answers(), buffer).ok() } else { None };
                self.gave_up = chunks.is_none();
                chunks.ok_or_else(|| no_room(&self.state))?
            }
        };
        self.pipe.put(self.head.take(), chunks.into_iter(), last).map_err(|ReaderGone| disconnected())
    }
}

impl Drop for Sink {
    /// Ends the pipe, because a query that ends without a result, by a panic, must not leave its reader waiting.
    fn drop(&mut self) {
        if !self.pipe.has_ended() {
            let why = "a query ended without a response";
            // Not logged for a short query on the thread that read its request: there it is a try that is void.
            let problem = if self.brief { Problem::new(Kind::Internal, why) } else { Problem::internal(why) };
            self.pipe.fail(problem);
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
    fit(&mut bytes);
    match state.readers.reserve(&*state.clock, answers, bytes.capacity()) {
        Some(share) => Ok(chunks(state, bytes, share)),
        None => Err(no_room(state)),
    }
}

/// Like [`charged`], without a wait for room: returns the bytes if there is none.
pub(super) fn charged_now(
    state: &AppState,
    answers: &ByteBudget,
    mut bytes: Vec<u8>,
) -> std::result::Result<Vec<Bytes>, Vec<u8>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    fit(&mut bytes);
    // Nobody is evicted: the query can wait elsewhere.
    match answers.try_take_some(bytes.capacity()) {
        Some(share) => Ok(chunks(state, bytes, share)),
        None => Err(bytes),
    }
}

/// Frees capacity that is not used. The budget counts capacity, which may be much larger than the length.
fn fit(bytes: &mut Vec<u8>) {
    if bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
}

fn chunks(state: &AppState, bytes: Vec<u8>, mut share: ByteShare) -> Vec<Bytes> {
    let chunk_bytes = chunk_bytes(state);
    // Up to two chunks in one: a copy would cost more than the finer granularity saves.
    if bytes.len() <= 2 * chunk_bytes {
        return vec![whole::of_share(bytes, share)];
    }
    let (mut chunks, mut rest) = (Vec::new(), bytes.as_slice());
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(if rest.len() > 2 * chunk_bytes { chunk_bytes } else { rest.len() });
        chunks.push(whole::of_share(chunk.to_vec(), share.split(chunk.len())));
        rest = left;
    }
    chunks
}
