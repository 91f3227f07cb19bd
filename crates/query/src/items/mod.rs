//! Events that match, in an order, page by page or all at once.
//!
//! - **Natural order** is `(Key, Seq)`: the order of the collection's grid. It costs nothing, streams from the
//!   first block on, needs memory for a few blocks only, and is the same before and after compaction.
//! - **By distance** walks one best-first heap over all trees, or collects and sorts where that is cheaper;
//!   ties by sequence number.
//! - **By fields** keeps a bounded heap and so needs a limit; ties by sequence number, nulls last.
//!
//! Paging: the [`Place`] of a page's last event begins the next page, on the same snapshot. It is compared,
//! not looked up, so it may name an event that has meanwhile gone from the newest snapshot.

use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::listed::{self, Listed};
use crate::matched::Pick;
use crate::natural::{ENOUGH, Natural};
use crate::nearest::Nearest;
use crate::scan::Scan;
use crate::sort::{SortKey, Sorter};
use crate::token::Place;
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Invalid, Layout, Projection, Schema, Seq};
use meridian_store::Snapshot;

/// In which order events are given.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// By `(Key, Seq)`.
    Natural,
    /// By great-circle distance from a place in degrees, of shapes to their nearest point. Events without
    /// geometry are left out.
    Near {
        /// Longitude in degrees.
        lon: f64,
        /// Latitude in degrees.
        lat: f64,
        /// End after this many events, over all pages.
        k: Option<usize>,
    },
    /// By fields; see [`SortKey`]. Refused without a limit.
    Fields(Vec<SortKey>),
}

/// Most events of an answer that is sorted by fields.
pub const SORTED_LIMIT_MAX: usize = 100_000;

/// A question for events.
#[derive(Debug, Clone)]
pub struct Items {
    /// Which events.
    pub predicate: Predicate,
    /// In which order.
    pub order: Order,
    /// At most so many; all without.
    pub limit: Option<usize>,
    /// Only those after this place, as an earlier page's [`Answer::next_page`] said.
    pub after: Option<Place>,
    /// The columns wanted; see [`select`].
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
            projection: Projection::all(&Layout::of(schema)),
        }
    }
}

/// The columns of id, geometry and the named properties: all of them where `properties` is `None`.
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

/// Some events of an answer.
#[derive(Debug, Clone)]
pub struct Hits {
    /// The events, with the columns that were asked for.
    pub batch: Batch,
    /// Their sequence numbers; [`Batch::id_of`] makes ids of them where none are given.
    pub seqs: Vec<Seq>,
    /// Their distances in metres, where the order is by distance.
    pub distances: Option<Vec<f64>>,
}

/// Events of the first batch of an answer: few, so that the first bytes leave early, yet all of a small answer, so that
/// it leaves in one piece.
const FIRST_ROWS: usize = ENOUGH;
/// Events of a later batch.
const BATCH_ROWS: usize = 2048;
/// A batch is not made smaller than that.
const BATCH_ROWS_MIN: usize = 32;

/// Where the events of an answer come from.
enum Source {
    Natural(Natural),
    Nearest(Nearest),
    Listed(Listed),
}

/// An answer being worked out: an iterator that blocks.
pub struct Answer {
    scan: Scan,
    source: Source,
    order: Order,
    projection: Projection,
    limit: Option<usize>,
    /// Events of the next batch.
    at_once: usize,
    /// Events given on this page.
    given: usize,
    /// Events that earlier pages gave, where the order counts them.
    given_before: u64,
    /// Place of the page's last event, once the page is full.
    last: Option<Place>,
    next: Option<Place>,
    matched: Option<u64>,
    /// Whether the source has given all that it has.
    over: bool,
    done: bool,
}

