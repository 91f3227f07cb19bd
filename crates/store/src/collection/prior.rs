//! The state of an object before an event of it was written, for `enter` and `exit`.

use crate::collection::Collection;
use crate::error::StoreError;
use crate::ingest::stage::newest::object_in;
use crate::part::objects::object_of;
use crate::part::{Context, PartView};
use meridian_model::{Batch, Projection, Seq};
use std::sync::Arc;

/// The events of a collection's objects at one moment.
#[derive(Debug)]
pub struct PriorEventReader {
    context: Arc<Context>,
    /// Views of the parts, most recently written first.
    views: Vec<PartView>,
}

impl Collection {
    /// Returns a reader of prior events over everything written so far. Does not wait for writers.
    pub fn prior_events(&self) -> PriorEventReader {
        let state = self.state();
        let mut views: Vec<PartView> = state.history.iter().filter(|view| view.part.rows > 0).cloned().collect();
        views.sort_unstable_by_key(|view| std::cmp::Reverse(view.part.seq_max));
        PriorEventReader { context: state.context.clone(), views }
    }
}

impl PriorEventReader {
    /// Returns a number that identifies the object of a row; `None` if it has none. Two objects may share a number, but
    /// no client can choose such a pair.
    pub fn object(&self, batch: &Batch, row: usize) -> Option<u64> {
        let column = batch.field(batch.schema().object?)?;
        object_of(self.context.rule.seed, &column, row)
    }

    /// Returns the newest event of a row's object among those written before a number. That is the one that ends last
    /// by its own time (of two, the one written last). The result is a batch of that event alone, with these columns,
    /// and its number; `None` if there is none. It is found by key, without a scan.
    ///
    /// An event deleted, replaced or expired since then is found as long as the files have it: its object was at that
    /// place.
    ///
    /// # Errors
    /// Errors of the disk, or [`StoreError::Corrupt`].
    pub fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError> {
        let Context { rule, layout, .. } = &*self.context;
        let Some((field, column)) = batch.schema().object.and_then(|field| Some((field, batch.field(field)?))) else {
            return Ok(None);
        };
        let (Some(object), Some(number)) = (object_in(&column, row), object_of(rule.seed, &column, row)) else {
            return Ok(None);
        };
        let mut names = Projection::none(layout);
        names.add(layout.field(field));
        let mut best: Option<(i64, u64, PartView, u32)> = None;
        for view in &self.views {
            let part = &view.part;
            // Except for late events, the newest parts have it, and older parts need not be read.
            let older = best.as_ref().is_some_and(|(time, ..)| part.bounds().end < *time);
            if older || part.seq_min >= before.0 {
                continue;
            }
            let view = view.opened()?;
            let part = &view.part;
            let mut failed = None;
            let found = part.newest_of_object(*rule, number, |entry| {
                // Events of the same write or later ones are not prior, even if they end earlier.
                entry.seq < before.0
                    && match view.read(entry.row..entry.row + 1, &names) {
                        Ok(one) => one.field(field).and_then(|column| object_in(&column, 0)).as_ref() == Some(&object),
                        Err(error) => {
                            // The search's predicate cannot return an error. Accepting the entry ends the search, and
                            // the error is returned below.
                            failed = Some(error);
                            true
                        }
                    }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            if let Some(entry) =
                found.filter(|e| best.as_ref().is_none_or(|(time, seq, ..)| (*time, *seq) < (e.time, e.seq)))
            {
                best = Some((entry.time, entry.seq, view.clone(), entry.row));
            }
        }
        best.map(|(_, seq, view, row)| Ok((view.read(row..row + 1, columns)?, Seq(seq)))).transpose()
    }
}
