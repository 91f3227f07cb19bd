//! A segment that is known from its manifest alone.

use super::Part;
use crate::catalog::manifest::{SegmentEntry, Sketch, archive_name, rows_name, segment_name};
use crate::error::StoreError;
use crate::part::segment::{Known, Segment, SegmentAccess};
use crate::seams::Ahead;
use meridian_index::ForestBuilder;
use meridian_model::{Bounds, Schema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The opener of the segment, and the facts known before.
#[derive(Debug)]
pub(crate) struct Closed {
    place: SegmentAccess,
    meta: SegmentEntry,
    sketch: Sketch,
    /// The number of the open segment as well: blocks of it that are cached stay valid however often it is opened.
    number: u64,
    /// Shared with the open segment. Set, the segment is opened with the manifest, and repaired.
    sick: Arc<AtomicBool>,
}

impl Closed {
    /// The part of a segment that the manifest describes well enough; `None`: it must be opened.
    pub(crate) fn part(place: &SegmentAccess, meta: &SegmentEntry, schema: &Schema) -> Option<Part> {
        let sketch = meta.sketch?;
        let number = place.cache.number_part();
        let closed = Closed { place: place.clone(), meta: meta.clone(), sketch, number, sick: Arc::default() };
        Some(Part {
            number,
            rows: meta.rows,
            forest: ForestBuilder::new(&Arc::new(schema.clone())).finish(),
            // Not known: every chunk may have rows that are newer than a snapshot.
            chunk_seq_max: Vec::new(),
            seq_min: sketch.seqs.0,
            seq_max: sketch.seqs.1,
            body: super::Body::Closed(Box::new(closed)),
        })
    }

    pub(crate) fn place(&self) -> &SegmentAccess {
        &self.place
    }

    /// The box of all rows.
    pub(crate) fn bounds(&self) -> Bounds {
        self.sketch.bounds
    }

    /// Bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.meta.bytes + self.archive_bytes()
    }

    /// Bytes of the archive.
    pub(crate) fn archive_bytes(&self) -> u64 {
        self.meta.archive.map_or(0, |archive| archive.bytes)
    }

    /// Bytes of the Arrow rows.
    pub(crate) fn rows_bytes(&self) -> u64 {
        self.sketch.rows.bytes
    }

    /// Whether an attempt to open it, or a read of it, has met damage.
    pub(crate) fn is_sick(&self) -> bool {
        self.sick.load(Ordering::Relaxed)
    }

    /// The bytes that opening it reads.
    pub(super) fn ahead(&self) -> Vec<Ahead> {
        let Sketch { index, trees, rows, .. } = &self.sketch;
        let name = segment_name(self.meta.file);
        let mut ahead = vec![
            Ahead { name: name.clone(), end: *index, range: trees.0..trees.0 + u64::from(trees.1) },
            Ahead { name, end: *index, range: index.footer..index.bytes },
            Ahead { name: rows_name(self.meta.file), end: *rows, range: rows.footer..rows.bytes },
        ];
        if let Some(archive) = self.meta.archive {
            let (end, range) = (archive.end(), archive.directory..archive.bytes);
            ahead.push(Ahead { name: archive_name(self.meta.file), end, range });
        }
        ahead
    }

    /// Opens it.
    pub(super) fn open(&self) -> Result<Part, StoreError> {
        let opened = self.try_open();
        if opened.as_ref().is_err_and(StoreError::is_damage) {
            // The next look at the manifest opens it for good, repairs it, or says that it is missing.
            self.sick.store(true, Ordering::Relaxed);
        }
        opened
    }

    fn try_open(&self) -> Result<Part, StoreError> {
        let Closed { place, meta, sketch, number, sick } = self;
        let archive = meta.archive.map(|entry| Segment::open_archive(place, meta.file, entry)).transpose()?;
        let known = Known { number: *number, sick: sick.clone(), sketch: Some(*sketch) };
        let part = Part::open_known(place, meta.file, archive, known)?;
        if part.rows == meta.rows {
            return Ok(part);
        }
        let detail = format!("it holds {} events where the manifest says {}", part.rows, meta.rows);
        Err(StoreError::corrupt(&place.objects.path(&segment_name(meta.file)), detail))
    }

    /// The error of a read before it is opened, which is a mistake of the reader.
    pub(super) fn unopened(&self) -> StoreError {
        StoreError::Busy(format!("the segment {} is read and was not opened", segment_name(self.meta.file)))
    }
}
