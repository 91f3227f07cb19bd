//! A collection that the owner has.

use super::answer::{Answer, Message};
use super::append::{self, Producer};
use super::changes::{RemoteChanges, schema_of};
use super::link::{Link, Patience};
use super::mirror::{Mirror, Mirrors};
use super::part::RemotePartRows;
use super::prior::RemotePriorEvents;
use super::rows::{RemoteRows, head, query_error};
use super::scans::{Asking, Scans, Via};
use crate::wire::answer::WireDeleted;
use crate::wire::call::{Asked, Do, Get};
use crate::wire::described::{Description, Place};
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_backend::measured::counted;
use meridian_backend::{
    Append, At, Changes, Collection, CollectionStats, DeleteFault, Deleted, Eventual, Files, Head, Near, Part,
    PartialDelete, Partitioned, PriorEvents, Random, Read, RowSink, Rows, Settings, StoreError, Write, WriteError,
    Written,
};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, IdRole, Invalid, Layout, Positions, Schema, Seq, Seqs};
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{
    Partial, PartialGrid, PartialGroups, PartialPassages, PartialTile, PartialTrack, RowStream, WireError,
};
use meridian_query::wire::{Count, Question};
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Tile, TileResult, Track, TrackResult,
};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// How long the owner of a partition is waited for where what is known of it will do.
const SOON: Duration = Duration::from_secs(1);

/// What all collections of a gateway share.
pub(super) struct Shared {
    pub(super) link: Arc<Link>,
    pub(super) mirrors: Arc<Mirrors>,
    pub(super) producer: Producer,
    /// What answers eventual reads, if anything but the owner does.
    pub(super) scans: Option<Arc<Scans>>,
    /// Keys the numbers of objects.
    pub(super) seed: u64,
}

/// A collection by its mirror.
pub(super) struct Remote {
    pub(super) shared: Arc<Shared>,
    pub(super) mirror: Arc<Mirror>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.mirror.place).finish()
    }
}

impl Remote {
    fn link(&self) -> &Arc<Link> {
        &self.shared.link
    }

    /// The collection as it is: what is known, if that still holds or the owner cannot be asked.
    fn now(&self) -> Arc<Description> {
        let (known, holds) = self.mirror.last();
        if holds {
            return known;
        }
        let asked = Instant::now();
        let place = &self.mirror.place;
        let found = match place.partition {
            None => self.describe(place),
            // The other partitions go on while the owner of one is away: nobody waits for it longer than this.
            Some(_) => self.describe_now(),
        };
        match found {
            Ok(Some(found)) => {
                self.shared.mirrors.put(found, asked);
                self.mirror.last().0
            }
            _ => known,
        }
    }

    /// What the owner says of this partition, if it says that soon; `None`: it is gone.
    fn describe_now(&self) -> Result<Option<Description>, Fault> {
        Ok(self.describe_newest()?.filter(|found| found.place == self.mirror.place))
    }

    /// The same of the newest collection of its name.
    pub(super) fn describe_newest(&self) -> Result<Option<Description>, Fault> {
        let place = &self.mirror.place;
        let (tenant, name) = (place.tenant.clone(), place.name.clone());
        let describe = Do::Describe { tenant, name, partition: place.partition };
        let found = self.link().value_now(describe, &Patience::within(SOON));
        if found.is_err() {
            self.mirror.failed();
        }
        found
    }

    /// What the owner says of a place; `None`: it is gone.
    fn describe(&self, place: &Place) -> Result<Option<Description>, Fault> {
        let (tenant, name) = (place.tenant.clone(), place.name.clone());
        let describe = Do::Describe { tenant, name, partition: place.partition };
        let found: Option<Description> = self.link().value(describe, &self.link().patience())?;
        Ok(found.filter(|found| found.place == *place))
    }

    /// The schema that questions are bound to: fields only come, so any that is known reads the numbers of their fields.
    fn known_schema(&self) -> Arc<Schema> {
        self.mirror.last().0.schema.clone()
    }

