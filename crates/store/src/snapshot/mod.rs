//! Snapshots, and how long earlier ones stay available.
//!
//! Start here. `horizon.rs` is the rule for how long; `open.rs` opens a snapshot of a collection that another process
//! writes.

pub(crate) mod horizon;
mod open;

use crate::error::{Problem, StoreError};
use crate::pace::{InFlight, Load};
use crate::part::opened::open_views;
use crate::part::segment::Segment;
use crate::part::{Context, Part, PartView};
use crate::seams::ReadHint;
use meridian_model::filter::Predicate;
use meridian_model::{Bounds, IdRole, Layout, Projection, Schema, Seq};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Max ids of a query whose pages of keys are prefetched.
const KEYS_AHEAD: usize = 256;

/// The state of a collection after one write. Cheap to clone; never changes; does not wait for writers.
///
/// Its parts and files stay until it is dropped. To return to it later, keep its `seq` and call
/// [`crate::Collection::snapshot_at`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The number up to which writes are shown, inclusive.
    pub seq: Seq,
    /// Time up to which every acknowledged write is shown, in microseconds since 1970. That is when it was taken, or
    /// the time stated by another process that writes the collection.
    pub taken_at: i64,
    pub(crate) seen: Arc<SnapshotView>,
    /// Makes maintenance yield while it is being read.
    pub(crate) reading: Option<InFlight>,
}

/// The content of a snapshot. Snapshots of one state share it, so that taking one changes few reference counts, for
/// which all threads contend.
#[derive(Debug, Clone)]
pub struct SnapshotView {
    /// The schema in which parts are read.
    pub schema: Arc<Schema>,
    /// The layout of that schema.
    pub layout: Arc<Layout>,
    /// The parts, in arbitrary order.
    pub parts: Arc<[PartView]>,
    /// Damaged parts that are missing: a response that may need them must report that.
    pub missing: Arc<[Problem]>,
    /// The requests to which maintenance yields.
    pub(crate) requests: Arc<Load>,
}

impl SnapshotView {
    pub(crate) fn of(
        context: &Context,
        parts: Arc<[PartView]>,
        missing: Arc<[Problem]>,
        requests: &Arc<Load>,
    ) -> SnapshotView {
        let (schema, layout) = (context.schema.clone(), context.layout.clone());
        SnapshotView { schema, layout, parts, missing, requests: requests.clone() }
    }
}

impl Deref for Snapshot {
    type Target = SnapshotView;

    fn deref(&self) -> &SnapshotView {
        &self.seen
    }
}

impl Snapshot {
    /// Returns the same snapshot with these parts.
    pub(crate) fn with_parts(self, parts: Arc<[PartView]>) -> Snapshot {
        Snapshot { seen: Arc::new(SnapshotView { parts, ..SnapshotView::clone(&self.seen) }), ..self }
    }

    /// Returns the same snapshot with its segments open, for a query with this predicate. Segments without a possible
    /// match are left out, judged by the bounding boxes and sequence numbers in the manifest. Missing trees are read
    /// concurrently.
    ///
    /// Only segments of followed collections may be closed; a snapshot without any is returned unchanged.
    ///
    /// # Errors
    /// Returned if a segment cannot be read.
    pub fn open_for(&self, predicate: &Predicate) -> Result<Snapshot, StoreError> {
        if self.is_open() {
            return Ok(self.clone());
        }
        let reach = predicate.reach();
        let Some(ids) = predicate.ids().filter(|_| self.schema.id == IdRole::Made) else {
            return self.open_within(&reach);
        };
        let numbers: Vec<u64> = ids.iter().filter_map(|id| Seq::from_id(id).ok()).map(|seq| seq.0).collect();
        self.open_those(|part| {
            let has = |number: &u64| (part.seq_min..=part.seq_max).contains(number);
            may_lie_in(&part.bounds(), &reach) && numbers.iter().any(has)
        })
    }

    /// Does the same for a query about a box in space and time.
    ///
    /// # Errors
    /// Those of [`Snapshot::open_for`].
    pub fn open_within(&self, reach: &Bounds) -> Result<Snapshot, StoreError> {
        self.open_those(|part| may_lie_in(&part.bounds(), reach))
    }

    /// Does the same for a lookup by id.
    ///
    /// # Errors
    /// Those of [`Snapshot::open_for`].
    pub fn open_for_id(&self, id: &str) -> Result<Snapshot, StoreError> {
        let number = Seq::from_id(id).ok();
        let is_made = self.schema.id == IdRole::Made;
        self.open_those(|part| {
            !is_made || number.is_some_and(|number| (part.seq_min..=part.seq_max).contains(&number.0))
        })
    }

    /// Does the same with all segments.
    ///
    /// # Errors
    /// Those of [`Snapshot::open_for`].
    pub fn open_all(&self) -> Result<Snapshot, StoreError> {
        self.open_those(|_| true)
    }

    /// Returns true if rows of a part are read from a bucket, so that [`Snapshot::load`] saves time.
    pub fn reads_slowly(&self) -> bool {
        self.parts.iter().any(|view| view.part.segment().is_some_and(Segment::reads_slowly))
    }

    /// Prefetches rows of parts that will be read soon, by the index of the part in [`SnapshotView::parts`]. Fetches
    /// these columns and the sequence numbers concurrently, as far as they are not in memory. Only a hint: the read
    /// itself reports failures.
    pub fn load(&self, wanted: &[(usize, Range<u32>)], columns: &Projection) {
        let segments = wanted.iter().filter_map(|(part, rows)| Some((self.parts.get(*part)?.part.segment()?, rows)));
        self.fetch(segments.flat_map(|(segment, rows)| segment.rows_ahead(rows, columns)).collect());
    }

