//! Actions: calls that return a value.

use super::Owner;
use crate::wire::answer::{Hello, Reply, WireDeleted, WireFiles};
use crate::wire::call::{ActionCall, Call, SnapshotUse};
use crate::wire::described::{CollectionRef, Description, WireHead};
use crate::wire::fault::{Fault, WireDamaged, shown};
use bytes::Bytes;
use meridian_backend::{Collection, DeleteFault, PartialDelete, ReadPoint, StoreError};
use meridian_model::Seq;
use meridian_model::filter::Predicate;
use meridian_observe as observe;
use meridian_query::{CancelFlag, Control};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Max time to write the files of one call.
const FILES_MAX: Duration = Duration::from_secs(86_400);

/// Raises a cancel flag when dropped, that is, when the caller has gone.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs an act. A list is sent as one message per element, so no message grows with the list.
pub(super) async fn act(owner: &Arc<Owner>, call: Call<ActionCall>) -> Vec<Bytes> {
    let cancel = CancelOnDrop(CancelFlag::new());
    let control = (owner.options.control)(call.left(), cancel.0.clone());
    let (inner, within, ask) = (owner.clone(), control.clone(), call.ask);
    let lists = matches!(
        ask,
        ActionCall::Describe { .. }
            | ActionCall::List { .. }
            | ActionCall::Damaged { .. }
            | ActionCall::WhyDamaged { .. }
            | ActionCall::All
            | ActionCall::Flush { .. }
            | ActionCall::Files { .. }
            // A former owner cannot keep anything for the next one.
            | ActionCall::Used { .. }
    );
    // These do the work of a query, and take as long.
    let of_question = match &ask {
        ActionCall::DeleteMatching { place, .. } | ActionCall::Files { place } => Some(place.tenant.clone()),
        ActionCall::Flush { tenant, .. } => Some(tenant.clone()),
        _ => None,
    };
    let (current, _span) = owner.span(call.trace.as_deref(), "act");
    let work = move || run(&inner, ask, &within);
    let done = async {
        match of_question {
            Some(tenant) => owner.step(&tenant, &control, work).await,
            None => owner.act(&control, work).await,
        }
    };
    match observe::within(current, done).await {
        Ok(replies) => match owner.still() {
            // Anything missing here may be at another owner by now. A change refused because of a takeover can be made
            // there.
            Err(fault) if lists || is_refused(&replies) => one(Err::<(), Fault>(fault)),
            _ => replies,
        },
        Err(fault) => one(Err::<(), Fault>(fault)),
    }
}

/// Returns true if a change was refused temporarily and not made, or is a deletion by ids that can be repeated whole.
fn is_refused(replies: &[Bytes]) -> bool {
    let first = replies.first().map(|first| Reply::<IgnoredAny>::read(first));
    matches!(first, Some(Err(Fault::Busy(_) | Fault::Late(_) | Fault::Closed | Fault::Partly(..))))
}

fn one<T: Serialize>(result: Result<T, Fault>) -> Vec<Bytes> {
    vec![Reply::to_bytes(result)]
}

fn many<T, W: Serialize>(list: Result<Vec<T>, StoreError>, written: impl Fn(T) -> W) -> Vec<Bytes> {
    match list {
        Ok(list) => list.into_iter().map(|value| Reply::to_bytes(Ok(written(value)))).collect(),
        Err(error) => one(Err::<(), _>(error.into())),
    }
}

