//! Jobs: flushes, merges and archiving, which take time but no lock.

use crate::error::StoreError;
use crate::manifest::ranges::Range;
use crate::merge::runs::{RowMaps, merge_runs_mapped};
use crate::merge::segments::{MergeOutcome, discard, fold_into_segments, merge_to_segments, open_segments};
use crate::pace::Pace;
use crate::part::segment::Archive;
use crate::part::{Context, Entry, Part};
use crate::state::Shared;
use meridian_model::Seq;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Writes memory trees to segments.
    Flush {
        /// Position up to which everything is in the inputs.
        flushed: u64,
    },
    /// Merges memory trees into one.
    MergeRuns,
    /// Merges segments into larger ones.
    MergeSegments,
    /// Splits one segment into rows alive at a number and rows dead by then.
    Fold {
        /// The number.
        at: u64,
        /// Range of time that the segment covers.
        range: Range,
    },
    /// Rebuilds the sidecars of one segment from its archive.
    Rebuild {
        /// Number of the segment's files.
        file: u64,
    },
    /// Checks whether the Arrow rows of one segment can be the source again, in place of a damaged archive.
    Unarchive,
    /// Writes the rows of one segment as GeoParquet.
    Archive {
        /// Number of the segment's files.
        file: u64,
    },
}

impl Work {
    /// Returns its name in traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Flush { .. } => "flush",
            Work::MergeRuns => "merge in memory",
            Work::MergeSegments => "merge",
            Work::Fold { .. } => "fold",
            Work::Rebuild { .. } => "rebuild",
            Work::Unarchive => "unarchive",
            Work::Archive { .. } => "archive",
        }
    }
}

/// Work on parts that the partition keeps frozen meanwhile.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) inputs: Vec<Entry>,
    pub(super) floor: Option<u64>,
    /// Whether it does not pause for requests, because a caller waits for it or it is overdue.
    pub(super) urgent: bool,
    pub(crate) context: Arc<Context>,
}

/// The outcome of a job.
pub(crate) enum Output {
    Segments(MergeOutcome, Vec<Part>),
    Run(Box<Option<Part>>, RowMaps),
    Archive(Arc<Archive>),
    Unarchived,
    Rebuilt(Box<Part>),
}

impl Job {
    /// Runs the job. Takes time and memory, but no lock.
    pub(crate) fn run(&self, shared: &Shared, stop: &AtomicBool) -> Result<Output, StoreError> {
        match self.work {
            Work::MergeRuns => {
                let (part, maps) = merge_runs_mapped(shared, &self.context, &self.inputs, self.floor)?;
                Ok(Output::Run(Box::new(part), maps))
            }
            Work::Rebuild { file } => self.rebuild(shared, file).map(|part| Output::Rebuilt(Box::new(part))),
            Work::Unarchive => self.verify_serving().map(|()| Output::Unarchived),
            Work::Archive { file } => self.write_archive(shared, file, stop).map(Output::Archive),
            // Retention expires whole segments: dropping them must not cost reads of data that no query sees.
            Work::MergeSegments if self.nothing_is_left() => {
                Ok(Output::Segments(MergeOutcome { segments: Vec::new(), maps: Vec::new() }, Vec::new()))
            }
            Work::Flush { .. } | Work::MergeSegments | Work::Fold { .. } => {
                let (context, inputs, floor) = (&self.context, &self.inputs, self.floor);
                let merged = match self.work {
                    Work::Fold { at, range } => {
                        fold_into_segments(shared, context, inputs, (floor, at, range), (stop, self.pace(shared)))?
                    }
                    _ => merge_to_segments(shared, context, inputs, floor, (stop, self.pace(shared)))?,
                };
                // Opened before the install, outside the lock: this reads footers and trees from disk, and proves that
                // they are readable.
                let parts = match open_segments(shared, &merged) {
                    Ok(parts) => parts,
                    Err(e) => {
                        discard(shared, &merged);
                        return Err(e);
                    }
                };
                let bytes = merged.segments.iter().map(|(_, _, w)| w.bytes).sum();
                let rows = merged.segments.iter().map(|(_, _, w)| u64::from(w.rows)).sum();
                match self.work {
                    Work::Flush { .. } => {
                        shared.counters.add_flush_bytes(bytes);
                        shared.counters.add_flush_rows(rows);
                    }
                    _ => {
                        shared.counters.add_merge_bytes(bytes);
                        shared.counters.add_merge_rows(rows);
                    }
                }
                Ok(Output::Segments(merged, parts))
            }
        }
    }

    /// Returns true if its outcome consists of files, which need numbers.
    pub(crate) fn writes_files(&self) -> bool {
        self.work != Work::MergeRuns
    }

    /// Disables pauses, because a caller waits for it.
    pub(crate) fn urgently(self) -> Job {
        Job { urgent: true, ..self }
    }

    /// Returns the pace at which blocks are processed.
    pub(crate) fn pace<'a>(&self, shared: &'a Shared) -> Pace<'a> {
        Pace::new(shared.seams.clock.as_ref(), (!self.urgent).then_some(shared.load.as_ref()))
    }

    /// Returns true if all rows of the inputs may be dropped.
    fn nothing_is_left(&self) -> bool {
        self.floor.is_some_and(|floor| self.inputs.iter().all(|e| is_gone(e, floor)))
    }
}

/// Returns true if all rows of a part were dead by `floor`.
pub(super) fn is_gone(entry: &Entry, floor: u64) -> bool {
    entry.dead.count() == u64::from(entry.part.rows) && entry.dead.all_dead(entry.part.rows, Seq(floor))
}