    /// Does the same for the trees over the order of time of all parts.
    pub fn load_time_trees(&self) {
        self.fetch(self.segments().filter_map(Segment::time_trees_ahead).collect());
    }

    /// Does the same for the counts per map cell.
    pub fn load_pyramids(&self) {
        self.fetch(self.segments().filter_map(Segment::pyramid_ahead).collect());
    }

    /// Does the same for what lookups of these ids read first: filters of keys, and pages of them.
    ///
    /// # Errors
    /// Returned if a filter cannot be read.
    pub fn load_keys(&self, ids: &[String]) -> Result<(), StoreError> {
        let Some(rule) = self.parts.first().map(|view| view.context.rule).filter(|_| self.reads_slowly()) else {
            return Ok(());
        };
        self.fetch(self.segments().filter_map(Segment::filter_ahead).collect());
        let mut pages = Vec::new();
        for segment in self.segments() {
            for key in ids.iter().take(KEYS_AHEAD).filter_map(|id| rule.key_of(id)) {
                pages.extend(segment.key_pages_ahead(key)?);
            }
        }
        self.fetch(pages);
        Ok(())
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.parts.iter().filter_map(|view| view.part.segment())
    }

    fn fetch(&self, ahead: Vec<ReadHint>) {
        if !ahead.is_empty()
            && let Some(segment) = self.segments().next()
        {
            // All parts of a snapshot belong to one partition, and so to one set of objects.
            segment.objects().load(&ahead);
        }
    }

    /// Returns true if all segments are open.
    pub fn is_open(&self) -> bool {
        self.parts.iter().all(PartView::is_open)
    }

    /// Returns the same snapshot with the wanted closed segments open, and without the others.
    pub(crate) fn open_those(&self, wanted: impl Fn(&Part) -> bool) -> Result<Snapshot, StoreError> {
        if self.is_open() {
            return Ok(self.clone());
        }
        let kept = self.parts.iter().filter(|view| view.is_open() || wanted(&view.part));
        let parts = open_views(kept.cloned().collect())?;
        Ok(self.clone().with_parts(parts.into()))
    }

    /// Returns the part and row of the event with this id.
    pub fn find(&self, id: &str) -> Result<Option<(PartView, u32)>, StoreError> {
        let opened = self.open_for_id(id)?;
        for part in opened.parts.iter() {
            if let Some(row) = part.find_id(id)? {
                return Ok(Some((part.clone(), row)));
            }
        }
        Ok(None)
    }

    /// Marks that the reader waits for something other than the store: until [`Snapshot::wake`] maintenance need not
    /// yield to it.
    pub fn rest(&mut self) {
        self.reading = None;
    }

    /// Marks that the reader continues.
    pub fn wake(&mut self) {
        if self.reading.is_none() {
            self.reading = Some(self.seen.requests.enter());
        }
    }

    /// Returns the number of rows of all parts, including dead ones: an upper bound of the events.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|p| u64::from(p.rows())).sum()
    }
}

/// Returns the parts with rows that their snapshot sees.
pub(crate) fn seen_of(views: &Arc<[PartView]>) -> Arc<[PartView]> {
    let gone = |v: &PartView| v.dead.all_dead(v.part.rows, v.seq);
    if views.iter().any(gone) { views.iter().filter(|v| !gone(v)).cloned().collect() } else { views.clone() }
}

/// Returns true if an event within `bounds` may lie in the reach of a predicate.
fn may_lie_in(bounds: &Bounds, reach: &Bounds) -> bool {
    let world = Bounds::WORLD;
    // An event searched anywhere may have no place at all, and no box contains it.
    let anywhere = reach.west <= world.west
        && reach.south <= world.south
        && reach.east >= world.east
        && reach.north >= world.north;
    let near = reach.west <= bounds.east
        && bounds.west <= reach.east
        && reach.south <= bounds.north
        && bounds.south <= reach.north;
    // A collection without time has 0 here.
    let timeless = bounds.start == 0 && bounds.end == 0;
    (anywhere || near) && (timeless || (reach.start <= bounds.end && bounds.start <= reach.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_left_out_only_if_nothing_of_it_can_match() {
        let bounds = Bounds { west: 10.0, south: -5.0, east: 20.0, north: 5.0, start: 100, end: 200 };
        let at = |west, east, start, end| Bounds { west, south: -90.0, east, north: 90.0, start, end };
        let always = (i64::MIN, i64::MAX);
        assert!(may_lie_in(&bounds, &Bounds::WORLD));
        assert!(may_lie_in(&bounds, &at(20.0, 30.0, always.0, always.1)), "its edge");
        assert!(!may_lie_in(&bounds, &at(20.1, 30.0, always.0, always.1)));
        assert!(may_lie_in(&bounds, &at(-180.0, 180.0, 200, 300)));
        assert!(!may_lie_in(&bounds, &at(-180.0, 180.0, 201, 300)));
        // Events without a place match if all places do, and only then.
        let nowhere = Bounds { start: 1, end: 2, ..Bounds::EMPTY };
        assert!(may_lie_in(&nowhere, &Bounds::WORLD) && !may_lie_in(&nowhere, &at(-10.0, 10.0, 0, 9)));
        // Collections without time.
        let timeless = Bounds { start: 0, end: 0, ..bounds };
        assert!(may_lie_in(&timeless, &at(-180.0, 180.0, 500, 600)));
        assert!(!may_lie_in(&bounds, &Bounds::EMPTY));
    }
}