/// Answers a question for events of a snapshot.
///
/// Nothing but the plan is made here (and, by fields, the sorting done); blocks are read as the answer is
/// iterated. After an error the iterator ends.
pub fn items(snapshot: &Snapshot, items: &Items, control: &Control) -> Result<Answer, QueryError> {
    let started = control.elapsed_us();
    control.check()?;
    if items.limit == Some(0) {
        return Err(Invalid::field("limit", "a limit of 0 asks for nothing: expected at least 1").into());
    }
    let mut scan = Scan::new(snapshot, &items.predicate, control);
    let mut matched = None;
    let mut given_before = 0;
    let wrong_place = || QueryError::Invalid(Invalid::field("token", "the page token belongs to another order"));
    let ids = items.predicate.ids();
    let source = match &items.order {
        Order::Natural => {
            let after = match &items.after {
                None => None,
                Some(Place::Natural { key, seq }) => Some((*key, *seq)),
                Some(_) => return Err(wrong_place()),
            };
            match ids {
                Some(ids) => Source::Listed(listed::by_id_natural(&mut scan, &ids, after)?),
                None => Source::Natural(Natural::new(&mut scan, after)),
            }
        }
        Order::Near { lon, lat, k } => {
            meridian_model::geometry::validate_position(*lon, *lat)
                .map_err(|e| Invalid { field: Some("near".to_owned()), ..e })?;
            let after = match &items.after {
                None => None,
                Some(Place::Near { distance_m, seq, given }) => {
                    given_before = *given;
                    Some((*distance_m, *seq))
                }
                Some(_) => return Err(wrong_place()),
            };
            let limit = least(items.limit, k.map(|k| k.saturating_sub(given_before as usize)));
            let sought = Sought { lon: *lon, lat: *lat, after, limit };
            let collected = match ids {
                Some(ids) => Some(listed::by_id_near(&mut scan, &ids, &sought)?),
                None => listed::near_if_few(&mut scan, &sought)?,
            };
            match collected {
                Some((listed, total)) => {
                    matched = Some(k.map_or(total, |k| total.min(k as u64)));
                    Source::Listed(listed)
                }
                None => Source::Nearest(Nearest::new(&mut scan, &sought)),
            }
        }
        Order::Fields(keys) => {
            let Some(limit) = items.limit else {
                return Err(Invalid::field("sortby", "sorting needs a limit: add limit=").into());
            };
            if limit > SORTED_LIMIT_MAX {
                return Err(Invalid::field("limit", format!("at most {SORTED_LIMIT_MAX} events can be sorted")).into());
            }
            let after = match &items.after {
                None => None,
                Some(Place::Fields { values, seq }) if values.len() == keys.len() => Some((values.clone(), *seq)),
                Some(_) => return Err(wrong_place()),
            };
            let mut sorter = Sorter::new(&scan, keys, after, limit + 1)?;
            match ids {
                Some(ids) => sorter.ids(&mut scan, &ids)?,
                None => sorter.all(&mut scan)?,
            }
            Source::Listed(sorter.finish())
        }
    };
    scan.stats.plan_us = (scan.control.elapsed_us() - started).max(0) as u64;
    Ok(Answer {
        scan,
        source,
        order: items.order.clone(),
        projection: items.projection.clone(),
        limit: items.limit,
        at_once: BATCH_ROWS,
        given: 0,
        given_before,
        last: None,
        next: None,
        matched,
        over: false,
        done: false,
    })
}

/// A question by distance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) lon: f64,
    pub(crate) lat: f64,
    pub(crate) after: Option<(f64, Seq)>,
    /// Events wanted, if not all.
    pub(crate) limit: Option<usize>,
}

impl Sought {
    /// Whether an event at this distance comes after the place asked for. Events without geometry never do.
    pub(crate) fn wants(&self, distance_m: f64, seq: Seq) -> bool {
        distance_m.is_finite()
            && self.after.is_none_or(|(after_m, after)| distance_m > after_m || distance_m == after_m && seq > after)
    }
}

