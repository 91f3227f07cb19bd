//! One provider's part of a search: what came of its results, and how it ended, which is told when the last of it is dropped.

use crate::provider::{Fault, Provider};
use crate::search::{Search, State};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// One provider's part of a search.
pub struct Leg {
    /// The search.
    pub search: Arc<Search>,
    /// Who is asked.
    pub provider: Arc<dyn Provider>,
    outcome: Mutex<Option<Result<(), Fault>>>,
    lost: Mutex<Option<String>>,
    /// What is to be said of it though it is complete.
    remarks: Mutex<Vec<String>>,
    more: AtomicBool,
    unreadable: AtomicUsize,
    results: Mutex<Results>,
    decided: Notify,
}

/// What became of the results that came.
#[derive(Debug, Default, Clone, Copy)]
struct Results {
    came: usize,
    /// Of which it is not known yet whether they are sent.
    under_way: usize,
    accepted: usize,
    unmatched: usize,
}

impl Leg {
    pub(crate) fn new(search: Arc<Search>, provider: Arc<dyn Provider>) -> Leg {
        Leg {
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
        self.remark(why);
        self.more.store(true, Ordering::Relaxed);
    }

    /// Notes a sentence that is told of it though it is complete.
    pub(crate) fn remark(&self, remark: String) {
        self.remarks.lock().push(remark);
    }

    /// Notes results that could not be read.
    pub(crate) fn unreadable(&self, results: usize) {
        self.unreadable.fetch_add(results, Ordering::Relaxed);
    }

    /// Notes results that go on their way.
    pub(crate) fn expect(&self, results: usize) {
        let mut all = self.results.lock();
        all.came += results;
        all.under_way += results;
    }

    /// Notes that some of them do not answer the question.
    pub(crate) fn unmatched(&self, results: usize) {
        self.search.tally.unmatched.fetch_add(results as u64, Ordering::Relaxed);
        self.decide(Results { under_way: results, unmatched: results, ..Results::default() });
    }

    /// Notes that of so many of them some are sent. The others were sent before, or are over the limit.
    pub(crate) fn accept(&self, of: usize, some: usize) {
        self.decide(Results { under_way: of, accepted: some, ..Results::default() });
    }

    /// Notes what became of results that were under way.
    fn decide(&self, now: Results) {
        let mut all = self.results.lock();
        all.under_way = all.under_way.saturating_sub(now.under_way);
        all.accepted += now.accepted;
        all.unmatched += now.unmatched;
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
        self.once(|all| match limit.saturating_sub(all.accepted + all.under_way) {
            0 if all.accepted < limit => None,
            wanted => Some(wanted),
        })
        .await
    }

    /// How many results came, where all were left out because they do not answer the question; waits until that is known.
    pub(crate) async fn all_unmatched(&self) -> Option<usize> {
        let known =
            |all: Results| (all.under_way == 0).then_some((all.came > 0 && all.unmatched == all.came, all.came));
        let (is_so, came) = self.once(known).await;
        is_so.then_some(came)
    }

    /// What is to be known of the results, once it is.
    async fn once<T>(&self, known: impl Fn(Results) -> Option<T>) -> T {
        loop {
            let mut decided = pin!(self.decided.notified());
            decided.as_mut().enable();
            let mut all = *self.results.lock();
            if self.lost.lock().is_some() {
                // It is never known what would have become of what was lost.
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
            // It waited for its turn until the search was over.
            (None, None) => (State::Timeout, "it was not asked before the search was over".to_owned()),
        };
        let more = *self.more.get_mut() && state == State::Complete;
        self.search.tell(self.provider.name(), state, detail, more);
    }
}
