//! Subscribers of the gateway, told of writes that the owner applies.
//!
//! The owner says which collections moved and where to. The events between are read as changes: so nothing is lost when
//! the connection breaks, and a burst of writes is read at once. Subscribers get each event once, in the order of its
//! collection; events that were deleted or replaced before they were read are left out.

use super::changes::schema_of;
use super::link::Link;
use super::mirror::Mirrors;
use crate::wire::answer::Moved;
use crate::wire::call::{Call, Do, Get};
use crate::wire::described::Place;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_model::{Batch, Schema, Seq, SeqLayout, Seqs, Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Events whose numbers are listed at a time.
const EVENTS_MAX: usize = 1 << 16;
/// Target size of one read of events.
const READ_BYTES: usize = 256 << 10;
/// Pause after the connection broke.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for reads of changes: what a whole catch-up may take.
const LEFT: Duration = Duration::from_secs(3600);

/// All subscribers, and what the owner is told in return.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    subscribers: Mutex<Vec<Arc<dyn Subscriber>>>,
    /// The tenants' weights, which each new owner needs.
    weights: Mutex<Vec<(String, u32)>>,
}

impl Subscription {
    pub(super) fn add(&self, subscriber: Arc<dyn Subscriber>) {
        self.subscribers.lock().push(subscriber);
    }

    pub(super) fn set_weights(&self, weights: Vec<(String, u32)>) {
        *self.weights.lock() = weights;
    }

    pub(super) fn weights(&self) -> Vec<(String, u32)> {
        self.weights.lock().clone()
    }

    fn listening(&self) -> Vec<Arc<dyn Subscriber>> {
        self.subscribers.lock().iter().filter(|subscriber| subscriber.listens()).cloned().collect()
    }
}

