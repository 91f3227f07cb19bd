//! Subscribers of the gateway, notified of writes that the owner applies.
//!
//! The owner reports which collections moved, and to which position. The events in between are read as changes, so
//! nothing is lost when the connection breaks, and a burst of writes is read at once. Subscribers get each event once,
//! in the order of its collection. Events deleted or replaced before they were read are left out.

use super::changes::schema_of;
use super::link::Link;
use super::mirror::Mirrors;
use crate::wire::answer::PartitionPosition;
use crate::wire::call::{ActionCall, Call, Get};
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_backend::Damaged;
use meridian_model::{Batch, Schema, Seq, SeqLayout, Seqs, Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Max event numbers listed at a time.
const EVENTS_MAX: usize = 1 << 16;
/// Target size of one read of events.
const READ_BYTES: usize = 256 << 10;
/// Pause after the connection breaks.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause before retrying collections that their owner could not read.
const BUSY: Duration = Duration::from_millis(500);
/// Time limit of change reads, which covers a whole catch-up.
const LEFT: Duration = Duration::from_secs(3600);

/// All subscribers, and the weights sent to the owner in return.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    subscribers: Mutex<Vec<Arc<dyn Subscriber>>>,
    /// The tenants' weights, sent to each new owner.
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

/// Follows the owner, across changes of owner. `parts`: it has only some partitions of a collection, each followed like
/// a collection of its own.
pub(super) async fn follow(link: Arc<Link>, mirrors: Arc<Mirrors>, subscription: Arc<Subscription>, parts: bool) {
    let mut owner = link.owner();
    let mut follower =
        Follower { link, mirrors, subscription, parts, known: HashMap::new(), busy: HashSet::new(), began: false };
    // Ends once no owner can be named any more.
    while owner.wait_for(Option::is_some).await.is_ok() {
        let followed = tokio::select! {
            followed = follower.one_owner() => followed,
            // Another owner: the old one's reports no longer matter.
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

/// For each partition followed together, the event up to which all were passed on; `None` until it first moves.
#[derive(Clone)]
struct PassedPositions {
    /// Number of partitions of the collection.
    partitions: u16,
    seqs: Vec<Option<Seq>>,
}

impl PassedPositions {
    /// Starts without positions, for a place in a collection of `partitions` partitions.
    fn none(place: &CollectionRef, partitions: u16) -> PassedPositions {
        let partitions = partitions.max(1);
        let followed = if place.partition.is_some() { 1 } else { usize::from(partitions) };
        PassedPositions { partitions, seqs: vec![None; followed] }
    }

    /// Returns the entry of a followed partition, if there are that many.
    fn of(&mut self, at: usize) -> Option<&mut Option<Seq>> {
        self.seqs.get_mut(at)
    }

    /// Returns where to resume reading. A partition without a position reads nothing.
    fn after(&self) -> Seqs {
        self.seqs.iter().map(|seq| seq.unwrap_or(Seq(u64::MAX))).collect()
    }

    /// Returns the index of the followed partition that holds an event.
    fn at(&self, seq: Seq) -> usize {
        match self.seqs.len() {
            1 => 0,
            _ => usize::from(SeqLayout::of(usize::from(self.partitions)).partition(seq)),
        }
    }
}

struct Follower {
    link: Arc<Link>,
    mirrors: Arc<Mirrors>,
    subscription: Arc<Subscription>,
    /// Whether each partition is followed separately.
    parts: bool,
    /// Events passed on so far, by collection or partition.
    known: HashMap<CollectionRef, PassedPositions>,
    /// Places that their owner cannot read now: they are retried soon, and hold up nothing else.
    busy: HashSet<CollectionRef>,
    /// Whether `known` is from an earlier connection.
    began: bool,
}

impl Follower {
    async fn one_owner(&mut self) -> Result<(), Fault> {
        let (mut positions, first) = self.link.get(Call::of(Get::Positions, Duration::MAX).to_json()?).await?;
        let weights = self.subscription.weights();
        if !weights.is_empty() {
            self.link.act(ActionCall::Guarantee { weights }).await?;
        }
        // Writes from before anyone subscribed here are not passed on; writes from while the connection was broken are.
        if self.subscription.listening().is_empty() {
            (self.known, self.began) = (HashMap::new(), false);
        }
        // Places that may have unread events. They include places not in this report: those were dropped, or cannot be
        // opened now.
        let mut behind: HashSet<CollectionRef> = self.known.keys().cloned().collect();
        let mut read = HashSet::new();
        for moved in first.meta.moved {
            // The earlier connection did not name this collection, so all of its writes came later.
            let upto = if self.began { moved.since } else { moved.position };
            let (place, at) = self.place_of(&moved);
            let nothing = PassedPositions::none(&place, moved.partitions);
            let known = self.known.entry(place.clone()).or_insert(nothing).of(at);
            let passed_on = known.map(|known| known.get_or_insert(Seq::end_of(upto)).position());
            behind.remove(&place);
            if passed_on.is_some_and(|position| position < moved.position) {
                read.insert(place);
            }
        }
        self.began = true;
        behind.extend(read);
        for place in behind {
            self.pass_on(&place).await?;
        }
        let mut again = tokio::time::interval(BUSY);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                message = positions.next() => message?,
                _ = again.tick(), if !self.busy.is_empty() => {
                    for place in std::mem::take(&mut self.busy) {
                        self.pass_on(&place).await?;
                    }
                    continue;
                }
            };
            let Some(message) = message else { return Ok(()) };
            for moved in message.meta.moved {
                let ((place, at), position) = (self.place_of(&moved), moved.position);
                if let Some(mirror) = self.mirrors.get(&place) {
                    mirror.moved(at, position);
                }
                let is_heard = !self.subscription.listening().is_empty();
                let nothing = PassedPositions::none(&place, moved.partitions);
                match self.known.entry(place.clone()).or_insert(nothing).of(at) {
                    Some(known) if is_heard => drop(known.get_or_insert(Seq::end_of(moved.since))),
                    Some(known) => *known = Some(Seq::end_of(position)),
                    None => {}
                }
                if is_heard {
                    self.pass_on(&place).await?;
                }
            }
        }
    }

    /// Returns the place followed for a partition that has moved, and the partition's index in it.
    fn place_of(&self, moved: &PartitionPosition) -> (CollectionRef, usize) {
        let place = CollectionRef::of(moved.tenant.as_str(), moved.name.as_str(), moved.made);
        match self.parts {
            true => (CollectionRef { partition: u16::try_from(moved.partition).ok(), ..place }, 0),
            false => (place, moved.partition),
        }
    }

    /// Passes on the unread events of a place, or defers them until it is readable.
    async fn pass_on(&mut self, place: &CollectionRef) -> Result<(), Fault> {
        match self.read_on(place).await {
            Err(fault) if fault.is_of_the_reader() => {
                tracing::debug!(?fault, collection = %place.name, "writes are passed on later: trying again");
                self.busy.insert(place.clone());
                Ok(())
            }
            read => read,
        }
    }

    async fn read_on(&mut self, place: &CollectionRef) -> Result<(), Fault> {
        let mut schema: Option<Arc<Schema>> = None;
        loop {
            let Some(known) = self.known.get(place).cloned() else { return Ok(()) };
            let after = known.after().map(|seq| seq.0);
            let get = Get::After { place: place.clone(), after, max: EVENTS_MAX, step_bytes: READ_BYTES };
            let (mut answer, _) = match self.link.get(Call::of(get, LEFT).to_json()?).await {
                // The collection no longer exists.
                Err(Fault::Closed) => {
                    self.known.remove(place);
                    return Ok(());
                }
                // Repaired at the owner's next start, whose positions bring the unread events.
                Err(Fault::Damaged(why)) if !Damaged::from(why.clone()).is_retried() => return Ok(()),
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
                        self.notify(place, known.partitions, &batch, &seqs);
                        // Recorded after each piece: after a break only the rest is read, and nothing twice.
                        self.note(place, known.at(*last), *last);
                    }
                }
            }
            for (partition, upto) in upto.iter().flat_map(|upto| upto.as_slice()).enumerate() {
                // A partition that was not read still has no position.
                if known.seqs.get(partition).is_some_and(Option::is_some) {
                    self.note(place, partition, Seq(*upto));
                }
            }
            if !passed {
                return Ok(());
            }
        }
    }

    /// Records that everything in a partition up to an event was passed on.
    fn note(&mut self, place: &CollectionRef, partition: usize, upto: Seq) {
        if let Some(known) = self.known.get_mut(place).and_then(|known| known.of(partition)) {
            *known = Some(upto);
        }
    }

    fn notify(&self, place: &CollectionRef, partitions: u16, batch: &Batch, seqs: &[Seq]) {
        let listening = self.subscription.listening();
        let (tenant, collection): (Arc<str>, Arc<str>) = (place.tenant.as_str().into(), place.name.as_str().into());
        let mut from = 0;
        // Consecutive numbers belong to one write, or to a part of one.
        for run in seqs.chunk_by(|a, b| b.0 == a.0 + 1 && a.position() == b.position()) {
            let written = WrittenBatch {
                tenant: tenant.clone(),
                collection: collection.clone(),
                made: place.made,
                partitions,
                first: run[0],
                batch: batch.slice(from, run.len()),
            };
            listening.iter().for_each(|subscriber| subscriber.notify(written.clone()));
            from += run.len();
        }
    }
}
