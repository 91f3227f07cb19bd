//! The reading end of a pipe, as the body of an HTTP response.

use super::pipe::{BrokenOff, Pipe};
use crate::protocol::problem::Problem;
use crate::state::readers::Registration;
use axum::http::HeaderMap;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use meridian_query::CancelFlag;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The reading end: the body of a streamed response. Dropping it cancels the query.
pub(super) struct Reader {
    pipe: Arc<Pipe>,
    cancel: CancelFlag,
    /// Keeps the pipe registered as evictable.
    registration: Option<Registration>,
    /// Bytes not sent yet, if known.
    remaining: Option<u64>,
    /// Whether a break was seen, and held back once.
    breaking: bool,
    broken: bool,
}

impl Reader {
    pub(super) fn new(pipe: Arc<Pipe>, cancel: CancelFlag) -> Reader {
        Reader { pipe, cancel, registration: None, remaining: None, breaking: false, broken: false }
    }

    /// Waits for the head of the response, or for the error that replaces it.
    pub(super) async fn head(&self) -> Result<Box<HeaderMap>, Problem> {
        std::future::poll_fn(|cx| self.pipe.poll_head(cx)).await
    }

    /// Takes the entire response, if it is complete and at most one chunk.
    pub(super) fn take_complete(&self) -> Option<Bytes> {
        self.pipe.take_complete()
    }

    /// Attaches a registration to this reader.
    pub(super) fn registered(mut self, registration: Registration) -> Reader {
        self.registration = Some(registration);
        self
    }

    /// Declares the length of the response in bytes.
    pub(super) fn with_length(mut self, bytes: u64) -> Reader {
        self.remaining = Some(bytes);
        self
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Raised before the writer is notified, so that it finds the flag set and counts a departed client, not a
        // failure.
        self.cancel.cancel();
        self.pipe.disconnect();
    }
}

impl hyper::body::Body for Reader {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        // After an error the body has ended: the connection may poll it again.
        if self.broken {
            return Poll::Ready(None);
        }
        let chunk = ready!(self.pipe.poll_chunk(cx));
        match &chunk {
            Some(Ok(chunk)) => {
                self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(chunk.len() as u64))
            }
            // When a body fails, hyper discards what it has not written, including the head. A pending body lets it
            // write that first, so the client sees an interrupted response rather than none at all.
            Some(Err(_)) if !self.breaking => {
                self.breaking = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Some(Err(_)) => self.broken = true,
            None => {}
        }
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.broken || self.pipe.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipe::Wakeup;
    use super::*;
    use crate::protocol::problem::Kind;
    use hyper::body::Body;
    use meridian_admission::ByteBudget;

    fn chunk(length: usize) -> std::iter::Once<Bytes> {
        std::iter::once(Bytes::from(vec![b'x'; length]))
    }

    async fn next(reader: &mut Reader) -> Option<Result<Bytes, BrokenOff>> {
        std::future::poll_fn(|cx| Pin::new(&mut *reader).poll_frame(cx))
            .await
            .map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    fn pipe(capacity: usize) -> (Arc<Pipe>, Reader, CancelFlag) {
        let (pipe, flag) = (Arc::new(Pipe::new(capacity, ByteBudget::new(1 << 20))), CancelFlag::new());
        (pipe.clone(), Reader::new(pipe, flag.clone()), flag)
    }

    #[tokio::test]
    async fn a_writer_waits_until_half_is_taken() {
        let (pipe, mut reader, _) = pipe(100);
        pipe.put(Some(Box::default()), chunk(60), false).unwrap();
        assert!(!pipe.is_full());
        pipe.put(None, chunk(60), false).unwrap();
        assert!(pipe.is_full());
        reader.head().await.unwrap();
        let room = tokio::spawn({
            let pipe = pipe.clone();
            async move { pipe.room().await }
        });
        assert_eq!(next(&mut reader).await.unwrap().unwrap().len(), 60);
        assert!(!room.is_finished() && pipe.bytes() == 60);
        next(&mut reader).await.unwrap().unwrap();
        assert_eq!(room.await.unwrap(), Wakeup::Room);
        pipe.put(None, std::iter::empty(), true).unwrap();
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_cut_frees_the_bytes_at_once_and_never_looks_complete() {
        let (pipe, mut reader, _) = pipe(100);
        assert!(!pipe.cut(), "there is nothing to free");
        pipe.put(Some(Box::default()), chunk(200), true).unwrap();
        reader.head().await.unwrap();
        assert!(pipe.idle().is_some() && pipe.cut() && pipe.bytes() == 0);
        assert_eq!(pipe.room().await, Wakeup::Cut);
        assert!(next(&mut reader).await.unwrap().is_err());
        assert!(pipe.put(None, chunk(1), false).is_err());
    }

    #[tokio::test]
    async fn an_error_replaces_the_response_until_the_head_is_sent() {
        let (first, reader, _) = pipe(100);
        assert!(first.fail(Problem::new(Kind::Gone, "too old")).is_none());
        assert_eq!(reader.head().await.unwrap_err().kind(), Kind::Gone);
        let (second, reader, _) = pipe(100);
        second.put(Some(Box::default()), chunk(5), false).unwrap();
        assert!(second.fail(Problem::new(Kind::Gone, "too old")).is_none(), "the head was not taken yet");
        assert_eq!((reader.head().await.unwrap_err().kind(), second.bytes()), (Kind::Gone, 0));
        let (third, mut reader, _) = pipe(100);
        third.put(Some(Box::default()), chunk(5), false).unwrap();
        reader.head().await.unwrap();
        assert!(!third.has_ended());
        assert!(third.fail(Problem::new(Kind::Gone, "too old")).is_some());
        assert!(first.has_ended() && second.has_ended() && third.has_ended());
        next(&mut reader).await.unwrap().unwrap();
        assert!(next(&mut reader).await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_reader_that_disconnects_cancels_the_query() {
        let (pipe, reader, flag) = pipe(10);
        pipe.put(Some(Box::default()), chunk(50), false).unwrap();
        drop(reader);
        assert!(flag.is_cancelled() && pipe.put(None, chunk(1), false).is_err());
        assert_eq!(pipe.room().await, Wakeup::ReaderGone);
    }
}
