//! Followers of a collection whose events a restore has divided among a different number of partitions.
//!
//! The numbers of such events do not tell their partition, so a follower's position among them is undefined. All of
//! them are in the past: a stream that would begin there is refused, and a catch-up counts what it leaves out.

use crate::collection::Part;
use meridian_model::{Invalid, Positions, Seq, Seqs};
use meridian_store::{ImportOrigin, StoreError};

/// Refuses a place in a stream before the restore.
pub(super) fn check_after(imported: Option<&ImportOrigin>, after: &Seqs, partitions: usize) -> Result<(), StoreError> {
    let Some(ImportOrigin { upto, .. }) = imported else { return Ok(()) };
    let first: Seqs = std::iter::repeat_n(Seq::end_of(*upto), partitions).collect();
    if after.covers(&first) {
        return Ok(());
    }
    let detail = format!(
        "a restore has divided the events up to position {upto} among {partitions} partitions: they cannot be streamed in their order; expected \
         {first} or a later place"
    );
    Err(Invalid::field("after", detail).into())
}

/// Moves positions past the restore, and counts the events skipped.
pub(crate) fn pass(parts: &[&dyn Part], after: &Positions) -> Result<(Positions, u64), StoreError> {
    let Some(ImportOrigin { upto, from }) = parts.first().and_then(|part| part.imported()) else {
        return Ok((after.clone(), 0));
    };
    let behind: Positions = std::iter::repeat_n(upto, parts.len()).collect();
    // Everything had been seen, by the old positions or the new ones.
    if after.covers(&behind) || (after.len() == from.len() && after.covers(&from)) {
        return Ok((after.later(&behind), 0));
    }
    let oldest = after.as_slice().iter().copied().min().unwrap_or_default();
    let left_out = parts.iter().map(|part| part.count_between(oldest, upto)).sum::<Result<u64, _>>()?;
    Ok((after.later(&behind), left_out))
}
