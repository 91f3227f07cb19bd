//! Bounds the time in which a client must send a head, including its idle time before that.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Duration, Instant, Sleep};

/// A deadline that moves with each request.
///
/// Setting and cancelling a timer for each request would cost more than parsing its head. Instead one timer stays set
/// while the deadline moves on, and is reset if it fires too early.
pub struct HeadTimeout {
    limit: Duration,
    /// The wait in progress: its number, and when it began.
    wait: Option<(u32, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl HeadTimeout {
    /// Creates a timeout for waits of up to `limit`.
    pub fn new(limit: Duration) -> HeadTimeout {
        HeadTimeout { limit, wait: None, timer: None }
    }

    /// Continues the wait with this number, or begins it. Ready with an error once it has lasted too long.
    pub fn poll(&mut self, number: u32, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let since = match self.wait {
            Some((one, since)) if one == number => since,
            _ => Instant::now(),
        };
        self.wait = Some((number, since));
        let until = since + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        loop {
            ready!(timer.as_mut().poll(cx));
            // The timer was set for an earlier head.
            if timer.deadline() < until {
                timer.as_mut().reset(until);
                continue;
            }
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client sent no complete head in time",
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn waits(timeout: &mut HeadTimeout, number: u32, seconds: u64) -> bool {
        tokio::time::timeout(Duration::from_secs(seconds), poll_fn(|cx| timeout.poll(number, cx))).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn each_head_has_the_whole_time() {
        let (start, mut timeout) = (Instant::now(), HeadTimeout::new(Duration::from_secs(30)));
        for number in [0, 2, 4] {
            assert!(waits(&mut timeout, number, 20).await);
        }
        let ended = poll_fn(|cx| timeout.poll(6, cx)).await;
        assert_eq!((ended.unwrap_err().kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 90));
    }

    #[tokio::test(start_paused = true)]
    async fn parts_of_a_head_do_not_extend_it() {
        let (start, mut timeout) = (Instant::now(), HeadTimeout::new(Duration::from_secs(30)));
        assert!(waits(&mut timeout, 0, 14).await && waits(&mut timeout, 0, 14).await);
        assert!(!waits(&mut timeout, 0, 14).await);
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}
