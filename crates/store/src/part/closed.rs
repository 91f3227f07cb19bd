//! A segment known only from its manifest entry.

use super::Part;
use crate::error::StoreError;
use crate::manifest::{SegmentEntry, Sketch, archive_name, rows_name, segment_name};
use crate::part::segment::{Segment, SegmentAccess, SegmentFacts};
use crate::seams::ReadHint;
use meridian_index::ForestBuilder;
use meridian_model::{Bounds, Schema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A segment not opened yet: how to open it, and the facts known before.
#[derive(Debug)]
pub(crate) struct ClosedSegment {
    place: SegmentAccess,
    meta: SegmentEntry,
    sketch: Sketch,
    /// The open segment has the same number, so cached blocks of it stay valid however often it is opened.
    number: u64,
    /// Shared with the open segment. Once set, the segment is opened with the manifest, and repaired.
    sick: Arc<AtomicBool>,
}

impl ClosedSegment {
    /// Returns the part for a segment that the manifest describes well enough; `None` if it must be opened.
    pub(crate) fn part(place: &SegmentAccess, meta: &SegmentEntry, schema: &Schema) -> Option<Part> {
        let sketch = meta.sketch?;
        let number = place.cache.number_part();
        let closed = ClosedSegment { place: place.clone(), meta: meta.clone(), sketch, number, sick: Arc::default() };
        Some(Part {
            number,
            rows: meta.rows,
            forest: ForestBuilder::new(&Arc::new(schema.clone())).finish(),
            // Unknown: every chunk may have rows that are newer than a snapshot.
            chunk_seq_max: Vec::new(),
            seq_min: sketch.seqs.0,
            seq_max: sketch.seqs.1,
            body: super::Body::Closed(Box::new(closed)),
        })
    }

    pub(crate) fn place(&self) -> &SegmentAccess {
        &self.place
    }

    /// Returns the bounding box of all rows.
    pub(crate) fn bounds(&self) -> Bounds {
        self.sketch.bounds
    }

    /// Returns the first and last instant of the events that have a time.
    pub(crate) fn times(&self) -> (i64, i64) {
        self.sketch.times.unwrap_or((self.sketch.bounds.start, self.sketch.bounds.end))
    }

    /// Returns the bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.meta.bytes + self.archive_bytes()
    }

    /// Returns the bytes of the archive.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.meta.archive.map_or(0, |archive| archive.bytes)
    }

    /// Returns the bytes of the Arrow rows.
    pub(crate) fn rows_bytes(&self) -> u64 {
        self.sketch.rows.bytes
    }

    /// Returns true if an attempt to open or read it found damage.
    pub(crate) fn is_sick(&self) -> bool {
        self.sick.load(Ordering::Relaxed)
    }

    /// Returns the byte ranges that opening it reads.
    pub(super) fn ahead(&self) -> Vec<ReadHint> {
        let Sketch { index, trees, rows, .. } = &self.sketch;
        let name = segment_name(self.meta.file);
        let mut ahead = vec![
            ReadHint { name: name.clone(), end: *index, range: trees.0..trees.0 + u64::from(trees.1) },
            ReadHint { name, end: *index, range: index.footer..index.bytes },
            ReadHint { name: rows_name(self.meta.file), end: *rows, range: rows.footer..rows.bytes },
        ];
        if let Some(archive) = self.meta.archive {
            let (end, range) = (archive.end(), archive.directory..archive.bytes);
            ahead.push(ReadHint { name: archive_name(self.meta.file), end, range });
        }
        ahead
    }

    /// Opens the segment.
    pub(super) fn open(&self) -> Result<Part, StoreError> {
        // A manifest names it, and what an expired snapshot may lack is refused before it is read.
        let opened = self.try_open().map_err(StoreError::absence_is_damage);
        if opened.as_ref().is_err_and(StoreError::is_damage) {
            // The next check of the manifest opens it permanently, repairs it, or reports it as missing.
            self.sick.store(true, Ordering::Relaxed);
        }
        opened
    }

    fn try_open(&self) -> Result<Part, StoreError> {
        let ClosedSegment { place, meta, sketch, number, sick } = self;
        let archive = meta.archive.map(|entry| Segment::open_archive(place, meta.file, entry)).transpose()?;
        let known = SegmentFacts { number: *number, sick: sick.clone(), sketch: Some(*sketch) };
        let part = Part::open_known(place, meta.file, archive, known)?;
        if part.rows == meta.rows {
            return Ok(part);
        }
        let detail = format!("it holds {} events where the manifest says {}", part.rows, meta.rows);
        Err(StoreError::corrupt(&place.objects.path(&segment_name(meta.file)), detail))
    }

    /// Returns the error for a read before it is opened, which is a bug in the reader.
    pub(super) fn unopened(&self) -> StoreError {
        StoreError::Busy(format!("the segment {} is read and was not opened", segment_name(self.meta.file)))
    }
}
