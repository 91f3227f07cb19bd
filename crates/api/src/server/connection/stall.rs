//! Clients that read too slowly: the patience with one, and a byte stream whose writes fail once it ends.

use crate::state::AppState;
use crate::state::readers::Readers;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Duration, Instant, Sleep};

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;

/// How long a client may let its response wait. One that takes nothing ends it, and so does one below the min rate.
///
/// Bytes pay for waits at the min rate. A client may owe twice the longest single wait: a stream of events, which tells
/// its client the reason, gives up earlier.
pub struct Patience {
    /// Max time without a byte.
    stall: Duration,
    /// Bytes a second; 0 sets no limit.
    rate_min: u64,
    /// Time that the client may still owe.
    left: Duration,
}

impl Patience {
    /// Creates the patience with a client of which nothing is known.
    pub fn new(stall: Duration, rate_min: u64) -> Patience {
        Patience { stall, rate_min, left: stall.saturating_mul(2) }
    }

    /// Returns the max time of a wait for the next byte.
    pub fn wait_max(&self) -> Duration {
        self.left.min(self.stall)
    }

    /// Records that the client took some bytes after a wait.
    pub fn took(&mut self, bytes: usize, waited: Duration) {
        let paid = (bytes as u64).saturating_mul(NANOS).checked_div(self.rate_min);
        let paid = paid.map_or(Duration::MAX, Duration::from_nanos);
        self.left = self.left.saturating_sub(waited).saturating_add(paid).min(self.stall.saturating_mul(2));
    }
}

/// The lowest layer of a connection, over TCP or a socket of the file system.
pub struct StallTimeout<S> {
    stream: S,
    patience: Patience,
    readers: Readers,
    /// Set while a write waits, with the beginning of the wait.
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> StallTimeout<S> {
    /// Creates a stream whose writes wait as long as the operator's settings allow.
    pub fn new(stream: S, state: &AppState) -> StallTimeout<S> {
        let patience = Patience::new(state.config.write_stall, state.config.answer_rate_min);
        StallTimeout { stream, patience, readers: state.readers.clone(), timer: None }
    }

    fn bounded(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = outcome {
            let waited = self.timer.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            if let Ok(bytes) = &outcome {
                self.patience.took(*bytes, waited);
            }
            return Poll::Ready(outcome);
        }
        let wait_max = self.patience.wait_max();
        let (_, timer) = self.timer.get_or_insert_with(|| {
            let since = Instant::now();
            (since, Box::pin(tokio::time::sleep_until(since + wait_max)))
        });
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.timer = None;
                self.readers.count_slow();
                tracing::info!("a client was disconnected: it reads too slowly");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.bounded(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const STALL: Duration = Duration::from_secs(10);
    const RATE: usize = 1 << 10;
    const BODY: usize = 100 * RATE;

    /// Writes a body to a client that takes so many bytes every three seconds. Returns how that ends, and the number of
    /// clients that were too slow.
    async fn written(rate_min: usize, taken: usize) -> (io::Result<()>, u64) {
        // The socket holds a second of the min rate.
        let (mut client, stream) = duplex(RATE);
        let patience = Patience::new(STALL, rate_min as u64);
        let readers = Readers::default();
        let mut stream = StallTimeout { stream, patience, readers: readers.clone(), timer: None };
        let writing = async move { stream.write_all(&vec![7; BODY]).await };
        let reading = async move {
            let mut some = vec![0; taken];
            loop {
                tokio::time::sleep(Duration::from_secs(3)).await;
                if client.read_exact(&mut some).await.is_err() {
                    return std::future::pending::<()>().await;
                }
            }
        };
        let ended = tokio::select! {
            ended = writing => ended,
            () = reading => unreachable!("it has no end"),
        };
        (ended, readers.slow())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_below_the_min_rate_is_let_go_however_often_it_takes_a_byte() {
        for taken in [1, 2 * RATE] {
            let (ended, slow) = written(RATE, taken).await;
            assert_eq!((ended.unwrap_err().kind(), slow), (io::ErrorKind::TimedOut, 1), "{taken}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_at_the_min_rate_gets_all_of_it() {
        for (rate_min, taken) in [(RATE, 3 * RATE), (0, RATE)] {
            let (ended, slow) = written(rate_min, taken).await;
            assert!(ended.is_ok() && slow == 0, "{rate_min}: {ended:?}");
        }
    }
}
