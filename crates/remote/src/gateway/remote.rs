//! A collection at its owner: where its queries go, and what is cached of it.

use super::answer::{Message, MessageStream};
use super::append::Producer;
use super::changes::{RemoteChanges, schema_of};
use super::engine::Patience;
use super::link::{Link, OwnerState};
use super::mirror::{Mirror, Mirrors};
use super::rows::head;
use super::scans::{QueryAttempts, QueryRoute, Scans};
use super::uses::{SnapshotGuard, SnapshotUses};
use crate::wire::call::{ActionCall, Get, WireQuery};
use crate::wire::described::{CollectionRef, Description};
use crate::wire::fault::{Fault, WireDamaged};
use crate::wire::rows::Events;
use meridian_backend::{Changes, Damaged, Eventual, Part, Partitioned, ReadPoint, ReadResult, RowSink, StoreError};
use meridian_model::{IdRole, Layout, Schema, Seq};
use meridian_query::Control;
use meridian_query::partial::Partial;
use meridian_query::wire::{Question, WireError};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;

/// State shared by all collections of a gateway.
pub(super) struct GatewayState {
    pub(super) link: Arc<Link>,
    pub(super) mirrors: Arc<Mirrors>,
    pub(super) producer: Producer,
    /// Scan servers for eventual reads; `None` if the owner serves them.
    pub(super) scans: Option<Arc<Scans>>,
    /// Snapshots shown by the scan servers.
    pub(super) uses: Arc<SnapshotUses>,
    /// Key of object hashes.
    pub(super) seed: u64,
}

/// A handle to a collection, by its mirror.
pub(super) struct Remote {
    pub(super) shared: Arc<GatewayState>,
    pub(super) mirror: Arc<Mirror>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.mirror.place).finish()
    }
}

