//! Parts, the immutable sorted runs of a collection, and their read interface.
//!
//! Start here: a [`Part`] is a memory tree (`run.rs`) or a segment (`segment/`), and a [`PartView`] is a snapshot's
//! view of it. `dead/` has the dead rows, `keys.rs` and `objects.rs` find rows by id and by object, `columns.rs` and
//! `ipc.rs` encode values, `cache.rs` keeps blocks.

pub(crate) mod cache;
mod closed;
pub(crate) mod columns;
mod context;
pub(crate) mod dead;
pub(crate) mod entry;
pub(crate) mod ipc;
pub(crate) mod keys;
pub(crate) mod objects;
pub(crate) mod open_parts;
pub(crate) mod opened;
pub(crate) mod removal;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod segment;
pub(crate) mod view;

pub(crate) use closed::ClosedSegment;
pub(crate) use context::Context;
pub(crate) use entry::Entry;
pub use rows::CHUNK_ROWS;
pub(crate) use rows::{CacheFill, KeyRule};
pub use view::{PartView, TimeOrder};

use crate::error::StoreError;
use crate::part::keys::Filter;
use crate::part::objects::ObjectEntry;
use crate::part::run::Run;
use crate::part::segment::{Archive, Segment, SegmentAccess, SegmentFacts};
use arrow_array::ArrayRef;
use meridian_index::{Forest, ForestBuilder, Key};
use meridian_model::{Batch, Bounds, IdRole, Invalid, Layout};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// One immutable run of events in order of (key, seq): a memory tree or a segment file.
#[derive(Debug)]
pub(crate) struct Part {
    /// Number in this process, never reused.
    pub(crate) number: u64,
    pub(crate) rows: u32,
    pub(crate) forest: Forest,
    /// Max sequence number of each block.
    pub(crate) chunk_seq_max: Vec<u64>,
    pub(crate) seq_min: u64,
    pub(crate) seq_max: u64,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Run(Box<Run>),
    Segment(Box<Segment>),
    /// A segment known only from its manifest entry: a query opens it first.
    Closed(Box<ClosedSegment>),
}

impl Part {
    /// Creates a memory tree from rows that are already in order of (key, seq).
    pub(crate) fn of_rows(number: u64, batch: Batch, keys: Vec<Key>, seqs: Vec<u64>) -> Result<Part, StoreError> {
        let mut builder = ForestBuilder::new(batch.schema());
        builder.push(&batch, &keys).map_err(|e| Invalid::new(e.to_string()))?;
        Ok(Part {
            number,
            rows: batch.rows() as u32,
            forest: builder.finish(),
            chunk_seq_max: seqs.chunks(CHUNK_ROWS as usize).map(|c| c.iter().copied().max().unwrap_or(0)).collect(),
            seq_min: seqs.iter().copied().min().unwrap_or(u64::MAX),
            seq_max: seqs.iter().copied().max().unwrap_or(0),
            body: Body::Run(Box::new(Run::new(batch, keys, seqs))),
        })
    }

    /// Opens a segment: see [`Segment::open`].
    pub(crate) fn open(place: &SegmentAccess, file: u64, archive: Option<Arc<Archive>>) -> Result<Part, StoreError> {
        Part::open_known(place, file, archive, SegmentFacts::nothing(&place.cache))
    }

    /// Does the same with the facts known of it.
    pub(crate) fn open_known(
        place: &SegmentAccess,
        file: u64,
        archive: Option<Arc<Archive>>,
        known: SegmentFacts,
    ) -> Result<Part, StoreError> {
        let (segment, forest) = Segment::open(place, file, archive, known)?;
        let footer = &segment.footer;
        Ok(Part {
            number: segment.number,
            rows: footer.rows,
            forest,
            chunk_seq_max: footer.chunk_seq_max.clone(),
            seq_min: footer.seq_min,
            seq_max: footer.seq_max,
            body: Body::Segment(Box::new(segment)),
        })
    }

    pub(crate) fn seqs(&self, rows: Range<u32>) -> Result<Vec<u64>, StoreError> {
        match &self.body {
            Body::Run(run) => Ok(run.seqs[rows.start as usize..rows.end as usize].to_vec()),
            Body::Segment(segment) => segment.seqs(rows),
            Body::Closed(closed) => Err(closed.unopened()),
        }
    }

    /// Returns physical columns of some rows; columns that the part was written without are absent.
    pub(crate) fn column(
        &self,
        column: usize,
        rows: Range<u32>,
        fill: CacheFill,
    ) -> Result<Option<ArrayRef>, StoreError> {
        match &self.body {
            Body::Run(run) => {
                let array = run.batch.columns().get(column).and_then(Option::as_ref);
                Ok(array.map(|a| a.slice(rows.start as usize, (rows.end - rows.start) as usize)))
            }
            Body::Segment(segment) => segment.column(column, rows, fill),
            Body::Closed(closed) => Err(closed.unopened()),
        }
    }

    /// Returns the rows with this key: only candidates, since hashes of ids may collide.
    fn rows_of_key(&self, rule: KeyRule, key: u64) -> Result<Vec<u32>, StoreError> {
        match &self.body {
            Body::Run(run) => {
                run.check_index()?;
                Ok(run.index(rule).rows_of(key))
            }
            Body::Segment(segment) => segment.rows_of_key(key),
            Body::Closed(closed) => Err(closed.unopened()),
        }
    }

