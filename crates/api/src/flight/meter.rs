//! Meters the messages of a call as they arrive: their share of the memory for bodies, and their min speed.
//!
//! The gRPC library collects a whole message before it hands it over. Meanwhile the bytes of large messages are charged
//! here to the budget of request bodies, until the reader releases the message. The library keeps the memory of the
//! largest message for later ones, so the largest stays charged until the call ends.

use super::status;
use crate::config::ServerConfig;
use axum::BoxError;
use axum::body::HttpBody;
use bytes::{Buf, Bytes};
use hyper::body::Frame;
use meridian_admission::{ByteBudget, ByteShare};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Duration, Instant, Sleep, sleep};
use tonic::Status;

/// Bytes before each gRPC message: a flag and its length.
const PREFIX_BYTES: usize = 5;
/// Max bytes of all messages of a call that does not write.
const SMALL_BYTES_MAX: usize = 256 << 10;

/// The messages of one call. Clones share the count.
#[derive(Clone)]
pub struct Meter(Arc<Mutex<Counts>>);

struct Counts {
    limits: Limits,
    share: ByteShare,
    /// Bytes that have arrived and are not released yet.
    waiting: usize,
    /// Bytes of the largest message so far.
    largest: usize,
    /// Sizes of the complete messages that are not released yet, oldest first.
    complete: VecDeque<usize>,
    prefix: [u8; PREFIX_BYTES],
    have: usize,
    /// Bytes of the current message that have arrived, and that are still to come.
    current: usize,
    left: usize,
    /// When the current message began, and when data last arrived.
    begun: Instant,
    last: Instant,
}

struct Limits {
    stall: Duration,
    grace: Duration,
    rate_min: u64,
}

impl Meter {
    /// Creates a meter that charges this budget.
    pub fn new(config: &ServerConfig, budget: ByteBudget) -> Meter {
        let limits = Limits { stall: config.body_stall, grace: config.body_grace, rate_min: config.body_rate_min };
        let now = Instant::now();
        Meter(Arc::new(Mutex::new(Counts {
            limits,
            share: budget.empty(),
            waiting: 0,
            largest: 0,
            complete: VecDeque::new(),
            prefix: [0; PREFIX_BYTES],
            have: 0,
            current: 0,
            left: 0,
            begun: now,
            last: now,
        })))
    }

    /// Releases the first message that is still held.
    pub fn release(&self) {
        let mut counts = self.0.lock();
        if let Some(bytes) = counts.complete.pop_front() {
            counts.waiting -= bytes;
            // The library keeps a buffer as large as the largest message, so that much stays charged.
            let kept = counts.waiting.max(counts.largest);
            let less = counts.share.bytes().saturating_sub(kept);
            counts.share.shrink(less);
        }
    }

    /// Restarts the client's clock: until now the server was not reading the message in transit, so that time is not
    /// the client's.
    pub fn resume(&self) {
        let mut counts = self.0.lock();
        counts.begun = Instant::now();
        counts.last = counts.begun;
    }

    /// Checks the speed of a message in transit. Between two messages a client may pause.
    ///
    /// # Errors
    /// `DEADLINE_EXCEEDED`
    pub fn check(&self) -> Result<(), Status> {
        let counts = self.0.lock();
        if counts.current == 0 {
            return Ok(());
        }
        let (Limits { stall, grace, rate_min }, taken) = (&counts.limits, counts.begun.elapsed());
        if counts.last.elapsed() > *stall {
            return Err(Status::deadline_exceeded(format!("the message arrived too slowly: nothing for {stall:?}")));
        }
        let bytes_min = *rate_min as f64 * taken.as_secs_f64();
        if taken > *grace && (counts.current as f64) < bytes_min {
            return Err(Status::deadline_exceeded(format!(
                "the message arrived too slowly: at least {rate_min} bytes a second are required"
            )));
        }
        Ok(())
    }
}

impl Counts {
    /// Counts arriving data; returns false if there is no memory for it.
    fn arrive(&mut self, mut data: &[u8]) -> bool {
        let waiting = self.waiting + data.len();
        if !self.share.try_grow(waiting) {
            return false;
        }
        self.waiting = waiting;
        self.last = Instant::now();
        while !data.is_empty() {
            if self.current == 0 {
                self.begun = self.last;
            }
            // The prefix may arrive in pieces. Its last four bytes are the length of the message.
            if self.have < PREFIX_BYTES {
                let taken = data.len().min(PREFIX_BYTES - self.have);
                self.prefix[self.have..self.have + taken].copy_from_slice(&data[..taken]);
                data.advance(taken);
                self.have += taken;
                self.current += taken;
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length) as usize;
            }
            // Not `else`: the same data may end the prefix and go on, and an empty message is complete with its prefix.
            if self.have == PREFIX_BYTES {
                let taken = data.len().min(self.left);
                data.advance(taken);
                self.current += taken;
                self.left -= taken;
                if self.left == 0 {
                    self.largest = self.largest.max(self.current);
                    self.complete.push_back(std::mem::take(&mut self.current));
                    self.have = 0;
                }
            }
        }
        true
    }
}

