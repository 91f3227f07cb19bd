//! Limits on the calls to a source: a circuit breaker, a rate limit, a cost budget and a retry budget.
//!
//! The current time is a parameter, so that tests need not wait.

use std::collections::VecDeque;
use tokio::time::{Duration, Instant};

/// Whether a call to a source is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Allowed.
    Open,
    /// Allowed after this wait: the rate limit.
    Wait(Duration),
    /// The circuit breaker is open for this long.
    BreakerOpen(Duration),
    /// The cost budget of the day is spent.
    BudgetSpent,
}

/// The limits of a source, from its declaration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Max calls per second; 0 for no limit.
    pub rate: f64,
    /// Cost of a call, in a unit of the operator's choice.
    pub cost: f64,
    /// Max cost in 24 hours; 0 for no limit.
    pub budget: f64,
    /// Consecutive failures that open the breaker; 0 disables it.
    pub failures: u32,
    /// How long the breaker stays open. Doubled on each failed probe, up to 32 times.
    pub open: Duration,
}

/// Retries earned per call.
const RETRY_SHARE: f64 = 0.1;
/// Max retries saved up.
const RETRIES_SAVED: f64 = 3.0;
const DAY: Duration = Duration::from_secs(86_400);

/// The recent health of a source.
#[derive(Debug)]
pub struct Health {
    limits: Limits,
    tokens: f64,
    filled: Instant,
    /// (start, cost) of each hour, at most 25 of them.
    spent: VecDeque<(Instant, f64)>,
    retries: f64,
    failed: u32,
    opened: u32,
    open_until: Option<Instant>,
    /// When the probe of a half-open breaker began, if one is in progress.
    probe_since: Option<Instant>,
}

impl Health {
    /// Creates a source without history.
    pub fn new(limits: Limits, now: Instant) -> Health {
        let tokens = limits.rate.max(1.0);
        let (spent, open_until) = (VecDeque::new(), None);
        Health {
            limits,
            tokens,
            filled: now,
            spent,
            retries: RETRIES_SAVED,
            failed: 0,
            opened: 0,
            open_until,
            probe_since: None,
        }
    }

    /// Requests permission for one call. After [`Gate::Open`], the caller makes the call and records its outcome.
    pub fn ask(&mut self, now: Instant) -> Gate {
        if let Some(until) = self.open_until {
            // The outcome of an abandoned probe is never recorded, so another probe is allowed after the breaker's
            // time.
            let probe_since =
                self.probe_since.is_some_and(|since| now.saturating_duration_since(since) < self.limits.open);
            if now < until || probe_since {
                return Gate::BreakerOpen(until.saturating_duration_since(now).max(Duration::from_millis(1)));
            }
        }
        if self.limits.budget > 0.0 && self.spent_today(now) + self.limits.cost > self.limits.budget {
            return Gate::BudgetSpent;
        }
        if self.limits.rate > 0.0 {
            let since = now.saturating_duration_since(self.filled).as_secs_f64();
            self.tokens = (self.tokens + since * self.limits.rate).min(self.limits.rate.max(1.0));
            self.filled = now;
            if self.tokens < 1.0 {
                return Gate::Wait(Duration::from_secs_f64((1.0 - self.tokens) / self.limits.rate));
            }
            self.tokens -= 1.0;
        }
        // Half-open: this call is the probe, and no other is allowed until it ends.
        if self.open_until.is_some() {
            self.probe_since = Some(now);
        }
        // Each call earns a fraction of a retry, so that retries cannot multiply the load on a failing source.
        self.retries = (self.retries + RETRY_SHARE).min(RETRIES_SAVED);
        if self.limits.cost > 0.0 {
            match self.spent.back_mut() {
                Some((since, cost)) if now.saturating_duration_since(*since) < DAY / 24 => *cost += self.limits.cost,
                _ => self.spent.push_back((now, self.limits.cost)),
            }
        }
        Gate::Open
    }

