//! Events that match, in an order, page by page or all at once.
//!
//! - **Natural order** is `(Key, Seq)`: the order of the collection's grid. It costs nothing, streams from the first
//!   block on, needs memory for only a few blocks, and is the same before and after compaction.
//! - **By distance** walks one best-first heap over all trees, or collects and sorts where that is cheaper; ties by
//!   sequence number.
//! - **By fields** keeps a bounded heap and so needs a limit; ties by sequence number, nulls last.
//!
//! Paging: the [`Cursor`] of a page's last event begins the next page, on the same snapshot. It is compared, not
//! looked up, so it may name an event that has meanwhile gone from the newest snapshot.

mod found;
mod page;

pub(crate) use found::EventFinder;
pub(crate) use page::Page;

use crate::control::{Control, Stats};
use crate::cursor::Cursor;
use crate::error::QueryError;
use crate::matched_rows::Pick;
use crate::natural::ENOUGH;
use crate::sort::SortKey;
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Invalid, Layout, Projection, Schema, Seq};
use meridian_store::Snapshot;

/// The order of events.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// By `(Key, Seq)`.
    Natural,
    /// By great-circle distance from a place in degrees, of shapes to their nearest point. Events without geometry
    /// are omitted.
    Near {
        /// Longitude in degrees.
        lon: f64,
        /// Latitude in degrees.
        lat: f64,
        /// Ends after this many events, over all pages.
        k: Option<usize>,
    },
    /// By fields; see [`SortKey`]. Rejected without a limit.
    Fields(Vec<SortKey>),
}

/// Max number of events of a result sorted by fields.
pub const SORTED_LIMIT_MAX: usize = 100_000;

/// A query for events.
#[derive(Debug, Clone)]
pub struct Items {
    /// The filter of events.
    pub predicate: Predicate,
    /// Their order.
    pub order: Order,
    /// Max number of events; `None` for all.
    pub limit: Option<usize>,
    /// Only events after this cursor, taken from [`Rows::next_page`] of an earlier page.
    pub after: Option<Cursor>,
    /// Only events up to and including this cursor; in natural order only. See [`crate::cuts()`].
    pub until: Option<Cursor>,
    /// The requested columns; see [`select`].
    pub projection: Projection,
}

impl Items {
    /// All events of a collection with all their columns, in natural order.
    pub fn all(schema: &Schema) -> Items {
        Items {
            predicate: Predicate::all(),
            order: Order::Natural,
            limit: None,
            after: None,
            until: None,
            projection: Projection::all(&Layout::of(schema)),
        }
    }
}

/// The columns of id, geometry and the named properties, or of all properties if `properties` is `None`.
pub fn select(schema: &Schema, properties: Option<&[&str]>) -> Result<Projection, Invalid> {
    let layout = Layout::of(schema);
    let Some(names) = properties else { return Ok(Projection::all(&layout)) };
    let mut projection = Projection::none(&layout);
    projection.add_id(&layout);
    projection.add_geometry(&layout);
    for name in names {
        match schema.field_index(name) {
            Some(field) => projection.add(layout.field(field)),
            None if *name == schema.geometry_name || *name == schema.id_name || *name == "id" => {}
            None => {
                return Err(Invalid::field("properties", format!("{name:?} is not a property of this collection")));
            }
        }
    }
    Ok(projection)
}

/// Some events of a result.
#[derive(Debug, Clone)]
pub struct Hits {
    /// The events, with the requested columns.
    pub batch: Batch,
    /// Their sequence numbers; [`Batch::id_of`] generates ids from them if none are given.
    pub seqs: Vec<Seq>,
    /// Their distances in metres, if ordered by distance.
    pub distances: Option<Vec<f64>>,
}

/// Events of the first batch: few, so that the first bytes leave early, but enough for a small result to leave in one
/// piece.
const FIRST_ROWS: usize = ENOUGH;
/// Events of a later batch.
const BATCH_ROWS: usize = 2048;
/// Target size of a batch of large events in bytes: it is held while it is encoded.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Number of large events in the first batch, whose size is not known yet.
pub(crate) const FEW_ROWS: usize = 16;

/// Events found and not read yet: all are found at once, and large ones are read a few at a time.
#[derive(Default)]
pub(crate) struct PendingRows {
    pub(crate) picks: Vec<Pick>,
    /// One per pick, if ordered by distance.
    pub(crate) distances: Vec<f64>,
}

impl PendingRows {
    /// Removes the first `events` of them.
    pub(crate) fn take(&mut self, events: usize) -> PendingRows {
        let picks = self.picks.split_off(events.min(self.picks.len()));
        let distances = self.distances.split_off(events.min(self.distances.len()));
        std::mem::replace(self, PendingRows { picks, distances })
    }