/// A body whose messages are metered.
pub struct Metered<B> {
    body: Pin<Box<B>>,
    bound: Bound,
}

enum Bound {
    /// Charged as it arrives; its reader checks the speed.
    Large(Meter),
    /// A few bytes, until a deadline.
    Small { left: usize, until: Pin<Box<Sleep>> },
}

impl<B> Metered<B> {
    /// Wraps the body of a call that writes.
    pub fn large(body: B, meter: Meter) -> Metered<B> {
        Metered { body: Box::pin(body), bound: Bound::Large(meter) }
    }

    /// Wraps the body of any other call.
    pub fn small(body: B, config: &ServerConfig) -> Metered<B> {
        let until = Box::pin(sleep(config.body_stall));
        Metered { body: Box::pin(body), bound: Bound::Small { left: SMALL_BYTES_MAX, until } }
    }
}

impl<B> HttpBody for Metered<B>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Metered { body, bound } = &mut *self;
        let polled = body.as_mut().poll_frame(cx);
        let frame = match (polled, &mut *bound) {
            (Poll::Ready(frame), _) => frame,
            (Poll::Pending, Bound::Large(_)) => return Poll::Pending,
            (Poll::Pending, Bound::Small { until, .. }) => {
                // One deadline for the whole body: arriving data does not restart it.
                std::task::ready!(until.as_mut().poll(cx));
                let slow = Status::deadline_exceeded("the message arrived too slowly");
                return Poll::Ready(Some(Err(slow.into())));
            }
        };
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref(),
            _ => None,
        };
        if let Some(bytes) = bytes {
            let refusal = match bound {
                Bound::Large(meter) if !meter.0.lock().arrive(bytes) => Some(status::no_memory()),
                Bound::Small { left, .. } if bytes.len() > *left => Some(status::too_large(SMALL_BYTES_MAX)),
                Bound::Small { left, .. } => {
                    *left -= bytes.len();
                    None
                }
                Bound::Large(_) => None,
            };
            if let Some(refusal) = refusal {
                return Poll::Ready(Some(Err(refusal.into())));
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However messages arrive, each is held in full until it is released, and the largest until the call ends.
        #[test]
        fn each_message_is_held_until_it_is_released(
            sizes in prop::collection::vec(0..60usize, 1..6),
            cuts in prop::collection::vec(0..200usize, 0..8),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let _entered = runtime.enter();
            let budget = ByteBudget::new(1 << 20);
            let meter = Meter::new(&ServerConfig::default(), budget.clone());
            let mut bytes = Vec::new();
            for size in &sizes {
                bytes.push(0);
                bytes.extend(u32::try_from(*size).unwrap().to_be_bytes());
                bytes.extend(std::iter::repeat_n(7, *size));
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                prop_assert!(meter.0.lock().arrive(&bytes[from..cut]));
                from = cut;
                prop_assert_eq!(budget.held(), cut);
            }
            prop_assert_eq!(meter.0.lock().current, 0);
            let mut held = bytes.len();
            let largest = PREFIX_BYTES + sizes.iter().max().copied().unwrap_or_default();
            for size in sizes {
                meter.release();
                held -= size + PREFIX_BYTES;
                prop_assert_eq!(budget.held(), held.max(largest));
            }
            meter.release();
            prop_assert_eq!(budget.held(), largest);
            // Fits into the memory of the largest message, which the library keeps.
            prop_assert!(meter.0.lock().arrive(&[0]));
            prop_assert_eq!(budget.held(), largest);
            drop(meter);
            prop_assert_eq!(budget.held(), 0);
        }
    }

    #[test]
    fn a_message_without_room_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let meter = Meter::new(&ServerConfig::default(), ByteBudget::new(100));
        assert!(meter.0.lock().arrive(&[0; 60]));
        assert!(!meter.0.lock().arrive(&[0; 60]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_is_not_slow_while_the_server_takes_nothing() {
        let config = ServerConfig::default();
        let meter = Meter::new(&config, ByteBudget::new(100));
        assert!(meter.0.lock().arrive(&[0, 0, 0, 0, 60, 1]));
        tokio::time::advance(config.body_stall + Duration::from_secs(1)).await;
        assert!(meter.check().is_err(), "nothing arrived");
        meter.resume();
        assert!(meter.check().is_ok());
        tokio::time::advance(config.body_stall + Duration::from_secs(1)).await;
        assert!(meter.check().is_err());
    }
}
