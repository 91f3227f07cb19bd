//! One provider's part of a search. It counts its results and reports how it ended when its last reference is dropped.

use super::{Fault, Provider};
use crate::search::{Search, State};
use meridian_observe::{Span, WorkContext};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// One provider's part of a search.
pub struct Leg {
    /// The search.
    pub search: Arc<Search>,
    /// The provider asked.
    pub provider: Arc<dyn Provider>,
    outcome: Mutex<Option<Result<(), Fault>>>,
    lost: Mutex<Option<String>>,
    /// Remarks reported with a complete state.
    remarks: Mutex<Vec<String>>,
    more: AtomicBool,
    unreadable: AtomicUsize,
    results: Mutex<Results>,
    decided: Notify,
    /// The request or trace that the work belongs to.
    pub(crate) current: WorkContext,
    span: Span,
}

/// Counts of the results received.
#[derive(Debug, Default, Clone, Copy)]
struct Results {
    came: usize,
    /// Results not yet counted as accepted, unmatched or duplicate.
    under_way: usize,
    accepted: usize,
    unmatched: usize,
}

impl Search {
    /// Registers a provider that is asked.
    pub(crate) fn begin(self: &Arc<Search>, provider: Arc<dyn Provider>) -> Arc<Leg> {
        self.register(provider.name());
        Arc::new(Leg::new(self.clone(), provider))
    }
}

impl Leg {
    pub(crate) fn new(search: Arc<Search>, provider: Arc<dyn Provider>) -> Leg {
        let mut span = search.current.span("leg");
        span.set("meridian.provider", Arc::<str>::from(provider.name()));
        Leg {
            current: span.within(search.current.clone()),
            span,
            search,
            provider,
            outcome: Mutex::default(),
            lost: Mutex::default(),
            remarks: Mutex::default(),
            more: AtomicBool::new(false),
            unreadable: AtomicUsize::new(0),
            results: Mutex::default(),
            decided: Notify::new(),
        }
    }

    /// Records how the request ended.
    pub(crate) fn end(&self, outcome: Result<(), Fault>) {
        *self.outcome.lock() = Some(outcome);
    }

    /// Records a loss. The first reason is reported.
    pub(crate) fn lose(&self, why: String) {
        self.lost.lock().get_or_insert(why);
        self.decided.notify_waiters();
    }

    /// Records that the provider may have more results than requested, and why.
    pub(crate) fn more(&self, why: String) {
        self.remark(why);
        // Relaxed: it is read when the last reference is dropped, and the count of the `Arc` orders that after this.
        self.more.store(true, Ordering::Relaxed);
    }

    /// Records a remark that is reported even with a complete state.
    pub(crate) fn remark(&self, remark: String) {
        self.remarks.lock().push(remark);
    }

    /// Counts results that could not be read.
    pub(crate) fn unreadable(&self, results: usize) {
        self.unreadable.fetch_add(results, Ordering::Relaxed);
    }

    /// Counts results that enter the pipeline.
    pub(crate) fn expect(&self, results: usize) {
        // One lock for all counts: with one atomic each, a waiter could find a result in two counts or in none.
        let mut all = self.results.lock();
        all.came += results;
        all.under_way += results;
    }

    /// Counts results that do not match the question.
    pub(crate) fn unmatched(&self, results: usize) {
        self.search.tally.unmatched.fetch_add(results as u64, Ordering::Relaxed);
        self.decide(Results { under_way: results, unmatched: results, ..Results::default() });
    }

    /// Records the outcome of `of` results: `some` of them are sent; the others are duplicates or over the limit.
    pub(crate) fn accept(&self, of: usize, some: usize) {
        self.decide(Results { under_way: of, accepted: some, ..Results::default() });
    }

    /// Moves results from pending to their outcome.
    fn decide(&self, now: Results) {
        let mut all = self.results.lock();
        // Saturating, so that a miscount may delay a page but never panics.
        all.under_way = all.under_way.saturating_sub(now.under_way);
        all.accepted += now.accepted;
        all.unmatched += now.unmatched;
        drop(all);
        // Notified after the lock is released, since a waiter reads the counts at once.
        self.decided.notify_waiters();
    }

    /// Returns how many more results may be sent. The limit counts sent results, not received ones.
    pub(crate) fn remaining(&self) -> usize {
        self.search.question.limit.saturating_sub(self.results.lock().accepted)
    }

    /// Returns how many more results are wanted beyond the pending ones; 0 means no more. Waits while that depends on
    /// the outcome of pending results.
    pub(crate) async fn wanted(&self) -> usize {
        let limit = self.search.question.limit;
        self.once(|all| match limit.saturating_sub(all.accepted + all.under_way) {
            0 if all.accepted < limit => None,
            wanted => Some(wanted),
        })
        .await
    }

    /// Returns the number of results received if none of them matched the question, else `None`. Waits until the
    /// outcome of all is known.
    pub(crate) async fn all_unmatched(&self) -> Option<usize> {
        let known =
            |all: Results| (all.under_way == 0).then_some((all.came > 0 && all.unmatched == all.came, all.came));
        let (is_so, came) = self.once(known).await;
        is_so.then_some(came)
    }

    /// Waits until `known` returns a value for the counts.
    async fn once<T>(&self, known: impl Fn(Results) -> Option<T>) -> T {
        loop {
            let mut decided = pin!(self.decided.notified());
            // Enabled before the counts are read, so that a change between the two is not missed.
            decided.as_mut().enable();
            let mut all = *self.results.lock();
            if self.lost.lock().is_some() {
                // The outcome of lost results is never recorded, so waiting for them would never end.
                all.under_way = 0;
            }
            if let Some(known) = known(all) {
                return known;
            }
            decided.await;
        }
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        // The provider's own error is more specific than a loss, and a loss overrides success.
        let (state, detail) = match (self.lost.get_mut().take(), self.outcome.get_mut().take()) {
            (_, Some(Err(Fault::Error(why)))) => (State::Error, why),
            (_, Some(Err(Fault::Refused(why)))) => (State::Refused, why),
            (_, Some(Err(Fault::Timeout(why)))) => (State::Timeout, why),
            (Some(lost), _) => (State::Error, lost),
            (None, Some(Ok(()))) => {
                let mut remarks = std::mem::take(self.remarks.get_mut());
                let unreadable = *self.unreadable.get_mut();
                if unreadable > 0 {
                    remarks.insert(0, format!("{unreadable} results could not be read"));
                }
                (State::Complete, remarks.join("; "))
            }
            // The work waited in a queue until the search ended.
            (None, None) => (State::Timeout, "the search ended before the provider was asked".to_owned()),
        };
        self.span.set("meridian.results", self.results.get_mut().accepted as u64);
        if matches!(state, State::Error | State::Timeout) {
            self.span.fail();
        }
        let more = *self.more.get_mut() && state == State::Complete;
        self.search.report(self.provider.name(), state, detail, more);
    }
}