impl Remote {
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.shared.link
    }

    /// Returns the current description: the cached one if it is valid or the owner cannot be asked.
    pub(super) fn now(&self) -> Arc<Description> {
        self.newest(self.mirror.last())
    }

    /// As [`Remote::now`], for callers that do not depend on recent writes.
    pub(super) fn defined(&self) -> Arc<Description> {
        self.newest(self.mirror.definition())
    }

    fn newest(&self, (known, holds): (Arc<Description>, bool)) -> Arc<Description> {
        if holds {
            return known;
        }
        let asked = Instant::now();
        // While the owner is away the cached one will do; the query itself waits.
        match self.describe_newest() {
            Ok(Some(found)) if found.place == self.mirror.place => {
                self.shared.mirrors.put(found, asked);
                self.mirror.last().0
            }
            _ => known,
        }
    }

    /// Asks the owner for the newest collection or partition of this name, with a short timeout. `None`: it does not
    /// exist.
    pub(super) fn describe_newest(&self) -> Result<Option<Description>, Fault> {
        let place = &self.mirror.place;
        let (tenant, name) = (place.tenant.clone(), place.name.clone());
        let describe = ActionCall::Describe { tenant, name, partition: place.partition };
        let found = self.link().value_now(describe);
        if found.is_err() {
            self.mirror.failed();
        }
        found
    }

    /// Returns true if the owner cannot open the collection for now, for example because its log does not answer. The
    /// last description then stays valid, as while the owner is away.
    pub(super) fn is_retried(&self) -> bool {
        let CollectionRef { tenant, name, .. } = self.mirror.place.clone();
        let why = self.link().value_now::<Option<WireDamaged>>(ActionCall::WhyDamaged { tenant, name });
        let is_retried = why.ok().flatten().is_some_and(|why| Damaged::from(why).is_retried());
        if is_retried {
            self.mirror.failed();
        }
        is_retried
    }

    /// Asks the owner to describe a place; `None` if it no longer exists.
    pub(super) fn describe(&self, place: &CollectionRef) -> Result<Option<Description>, Fault> {
        let (tenant, name) = (place.tenant.clone(), place.name.clone());
        let describe = ActionCall::Describe { tenant, name, partition: place.partition };
        let found: Option<Description> = self.link().value(describe, &self.link().patience())?;
        Ok(found.filter(|found| found.place == *place))
    }

    /// Returns true if the owner is serving and has described the collection a moment ago.
    pub(super) fn is_there(&self) -> bool {
        self.link().standing() == OwnerState::Serves && self.mirror.is_fresh()
    }

    /// The schema that queries are bound to. Fields are only ever added, so any known version resolves their numbers.
    pub(super) fn known_schema(&self) -> Arc<Schema> {
        self.mirror.last().0.schema.clone()
    }

    pub(super) fn asked(&self, at: ReadPoint, question: &Question, control: &Control) -> Result<WireQuery, Fault> {
        let question = question_json(question, &self.known_schema(), control)?;
        let (place, bytes_max) = (self.mirror.place.clone(), control.bytes_max());
        Ok(WireQuery { place, at: at.into(), question, bytes_max, busy_timeout_us: None })
    }

    /// Sends a query to the owner or, for an eventual read of a partition, to scan servers. Returns once the first
    /// message has arrived.
    pub(super) fn begin(
        &self,
        at: &ReadPoint,
        question: &Question,
        control: &Control,
        make: fn(WireQuery) -> Get,
    ) -> Result<(QueryRoute, MessageStream, Message), Fault> {
        let (asked, link) = (self.asked(at.clone(), question, control)?, self.link().clone());
        let via = match (&at.eventual, &self.shared.scans) {
            (Some(Eventual { scan_type }), Some(scans)) if self.mirror.place.partition.is_some() => {
                let of = (asked.clone(), make);
                let asking =
                    QueryAttempts::new((scans.clone(), link.clone()), of, scan_type.clone(), control.time_left());
                QueryRoute::Scans(Box::new(asking), link)
            }
            _ => QueryRoute::Owner(link),
        };
        via.begin((asked, make), &Patience::of(control))
    }

    /// Returns the collection assembled from its partitions, if these are to be queried one by one. For a partition,
    /// that is a collection of it alone.
    pub(super) fn in_parts(&self, at: &ReadPoint) -> Option<Partitioned> {
        if at.eventual.is_none() || self.shared.scans.is_none() {
            return None;
        }
        let parts = match self.mirror.place.partition {
            None => self.mirror.parts(),
            Some(_) => vec![self.mirror.clone()],
        };
        let part = |mirror| Arc::new(Remote { shared: self.shared.clone(), mirror }) as Arc<dyn Part>;
        Some(Partitioned::new(parts.into_iter().map(part).collect()))
    }

    /// As [`Remote::in_parts`], but only for a collection whose partitions this gateway does not address one by one.
    pub(super) fn in_unknown_parts(&self, at: &ReadPoint) -> Option<Partitioned> {
        self.in_parts(at).filter(|_| self.mirror.place.partition.is_none())
    }

    /// A snapshot shown by a process other than the owner.
    pub(super) fn shown(&self, seq: Seq) -> SnapshotGuard {
        SnapshotGuard { uses: self.shared.uses.clone(), place: self.mirror.place.clone(), seq }
    }

    pub(super) fn ask(&self, get: Get, patience: &Patience) -> Result<(MessageStream, Message), Fault> {
        self.link().ask(get, patience)
    }

    pub(super) fn asks_partial(
        &self,
        at: ReadPoint,
        question: &Question,
        control: &Control,
    ) -> Result<ReadResult<Partial>, Fault> {
        let patience = Patience::of(control);
        let (mut via, mut answer, mut first) = self.begin(&at, question, control, Get::Partial)?;
        let (head, columns) = loop {
            let head = head(&mut first, &self.known_schema())?;
            match answer.whole(first, via.link(), &patience) {
                Ok(columns) => break (head, columns),
                // Nothing of it was used, so another server is asked for all of it.
                Err(fault) => via.lost(fault)?,
            }
            (via, answer, first) = via.again(&patience)?;
        };
        via.done();
        let columns = columns.ok_or_else(|| Fault::internal("a partial answer without columns"))?;
        let value = Partial::from_arrow(&columns, question, &head.schema, control);
        let value = value.map_err(|e| match e {
            WireError::Refused(error) => error.into(),
            other => Fault::internal(other.to_string()),
        })?;
        Ok(ReadResult { head, value })
    }

    /// Passes the rows of a response to a sink; returns true if there is a response.
    pub(super) fn pass(&self, get: Get, patience: &Patience, sink: &mut dyn RowSink) -> Result<bool, Fault> {
        let (answer, mut first) = self.ask(get, patience)?;
        let (Some(total), Some(value)) = (first.meta.total, first.meta.value.take()) else { return Ok(false) };
        let schema = schema_of(value, Some(&self.known_schema()))?;
        let layout = Layout::of(&schema);
        let Some(columns) = answer.whole(first, self.link(), patience)? else {
            sink.begin(&schema, &layout, total, 0);
            return Ok(true);
        };
        let Events { batch, seqs, distances } = Events::from_arrow(&columns, &schema)?;
        sink.begin(&schema, &layout, total, batch.rows());
        let made = schema.id == IdRole::Made;
        for (row, seq) in seqs.iter().enumerate() {
            let distance_m = distances.as_ref().and_then(|distances| distances.get(row)).copied();
            sink.row(&batch, row, made.then_some(*seq), distance_m);
        }
        Ok(true)
    }

    pub(super) fn changes(&self, get: Get) -> Result<Box<dyn Changes>, StoreError> {
        let asked = self.ask(get, &self.link().patience());
        let begun = asked
            .and_then(|(answer, first)| RemoteChanges::new(self.link().clone(), answer, first, &self.known_schema()));
        begun.map(|changes| Box::new(changes) as Box<dyn Changes>).map_err(Fault::into_store)
    }
}

/// Encodes a query for the wire.
pub(super) fn question_json(question: &Question, schema: &Schema, control: &Control) -> Result<Value, Fault> {
    let written = question.to_json(schema, control.time_left()).map_err(|e| Fault::internal(e.to_string()))?;
    serde_json::from_slice(&written).map_err(|e| Fault::internal(e.to_string()))
}
