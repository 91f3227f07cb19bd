//! Events ready to be stored: sorted, hashed and checked before they are compared with the collection.

use crate::codec::hash;
use crate::part::Context;
use crate::part::keys::KeyRows;
use crate::part::objects::ObjectRows;
use crate::seams::Kind;
use meridian_index::{Grid, Key};
use meridian_model::{Batch, IdRole, Invalid, Mode};

/// Max ids or mistakes reported in one error.
pub(crate) const NAMED_MAX: usize = 100;

/// Events ready to be stored.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) batch: Batch,
    pub(crate) keys: Vec<Key>,
    /// Client-supplied ids by hash; empty if ids are generated.
    pub(crate) ids: KeyRows,
    /// Objects in order of time, with ordinals for numbers; empty in collections of mode `history`.
    pub(crate) objects: ObjectRows,
    /// The encoded events for the log; empty during replay and in collections without a log.
    pub(crate) body: Vec<u8>,
    pub(crate) replace: bool,
    /// The number of the only event that this write may replace, if it names one.
    pub(crate) only: Option<u64>,
}

/// An event to be killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) seq: u64,
    /// Empty if ids are generated.
    pub(crate) id: String,
}

impl Events {
    /// Sorts and hashes the events of a batch, and finds duplicate ids in it.
    pub(crate) fn of(context: &Context, batch: Batch, replace: bool) -> Result<Events, Vec<Invalid>> {
        let batch = context.widen(batch).map_err(|e| vec![e])?;
        let mut ids = KeyRows::default();
        if context.rule.role == IdRole::Given {
            let column = batch.ids().ok_or_else(|| vec![Invalid::new("the batch was read without its ids")])?;
            ids = KeyRows::of(column.iter().map(|id| hash(context.rule.seed, id.unwrap_or("").as_bytes())));
            let twice = twice_in(&ids, column, &context.schema.id_name);
            if !twice.is_empty() {
                return Err(twice);
            }
        }
        let keys = Grid::of(&context.schema).keys(&batch);
        // Sorted outside of the partition's lock, as hashing is: under the lock only lookups remain.
        let objects = match context.schema.mode {
            Mode::History => ObjectRows::default(),
            Mode::Latest => {
                let ordinals: Vec<u64> = (0..batch.rows() as u64).collect();
                ObjectRows::of(context.rule.seed, &batch, &ordinals, 0)
            }
        };
        Ok(Events { batch, keys, ids, objects, body: Vec::new(), replace, only: None })
    }
}

/// Ids that occur in a batch more than once, each reported for the event that repeats it.
fn twice_in(ids: &KeyRows, column: &arrow_array::StringArray, id_name: &str) -> Vec<Invalid> {
    let mut twice = Vec::new();
    let mut from = 0;
    while from < ids.keys.len() {
        let same = ids.keys[from..].iter().take_while(|k| **k == ids.keys[from]).count();
        for a in from..from + same {
            let row = ids.rows[a] as usize;
            // Rows of one hash ascend, so an earlier one is the first use.
            let first = (from..a).map(|b| ids.rows[b] as usize).find(|b| column.value(*b) == column.value(row));
            if let Some(first) = first {
                twice.push((row, first));
            }
        }
        from += same;
    }
    twice.sort_unstable();
    let name = |(row, first): &(usize, usize)| {
        let id = meridian_model::error::shorten(column.value(*row));
        Invalid::field(id_name, format!("the id {id:?} is also that of event {}: an id may stand once", first + 1))
            .at_line(*row as u64 + 1)
    };
    twice.iter().take(NAMED_MAX).map(name).collect()
}

/// Returns the kind of log record for a write of events.
pub(crate) fn kind_of(events: &Events) -> Kind {
    if events.replace { Kind::Replace } else { Kind::Write }
}
