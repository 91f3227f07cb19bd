//! One provider's part of a search: what came of its results, and how it ended, which is told when the last of it is dropped.

use crate::provider::{Fault, Provider};
use crate::search::{Search, State};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// One provider's part of a search.
pub struct Leg {
    /// The search.
    pub search: Arc<Search>,
    /// Who is asked.
    pub provider: Arc<dyn Provider>,
    outcome: Mutex<Option<Result<(), Fault>>>,
    lost: Mutex<Option<String>>,
    more: Mutex<Option<String>>,
    unreadable: AtomicUsize,
    results: Mutex<Results>,
    decided: Notify,
}

/// What became of the results that came.
#[derive(Debug, Default, Clone, Copy)]
struct Results {
    /// Of which it is not known yet whether they are sent.
    under_way: usize,
    accepted: usize,
}

impl Leg {
    pub(crate) fn new(search: Arc<Search>, provider: Arc<dyn Provider>) -> Leg {
        Leg {
            search,
            provider,
            outcome: Mutex::default(),
            lost: Mutex::default(),
            more: Mutex::default(),
            unreadable: AtomicUsize::new(0),
            results: Mutex::default(),
            decided: Notify::new(),
        }
    }

    /// Notes how asking ended.
    pub(crate) fn end(&self, outcome: Result<(), Fault>) {
        *self.outcome.lock() = Some(outcome);
    }

    /// Notes that something did not come through; the first reason is told.
    pub(crate) fn lose(&self, why: String) {
        self.lost.lock().get_or_insert(why);
        self.decided.notify_waiters();
    }

    /// Notes that there may be more than was asked for, and why.
    pub(crate) fn more(&self, why: String) {
        *self.more.lock() = Some(why);
    }

    /// Notes results that could not be read.
    pub(crate) fn unreadable(&self, results: usize) {
        self.unreadable.fetch_add(results, Ordering::Relaxed);
    }

    /// Notes results that go on their way.
    pub(crate) fn expect(&self, results: usize) {
        self.results.lock().under_way += results;
    }

    /// Notes that some of them do not answer the question.
    pub(crate) fn unmatched(&self, results: usize) {
        self.search.tally.unmatched.fetch_add(results as u64, Ordering::Relaxed);
        self.decide(results, 0);
    }

    /// Notes that of so many of them some are sent. The others were sent before, or are over the limit.
    pub(crate) fn accept(&self, of: usize, some: usize) {
        self.decide(of, some);
    }

    fn decide(&self, results: usize, accepted: usize) {
        let mut all = self.results.lock();
        all.under_way = all.under_way.saturating_sub(results);
        all.accepted += accepted;
        drop(all);
        self.decided.notify_waiters();
    }

    /// How many more may be sent: the limit counts what is, not what came.
    pub(crate) fn room(&self) -> usize {
        self.search.question.limit.saturating_sub(self.results.lock().accepted)
    }

    /// How many more results are wanted than those on their way; waits while that depends on what becomes of these. 0 where no
    /// more are wanted.
    pub(crate) async fn wanted(&self) -> usize {
        let limit = self.search.question.limit;
        loop {
            let mut decided = pin!(self.decided.notified());
            decided.as_mut().enable();
            let Results { under_way, accepted } = *self.results.lock();
            // What was lost is never decided.
            let is_lost = self.lost.lock().is_some();
            match limit.saturating_sub(accepted + under_way) {
                0 if accepted < limit && !is_lost => decided.await,
                wanted => return wanted,
            }
        }
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        let more = self.more.get_mut().take();
        let (state, detail) = match (self.lost.get_mut().take(), self.outcome.get_mut().take()) {
            (_, Some(Err(Fault::Error(why)))) => (State::Error, why),
            (_, Some(Err(Fault::Refused(why)))) => (State::Refused, why),
            (_, Some(Err(Fault::Timeout(why)))) => (State::Timeout, why),
            (Some(lost), _) => (State::Error, lost),
            (None, Some(Ok(()))) => {
                let unreadable = Some(self.unreadable.load(Ordering::Relaxed)).filter(|results| *results > 0);
                let unreadable = unreadable.map(|results| format!("{results} results could not be read"));
                let remarks: Vec<String> = unreadable.into_iter().chain(more.clone()).collect();
                (State::Complete, remarks.join("; "))
            }
            // It waited for its turn until the search was over.
            (None, None) => (State::Timeout, "it was not asked before the search was over".to_owned()),
        };
        self.search.tell(self.provider.name(), state, detail, more.is_some() && state == State::Complete);
    }
}