    fn asked(&self, at: At, question: &Question, control: &Control) -> Result<Asked, Fault> {
        let question = question_json(question, &self.known_schema(), control)?;
        let (place, bytes_max) = (self.mirror.place.clone(), control.bytes_max());
        Ok(Asked { place, at: at.into(), question, bytes_max, busy_timeout_us: None })
    }

    /// Asks the owner or, of a partition that is read eventually, scan servers; the first message has arrived.
    fn begin(
        &self,
        at: &At,
        question: &Question,
        control: &Control,
        make: fn(Asked) -> Get,
    ) -> Result<(Via, Answer, Message), Fault> {
        let (asked, link) = (self.asked(at.clone(), question, control)?, self.link().clone());
        let via = match (&at.eventual, &self.shared.scans) {
            (Some(Eventual { scan_type }), Some(scans)) if self.mirror.place.partition.is_some() => {
                let of = (asked.clone(), make);
                let asking = Asking::new((scans.clone(), link.clone()), of, scan_type.clone(), control.time_left());
                Via::Scans(Box::new(asking), link)
            }
            _ => Via::Owner(link),
        };
        via.begin((asked, make), &Patience::of(control))
    }

    /// The collection put together from its partitions, where these are to be asked one by one.
    fn in_parts(&self, at: &At) -> Option<Partitioned> {
        if at.eventual.is_none() || self.shared.scans.is_none() || self.mirror.place.partition.is_some() {
            return None;
        }
        let parts = self.mirror.parts().into_iter();
        let part = |mirror| Arc::new(Remote { shared: self.shared.clone(), mirror }) as Arc<dyn Part>;
        Some(Partitioned::new(parts.map(part).collect()))
    }

    fn ask(&self, get: Get, patience: &Patience) -> Result<(Answer, Message), Fault> {
        self.link().ask(get, patience)
    }

