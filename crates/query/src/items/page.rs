//! One page of events: its limits, and the start of the next page, independent of the source.

use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::items::{Items, Order};

/// The limits and progress of a page.
pub(crate) struct Page {
    limit: Option<usize>,
    /// Max number of events over all pages, if the order has a limit.
    k: Option<u64>,
    /// Events returned on this page.
    given: usize,
    /// Events returned on earlier pages, if the order counts them.
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

    /// Events returned so far on this page.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    /// Events that may still be returned on this page and in this order.
    pub(crate) fn room(&self) -> usize {
        let page = self.limit.map_or(usize::MAX, |limit| limit - self.given);
        page.min(self.left_of_k())
    }

    /// The same plus one, which shows whether a next page exists.
    pub(crate) fn room_and_next(&self) -> usize {
        let page = self.limit.map_or(usize::MAX, |limit| (limit - self.given).saturating_add(1));
        page.min(self.left_of_k())
    }

    fn left_of_k(&self) -> usize {
        let left = |k: u64| k.saturating_sub(self.given_before.saturating_add(self.given as u64));
        self.k.map_or(usize::MAX, |k| left(k) as usize)
    }

    /// Counts returned events; reports whether the page is full with them.
    pub(crate) fn take(&mut self, events: usize) -> bool {
        self.given += events;
        self.limit == Some(self.given)
    }

    /// Stores the cursor of the last event of a full page.
    pub(crate) fn ends_with(&mut self, mut last: Cursor) {
        if let Cursor::Near { given, .. } = &mut last {
            *given = self.given_before.saturating_add(self.given as u64);
        }
        self.last = Some(last);
    }

    /// Determines whether a next page exists; `more` checks for a further event.
    ///
    /// If time runs out during that check, a next page is announced, so that the computed page is not lost.
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

    /// Number of matches over all pages, given `matched` in all.
    pub(crate) fn at_most(&self, matched: u64) -> u64 {
        self.k.map_or(matched, |k| matched.min(k))
    }

    /// Start of the next page, once known.
    pub(crate) fn next(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }
}
