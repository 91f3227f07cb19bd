//! Entries and exits: how a stream's conditions apply to moving objects.
//!
//! The report of an event depends only on earlier writes: whether the previous event of its object matched. That state
//! is cached for some objects and read from the store for the others. A stream therefore reports the same whenever its
//! client connected, and however many objects there are.

use crate::protocol::problem::Result;
use crate::request::errors;
use meridian_backend::{Collection, PriorEvents};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, FenceTransition, Fences, IdRole, Projection, Seq};

/// The id, in [`Fences`], of the stream's only query.
const INSIDE: &[u64] = &[0];

/// The objects inside, as far as cached.
pub(super) struct Fence {
    reported: Vec<FenceTransition>,
    cached: Fences,
    cached_max: usize,
}

impl Fence {
    /// Creates a fence that reports these transitions and caches the state of up to `objects` objects.
    pub(super) fn new(reported: Vec<FenceTransition>, objects: usize) -> Fence {
        // An object inside counts twice, and a full cache drops the half that was not updated for longest.
        let cached_max = objects.saturating_mul(4);
        Fence { reported, cached: Fences::new(cached_max), cached_max }
    }

    /// Forgets all objects before events are read again: the cached states are those after these events.
    pub(super) fn forget(&mut self) {
        self.cached = Fences::new(self.cached_max);
    }

    /// Returns the transitions to report, for events in write order: row numbers, each with its transition.
    pub(super) fn transitions(
        &mut self,
        collection: &dyn Collection,
        predicate: &Predicate,
        batch: &Batch,
        seqs: &[Seq],
    ) -> Result<Vec<(u32, FenceTransition)>> {
        let (prior, matching) = (collection.prior_events(), predicate.evaluate(batch));
        let mut transitions = Vec::new();
        for (row, seq) in seqs.iter().enumerate() {
            let is = matching.value(row);
            let was = match prior.object(batch, row) {
                // An event without an object never enters or leaves: its previous state counts as the same.
                None => is,
                Some(object) => {
                    // Read from the store rather than assumed: the stream may have begun after the object entered.
                    if !self.cached.knows(object) {
                        self.cached.restore(state(prior.as_ref(), predicate, batch, row, *seq, object)?);
                    }
                    let passage = self.cached.pass(object, batch.interval(row).1, if is { INSIDE } else { &[] });
                    // Older than the known state of its object, so it changes nothing.
                    if passage.late {
                        continue;
                    }
                    !passage.left.is_empty() || is && passage.entered.is_empty()
                }
            };
            transitions.extend(FenceTransition::transition(&self.reported, was, is).map(|when| (row as u32, when)));
        }
        Ok(transitions)
    }
}

/// Returns the state of a row's object before that row, in the form that [`Fences::restore`] takes; `None` if it had no
/// event.
fn state(
    prior: &dyn PriorEvents,
    predicate: &Predicate,
    batch: &Batch,
    row: usize,
    seq: Seq,
    object: u64,
) -> Result<Option<(u64, i64, Vec<u64>)>> {
    let mut columns = Projection::none(batch.layout());
    predicate.add_columns(batch.layout(), batch.schema(), &mut columns);
    columns.add_time(batch.layout(), batch.schema());
    let former = prior.before(batch, row, seq, &columns).map_err(errors::store_problem)?;
    Ok(former.map(|(one, before)| {
        let one = numbered(one, &[before], predicate);
        let inside = if predicate.evaluate(&one).has_true() { INSIDE } else { &[] };
        (object, one.interval(0).1, inside.to_vec())
    }))
}

/// Adds the sequence numbers to a batch whose ids are generated from them, if a filter reads the id.
pub(super) fn numbered(batch: Batch, seqs: &[Seq], predicate: &Predicate) -> Batch {
    match predicate.reads_id() && batch.schema().id == IdRole::Made {
        true => batch.with_seqs(seqs.iter().map(|seq| seq.0).collect()),
        false => batch,
    }
}
