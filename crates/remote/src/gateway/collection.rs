//! A collection held by the owner.

use super::append;
use super::engine::Patience;
use super::part::RemotePartRows;
use super::prior::RemotePriorEvents;
use super::remote::Remote;
use super::rows::{RemoteRows, head, query_error};
use crate::wire::answer::{WireDeleted, WireFiles};
use crate::wire::call::{Do, Get};
use crate::wire::described::{CollectionRef, Description, WireHead};
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_backend::measured::counted;
use meridian_backend::{
    Append, At, Changes, Collection, CollectionStats, DeleteFault, Deleted, Files, Head, Imported, Near, Part,
    PartialDelete, PriorEvents, Random, Read, RowSink, Rows, Settings, StoreError, Write, WriteError, Written,
};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, Positions, Schema, Seq, Seqs};
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{
    Partial, PartialGrid, PartialGroups, PartialPassages, PartialTile, PartialTrack, RowStream,
};
use meridian_query::wire::{Count, Question};
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Tile, TileResult, Track, TrackResult,
};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Implements the queries whose partial result is finished here.
macro_rules! of_a_partial {
    ($($name:ident($question:ident) -> $answer:ty, $part:ident: $finish:expr;)*) => {
        $(fn $name(&self, at: At, question: &$question, control: &Control) -> Result<Read<$answer>, QueryError> {
            let Read { head, value } = self.partial(at, &Question::$question(question.clone()), control)?;
            let Partial::$part(part) = value else { return Err(other_answer()) };
            Ok(Read { head, value: $finish(part, question, control)? })
        })*
    };
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

    fn began(&self) -> i64 {
        self.defined().began.unwrap_or(self.mirror.place.made)
    }

    fn schema(&self) -> Arc<Schema> {
        self.defined().schema.clone()
    }

    fn settings(&self) -> Settings {
        self.defined().settings.clone()
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
        let (asked, place) =
            (Instant::now(), CollectionRef { partition: Some(partition), ..self.mirror.place.clone() });
        let found = self.describe(&place).map_err(Fault::into_store)?;
        Ok(found.map(|found| {
            let mirror = self.shared.mirrors.put(found, asked);
            Arc::new(Remote { shared: self.shared.clone(), mirror }) as Arc<dyn Part>
        }))
    }

    fn change(&self, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError> {
        let ask = Do::Change { place: self.mirror.place.clone(), fields, settings };
        let changed = self.link().once::<Description>(ask, &self.link().patience());
        self.mirror.changed();
        // Described after the change, so it is valid from now on.
        changed.map(|now| drop(self.shared.mirrors.put(now, Instant::now()))).map_err(Fault::into_store)
    }

    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError> {
        let ask = Do::RemovedBy { place: self.mirror.place.clone(), settings: settings.clone() };
        self.link().value(ask, &self.link().patience()).map_err(Fault::into_store)
    }

    fn request_room(&self) -> Result<bool, WriteError> {
        let now = self.defined();
        match now.refusal() {
            Some(refusal) => Err(refusal),
            None if now.room => Ok(true),
            None if now.late => Err(WriteError::late()),
            None => {
                let ask = Do::Room { place: self.mirror.place.clone() };
                self.link().value(ask, &self.link().patience()).map_err(Fault::into_write)
            }
        }
    }

    fn has_room(&self) -> bool {
        self.defined().room
    }

    fn room_wait(&self) -> Duration {
        Duration::from_micros(self.mirror.last().0.room_wait_us)
    }

    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError> {
        append::append(self.link(), &self.mirror, &self.shared.producer, write, deadline)
    }

    fn head(&self, at: &At) -> Option<Head> {
        // Only the response tells which snapshot a scan server has.
        if at.eventual.is_some() && self.shared.scans.is_some() {
            return None;
        }
        let ask = Do::Head { place: self.mirror.place.clone(), at: at.clone().into() };
        // Asked once. Without a response the query itself is sent, as servers of earlier versions require.
        let head = self.link().value_now::<Option<WireHead>>(ask).ok().flatten()?;
        Some(head.into_head(&self.known_schema()))
    }

    fn write(&self, write: Write) -> Result<Written, WriteError> {
        let time = self.room_wait() + self.link().options.timeout;
        let patience = Patience::within(time);
        let append = self.append(write, Instant::now() + time)?;
        let written = self.link().wait(&patience, async move { append.await.map_err(Fault::from) });
        // The wait ends after the deadline of the write; the outcome is then known or unknown.
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
        if let Some(parts) = self.in_unknown_parts(&at) {
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
        if let Some(parts) = self.in_unknown_parts(&at) {
            return parts.explain(at, question, control);
        }
        let ask = || {
            let question = Question::Items(question.clone());
            // The whole response is in the first message.
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
                // Too many events to draw, which only the merge may reveal.
                None if !question.density => question.density = true,
                None => return Err(other_answer()),
            }
        }
    }

    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        // The caller asks not to block, and every query blocks here.
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

    fn files(&self, deadline: Instant, _: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        let patience = Patience::within(deadline.saturating_duration_since(Instant::now()));
        let ask = Do::Files { place: self.mirror.place.clone() };
        self.link().value::<WireFiles>(ask, &patience).map(Files::from).map_err(Fault::into_store)
    }
}

impl Part for Remote {
    fn imported(&self) -> Option<Imported> {
        self.defined().imported.clone()
    }

    fn note_use(&self, seq: Seq) {
        self.shown(seq).note();
    }

    fn count_between(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        let ask = Do::CountBetween { place: self.mirror.place.clone(), after, upto };
        self.link().value(ask, &self.link().patience()).map_err(Fault::into_store)
    }

    fn rows(
        &self,
        at: At,
        question: &Items,
        control: &Control,
    ) -> Result<(Head, Box<dyn RowStream + Send>), QueryError> {
        let by_scan_servers = at.eventual.is_some() && self.shared.scans.is_some();
        let ask = || {
            let begun = self.begin(&at, &Question::Items(question.clone()), control, Get::PartRows)?;
            RemotePartRows::new(begun, (at, question), control, &self.known_schema())
        };
        let rows = ask().map_err(|fault| query_error(fault, control))?;
        let head = rows.head().clone();
        let shown = by_scan_servers.then(|| self.shown(head.seq.at(0)));
        Ok((head, Box::new(rows.showing(shown))))
    }
}
