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
use crate::wire::described::CollectionRef;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_model::{Batch, Schema, Seq, SeqLayout, Seqs, Subscriber, WrittenBatch};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Events whose numbers are listed at a time.
const EVENTS_MAX: usize = 1 << 16;
/// Target size of one read of events.
const READ_BYTES: usize = 256 << 10;
/// Pause after the connection broke.
const PAUSE: Duration = Duration::from_millis(100);
/// Pause before a collection is read again that was not to be read for the moment.
const BUSY: Duration = Duration::from_millis(500);
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
/// `parts`: it has some partitions of a collection only, each of which is followed as a collection of its own.
pub(super) async fn follow(link: Arc<Link>, mirrors: Arc<Mirrors>, subscription: Arc<Subscription>, parts: bool) {
    let mut owner = link.owner();
    let mut follower =
        Follower { link, mirrors, subscription, parts, known: HashMap::new(), busy: HashSet::new(), began: false };
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

/// Of each partition that is followed together, the event up to which every one was passed on; `None` of one that has not moved.
#[derive(Clone)]
struct Known {
    /// How many partitions the collection has.
    partitions: u16,
    seqs: Vec<Option<Seq>>,
}

impl Known {
    /// Nothing of a place in a collection of `partitions` partitions.
    fn none(place: &CollectionRef, partitions: u16) -> Known {
        let partitions = partitions.max(1);
        let followed = if place.partition.is_some() { 1 } else { usize::from(partitions) };
        Known { partitions, seqs: vec![None; followed] }
    }

    /// What is known of one of the partitions that are followed, if there are that many.
    fn of(&mut self, at: usize) -> Option<&mut Option<Seq>> {
        self.seqs.get_mut(at)
    }

    /// Where to read on: nothing of a partition of which nothing is known.
    fn after(&self) -> Seqs {
        self.seqs.iter().map(|seq| seq.unwrap_or(Seq(u64::MAX))).collect()
    }

    /// Which of the partitions that are followed an event is in.
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
    /// Whether each partition is followed by itself.
    parts: bool,
    /// By collection or partition: what was passed on.
    known: HashMap<CollectionRef, Known>,
    /// What was not to be read for the moment: it is read again soon, and holds nothing else up.
    busy: HashSet<CollectionRef>,
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
        // What was written before anyone here listened is not passed on; what was written while the connection
        // was broken is.
        if self.subscription.listening().is_empty() {
            (self.known, self.began) = (HashMap::new(), false);
        }
        // Places that may have more than what was passed on, among them unnamed ones: they are gone, or cannot be opened now.
        let mut behind: HashSet<CollectionRef> = self.known.keys().cloned().collect();
        let mut read = HashSet::new();
        for moved in first.meta.moved {
            // Of a collection that the earlier connection did not name, all writes came after it.
            let upto = if self.began { moved.since } else { moved.position };
            let (place, at) = self.place_of(&moved);
            let nothing = Known::none(&place, moved.partitions);
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
                let nothing = Known::none(&place, moved.partitions);
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

    /// What is followed for a partition that has moved, and which of the partitions in it that is.
    fn place_of(&self, moved: &Moved) -> (CollectionRef, usize) {
        let place = CollectionRef::of(moved.tenant.as_str(), moved.name.as_str(), moved.made);
        match self.parts {
            true => (CollectionRef { partition: u16::try_from(moved.partition).ok(), ..place }, 0),
            false => (place, moved.partition),
        }
    }

    /// Passes on what a place has beyond what is known, now or once it can be read.
    async fn pass_on(&mut self, place: &CollectionRef) -> Result<(), Fault> {
        match self.read_on(place).await {
            Err(Fault::Busy(_)) => {
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
                        self.notify(place, known.partitions, &batch, &seqs);
                        // Noted with each piece: after a break the rest is read, and nothing twice.
                        self.note(place, known.at(*last), *last);
                    }
                }
            }
            for (partition, upto) in upto.iter().flat_map(|upto| upto.as_slice()).enumerate() {
                // Of one that was not read nothing is known still.
                if known.seqs.get(partition).is_some_and(Option::is_some) {
                    self.note(place, partition, Seq(*upto));
                }
            }
            if !passed {
                return Ok(());
            }
        }
    }

    /// Notes that all of a partition up to an event was passed on.
    fn note(&mut self, place: &CollectionRef, partition: usize, upto: Seq) {
        if let Some(known) = self.known.get_mut(place).and_then(|known| known.of(partition)) {
            *known = Some(upto);
        }
    }

    fn notify(&self, place: &CollectionRef, partitions: u16, batch: &Batch, seqs: &[Seq]) {
        let listening = self.subscription.listening();
        let (tenant, collection): (Arc<str>, Arc<str>) = (place.tenant.as_str().into(), place.name.as_str().into());
        let mut from = 0;
        // Numbers that follow one by one are those of one write, or of a part of one.
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