    pub(crate) fn held(&self) -> usize {
        self.picks.capacity() * size_of::<Pick>() + self.distances.capacity() * size_of::<f64>()
    }
}

/// The events of a page, found on demand: an iterator that blocks.
pub struct Rows {
    found: EventFinder,
    page: Page,
    ahead: PendingRows,
    /// Max number of events of the next batch.
    at_once: usize,
    /// The same for large events.
    few: usize,
    /// Whether the source is exhausted.
    over: bool,
    done: bool,
}

/// Runs a query for events of a snapshot.
///
/// Only plans the query (and sorts, if ordered by fields); blocks are read as the rows are iterated. After an error
/// the iterator ends.
pub fn items(snapshot: &Snapshot, items: &Items, control: &Control) -> Result<Rows, QueryError> {
    let found = EventFinder::new(snapshot, items, control)?;
    let (page, ahead) = (Page::of(items), PendingRows::default());
    Ok(Rows { found, page, ahead, at_once: BATCH_ROWS, few: FEW_ROWS, over: false, done: false })
}

impl Rows {
    /// The cost so far.
    pub fn stats(&self) -> Stats {
        self.found.stats()
    }

    /// Total number of matches over all pages, if it came for free.
    pub fn number_matched(&self) -> Option<u64> {
        self.found.number_matched()
    }

    /// Start of the next page, once the iterator has ended; `None` if there is no further event.
    ///
    /// One more event is searched for, so a page that ends with the last event has no next page. If the deadline
    /// passes during that search, a next page is announced to be safe.
    pub fn next_page(&self) -> Option<&Cursor> {
        self.page.next()
    }

    /// Whether the page is complete, as far as known without searching for more events.
    pub fn is_over(&self) -> bool {
        self.done || self.page.room() == 0
    }

    /// The snapshot being read.
    pub fn snapshot(&self) -> &Snapshot {
        self.found.snapshot()
    }

    /// Limits later batches to `events` events, for callers whose events are large.
    pub fn at_most(&mut self, events: usize) {
        self.at_once = events.clamp(1, BATCH_ROWS);
    }

    /// Drops everything that can be read again, before a wait of unknown length. Returns the bytes still held.
    pub fn rest(&mut self) -> usize {
        self.found.rest() + self.ahead.held()
    }

    /// Whether the events were collected before the first was returned.
    pub(crate) fn is_listed(&self) -> bool {
        self.found.is_listed()
    }

    fn batch(&mut self) -> Result<Option<Hits>, QueryError> {
        let room = self.page.room();
        if room == 0 {
            // Never find more ahead than the page has room for.
            let found = &mut self.found;
            // One more event shows whether a next page exists: a link to an empty page would be a false promise.
            self.page.look_ahead(|| Ok(!found.fill(1)?.0.is_empty()))?;
            return Ok(None);
        }
        if self.ahead.picks.is_empty() {
            let want = room.min(if self.page.given() == 0 { FIRST_ROWS.min(self.at_once) } else { self.at_once });
            let (picks, distances) = self.found.fill(want)?;
            // The source returns fewer only at its end, which saves a useless last call.
            self.over = picks.len() < want.min(ENOUGH);
            self.ahead = PendingRows { picks, distances };
        }
        let large = self.found.has_large(&self.ahead.picks);
        let PendingRows { picks, distances } = self.ahead.take(if large { self.few } else { usize::MAX });
        let Some(&last) = picks.last() else { return Ok(None) };
        let batch = self.found.read(&picks)?;
        if large {
            // Grow slowly and shrink at once: the next events may be larger.
            let fit = BATCH_BYTES * picks.len() / batch.bytes().max(1);
            self.few = fit.clamp(1, 4 * picks.len()).min(BATCH_ROWS);
        }
        if self.page.take(picks.len()) {
            self.page.ends_with(self.found.cursor_of(last, distances.last().copied().unwrap_or(0.0))?);
        }
        let distances = self.found.is_by_distance().then_some(distances);
        Ok(Some(Hits { batch, seqs: picks.iter().map(|p| p.seq).collect(), distances }))
    }
}

impl Iterator for Rows {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        // Maintenance yields again from here on: the consumer may have paused the query for minutes.
        let started = self.found.wake();
        let result = self.batch().transpose();
        self.found.worked_since(started);
        self.done = self.over && self.ahead.picks.is_empty() || !matches!(result, Some(Ok(_)));
        result
    }
}