fn run(owner: &Owner, ask: ActionCall, control: &Control) -> Vec<Bytes> {
    let backend = &owner.backend;
    match ask {
        ActionCall::Hello => one(Ok(Hello { ephemeral: backend.is_ephemeral() })),
        ActionCall::Describe { tenant, name, partition } => {
            let found = match partition {
                Some(number) => owner
                    .newest_part(&tenant, &name, number, None)
                    .map(|part| part.map(|part| part as Arc<dyn Collection>)),
                None => backend.collection(&tenant, &name).map_err(Fault::from),
            };
            one(found.map(|found| found.map(|found| Description::of(&tenant, partition, &*found))))
        }
        ActionCall::List { tenant } => many(backend.list(&tenant), |found| Description::of(&tenant, None, &*found)),
        ActionCall::Damaged { tenant } => many(backend.damaged(&tenant), WireDamaged::from),
        ActionCall::WhyDamaged { tenant, name } => {
            let why = backend.why_damaged(&tenant, &name).map_err(Fault::from);
            one(why.map(|why| why.map(WireDamaged::from)))
        }
        ActionCall::Create { tenant, name, schema, settings } => {
            let created = backend.create(&tenant, &name, *schema, settings);
            one(created.map(|made| Description::of(&tenant, None, &*made)).map_err(Fault::from))
        }
        ActionCall::Remove { tenant, name } => one(backend.remove(&tenant, &name).map_err(Fault::from)),
        ActionCall::RemoveUnwritten { place, seen } => {
            let removed = backend.remove_unwritten(&place.tenant, &place.name, place.made, &seen);
            one(removed.map_err(Fault::from))
        }
        ActionCall::Adopt { tenant, name } => one(backend.adopt(&tenant, &name).map_err(Fault::from)),
        ActionCall::Guarantee { weights } => {
            let weights: Vec<(Arc<str>, u32)> = weights.into_iter().map(|(of, weight)| (of.into(), weight)).collect();
            backend.guarantee(&weights);
            owner.running.set_weights(&weights);
            one(Ok(()))
        }
        ActionCall::Change { place, fields, settings, seen } => one(owner.collection(&place).and_then(|collection| {
            collection.change_from(seen.as_deref(), fields, settings)?;
            Ok(Description::of(&place.tenant, place.partition, &*collection))
        })),
        ActionCall::RemovedBy { place, settings } => {
            one(owner.collection(&place).and_then(|collection| Ok(collection.removed_by(&settings)?)))
        }
        ActionCall::Room { place } => {
            one(owner.collection(&place).and_then(|collection| Ok(collection.request_room()?)))
        }
        ActionCall::Head { place, at } => {
            let head = owner.collection(&place).map(|collection| collection.head(&at.into()));
            one(head.map(|head| head.as_ref().map(WireHead::from)))
        }
        ActionCall::CountBetween { place, after, upto } => {
            let part = owner.part(&place, place.partition.unwrap_or(0));
            one(part.and_then(|part| Ok(part.count_between(after, upto)?)))
        }
        ActionCall::Delete { place, ids } => one(owner
            .collection(&place)
            .and_then(|collection| collection.delete(&ids).map(WireDeleted::from).map_err(partly))),
        ActionCall::DeleteMatching { place, filter, at, bytes_max } => {
            let control = match bytes_max {
                Some(bytes) => control.clone().reading_at_most(bytes),
                None => control.clone(),
            };
            one(delete_matching(owner, &place, &filter, at.into(), &control))
        }
        ActionCall::Files { place } => one(owner.collection(&place).and_then(|collection| {
            let deadline = Instant::now() + control.time_left().min(FILES_MAX);
            let files = collection.files(deadline, &|| control.check().is_err())?;
            Ok(WireFiles::from(files))
        })),
        ActionCall::All => many(backend.all(), |named| named),
        ActionCall::Flush { tenant, name } => one(backend.flush(&tenant, &name).map_err(Fault::from)),
        ActionCall::MetFullDisk => one(Ok(backend.met_full_disk())),
        ActionCall::FullDisk => one(Ok(backend.full_disk().map(|path| shown(&path)))),
        ActionCall::Used { uses } => one(uses.into_iter().try_for_each(|used| note_use(owner, &used))),
    }
}

/// Keeps a snapshot that a scan server showed. For a dropped collection there is nothing to keep.
fn note_use(owner: &Owner, used: &SnapshotUse) -> Result<(), Fault> {
    let part = owner.part(&used.place, used.place.partition.unwrap_or(0));
    match part.map(|part| part.note_use(Seq(used.seq))) {
        // The next owner must learn of this use, so the gateway keeps it and reports it again.
        Err(fault) if fault.is_of_the_link() => Err(fault),
        _ => Ok(()),
    }
}

fn delete_matching(
    owner: &Owner,
    place: &CollectionRef,
    filter: &Value,
    at: ReadPoint,
    control: &Control,
) -> Result<WireDeleted, Fault> {
    let collection = owner.collection(place)?;
    let predicate = Predicate::from_json(filter, &collection.schema())?;
    match collection.delete_matching(&predicate, at, control) {
        Ok(deleted) => Ok(deleted.into()),
        Err(PartialDelete { deleted, matched, why }) => {
            let (of_write, why) = fault_of(why);
            let stopped = Some((matched.unwrap_or(deleted), of_write, why));
            Ok(WireDeleted { deleted, position: collection.position(), stopped, unreached: matched.is_none() })
        }
    }
}

/// Returns whether a write failed, and the fault.
fn fault_of(why: DeleteFault) -> (bool, Fault) {
    match why {
        DeleteFault::Query(error) => (false, error.into()),
        DeleteFault::Write(error) => (true, error.into()),
    }
}

/// Returns the fault of a deletion by ids that stopped early. An earlier version reads it as that of a write.
fn partly(PartialDelete { deleted, why, .. }: PartialDelete) -> Fault {
    let (_, fault) = fault_of(why);
    if deleted > 0 { Fault::Partly(deleted, Box::new(fault)) } else { fault }
}
