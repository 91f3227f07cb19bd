//! Writes and deletions, partition by partition: each is whole in a partition, and not across them.

use super::split::{Share, split, twice};
use crate::collection::Part;
use crate::read::ReadPoint;
use crate::receipts::{DeleteReceipt, WriteReceipt};
use crate::writes::{Append, PartialDelete};
use meridian_model::filter::Predicate;
use meridian_model::{Field, Positions, Schema, Seq, SeqLayout};
use meridian_model::{Invalid, Vector};
use meridian_query::Control;
use meridian_store::{Definition, Settings, StoreError, Write, WriteError};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

/// Held while partitions are changed. Two concurrent changes could each be the first in some of them, and columns are
/// identified by their order.
static CHANGING: Mutex<()> = Mutex::new(());
/// Max wait of a change for another one, which may be of another collection.
const CHANGE_WAIT: Duration = Duration::from_secs(30);
/// Max attempts to align partitions while another server changes them too.
const ALIGN_TRIES: usize = 8;

/// The outcome of a share, with the number of its partition.
type Outcome = (usize, Result<WriteReceipt, WriteError>);

/// Returns the write of each share, the first event's first.
fn shares(parts: usize, schema: &Schema, write: Write) -> Result<Vec<(usize, Write)>, WriteError> {
    let Write { batch, key, on_conflict, deadline } = write;
    let wrong = twice(&batch, schema);
    if !wrong.is_empty() {
        return Err(WriteError::Invalid(wrong));
    }
    let shares = split(batch, schema, parts, key.as_deref());
    let most = SeqLayout::Partitioned.batch_events_max();
    if let Some(share) = shares.iter().find(|share| share.batch.rows() > most) {
        let detail = format!(
            "{} of the events are for one of the collection's {parts} partitions, which takes {most} at once: send smaller batches",
            share.batch.rows()
        );
        return Err(WriteError::Invalid(vec![Invalid::new(detail)]));
    }
    let one = |Share { partition, batch }| (partition, Write { batch, key: key.clone(), on_conflict, deadline });
    Ok(shares.into_iter().map(one).collect())
}

/// Queues a write in each partition that has a share of it. A refusal by the first one is returned at once; that of a
/// later one is part of the outcome.
pub(super) fn append(
    parts: &[Arc<dyn Part>],
    schema: &Schema,
    write: Write,
    deadline: Instant,
) -> Result<Append, WriteError> {
    let (mut queued, mut refused, before) = (Vec::new(), None::<Outcome>, present(parts));
    for (partition, share) in shares(parts.len(), schema, write)? {
        match parts[partition].append(share, deadline) {
            Ok(append) => queued.push((partition, append)),
            // Nothing is queued yet, so that nothing of the write can be stored.
            Err(error) if queued.is_empty() => return Err(of_partition(error, partition)),
            // A queued write may be in a group that another write is committing. It is too late to withdraw it and
            // report that nothing is stored.
            Err(error) => {
                refused = Some((partition, Err(error)));
                break;
            }
        }
    }
    Ok(Box::pin(async move {
        if refused.is_none()
            && queued.len() == 1
            && let Some((partition, append)) = queued.pop()
        {
            return together(before, vec![(partition, append.await)]);
        }
        // Each in a task of its own, so that the partitions sync in parallel. Dropping them withdraws the writes.
        let mut running = JoinSet::new();
        let order: Vec<usize> = queued.iter().map(|(partition, _)| *partition).collect();
        for (partition, append) in queued {
            running.spawn(async move { (partition, append.await) });
        }
        let mut outcomes: Vec<Outcome> = refused.into_iter().collect();
        while let Some(done) = running.join_next().await {
            // The partition is lost with the task that panicked, and its share may be stored.
            let failed =
                |e: tokio::task::JoinError| (usize::MAX, Err(WriteError::Unknown(format!("the write failed: {e}"))));
            outcomes.push(done.unwrap_or_else(failed));
        }
        outcomes.sort_by_key(|(partition, _)| order.iter().position(|other| other == partition));
        together(before, outcomes)
    }))
}

/// Writes the shares one after the other.
pub(super) fn write(parts: &[Arc<dyn Part>], schema: &Schema, write: Write) -> Result<WriteReceipt, WriteError> {
    let (shares, before) = (shares(parts.len(), schema, write)?, present(parts));
    let outcomes = shares.into_iter().map(|(partition, share)| (partition, parts[partition].write(share))).collect();
    together(before, outcomes)
}

/// Combines the outcomes of a write's shares, that of the first event first. `before`: the positions when it began.
fn together(before: Positions, outcomes: Vec<Outcome>) -> Result<WriteReceipt, WriteError> {
    let mut all = WriteReceipt { written: 0, replaced: 0, duplicates: 0, position: before, first: Seq::default() };
    let (mut is_first, mut failed) = (true, Vec::new());
    for (partition, outcome) in outcomes {
        match outcome {
            Ok(done) => {
                all.written += done.written;
                all.replaced += done.replaced;
                all.duplicates += done.duplicates;
                all.position = all.position.with(partition, done.position.at(0));
                all.first = if std::mem::take(&mut is_first) { done.first } else { all.first };
            }
            Err(error) => failed.push(of_partition(error, partition)),
        }
    }
    // A repetition finds what an earlier attempt has stored.
    match (one_error(failed), all.written + all.duplicates) {
        (None, _) => Ok(all),
        (Some(error), 0) => Err(error),
        (Some(why), stored) => Err(WriteError::Partly { stored, why: Box::new(why) }),
    }
}

