//! Finds the existing segments by reading their files.

use super::PartitionRepair;
use crate::error::StoreError;
use crate::manifest::{SegmentEntry, archive_name, rows_name};
use crate::merge::segments::range_of;
use crate::part::segment::{Archive, RowsFile, SegmentAccess, rebuild, rebuild_from, rebuild_from_rows};
use crate::part::{KeyRule, Part, PartView};
use crate::recovery::leftovers::number_of;
use crate::seams::files::names;
use crate::seams::objects::HALF;
use meridian_model::{IdRole, Schema};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A readable segment, and its entry for a manifest.
pub(super) struct FoundSegment {
    pub(super) meta: SegmentEntry,
    pub(super) schema: Schema,
    /// Its max sequence number.
    pub(super) seq_max: u64,
}

/// The context in which segments are read.
pub(super) struct ReadContext {
    pub(super) place: SegmentAccess,
    pub(super) seed: u64,
    /// Whether the keys in the segments are hashed under that seed.
    pub(super) seed_known: bool,
    /// The fields in an older manifest.
    pub(super) schema: Option<Schema>,
}

impl PartitionRepair<'_> {
    /// Returns all segments with readable rows, in order of number. The index is rebuilt if necessary.
    pub(super) fn survey(&mut self, reading: &ReadContext) -> Result<Vec<FoundSegment>, StoreError> {
        let there = names(self.disk(), &self.dir.join("segments"))?;
        let of_segments = |name: &&String| {
            !name.ends_with(HALF) && [".segment", ".rows", ".parquet"].iter().any(|kind| name.ends_with(kind))
        };
        let numbers: BTreeSet<u64> = there.iter().filter(of_segments).filter_map(|name| number_of(name)).collect();
        let mut found = Vec::new();
        for number in numbers {
            let archived = there.contains(&archive_name(number));
            match self.read_segment(reading, number, archived) {
                Ok(segment) => found.push(segment),
                Err(newer @ StoreError::NewerFormat { .. }) => return Err(newer),
                Err(e) => self.report.missing(format!("the events of segment {number:016x}: {e}")),
            }
        }
        let rows: u64 = found.iter().map(|segment| u64::from(segment.meta.rows)).sum();
        self.report.done(format!("{} segments read, of {rows} events, dead ones among them", found.len()));
        Ok(found)
    }

    fn read_segment(&mut self, reading: &ReadContext, file: u64, archived: bool) -> Result<FoundSegment, StoreError> {
        let archive = match archived.then(|| open_archive(&reading.place, file)).transpose() {
            Ok(archive) => archive,
            Err(newer @ StoreError::NewerFormat { .. }) => return Err(newer),
            Err(damaged) => {
                // The Arrow rows may be intact.
                self.report.done(damaged.to_string());
                None
            }
        };
        let part = match &archive {
            Some(archive) => archived_part(reading, file, archive)?,
            None => part_in_arrow(reading, file)?,
        };
        let segment = part.segment().ok_or(StoreError::Closed)?;
        let bytes = segment.index.bytes + segment.rows_held().map_or(0, |(bytes, _)| bytes);
        let schema = segment.footer.schema.clone();
        let range = range_of(&schema, &part);
        let archive = archive.map(|archive| archive.entry);
        let meta = SegmentEntry { file, run: file, rows: part.rows, bytes, range, dead: None, archive, sketch: None };
        Ok(FoundSegment { meta, schema, seq_max: part.seq_max })
    }
}

fn open_archive(place: &SegmentAccess, file: u64) -> Result<Arc<Archive>, StoreError> {
    let archive = Archive::find(place.objects.as_ref(), &archive_name(file))?;
    archive.verify().into_iter().next().map_or(Ok(Arc::new(archive)), Err)
}

fn archived_part(reading: &ReadContext, file: u64, archive: &Arc<Archive>) -> Result<Part, StoreError> {
    let open = || Part::open(&reading.place, file, Some(archive.clone()));
    let fits = |part: &Part| part.rows == archive.rows() && reading.seed_known && is_sound(part);
    match open() {
        Ok(part) if fits(&part) => Ok(part),
        Err(newer @ StoreError::NewerFormat { .. }) => Err(newer),
        _ => {
            let rule = KeyRule { role: archive.schema().id, seed: reading.seed };
            rebuild(reading.place.objects.as_ref(), file, archive, rule)?;
            open()
        }
    }
}

fn part_in_arrow(reading: &ReadContext, file: u64) -> Result<Part, StoreError> {
    let open = || Part::open(&reading.place, file, None);
    let part = open().or_else(|error| {
        let Some(schema) = reading.schema.as_ref().filter(|_| error.is_damage()) else { return Err(error) };
        let rows = RowsFile::open(reading.place.objects.as_ref(), &rows_name(file), None)?;
        let rule = KeyRule { role: schema.id, seed: reading.seed };
        rebuild_from_rows(reading.place.objects.as_ref(), file, (&rows, schema), rule)?;
        open()
    })?;
    let hashed = |schema: &Schema| schema.id == IdRole::Given || schema.object.is_some();
    // If some blocks of a segment are damaged, the others are served.
    if reading.seed_known || !part.segment().is_some_and(|segment| hashed(&segment.footer.schema)) {
        return Ok(part);
    }
    let Some(view) = PartView::alone(Arc::new(part), reading.seed) else { return Err(StoreError::Closed) };
    rebuild_from(reading.place.objects.as_ref(), file, &view, view.context.rule)?;
    open()
}

/// Returns true if every checksum of a segment's files is right.
fn is_sound(part: &Part) -> bool {
    part.segment().is_some_and(|segment| segment.verify_blocks().is_empty())
}