/// Follows the owner, also when it changes.
pub(super) async fn follow(link: Arc<Link>, mirrors: Arc<Mirrors>, subscription: Arc<Subscription>) {
    let mut owner = link.owner();
    let mut follower = Follower { link, mirrors, subscription, known: HashMap::new(), began: false };
    // Ends when nobody can name an owner any more.
    while owner.wait_for(Option::is_some).await.is_ok() {
        let followed = tokio::select! {
            followed = follower.one_owner() => followed,
            // Another owner: what this one says is no longer of interest.
            changed = async { owner.changed().await } => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if let Err(fault) = followed {
            tracing::debug!(?fault, "the owner's positions are followed no more");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Of each partition, the event up to which every one was passed on; `None` of one that has not moved.
#[derive(Clone)]
struct Known(Vec<Option<Seq>>);

impl Known {
    /// Nothing of so many partitions.
    fn none(partitions: u16) -> Known {
        Known(vec![None; usize::from(partitions.max(1))])
    }

    /// What is known of a partition, if it has that many.
    fn of(&mut self, partition: usize) -> Option<&mut Option<Seq>> {
        self.0.get_mut(partition)
    }

    /// Where to read on: nothing of a partition of which nothing is known.
    fn after(&self) -> Seqs {
        self.0.iter().map(|seq| seq.unwrap_or(Seq(u64::MAX))).collect()
    }

    fn layout(&self) -> SeqLayout {
        SeqLayout::of(self.0.len())
    }
}

struct Follower {
    link: Arc<Link>,
    mirrors: Arc<Mirrors>,
    subscription: Arc<Subscription>,
    /// By collection: what was passed on.
    known: HashMap<Place, Known>,
    /// Whether `known` is of an earlier connection.
    began: bool,
}

impl Follower {
    async fn one_owner(&mut self) -> Result<(), Fault> {
        let (mut positions, first) = self.link.get(Call::of(Get::Positions, Duration::MAX).to_json()?).await?;
        let weights = self.subscription.weights();
        if !weights.is_empty() {
            self.link.act(Do::Guarantee { weights }).await?;
        }
        // What was written before anyone here listened is passed on to nobody; what was written while the connection
        // was broken is.
        if self.subscription.listening().is_empty() {
            (self.known, self.began) = (HashMap::new(), false);
        }
        for Moved { tenant, name, made, partition, partitions, position, since } in first.meta.moved {
            // Of a collection that the earlier connection did not name, all writes came after it.
            let upto = if self.began { since } else { position };
            let known = self.known.entry(Place::of(tenant, name, made)).or_insert_with(|| Known::none(partitions));
            if let Some(known) = known.of(partition) {
                known.get_or_insert(Seq::end_of(upto));
            }
        }
        self.began = true;
        let known: Vec<Place> = self.known.keys().cloned().collect();
        for place in known {
            self.pass_on(&place).await?;
        }
        while let Some(message) = positions.next().await? {
            for Moved { tenant, name, made, partition, partitions, position, since } in message.meta.moved {
                let place = Place::of(tenant, name, made);
                if let Some(mirror) = self.mirrors.get(&place) {
                    mirror.moved(partition, position);
                }
                let is_heard = !self.subscription.listening().is_empty();
                let known = self.known.entry(place.clone()).or_insert_with(|| Known::none(partitions));
                match known.of(partition) {
                    Some(known) if is_heard => drop(known.get_or_insert(Seq::end_of(since))),
                    Some(known) => *known = Some(Seq::end_of(position)),
                    None => {}
                }
                if is_heard {
                    self.pass_on(&place).await?;
                }
            }
        }
        Ok(())
    }

    /// Passes on what a collection has beyond what is known.
    async fn pass_on(&mut self, place: &Place) -> Result<(), Fault> {
        let mut schema: Option<Arc<Schema>> = None;
        loop {
            let Some(known) = self.known.get(place).cloned() else { return Ok(()) };
            let (layout, after) = (known.layout(), known.after().map(|seq| seq.0));
            let get = Get::After { place: place.clone(), after, max: EVENTS_MAX, step_bytes: READ_BYTES };
            let (mut answer, _) = match self.link.get(Call::of(get, LEFT).to_json()?).await {
                // The collection is gone.
                Err(Fault::Closed) => {
                    self.known.remove(place);
                    return Ok(());
                }
                // A new owner may be unable to open it for now. Once it moves, what was not passed on before is read.
                Err(Fault::Damaged(_)) => return Ok(()),
                other => other?,
            };
            let (mut upto, mut passed) = (None, false);
            while let Some(message) = answer.next().await? {
                if let Some(value) = message.meta.value {
                    schema = Some(schema_of(value, schema.as_ref())?);
                }
                upto = message.meta.upto.or(upto);
                if let Some(columns) = message.columns {
                    let schema = schema.as_ref().ok_or_else(|| Fault::internal("changes without a schema"))?;
                    let Events { batch, seqs, .. } = Events::from_arrow(&columns, schema)?;
                    passed = true;
                    if let Some(last) = seqs.last() {
                        self.notify(place, known.0.len(), &batch, &seqs);
                        // Noted with each piece: after a break the rest is read, and nothing twice.
                        self.note(place, usize::from(layout.partition(*last)), *last);
                    }
                }
            }
            for (partition, upto) in upto.iter().flat_map(|upto| upto.as_slice()).enumerate() {
                // Of one that was not read nothing is known still.
                if known.0.get(partition).is_some_and(Option::is_some) {
                    self.note(place, partition, Seq(*upto));
                }
            }
            if !passed {
                return Ok(());
            }
        }
    }

    /// Notes that all of a partition up to an event was passed on.
    fn note(&mut self, place: &Place, partition: usize, upto: Seq) {
        if let Some(known) = self.known.get_mut(place).and_then(|known| known.of(partition)) {
            *known = Some(upto);
        }
    }

    fn notify(&self, place: &Place, partitions: usize, batch: &Batch, seqs: &[Seq]) {
        let listening = self.subscription.listening();
        let (tenant, collection): (Arc<str>, Arc<str>) = (place.tenant.as_str().into(), place.name.as_str().into());
        let mut from = 0;
        // Numbers that follow one by one are those of one write, or of a part of one.
        for run in seqs.chunk_by(|a, b| b.0 == a.0 + 1 && a.position() == b.position()) {
            let written = WrittenBatch {
                tenant: tenant.clone(),
                collection: collection.clone(),
                made: place.made,
                partitions: partitions as u16,
                first: run[0],
                batch: batch.slice(from, run.len()),
            };
            listening.iter().for_each(|subscriber| subscriber.notify(written.clone()));
            from += run.len();
        }
    }
}
