//! Rows in all kinds of parts: blocks of a fixed number, and the keys of their ids.

use crate::codec::hash;
use arrow_array::{Array as _, ArrayRef};
use meridian_model::{IdRole, Seq};

/// Number of rows in a block. Reads within one block share its memory; longer ones copy.
pub const CHUNK_ROWS: u32 = 4096;

/// Whether blocks read from disk are kept in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheFill {
    /// Cached for the next reader.
    Keep,
    /// Not cached: a merge reads each block once, and its inputs are removed when it is done.
    Pass,
}

/// The rule by which ids become keys of the sidecars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyRule {
    pub(crate) role: IdRole,
    pub(crate) seed: u64,
}

impl KeyRule {
    /// Returns the key of an id as shown to readers; `None` if no event of the collection can have it.
    pub(crate) fn key_of(&self, id: &str) -> Option<u64> {
        match self.role {
            IdRole::Given => Some(hash(self.seed, id.as_bytes())),
            IdRole::Made => Seq::from_id(id).ok().map(|seq| seq.0),
        }
    }
}

/// Returns the bytes of these values alone, without the rest of the allocation that they are a slice of.
pub(crate) fn slice_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

/// Concatenates the pieces of neighbouring blocks.
pub(crate) fn join(pieces: Vec<ArrayRef>) -> Result<ArrayRef, String> {
    match pieces.as_slice() {
        [one] => Ok(one.clone()),
        many => {
            let arrays: Vec<&dyn arrow_array::Array> = many.iter().map(|a| a.as_ref()).collect();
            arrow_select::concat::concat(&arrays).map_err(|e| e.to_string())
        }
    }
}
