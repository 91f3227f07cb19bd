//! One page of events: its limits, and where the next page begins, whatever the events come from.

use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::items::{Items, Order};

/// The limits of a page and how far it has come.
pub(crate) struct Page {
    limit: Option<usize>,
    /// Max number of events over all pages, where the order has one.
    k: Option<u64>,
    /// Events given on this page.
    given: usize,
    /// Events that earlier pages gave, where the order counts them.
    given_before: u64,
    /// The page's last event, once the page is full.
    last: Option<Cursor>,
    next: Option<Cursor>,
}

impl Page {
    pub(crate) fn of(items: &Items) -> Page {
        let k = match items.order {
            Order::Near { k, .. } => k.map(|k| k as u64),
            _ => None,
        };
        let given_before = match items.after {
            Some(Cursor::Near { given, .. }) => given,
            _ => 0,
        };
        Page { limit: items.limit, k, given: 0, given_before, last: None, next: None }
    }

    /// Events given so far on this page.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    /// Events that may still be given on this page and in this order.
    pub(crate) fn room(&self) -> usize {
        let page = self.limit.map_or(usize::MAX, |limit| limit - self.given);
        page.min(self.left_of_k())
    }

    /// The same and one more, which shows whether a next page exists.
    pub(crate) fn room_and_next(&self) -> usize {
        let page = self.limit.map_or(usize::MAX, |limit| (limit - self.given).saturating_add(1));
        page.min(self.left_of_k())
    }

    fn left_of_k(&self) -> usize {
        let left = |k: u64| k.saturating_sub(self.given_before.saturating_add(self.given as u64));
        self.k.map_or(usize::MAX, |k| left(k) as usize)
    }

    /// Counts events that are given; says whether the page is full with them.
    pub(crate) fn take(&mut self, events: usize) -> bool {
        self.given += events;
        self.limit == Some(self.given)
    }

    /// Keeps the cursor of the last event of a full page.
    pub(crate) fn ends_with(&mut self, mut last: Cursor) {
        if let Cursor::Near { given, .. } = &mut last {
            *given = self.given_before.saturating_add(self.given as u64);
        }
        self.last = Some(last);
    }

    /// Finds out whether a next page begins after this one; `more` says whether there is a further event.
    ///
    /// If time runs out on that check, a next page is promised: the computed page is not lost.
    pub(crate) fn look_ahead(&mut self, more: impl FnOnce() -> Result<bool, QueryError>) -> Result<(), QueryError> {
        if self.left_of_k() == 0 || self.last.is_none() {
            return Ok(());
        }
        let more = match more() {
            Err(QueryError::Deadline) => true,
            found => found?,
        };
        if more {
            self.next = self.last.take();
        }
        Ok(())
    }

    /// How many events match over all pages, of `matched` in all.
    pub(crate) fn at_most(&self, matched: u64) -> u64 {
        self.k.map_or(matched, |k| matched.min(k))
    }

    /// Where the next page begins, once that is known.
    pub(crate) fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }
}