/// Adds the partition to an error that names a position of its log.
fn of_partition(error: WriteError, partition: usize) -> WriteError {
    match error {
        WriteError::KeyReused { position, events, .. } => {
            WriteError::KeyReused { position, partition: Some(partition), events }
        }
        other => other,
    }
}

/// Returns the error that leaves most in doubt; if all are conflicts, all of them together.
fn one_error(errors: Vec<WriteError>) -> Option<WriteError> {
    let doubt = |error: &WriteError| match error {
        WriteError::Failed(_) | WriteError::Partly { .. } => 0,
        WriteError::Unknown(_) => 1,
        WriteError::Conflict { .. } => 3,
        _ => 2,
    };
    let mut errors = errors;
    errors.sort_by_key(doubt);
    let mut errors = errors.into_iter();
    Some(match errors.next()? {
        WriteError::Conflict { mut ids, mut total } => {
            for error in errors {
                if let WriteError::Conflict { ids: more, total: also } = error {
                    total += also;
                    ids.extend(more);
                }
            }
            ids.truncate(100);
            WriteError::Conflict { ids, total }
        }
        other => other,
    })
}

/// Returns the present positions of partitions. Read before a write, they are the positions of partitions that take no
/// part in it. So a stream that continues after the write misses nothing that came meanwhile.
fn present(parts: &[Arc<dyn Part>]) -> Positions {
    parts.iter().map(|part| part.position().at(0)).collect::<Vector<u64>>()
}

/// Deletes ids, each in its own partition.
pub(super) fn delete(parts: &[Arc<dyn Part>], ids: &[Vec<String>]) -> Result<DeleteReceipt, PartialDelete> {
    let mut all = DeleteReceipt { deleted: 0, position: present(parts) };
    for (number, (part, ids)) in parts.iter().zip(ids).enumerate().filter(|(_, (_, ids))| !ids.is_empty()) {
        let done = part.delete(ids).map_err(|stopped| after(&all, stopped, None))?;
        all.deleted += done.deleted;
        all.position = all.position.with(number, done.position.at(0));
    }
    Ok(all)
}

/// Adds what other partitions have deleted before.
fn after(before: &DeleteReceipt, stopped: PartialDelete, matched: Option<u64>) -> PartialDelete {
    PartialDelete { deleted: before.deleted + stopped.deleted, matched, why: stopped.why }
}

/// Deletes what matches, one partition after another.
pub(super) fn delete_matching(
    parts: &[Arc<dyn Part>],
    ats: Vec<ReadPoint>,
    predicate: &Predicate,
    control: &Control,
) -> Result<DeleteReceipt, PartialDelete> {
    let mut all = DeleteReceipt { deleted: 0, position: present(parts) };
    for (number, (part, at)) in parts.iter().zip(ats).enumerate() {
        let done = part.delete_matching(predicate, at, control).map_err(|stopped| {
            let matched = stopped.matched.filter(|_| number + 1 == parts.len()).map(|matched| all.deleted + matched);
            after(&all, stopped, matched)
        })?;
        all.deleted += done.deleted;
        all.position = all.position.with(number, done.position.at(0));
    }
    Ok(all)
}

/// Changes all partitions, the first one last.
///
/// Servers may change a collection at the same time. The last partition orders their changes, and the others adopt its
/// state. So the server that finishes last leaves all of them alike. The last one also decides whether the definition
/// is still the one that was `seen`.
///
/// # Errors
/// [`StoreError::Busy`] if another change takes too long, [`StoreError::Changed`] if the definition is another one.
pub(super) fn change(
    parts: &[Arc<dyn Part>],
    seen: Option<&Definition>,
    fields: &[Field],
    settings: Option<&Settings>,
) -> Result<(), StoreError> {
    let Some(_alone) = CHANGING.try_lock_for(CHANGE_WAIT) else {
        return Err(StoreError::Busy("another change of a collection takes long: try again".to_owned()));
    };
    let Some((last, others)) = parts.split_last() else { return Ok(()) };
    // First completes an earlier change, which may have failed halfway.
    align(&**last, others)?;
    last.change_from(seen, fields.to_vec(), settings.cloned())?;
    align(&**last, others)
}

/// Copies the fields and settings of the last partition to the others.
fn align(last: &dyn Part, others: &[Arc<dyn Part>]) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let (schema, settings) = (last.schema(), last.settings());
        let one = |part: &Arc<dyn Part>| {
            let missing = schema.fields.get(part.schema().fields.len()..).unwrap_or_default().to_vec();
            let other = (part.settings() != settings).then(|| settings.clone());
            if missing.is_empty() && other.is_none() { Ok(()) } else { part.change(missing, other) }
        };
        let aligned = others.iter().rev().try_for_each(one);
        // Another server changed the last one meanwhile, or gave this one a field at the same moment.
        let is_newer = last.schema() != schema || last.settings() != settings;
        match aligned {
            Ok(()) if !is_newer => return Ok(()),
            Ok(()) | Err(StoreError::Invalid(_)) if tries < ALIGN_TRIES => {}
            Ok(()) => return Err(StoreError::Busy("the collection is changed again and again: try again".to_owned())),
            Err(error) => return Err(error),
        }
    }
}
