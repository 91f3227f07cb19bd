//! Rewrites partly damaged segments without the unreadable blocks of rows.

use super::PartitionRepair;
use crate::error::StoreError;
use crate::ingest::partition::Partition;
use crate::manifest::{SegmentEntry, segment_name};
use crate::part::Entry;
use crate::part::dead::DROPPED;
use crate::part::dead::DeadRows;
use crate::part::segment::{Segment, SegmentTotals, SegmentWriter};
use crate::part::{CHUNK_ROWS, Part, PartView};
use meridian_index::Grid;
use meridian_model::{Batch, Projection, Seq};
use std::ops::Range;
use std::sync::Arc;

impl PartitionRepair<'_> {
    /// Replaces each damaged segment with its readable rows. Returns true if there was one.
    pub(super) fn cut_out(&mut self, partition: &mut Partition) -> Result<bool, StoreError> {
        let mut any = false;
        for damaged in partition.entries.clone() {
            let bad = damaged.part.segment().map(Segment::lost_blocks).unwrap_or_default();
            let Some(first) = bad.first() else { continue };
            // The disk failed, but may still have the block.
            if !first.is_damage() {
                return Err(bad.into_iter().next().unwrap_or(StoreError::Closed));
            }
            any = true;
            let Some(meta) = partition.segments.remove(&damaged.part.number) else { continue };
            partition.entries.retain(|e| e.part.number != damaged.part.number);
            let name = segment_name(meta.file);
            self.report.done(format!("{first}; what reads of {name} is rewritten"));
            let map = rewrite(partition, &meta, &damaged)?;
            let lost =
                (0..).zip(&map).filter(|(row, to)| **to == DROPPED && damaged.dead.death(*row).is_none()).count();
            if lost > 0 {
                self.report.missing(format!(
                    "{lost} events of segment {name}, except events that the log has replaced: their blocks do not read"
                ));
            }
        }
        Ok(any)
    }
}

/// Writes the readable chunks of a segment as a new segment and adds it. Returns the new place of each row.
fn rewrite(partition: &mut Partition, meta: &SegmentEntry, damaged: &Entry) -> Result<Vec<u32>, StoreError> {
    let (shared, context) = (partition.shared.clone(), partition.context.clone());
    let file = shared.number_file();
    let part = damaged.part.clone();
    let view = PartView { part, dead: Arc::default(), seq: Seq(u64::MAX), context: context.clone() };
    let all = Projection::all(&context.layout);
    let read = |rows: Range<u32>| -> Result<(Batch, Vec<u64>), StoreError> {
        Ok((view.read_for_merge(rows.clone(), &all)?, view.part.seqs(rows)?))
    };
    let grid = Grid::of(&context.schema);
    let mut map = vec![DROPPED; view.rows() as usize];
    let mut writer = SegmentWriter::create(shared.objects.as_ref(), file, &context.schema, context.rule)?;
    for from in (0..view.rows()).step_by(CHUNK_ROWS as usize) {
        let rows = from..view.rows().min(from + CHUNK_ROWS);
        match read(rows.clone()) {
            Ok((batch, seqs)) => {
                let places = &mut map[rows.start as usize..rows.end as usize];
                places.iter_mut().zip(writer.rows()..).for_each(|(place, row)| *place = row);
                writer.push(&batch, &grid.keys(&batch), &seqs)?;
            }
            Err(e) if e.is_damage() => {}
            Err(e) => return Err(e),
        }
    }
    if writer.rows() == 0 {
        return Ok(map);
    }
    let SegmentTotals { rows, bytes, sketch } = writer.finish()?;
    shared.sync_objects()?;
    let part = Part::open(&shared.place(), file, None)?;
    let meta = SegmentEntry { file, run: file, rows, bytes, dead: None, archive: None, sketch, ..meta.clone() };
    let moved = |marks: &DeadRows| {
        let maps = std::slice::from_ref(&map);
        DeadRows::moved(std::iter::once(marks), maps, &[rows]).pop().unwrap_or_default()
    };
    let (dead, hidden) = (moved(&damaged.dead), moved(&damaged.hidden));
    partition.segments.insert(part.number, meta);
    partition.entries.push(Entry::of(part, dead, hidden));
    Ok(map)
}
