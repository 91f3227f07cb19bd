//! The events of a query in their order, independent of page limits: the plan, and the source of events.

use crate::control::{Control, Stats};
use crate::cursor::Cursor;
use crate::distance::NearQuestion;
use crate::error::QueryError;
use crate::event_list::{self, EventList};
use crate::items::{Items, Order, SORTED_LIMIT_MAX};
use crate::matched_rows::Pick;
use crate::natural::Natural;
use crate::nearest::Nearest;
use crate::scan::{Matches, Scan};
use crate::sort::{Sorter, values_of};
use meridian_model::{Batch, Invalid, Projection};
use meridian_store::{CHUNK_ROWS, Snapshot};

/// The source of events.
enum Source {
    Natural(Natural),
    Nearest(Nearest),
    Listed(EventList),
}

/// The events of a query, found on demand.
pub(crate) struct EventFinder {
    scan: Scan,
    source: Source,
    order: Order,
    projection: Projection,
    matched: Option<u64>,
}

impl EventFinder {
    /// Plans a query (and, if ordered by fields, sorts its events).
    pub(crate) fn new(snapshot: &Snapshot, items: &Items, control: &Control) -> Result<EventFinder, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        if items.limit == Some(0) {
            return Err(Invalid::field("limit", "a limit of 0 asks for nothing: expected at least 1").into());
        }
        let mut scan = Scan::new(snapshot, &items.predicate, control)?;
        scan.expect(&items.projection);
        let mut matched = None;
        let wrong_place = || QueryError::Invalid(Invalid::field("token", "the page token belongs to another order"));
        let ids = items.predicate.ids();
        if items.until.is_some() && items.order != Order::Natural {
            return Err(wrong_place());
        }
        let source = match &items.order {
            Order::Natural => {
                let after = match &items.after {
                    None => None,
                    Some(Cursor::Natural { key, seq }) => Some((*key, *seq)),
                    Some(_) => return Err(wrong_place()),
                };
                let until = match &items.until {
                    None => None,
                    Some(Cursor::Natural { key, seq }) => Some((*key, *seq)),
                    Some(_) => return Err(wrong_place()),
                };
                match ids {
                    Some(ids) => Source::Listed(event_list::by_id_natural(&mut scan, &ids, after, until)?),
                    None => {
                        // A page may be full early, but an unpaged result is read completely. How much a stretch
                        // reads shows only as it is read.
                        if items.limit.is_none() && after.is_none() && until.is_none() {
                            scan.weigh(Matches::Read)?;
                        }
                        Source::Natural(Natural::new(&mut scan, after, until))
                    }
                }
            }
            Order::Near { lon, lat, k } => {
                meridian_model::geometry::validate_position(*lon, *lat)
                    .map_err(|e| Invalid { field: Some("near".to_owned()), ..e })?;
                let mut given_before = 0;
                let after = match &items.after {
                    None => None,
                    Some(Cursor::Near { distance_m, seq, given }) => {
                        given_before = *given;
                        Some((*distance_m, *seq))
                    }
                    Some(_) => return Err(wrong_place()),
                };
                // `k` counts over all pages, so the token carries the number already returned.
                let left = k.map(|k| k.saturating_sub(given_before as usize));
                let limit = [items.limit, left].into_iter().flatten().min();
                let sought = NearQuestion { lon: *lon, lat: *lat, after, limit };
                let collected = match ids {
                    Some(ids) => Some(event_list::by_id_near(&mut scan, &ids, &sought)?),
                    None => event_list::near_if_few(&mut scan, &sought)?,
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
                // A sorted page is held in memory as a whole, whereas other orders stream.
                if limit > SORTED_LIMIT_MAX {
                    return Err(
                        Invalid::field("limit", format!("at most {SORTED_LIMIT_MAX} events can be sorted")).into()
                    );
                }
                let after = match &items.after {
                    None => None,
                    Some(Cursor::Fields { values, seq }) if values.len() == keys.len() => Some((values.clone(), *seq)),
                    Some(_) => return Err(wrong_place()),
                };
                // One more than requested: it shows whether there is a next page.
                let mut sorter = Sorter::new(&mut scan, keys, after, limit + 1)?;
                match ids {
                    Some(ids) => sorter.ids(&mut scan, &ids)?,
                    None => sorter.all(&mut scan)?,
                }
                Source::Listed(sorter.finish())
            }
        };
        scan.stats.plan_us = (scan.control.elapsed_us() - started).max(0) as u64;
        Ok(EventFinder { scan, source, order: items.order.clone(), projection: items.projection.clone(), matched })
    }

