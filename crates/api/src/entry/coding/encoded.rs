//! A body that is compressed while it is sent.

use super::Encoder;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use meridian_admission::ByteShare;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes compressed in one step; other responses on the same thread wait for it.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes compressed without output before other responses get a turn: an encoder collects whole blocks.
const TURN_BYTES: usize = 64 << 10;

/// A body that is compressed while it is sent. It holds one encoder and one chunk of the inner body.
///
/// Whenever the inner body has nothing more for now, everything before it is flushed, so that no event waits for the
/// next one.
pub struct EncodedBody {
    body: Body,
    /// `None` once the stream has ended.
    encoder: Option<Encoder>,
    /// Data not compressed yet.
    input: Bytes,
    /// Whether the encoder may be holding bytes back.
    holds: bool,
    charge: Charge,
    _memory: [ByteShare; 2],
}

/// Does work and charges its processor time to the responsible tenant.
pub type Charge = Box<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

impl EncodedBody {
    /// Wraps a body. `memory` is what the encoder takes of its budgets.
    pub fn new(body: Body, encoder: Encoder, memory: [ByteShare; 2], charge: Charge) -> EncodedBody {
        EncodedBody { body, encoder: Some(encoder), input: Bytes::new(), holds: false, charge, _memory: memory }
    }

    /// Runs a step of the encoder.
    fn step(&mut self, step: impl FnOnce(&mut Encoder) -> io::Result<Vec<u8>>) -> Result<Vec<u8>, axum::Error> {
        let Some(encoder) = &mut self.encoder else { return Ok(Vec::new()) };
        charged(&self.charge, || step(encoder)).map_err(axum::Error::new)
    }

    fn broken(&mut self, error: axum::Error) -> PolledFrame {
        self.encoder = None;
        Poll::Ready(Some(Err(error)))
    }
}

fn charged<T>(charge: &Charge, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (mut work, mut outcome) = (Some(work), None);
    charge(&mut || outcome = work.take().map(|work| work()));
    outcome.unwrap_or_else(|| Err(io::Error::other("the work was not done")))
}

/// Compresses a whole response; `None` if that fails.
pub fn whole(mut encoder: Encoder, bytes: &[u8], charge: &Charge) -> Option<Vec<u8>> {
    let coded = charged(charge, || {
        let mut coded = encoder.write(bytes)?;
        coded.extend(encoder.finish()?);
        Ok(coded)
    });
    coded.ok()
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

impl HttpBody for EncodedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let chunk = |bytes: Vec<u8>| Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
        let mut taken = 0;
        while self.encoder.is_some() {
            if !self.input.is_empty() {
                if taken >= TURN_BYTES {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let bytes = self.input.len().min(PIECE_BYTES);
                let piece = self.input.split_to(bytes);
                (taken, self.holds) = (taken + bytes, true);
                match self.step(|encoder| encoder.write(&piece)) {
                    Ok(ready) if ready.is_empty() => continue,
                    Ok(ready) => return chunk(ready),
                    Err(error) => return self.broken(error),
                }
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                // Other frames are trailers, which this server's bodies do not have.
                Poll::Ready(Some(Ok(frame))) => self.input = frame.into_data().unwrap_or_default(),
                // The coding is not finished: a client must see that the response is incomplete.
                Poll::Ready(Some(Err(error))) => return self.broken(error),
                Poll::Ready(None) => {
                    let Some(encoder) = self.encoder.take() else { break };
                    return match charged(&self.charge, || encoder.finish()) {
                        Ok(last) if last.is_empty() => Poll::Ready(None),
                        Ok(last) => chunk(last),
                        Err(error) => Poll::Ready(Some(Err(axum::Error::new(error)))),
                    };
                }
                Poll::Pending if self.holds => {
                    self.holds = false;
                    match self.step(Encoder::flush) {
                        // The inner body will wake this task.
                        Ok(ready) if ready.is_empty() => return Poll::Pending,
                        Ok(ready) => return chunk(ready),
                        Err(error) => return self.broken(error),
                    }
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}

/// A body that fails at once.
pub struct FailedBody(pub Option<axum::Error>);

impl HttpBody for FailedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> PolledFrame {
        Poll::Ready(self.0.take().map(Err))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Coding;
    use super::*;
    use futures_util::stream;
    use meridian_admission::ByteBudget;
    use std::collections::VecDeque;
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Builds a body with these parts that is pending once after each.
    fn pausing(parts: &[&str], breaks: bool) -> Body {
        let mut parts: VecDeque<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        let mut pauses = false;
        Body::from_stream(stream::poll_fn(move |cx| {
            pauses = !pauses;
            if !pauses {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match parts.pop_front() {
                None if breaks => Poll::Ready(Some(Err(io::Error::other("broken")))),
                part => Poll::Ready(part.map(Ok)),
            }
        }))
    }

    fn encoded(body: Body, coding: Coding) -> (EncodedBody, ByteBudget, Arc<AtomicUsize>) {
        let (budget, work) = (ByteBudget::new(1 << 20), Arc::new(AtomicUsize::new(0)));
        let counted = work.clone();
        let charge: Charge = Box::new(move |work| {
            counted.fetch_add(1, Ordering::Relaxed);
            work();
        });
        let share = [budget.try_take(500).unwrap(), budget.try_take(500).unwrap()];
        (EncodedBody::new(body, Encoder::new(coding).unwrap(), share, charge), budget, work)
    }

    async fn next(body: &mut EncodedBody) -> Option<Result<Vec<u8>, axum::Error>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default().to_vec()))
    }

    #[tokio::test]
    async fn what_the_body_has_is_readable_before_it_has_more() {
        let (mut body, budget, work) = encoded(pausing(&["one\n", "two\n"], false), Coding::Gzip);
        let mut coded = Vec::new();
        for expected in ["one\n", "one\ntwo\n"] {
            // The output for the first part is complete before the second part is read.
            while let Some(Ok(bytes)) = next(&mut body).await {
                coded.extend(bytes);
                let (mut out, mut decoder) = ([0; 64], flate2::read::GzDecoder::new(&coded[..]));
                if decoder.read(&mut out).is_ok_and(|n| &out[..n] == expected.as_bytes()) {
                    break;
                }
            }
            assert!(!body.is_end_stream(), "{expected:?} was held back to the end");
        }
        while let Some(Ok(bytes)) = next(&mut body).await {
            coded.extend(bytes);
        }
        let mut text = String::new();
        flate2::read::GzDecoder::new(&coded[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
        assert!(body.is_end_stream() && work.load(Ordering::Relaxed) >= 5, "each step is charged");
        assert_eq!(budget.held(), 1000);
        drop(body);
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_never_looks_complete() {
        for coding in Coding::ALL {
            let (mut body, ..) = encoded(pausing(&["one\n"], true), coding);
            let mut last = None;
            while let Some(one) = next(&mut body).await {
                last = Some(one);
            }
            assert!(last.unwrap().is_err(), "{coding:?}");
        }
    }
}
