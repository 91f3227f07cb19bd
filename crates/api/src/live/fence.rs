//! Comings and leavings: what a question's conditions mean for the objects that move.
//!
//! What is told of an event depends on nothing but what was written before it: whether the newest event of its object among those
//! matched. That is remembered for some objects. Of others it is found in the store, so that a stream says the same whenever its
//! client came, and however many objects there are.

use crate::problem::Result;
use crate::snapshot as edge;
use meridian_backend::{Collection, PriorEvents};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Fences, IdRole, Projection, Seq, When};

/// The number of the only question of a stream.
const HERE: &[u64] = &[0];

/// The objects inside, as far as they are known.
pub(super) struct Fence {
    asked: Vec<When>,
    known: Fences,
}

impl Fence {
    /// Tells these; remembers so many objects.
    pub(super) fn new(asked: Vec<When>, objects: usize) -> Fence {
        // Those inside count twice, and of the objects that were not heard of for longest half go at a time.
        Fence { asked, known: Fences::new(objects.saturating_mul(4)) }
    }

    /// What is told of events that were written one after another: rows, and what each means.
    pub(super) fn told(
        &mut self,
        collection: &dyn Collection,
        predicate: &Predicate,
        batch: &Batch,
        seqs: &[Seq],
    ) -> Result<Vec<(u32, When)>> {
        let (prior, matching) = (collection.prior_events(), predicate.evaluate(batch));
        let mut told = Vec::new();
        for (row, seq) in seqs.iter().enumerate() {
            let is = matching.value(row);
            let was = match prior.object(batch, row) {
                // What does not move is inside, and never comes.
                None => is,
                Some(object) => {
                    if !self.known.knows(object) {
                        self.known.restore(state(prior.as_ref(), predicate, batch, row, *seq, object)?);
                    }
                    let passage = self.known.pass(object, batch.interval(row).1, if is { HERE } else { &[] });
                    if passage.late {
                        continue;
                    }
                    !passage.left.is_empty() || is && passage.entered.is_empty()
                }
            };
            told.extend(When::told(&self.asked, was, is).map(|when| (row as u32, when)));
        }
        Ok(told)
    }
}

/// Where the object of a row was before it, if it was anywhere.
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
    let former = prior.before(batch, row, seq, &columns).map_err(edge::store_problem)?;
    Ok(former.map(|(one, before)| {
        let one = numbered(one, &[before], predicate);
        let inside = if predicate.evaluate(&one).has_true() { HERE } else { &[] };
        (object, one.interval(0).1, inside.to_vec())
    }))
}

/// Made ids are sequence numbers: a filter on them reads those.
pub(super) fn numbered(batch: Batch, seqs: &[Seq], predicate: &Predicate) -> Batch {
    match predicate.reads_id() && batch.schema().id == IdRole::Made {
        true => batch.with_seqs(seqs.iter().map(|seq| seq.0).collect()),
        false => batch,
    }
}