    pub(crate) fn stats(&self) -> Stats {
        self.scan.stats
    }

    /// Total number of matches over all pages, if it came for free.
    pub(crate) fn number_matched(&self) -> Option<u64> {
        self.matched
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.scan.snapshot
    }

    pub(crate) fn is_by_distance(&self) -> bool {
        matches!(self.order, Order::Near { .. })
    }

    /// Whether the events were collected before the first was returned.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self.source, Source::Listed(_))
    }

    /// Begins a step of work; returns its start, for [`EventFinder::worked_since`].
    pub(crate) fn wake(&mut self) -> i64 {
        self.scan.snapshot.wake();
        self.scan.control.elapsed_us()
    }

    /// Ends a step of work.
    pub(crate) fn worked_since(&mut self, started: i64) {
        self.scan.stats.scan_us += (self.scan.control.elapsed_us() - started).max(0) as u64;
    }

    /// Drops everything that can be read again. Returns the bytes still held.
    pub(crate) fn rest(&mut self) -> usize {
        self.scan.rest();
        match &self.source {
            Source::Natural(natural) => natural.held(),
            Source::Nearest(nearest) => nearest.held(),
            Source::Listed(listed) => listed.held(),
        }
    }

    /// The next events, at most `want`; fewer than that, and fewer than [`crate::natural::ENOUGH`], only if there are
    /// no more. Includes their distances if ordered by distance.
    pub(crate) fn fill(&mut self, want: usize) -> Result<(Vec<Pick>, Vec<f64>), QueryError> {
        let scan = &mut self.scan;
        match &mut self.source {
            Source::Natural(natural) => Ok((natural.fill(scan, want)?, Vec::new())),
            Source::Nearest(nearest) => nearest.fill(scan, want),
            Source::Listed(listed) => Ok(listed.fill(want)),
        }
    }

    /// Whether some of these events are large in the requested columns.
    pub(crate) fn has_large(&self, picks: &[Pick]) -> bool {
        let chunk = |pick: &Pick| (pick.part, pick.row / CHUNK_ROWS);
        let chunks = picks.chunk_by(|a, b| chunk(a) == chunk(b)).filter_map(|same| same.first());
        chunks.map(chunk).any(|(part, chunk)| self.scan.part(part).has_large(chunk, &self.projection))
    }

    /// Reads the requested columns of some events.
    pub(crate) fn read(&mut self, picks: &[Pick]) -> Result<Batch, QueryError> {
        Ok(self.scan.read_picks(picks, &self.projection)?.project(&self.projection))
    }

    /// The cursor of one event. The page adds the number of preceding events.
    pub(crate) fn cursor_of(&mut self, pick: Pick, distance_m: f64) -> Result<Cursor, QueryError> {
        Ok(match &self.order {
            Order::Natural => {
                let (key, seq) = self.scan.place_of(pick.part, pick.row)?;
                Cursor::Natural { key, seq }
            }
            Order::Near { .. } => Cursor::Near { distance_m, seq: pick.seq, given: 0 },
            Order::Fields(keys) => {
                let values = values_of(&mut self.scan, keys, &[pick])?.pop().unwrap_or_default();
                Cursor::Fields { values, seq: pick.seq }
            }
        })
    }

    /// The cursors of some events, with their distances if ordered by distance.
    pub(crate) fn cursors_of(&mut self, picks: &[Pick], distances: &[f64]) -> Result<Vec<Cursor>, QueryError> {
        let seqs = picks.iter().map(|pick| pick.seq);
        Ok(match &self.order {
            Order::Natural => {
                let keys = self.scan.keys_of(picks)?.into_iter();
                keys.zip(seqs).map(|(key, seq)| Cursor::Natural { key, seq }).collect()
            }
            Order::Near { .. } => {
                let near = distances.iter().zip(seqs);
                near.map(|(&distance_m, seq)| Cursor::Near { distance_m, seq, given: 0 }).collect()
            }
            Order::Fields(keys) => {
                let values = values_of(&mut self.scan, keys, picks)?.into_iter();
                values.zip(seqs).map(|(values, seq)| Cursor::Fields { values, seq }).collect()
            }
        })
    }
}