    fn asks_partial(&self, at: At, question: &Question, control: &Control) -> Result<Read<Partial>, Fault> {
        let patience = Patience::of(control);
        let (mut via, mut answer, mut first) = self.begin(&at, question, control, Get::Partial)?;
        let (head, columns) = loop {
            let head = head(&mut first, &self.known_schema())?;
            match answer.whole(first, via.link(), &patience) {
                Ok(columns) => break (head, columns),
                // Nothing of it was used: another server is asked for all of it.
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
        Ok(Read { head, value })
    }

    /// Passes the rows of an answer to a sink; returns whether there is one.
    fn pass(&self, get: Get, patience: &Patience, sink: &mut dyn RowSink) -> Result<bool, Fault> {
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

    fn changes(&self, get: Get) -> Result<Box<dyn Changes>, StoreError> {
        let asked = self.ask(get, &self.link().patience());
        let begun = asked
            .and_then(|(answer, first)| RemoteChanges::new(self.link().clone(), answer, first, &self.known_schema()));
        begun.map(|changes| Box::new(changes) as Box<dyn Changes>).map_err(Fault::into_store)
    }
}

/// Questions whose partial answer is finished here.
macro_rules! of_a_partial {
    ($($name:ident($question:ident) -> $answer:ty, $part:ident: $finish:expr;)*) => {
        $(fn $name(&self, at: At, question: &$question, control: &Control) -> Result<Read<$answer>, QueryError> {
            let Read { head, value } = self.partial(at, &Question::$question(question.clone()), control)?;
            let Partial::$part(part) = value else { return Err(other_answer()) };
            Ok(Read { head, value: $finish(part, question, control)? })
        })*
    };
}

/// A question on the wire.
pub(super) fn question_json(question: &Question, schema: &Schema, control: &Control) -> Result<Value, Fault> {
    let written = question.to_json(schema, control.time_left()).map_err(|e| Fault::internal(e.to_string()))?;
    serde_json::from_slice(&written).map_err(|e| Fault::internal(e.to_string()))
}

fn other_answer() -> QueryError {
    Fault::internal("an answer to another question").into_query()
}

impl Collection for Remote {
    fn name(&self) -> &str {
        &self.mirror.place.name
    }

    fn created(&self) -> i64 {
        self.mirror.place.made
    }

    fn schema(&self) -> Arc<Schema> {
        self.now().schema.clone()
    }

    fn settings(&self) -> Settings {
        self.now().settings.clone()
    }

    fn stats(&self) -> CollectionStats {
        self.now().stats.clone()
    }

    fn position(&self) -> Positions {
        self.now();
        self.mirror.position()
    }

    fn oldest(&self) -> Seqs {
        self.now().oldest.map(Seq)
    }

    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError> {
        let Ok(partition) = u16::try_from(number) else { return Ok(None) };
        let (asked, place) = (Instant::now(), Place { partition: Some(partition), ..self.mirror.place.clone() });
        let found = self.describe(&place).map_err(Fault::into_store)?;
        Ok(found.map(|found| {
            let mirror = self.shared.mirrors.put(found, asked);
            Arc::new(Remote { shared: self.shared.clone(), mirror }) as Arc<dyn Part>
        }))
    }

    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError> {
        let ask = Do::Change { place: self.mirror.place.clone(), fields, settings };
        let changed = self.link().once::<Description>(ask, &self.link().patience());
        self.mirror.written(None);
        // As of after the change, so it holds from now on.
        changed.map(|now| drop(self.shared.mirrors.put(now, Instant::now()))).map_err(Fault::into_store)
    }

    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError> {
        let ask = Do::RemovedBy { place: self.mirror.place.clone(), settings: settings.clone() };
        self.link().value(ask, &self.link().patience()).map_err(Fault::into_store)
    }

    fn request_room(&self) -> Result<bool, WriteError> {
        let now = self.now();
        match now.refusal() {
            Some(refusal) => Err(refusal),
            None if now.room => Ok(true),
            None => {
                let ask = Do::Room { place: self.mirror.place.clone() };
                self.link().value(ask, &self.link().patience()).map_err(Fault::into_write)
            }
        }
    }

    fn has_room(&self) -> bool {
        self.now().room
    }

    fn room_wait(&self) -> Duration {
        Duration::from_micros(self.mirror.last().0.room_wait_us)
    }

    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError> {
        append::append(self.link(), &self.mirror, &self.shared.producer, write, deadline)
    }

    fn write(&self, write: Write) -> Result<Written, WriteError> {
        let time = self.room_wait() + self.link().options.timeout;
        let patience = Patience::within(time);
        let append = self.append(write, Instant::now() + time)?;
        let written = self.link().wait(&patience, async move { append.await.map_err(Fault::from) });
        // The wait ends after the deadline of the write, whose outcome is then known or unknown.
        written.map_err(|fault| match fault {
            Fault::Deadline => WriteError::Unknown("the owner of the data did not answer in time".to_owned()),
            other => other.into_write(),
        })
    }

    fn delete(&self, ids: &[String]) -> Result<Deleted, WriteError> {
        let ask = Do::Delete { place: self.mirror.place.clone(), ids: ids.to_vec() };
        let deleted = self.link().once::<WireDeleted>(ask, &self.link().patience());
        self.mirror.written(deleted.as_ref().ok().map(|deleted| &deleted.position));
        let WireDeleted { deleted, position, .. } = deleted.map_err(Fault::into_write)?;
        Ok(Deleted { deleted, position })
    }

    fn delete_matching(&self, predicate: &Predicate, at: At, control: &Control) -> Result<Deleted, PartialDelete> {
        let not_started = |fault: Fault| {
            let why = DeleteFault::Query(query_error(fault, control));
            PartialDelete { deleted: 0, matched: 0, why }
        };
        let filter = predicate.to_json().ok_or_else(|| not_started(Fault::internal("the filter has no expression")))?;
        let (place, bytes_max) = (self.mirror.place.clone(), control.bytes_max());
        let ask = Do::DeleteMatching { place, filter, at: at.into(), bytes_max };
        let done = self.link().once::<WireDeleted>(ask, &Patience::of(control));
        self.mirror.written(done.as_ref().ok().map(|done| &done.position));
        let WireDeleted { deleted, position, stopped } = done.map_err(not_started)?;
        match stopped {
            None => Ok(Deleted { deleted, position }),
            Some((matched, of_write, fault)) => {
                let why = match of_write {
                    true => DeleteFault::Write(fault.into_write()),
                    false => DeleteFault::Query(query_error(fault, control)),
                };
                Err(PartialDelete { deleted, matched, why })
            }
        }
    }

    fn event(&self, id: &str) -> Result<Read<Option<(Batch, Seq)>>, StoreError> {
        let ask = || {
            let patience = self.link().patience();
            let get = Get::Event { place: self.mirror.place.clone(), id: id.to_owned() };
            let (answer, mut first) = self.ask(get, &patience)?;
            let head = head(&mut first, &self.known_schema())?;
            let value = match answer.whole(first, self.link(), &patience)? {
                None => None,
                Some(columns) => {
                    let Events { batch, seqs, .. } = Events::from_arrow(&columns, &head.schema)?;
                    seqs.first().map(|seq| (batch, *seq))
                }
            };
            Ok(Read { head, value })
        };
        ask().map_err(Fault::into_store)
    }

    fn items(&self, at: At, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError> {
        if let Some(parts) = self.in_parts(&at) {
            return parts.items(at, question, control);
        }
        let _plan = observe::stage(Stage::Plan);
        let ask = || {
            let asked = self.asked(at, &Question::Items(question.clone()), control)?;
            let (answer, first) = self.ask(Get::Rows(asked), &Patience::of(control))?;
            RemoteRows::new(self.link().clone(), control.clone(), answer, first, &self.known_schema())
        };
        ask().map(|rows| Box::new(rows) as Box<dyn Rows>).map_err(|fault| query_error(fault, control))
    }

    fn cuts(&self, at: At, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError> {
        let ask = || {
            let get = Get::Cuts { place: self.mirror.place.clone(), at: at.into(), parts };
            let (_, first) = self.ask(get, &Patience::of(control))?;
            let bytes: Vec<Vec<u8>> = serde_json::from_value(first.meta.value.unwrap_or_default())
                .map_err(|e| Fault::internal(e.to_string()))?;
            let cuts: Option<Vec<Cursor>> = bytes.iter().map(|bytes| Cursor::from_bytes(bytes)).collect();
            cuts.ok_or_else(|| Fault::internal("a cursor cannot be read"))
        };
        ask().map_err(|fault| query_error(fault, control))
    }

    fn count(
        &self,
        at: At,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError> {
        let question = Question::Count(Count { predicate: predicate.clone(), tested_max });
        match self.partial(at, &question, control)?.value {
            Partial::Count(count) => Ok(count.total),
            _ => Err(other_answer()),
        }
    }

    fn partial(&self, at: At, question: &Question, control: &Control) -> Result<Read<Partial>, QueryError> {
        if let Some(parts) = self.in_parts(&at) {
            return parts.partial(at, question, control);
        }
        let mut scan = observe::stage(Stage::Scan);
        let read = self.asks_partial(at, question, control).map_err(|fault| query_error(fault, control))?;
        let stats = read.value.stats();
        counted(&mut scan, &stats);
        control.charge_elsewhere(stats.bytes_read);
        Ok(read)
    }

    fn explain(&self, at: At, question: &Items, control: &Control) -> Result<Read<Explanation>, QueryError> {
        if let Some(parts) = self.in_parts(&at) {
            return parts.explain(at, question, control);
        }
        let ask = || {
            let question = Question::Items(question.clone());
            // All of the answer is its first message.
            let (mut via, _, mut first) = self.begin(&at, &question, control, Get::Explain)?;
            via.done();
            let head = head(&mut first, &self.known_schema())?;
            let value = first.meta.value.unwrap_or_default();
            let value: Explanation = serde_json::from_value(value).map_err(|e| Fault::internal(e.to_string()))?;
            control.charge_elsewhere(value.stats.bytes_read);
            Ok(Read { head, value })
        };
        ask().map_err(|fault| query_error(fault, control))
    }

    of_a_partial! {
        aggregate(Aggregate) -> Aggregated, Groups: |part: Box<PartialGroups>, q, c| part.finish(q, c);
        density(Density) -> DensityCounts, Grid: |part: PartialGrid, _, _| Ok::<_, QueryError>(part.finish());
        track(Track) -> TrackResult, Track: |part: PartialTrack, q, c| part.finish(q, c);
        passages(Passages) -> PassagesResult, Passages: |part: PartialPassages, q, _| Ok::<_, QueryError>(part.finish(q));
    }

    fn tile(&self, at: At, question: &Tile, control: &Control) -> Result<Read<TileResult>, QueryError> {
        let mut question = question.clone();
        loop {
            let Read { head, value } = self.partial(at.clone(), &Question::Tile(question.clone()), control)?;
            let Partial::Tile(part) = value else { return Err(other_answer()) };
            let merged = PartialTile::merge(vec![part], &question);
            match merged.map_err(|e| Fault::internal(e.to_string()).into_query())? {
                Some(part) => return Ok(Read { head, value: part.finish(&question) }),
                // Too many to be drawn, where that shows only as they are put together.
                None if !question.density => question.density = true,
                None => return Err(other_answer()),
            }
        }
    }

    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        // The caller must not block then, and here every question does.
        if rows_max.is_some() {
            return Ok(false);
        }
        let get = Get::Near { place: self.mirror.place.clone(), near: question.into() };
        self.pass(get, &self.link().patience(), sink).map(|_| true).map_err(Fault::into_store)
    }

    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError> {
        let get = Get::Page { place: self.mirror.place.clone(), skip, limit };
        self.pass(get, &Patience::of(control), sink).map(|_| ()).map_err(|fault| query_error(fault, control))
    }

    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        let get = Get::Find { place: self.mirror.place.clone(), id: id.to_owned() };
        self.pass(get, &self.link().patience(), sink).map_err(Fault::into_store)
    }

    fn sample(&self, _: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError> {
        let get = Get::Sample { place: self.mirror.place.clone() };
        self.pass(get, &Patience::of(control), sink).map_err(|fault| query_error(fault, control))
    }

    fn changes_after(&self, after: &Seqs, max: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError> {
        let after = after.map(|seq| seq.0);
        self.changes(Get::After { place: self.mirror.place.clone(), after, max, step_bytes })
    }

    fn changes_between(&self, after: &Positions, upto: &Positions, max: usize) -> Result<Box<dyn Changes>, StoreError> {
        let (after, upto) = (after.clone(), upto.clone());
        self.changes(Get::Between { place: self.mirror.place.clone(), after, upto, max })
    }

    fn prior_events(&self) -> Box<dyn PriorEvents> {
        let (link, place) = (self.link().clone(), self.mirror.place.clone());
        Box::new(RemotePriorEvents { link, place, seed: self.shared.seed })
    }

    fn files(&self, _: Instant, _: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        let detail = "a gateway has no files: ask the server that owns the data, or read them in its folder or bucket";
        Err(Invalid::new(detail).into())
    }
}

impl Part for Remote {
    fn rows(
        &self,
        at: At,
        question: &Items,
        control: &Control,
    ) -> Result<(Head, Box<dyn RowStream + Send>), QueryError> {
        let ask = || {
            let begun = self.begin(&at, &Question::Items(question.clone()), control, Get::PartRows)?;
            RemotePartRows::new(begun, (at, question), control, &self.known_schema())
        };
        let rows = ask().map_err(|fault| query_error(fault, control))?;
        Ok((rows.head().clone(), Box::new(rows)))
    }
}
