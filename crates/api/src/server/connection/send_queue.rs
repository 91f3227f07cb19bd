//! The bytes of responses that the HTTP/2 library holds for one connection.
//!
//! The library limits what it holds for a stream. A client with a hundred streams, large windows and a socket that it
//! does not read would have it hold that a hundred times. So the streams of a connection share one queue. A part of a
//! response takes a place before the library gets it. The place is free when the library has written or dropped it.

use axum::body::Bytes;
use bytes::Buf;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of responses that wait for the socket of a connection.
pub const QUEUE_BYTES: usize = 64 << 10;
/// Max bytes of one part: a frame. A slow client with many streams has some of each before a stream counts as stalled.
const PART_BYTES: usize = 16 << 10;

/// What the streams of a connection share.
#[derive(Clone)]
pub struct SendQueue(Arc<Semaphore>);

/// Room for a part of a response.
pub struct QueuePlace {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

/// A part of a response, in the queue until it is dropped.
#[derive(Default)]
pub struct QueuedBytes {
    data: Bytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl SendQueue {
    pub fn new() -> SendQueue {
        SendQueue(Arc::new(Semaphore::new(QUEUE_BYTES)))
    }

    /// Waits for room for up to `bytes`, and at most a frame. Streams take turns in the order of their calls.
    pub async fn place(&self, bytes: usize) -> QueuePlace {
        let bytes = bytes.min(PART_BYTES);
        // The semaphore is never closed, and the cast is of at most its size.
        let permit = self.0.clone().acquire_many_owned(bytes as u32).await.ok();
        QueuePlace { bytes, permit }
    }
}

impl QueuePlace {
    /// Moves as much of `data` into the queue as there is room for.
    pub fn put(self, data: &mut Bytes) -> QueuedBytes {
        QueuedBytes { data: data.split_to(self.bytes.min(data.len())), _place: self.permit }
    }
}

impl Buf for QueuedBytes {
    fn remaining(&self) -> usize {
        self.data.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.data.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.data.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_place_is_free_when_its_bytes_are_written_or_dropped() {
        let queue = SendQueue::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mut data = Bytes::from(vec![7; 2 * QUEUE_BYTES]);
        let mut queued = Vec::new();
        while let Poll::Ready(place) = pin!(queue.place(data.len())).poll(&mut cx) {
            queued.push(place.put(&mut data));
        }
        assert_eq!((queued.len(), data.len()), (QUEUE_BYTES / PART_BYTES, QUEUE_BYTES));
        let mut next = pin!(queue.place(1));
        assert!(next.as_mut().poll(&mut cx).is_pending());
        // The library has written a part of it, and still holds the whole.
        queued[0].advance(PART_BYTES / 2);
        assert!(next.as_mut().poll(&mut cx).is_pending());
        queued.remove(0);
        assert!(next.as_mut().poll(&mut cx).is_ready());
    }
}
