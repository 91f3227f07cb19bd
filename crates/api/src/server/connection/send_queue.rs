//! The bytes of responses that the HTTP/2 library holds for one connection.
//!
//! The library limits what it holds for a stream. A client with a hundred streams, large windows and a socket that it
//! does not read would have it hold that a hundred times. So the streams of a connection share one queue. A part of a
//! response takes a place before the library gets it. The place is free when the library has written or dropped it.

use axum::body::Bytes;
use bytes::Buf;
use meridian_admission::ByteShare;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Bytes of responses that wait for the socket of a connection.
pub const QUEUE_BYTES: usize = 64 << 10;
/// Max bytes of one part: a frame. A slow client with many streams has some of each before a stream counts as stalled.
const PART_BYTES: usize = 16 << 10;

/// What the streams of a connection share.
#[derive(Clone)]
pub struct SendQueue {
    places: Arc<Semaphore>,
    /// Held by the parts of a response that is watched.
    parts: Option<Arc<oneshot::Sender<()>>>,
    /// The memory of one stream, held by the parts of its response.
    memory: Option<Arc<ByteShare>>,
}

/// The parts of a response in the queue.
pub struct QueuedParts(oneshot::Receiver<()>);

/// Room for a part of a response.
pub struct QueuePlace {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
    parts: Option<Arc<oneshot::Sender<()>>>,
    memory: Option<Arc<ByteShare>>,
}

/// A part of a response, in the queue until it is dropped.
#[derive(Default)]
pub struct QueuedBytes {
    data: Bytes,
    _place: Option<OwnedSemaphorePermit>,
    _parts: Option<Arc<oneshot::Sender<()>>>,
    _memory: Option<Arc<ByteShare>>,
}

impl SendQueue {
    pub fn new() -> SendQueue {
        SendQueue { places: Arc::new(Semaphore::new(QUEUE_BYTES)), parts: None, memory: None }
    }

    /// Returns the same queue for one stream, whose memory is held until the last part of its response is gone.
    pub fn holding(&self, memory: ByteShare) -> SendQueue {
        SendQueue { memory: Some(Arc::new(memory)), ..self.clone() }
    }

    /// Returns the same queue for one response, and its parts there.
    pub fn watched(&self) -> (SendQueue, QueuedParts) {
        let (parts, gone) = oneshot::channel();
        (SendQueue { parts: Some(Arc::new(parts)), ..self.clone() }, QueuedParts(gone))
    }

    /// Waits for room for up to `bytes`, and at most a frame. Streams take turns in the order of their calls.
    pub async fn place(&self, bytes: usize) -> QueuePlace {
        let bytes = bytes.min(PART_BYTES);
        // The semaphore is never closed, and the cast is of at most its size.
        let permit = self.places.clone().acquire_many_owned(bytes as u32).await.ok();
        QueuePlace { bytes, permit, parts: self.parts.clone(), memory: self.memory.clone() }
    }
}

impl QueuePlace {
    /// Moves as much of `data` into the queue as there is room for.
    pub fn put(self, data: &mut Bytes) -> QueuedBytes {
        let data = data.split_to(self.bytes.min(data.len()));
        QueuedBytes { data, _place: self.permit, _parts: self.parts, _memory: self.memory }
    }
}

impl QueuedParts {
    /// Waits until all of them are written or dropped, and the queue of their response is dropped. Call it again only if
    /// the wait was given up.
    pub async fn gone(&mut self) {
        // Nothing is sent: the last owner drops the sender.
        let _ = (&mut self.0).await;
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
    use futures_util::FutureExt;
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

    #[tokio::test]
    async fn the_parts_of_a_response_are_gone_when_the_last_is() {
        let queue = SendQueue::new();
        let (watched, mut parts) = queue.watched();
        let mut data = Bytes::from_static(b"abcdef");
        let (first, last) = (watched.place(3).await.put(&mut data), watched.place(3).await.put(&mut data));
        drop(watched);
        // That of another response.
        let other = queue.place(3).await.put(&mut Bytes::from_static(b"ghi"));
        drop(first);
        assert!(parts.gone().now_or_never().is_none());
        drop(last);
        assert!(parts.gone().now_or_never().is_some());
        drop(other);
    }
}