    /// Returns which of these keys, by index, the part may have; all of them if it has no filter.
    pub(crate) fn may_hold(&self, rule: KeyRule, keys: &[u64], open: &[u32]) -> Result<Vec<u32>, StoreError> {
        let passing = |filter: &Filter| open.iter().copied().filter(|i| filter.may_hold(keys[*i as usize])).collect();
        Ok(match &self.body {
            Body::Run(run) => {
                run.check_index()?;
                run.index(rule).filter().map_or_else(|| open.to_vec(), passing)
            }
            Body::Segment(segment) => segment.filter()?.map_or_else(|| open.to_vec(), |filter| passing(&filter)),
            Body::Closed(closed) => return Err(closed.unopened()),
        })
    }

    /// Returns all rows that have this id, alive or dead, as (row, seq).
    pub(crate) fn find(&self, rule: KeyRule, layout: &Layout, id: &str) -> Result<Vec<(u32, u64)>, StoreError> {
        let Some(key) = rule.key_of(id) else { return Ok(Vec::new()) };
        self.find_key(rule, layout, key, id)
    }

    /// Does the same as [`Part::find`], with a known key.
    pub(crate) fn find_key(
        &self,
        rule: KeyRule,
        layout: &Layout,
        key: u64,
        id: &str,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        // A generated id is a sequence number: the part's range decides without reading the sidecar.
        if rule.role == IdRole::Made && !(self.seq_min..=self.seq_max).contains(&key) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for row in self.rows_of_key(rule, key)? {
            // A damaged sidecar that passes its checksum must not become an index out of bounds.
            if row >= self.rows {
                continue;
            }
            // The key is a hash: only the stored id proves a match.
            let same = match layout.id {
                None => true,
                Some(column) => match self.column(column, row..row + 1, CacheFill::Keep)? {
                    Some(ids) => {
                        arrow_array::cast::AsArray::as_string_opt::<i32>(&ids).is_some_and(|i| i.value(0) == id)
                    }
                    None => false,
                },
            };
            if same {
                let seq = self.seqs(row..row + 1)?.first().copied().unwrap_or(0);
                found.push((row, seq));
            }
        }
        Ok(found)
    }

    /// Returns the events of an object (by its hash) with their last instant within some times, in order of time.
    pub(crate) fn object_entries(
        &self,
        rule: KeyRule,
        object: u64,
        times: &RangeInclusive<i64>,
    ) -> Result<Vec<ObjectEntry>, StoreError> {
        match &self.body {
            Body::Run(run) => {
                run.check_objects()?;
                Ok(run.objects(rule).within(object, times).to_vec())
            }
            Body::Closed(closed) => Err(closed.unopened()),
            Body::Segment(segment) => {
                let mut found = Vec::new();
                if segment.may_hold_object(object)? {
                    for page in segment.object_pages(object, times) {
                        found.extend_from_slice(segment.object_page(page)?.within(object, times));
                    }
                }
                found.retain(|e| e.row < self.rows);
                Ok(found)
            }
        }
    }

    /// Returns the last of an object's events, in order of time and number, that `wanted` accepts.
    pub(crate) fn newest_of_object(
        &self,
        rule: KeyRule,
        object: u64,
        mut wanted: impl FnMut(&ObjectEntry) -> bool,
    ) -> Result<Option<ObjectEntry>, StoreError> {
        let always = i64::MIN..=i64::MAX;
        match &self.body {
            Body::Run(run) => Ok(run.objects(rule).within(object, &always).iter().rev().find(|e| wanted(e)).copied()),
            Body::Closed(closed) => Err(closed.unopened()),
            Body::Segment(segment) => {
                if !segment.may_hold_object(object)? {
                    return Ok(None);
                }
                // From the end: the newest entry is nearly always in the last page, so one page is read.
                for page in segment.object_pages(object, &always).rev() {
                    let page = segment.object_page(page)?;
                    let mut entries = page.within(object, &always).iter().rev().filter(|e| e.row < self.rows);
                    if let Some(found) = entries.find(|e| wanted(e)) {
                        return Ok(Some(*found));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Returns the bytes in memory (of a run) or on disk (of a segment).
    pub(crate) fn bytes(&self) -> u64 {
        match &self.body {
            Body::Run(run) => run.bytes + self.forest.bytes() as u64,
            Body::Segment(segment) => segment.file_bytes(),
            Body::Closed(closed) => closed.file_bytes(),
        }
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        match &self.body {
            Body::Run(run) => Some(run),
            Body::Segment(_) | Body::Closed(_) => None,
        }
    }

    pub(crate) fn segment(&self) -> Option<&Segment> {
        match &self.body {
            Body::Run(_) | Body::Closed(_) => None,
            Body::Segment(segment) => Some(segment),
        }
    }

    /// Returns the segment if it is not open.
    pub(crate) fn closed(&self) -> Option<&ClosedSegment> {
        match &self.body {
            Body::Run(_) | Body::Segment(_) => None,
            Body::Closed(closed) => Some(closed),
        }
    }

    /// Returns the bounding box of all rows.
    pub(crate) fn bounds(&self) -> Bounds {
        self.closed().map_or_else(|| self.forest.bounds(), ClosedSegment::bounds)
    }

    /// Returns the bounding box of all rows, in time of the rows with a time. It rules nothing out: a query may ask for
    /// events without a time.
    pub(crate) fn extent(&self) -> Bounds {
        let (start, end) = self.closed().map_or_else(|| self.forest.times(), ClosedSegment::times);
        Bounds { start, end, ..self.bounds() }
    }
}
