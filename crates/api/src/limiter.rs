//! Bounds how many requests run at once.
//!
//! A bounded number of requests runs. A short queue waits, each request for a bounded time. The rest is refused at
//! once with 503: refusing early keeps an overloaded server at its full throughput.

use crate::problem::{Kind, Problem, Result};
use axum::http::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Duration, Instant};

/// Gives out permits to run. Clones share them.
#[derive(Debug, Clone)]
pub struct Limiter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    permits: Semaphore,
    running_max: usize,
    waiting: AtomicUsize,
    waiting_max: usize,
    wait_max: Duration,
    refused: AtomicU64,
}

/// A permit to run; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.0.permits.add_permits(1);
    }
}

impl Permit {
    /// Gives the permit back; returns the limiter, to ask for another.
    pub fn release(self) -> Limiter {
        self.limiter.clone()
    }
}

impl Limiter {
    /// A limiter of `running_max` permits and a queue of `waiting_max` requests, each waiting at most `wait_max`.
    pub fn new(running_max: usize, waiting_max: usize, wait_max: Duration) -> Limiter {
        let running_max = running_max.clamp(1, Semaphore::MAX_PERMITS);
        Limiter(Arc::new(Inner {
            permits: Semaphore::new(running_max),
            running_max,
            waiting: AtomicUsize::new(0),
            waiting_max,
            wait_max,
            refused: AtomicU64::new(0),
        }))
    }

    /// A permit, if one is free.
    pub fn try_admit(&self) -> Option<Permit> {
        self.0.permits.try_acquire().ok().map(|permit| self.permit(permit))
    }

    /// Waits for a permit, but not past `deadline`; refuses when the queue is full or the wait too long.
    pub async fn admit(&self, deadline: Instant) -> Result<Permit> {
        if let Some(permit) = self.try_admit() {
            return Ok(permit);
        }
        // The queue is short on purpose: a request that waits for long is given up by its client, and would then run
        // for nobody.
        let Some(_slot) = QueueSlot::take(&self.0.waiting, self.0.waiting_max) else {
            return Err(self.refuse("the queue is full"));
        };
        let until = deadline.min(Instant::now() + self.0.wait_max);
        match tokio::time::timeout_at(until, self.0.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(self.permit(permit)),
            _ => Err(self.refuse("no permit came free in time")),
        }
    }

    /// Waits for a permit for work that was admitted before and gave its permit back. It queues behind the requests
    /// that already wait, and does not count against `waiting_max`: work in progress is never refused for a full
    /// queue.
    pub async fn readmit(&self, deadline: Instant) -> Result<Permit> {
        match tokio::time::timeout_at(deadline, self.0.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(self.permit(permit)),
            _ => Err(self.refuse("no permit came free in time")),
        }
    }

    /// Requests running now.
    pub fn running(&self) -> usize {
        self.0.running_max - self.0.permits.available_permits()
    }

    /// Requests waiting now.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Requests refused since the start.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Ties a permit to the [`Permit`], which outlives this borrow of the semaphore.
    fn permit(&self, permit: SemaphorePermit<'_>) -> Permit {
        permit.forget();
        Permit { limiter: self.clone() }
    }

    fn refuse(&self, why: &str) -> Problem {
        let running_max = self.0.running_max;
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        overloaded(format!("the server runs {running_max} requests, its limit, and {why}: try again"), running_max)
    }
}

/// The refusal of an overloaded server, with the headers of draft-ietf-httpapi-ratelimit-headers.
pub fn overloaded(detail: String, quota: usize) -> Problem {
    const RETRY: Duration = Duration::from_secs(1);
    let policy = format!("\"running\";q={quota};qu=\"concurrent-requests\"");
    let mut problem = Problem::new(Kind::Overloaded, detail)
        .retry_after(RETRY)
        .header(HeaderName::from_static("ratelimit"), HeaderValue::from_static("\"running\";r=0;t=1"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        problem = problem.header(HeaderName::from_static("ratelimit-policy"), policy);
    }
    problem
}

/// A slot in the queue of waiting requests, freed when dropped.
struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    fn take(count: &'a AtomicUsize, max: usize) -> Option<QueueSlot<'a>> {
        count
            // One atomic step: with a check and an increment apart, a burst of requests would overfill the queue.
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < max).then_some(n + 1))
            .ok()
            .map(|_| QueueSlot(count))
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn a_request_that_neither_runs_nor_waits_is_refused() {
        let limiter = Arc::new(Limiter::new(1, 1, Duration::from_secs(60)));
        let running = limiter.admit(soon()).await.unwrap();
        let second = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.admit(soon()).await.map(drop) }
        });
        while limiter.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        let refusal = limiter.admit(soon()).await.unwrap_err();
        assert_eq!(refusal.kind(), Kind::Overloaded);
        assert_eq!((limiter.running(), limiter.refused()), (1, 1));
        drop(running);
        second.await.unwrap().unwrap();
        assert_eq!((limiter.running(), limiter.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_deadline_and_leaves_the_queue() {
        let limiter = Limiter::new(1, 8, Duration::from_secs(60));
        let _running = limiter.admit(soon()).await.unwrap();
        assert!(limiter.admit(Instant::now()).await.is_err());
        assert_eq!(limiter.waiting(), 0);
    }
}