fn least(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Answer {
    /// What the answer has cost so far.
    pub fn stats(&self) -> Stats {
        self.scan.stats
    }

    /// How many events match in all, over all pages, where that came for free.
    pub fn number_matched(&self) -> Option<u64> {
        self.matched
    }

    /// Where the next page begins, once the iterator has ended: `None` if there is no further event.
    ///
    /// Whether there is one is found out by looking for it, so a page that happens to end with the last
    /// event has no next page. Where time runs out on that look, a next page is promised to be safe.
    pub fn next_page(&self) -> Option<&Place> {
        self.next.as_ref()
    }

    /// Whether the page's last events have been given, as far as is known without looking for more.
    pub fn is_over(&self) -> bool {
        self.done || self.room() == 0
    }

    /// The snapshot that is read.
    pub fn snapshot(&self) -> &Snapshot {
        &self.scan.snapshot
    }

    /// Later batches hold at most so many events: fewer than usual where each of them is large.
    pub fn at_most(&mut self, events: usize) {
        self.at_once = events.clamp(BATCH_ROWS_MIN, BATCH_ROWS);
    }

    /// Lets go of what can be read again, before a wait of unknown length; gives the bytes that the answer holds on to.
    pub fn rest(&mut self) -> usize {
        self.scan.rest();
        match &self.source {
            Source::Natural(natural) => natural.held(),
            Source::Nearest(nearest) => nearest.held(),
            Source::Listed(listed) => listed.held(),
        }
    }

    /// Whether the events were listed before the first was given.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.source, Source::Listed(_))
    }

    /// Events that may still be given on this page and in this order.
    fn room(&self) -> usize {
        let page = self.limit.map_or(usize::MAX, |limit| limit - self.given);
        page.min(self.left_of_k())
    }

    fn left_of_k(&self) -> usize {
        match self.order {
            Order::Near { k: Some(k), .. } => (k as u64).saturating_sub(self.given_before + self.given as u64) as usize,
            _ => usize::MAX,
        }
    }

    fn batch(&mut self) -> Result<Option<Hits>, QueryError> {
        let room = self.room();
        if room == 0 {
            self.look_ahead()?;
            return Ok(None);
        }
        let want = room.min(if self.given == 0 { FIRST_ROWS } else { self.at_once });
        let (picks, distances) = self.source.fill(&mut self.scan, want)?;
        self.over = picks.len() < want.min(ENOUGH);
        let Some(&last) = picks.last() else { return Ok(None) };
        self.given += picks.len();
        let batch = self.scan.read_picks(&picks, &self.projection)?.project(&self.projection);
        if self.limit == Some(self.given) {
            self.last = Some(self.place_of(last, distances.last().copied().unwrap_or(0.0))?);
        }
        let near = matches!(self.order, Order::Near { .. });
        Ok(Some(Hits { batch, seqs: picks.iter().map(|p| p.seq).collect(), distances: near.then_some(distances) }))
    }

    /// Keeps the place of the page's last event if there is a further one.
    fn look_ahead(&mut self) -> Result<(), QueryError> {
        if self.left_of_k() == 0 || self.last.is_none() {
            return Ok(());
        }
        let more = match self.source.fill(&mut self.scan, 1) {
            Ok((picks, _)) => !picks.is_empty(),
            Err(QueryError::Deadline) => true,
            Err(error) => return Err(error),
        };
        if more {
            self.next = self.last.take();
        }
        Ok(())
    }

    fn place_of(&mut self, pick: Pick, distance_m: f64) -> Result<Place, QueryError> {
        Ok(match &self.order {
            Order::Natural => {
                let (key, seq) = self.scan.place_of(pick.part, pick.row)?;
                Place::Natural { key, seq }
            }
            Order::Near { .. } => {
                Place::Near { distance_m, seq: pick.seq, given: self.given_before + self.given as u64 }
            }
            Order::Fields(keys) => {
                Place::Fields { values: crate::sort::values_of(&mut self.scan, keys, pick)?, seq: pick.seq }
            }
        })
    }
}

impl Source {
    /// The next events, at most `want`; fewer than that, and fewer than [`ENOUGH`], only if there are no more. With their
    /// distances where the order is by distance.
    fn fill(&mut self, scan: &mut Scan, want: usize) -> Result<(Vec<Pick>, Vec<f64>), QueryError> {
        match self {
            Source::Natural(natural) => Ok((natural.fill(scan, want)?, Vec::new())),
            Source::Nearest(nearest) => nearest.fill(scan, want),
            Source::Listed(listed) => Ok(listed.fill(want)),
        }
    }
}

impl Iterator for Answer {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let started = self.scan.control.elapsed_us();
        self.scan.snapshot.wake();
        let result = self.batch().transpose();
        self.scan.stats.scan_us += (self.scan.control.elapsed_us() - started).max(0) as u64;
        self.done = self.over || !matches!(result, Some(Ok(_)));
        result
    }
}