    /// Records a success.
    pub fn succeeded(&mut self) {
        // One success closes the breaker and forgets how often it was open.
        (self.failed, self.opened, self.open_until, self.probe_since) = (0, 0, None, None);
    }

    /// Records a failure.
    pub fn failed(&mut self, now: Instant) {
        self.failed += 1;
        let tried = self.probe_since.take().is_some();
        // A failed probe opens the breaker at once, for twice as long.
        if self.limits.failures > 0 && (self.failed >= self.limits.failures || tried) {
            self.open_until = Some(now + self.limits.open * (1 << self.opened.min(5)));
            self.opened += 1;
            self.failed = 0;
        }
    }

    /// Returns whether a failed call may be retried.
    pub fn may_retry(&mut self) -> bool {
        let may = self.retries >= 1.0;
        if may {
            self.retries -= 1.0;
        }
        may
    }

    /// Returns the cost of the last 24 hours.
    pub fn spent_today(&mut self, now: Instant) -> f64 {
        while self.spent.front().is_some_and(|(since, _)| now.saturating_duration_since(*since) >= DAY) {
            self.spent.pop_front();
        }
        self.spent.iter().map(|(_, cost)| cost).sum()
    }

    /// Returns `closed`, `open` or `half-open`.
    pub fn breaker(&self, now: Instant) -> &'static str {
        match self.open_until {
            None => "closed",
            Some(until) if now < until => "open",
            Some(_) => "half-open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health(limits: Limits) -> (Health, Instant) {
        let now = Instant::now();
        (Health::new(limits, now), now)
    }

    const FREE: Limits = Limits { rate: 0.0, cost: 0.0, budget: 0.0, failures: 3, open: Duration::from_secs(10) };

    #[test]
    fn the_breaker_opens_lets_one_try_and_closes() {
        let (mut health, start) = health(FREE);
        for _ in 0..3 {
            assert_eq!(health.ask(start), Gate::Open);
            health.failed(start);
        }
        assert_eq!((health.ask(start), health.breaker(start)), (Gate::BreakerOpen(10 * SECOND), "open"));
        let later = start + 10 * SECOND;
        assert_eq!((health.ask(later), health.breaker(later)), (Gate::Open, "half-open"));
        assert!(matches!(health.ask(later), Gate::BreakerOpen(_)), "only one tries");
        health.failed(later);
        assert_eq!(health.ask(later), Gate::BreakerOpen(20 * SECOND), "twice as long");
        let later = later + 20 * SECOND;
        assert_eq!(health.ask(later), Gate::Open);
        health.succeeded();
        assert_eq!((health.ask(later), health.breaker(later)), (Gate::Open, "closed"));
    }

    #[test]
    fn a_trial_that_is_given_up_does_not_keep_the_breaker_open_for_good() {
        let (mut health, start) = health(FREE);
        (0..3).for_each(|_| health.failed(start));
        assert_eq!(health.ask(start + 10 * SECOND), Gate::Open);
        assert_eq!(health.ask(start + 21 * SECOND), Gate::Open);
    }

    #[test]
    fn rate_and_budget_hold() {
        let (mut rated, start) = health(Limits { rate: 10.0, ..FREE });
        let open = (0..1_000).filter(|n| rated.ask(start + Duration::from_millis(n * 10)) == Gate::Open).count();
        assert!((100..=111).contains(&open), "{open}");
        let (mut dear, start) = health(Limits { cost: 2.0, budget: 5.0, ..FREE });
        assert_eq!([0, 0, 0].map(|_| dear.ask(start)), [Gate::Open, Gate::Open, Gate::BudgetSpent]);
        assert_eq!(dear.ask(start + DAY), Gate::Open);
    }

    #[test]
    fn retries_are_a_share_of_calls() {
        let (mut health, start) = health(FREE);
        let mut retries = 0;
        for _ in 0..1_000 {
            health.ask(start);
            retries += u32::from(health.may_retry());
        }
        assert!((95..=105).contains(&retries), "{retries}");
    }
}
