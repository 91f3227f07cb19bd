//! A collection held by the owner.

mod queries;

use super::append;
use super::engine::Patience;
use super::part::RemotePartRows;
use super::prior::RemotePriorEvents;
use super::remote::Remote;
use super::rows::{head, query_error};
use crate::wire::answer::{WireDeleted, WireFiles};
use crate::wire::call::{ActionCall, Get};
use crate::wire::described::{CollectionRef, Description};
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use meridian_backend::{
    Append, Changes, Collection, CollectionStats, Definition, DeleteFault, DeleteReceipt, Files, Head, History,
    ImportOrigin, Lookups, Near, Part, PartialDelete, PriorEvents, Random, ReadPoint, ReadResult, RowSink, Settings,
    StoreError, Write, WriteError, WriteReceipt, Writes,
};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, Positions, Schema, Seq, Seqs};
use meridian_query::partial::RowStream;
use meridian_query::wire::Question;
use meridian_query::{Control, Items, QueryError};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

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

    fn change_from(
        &self,
        seen: Option<&Definition>,
        fields: Vec<Field>,
        settings: Option<Settings>,
    ) -> Result<(), StoreError> {
        let (place, seen) = (self.mirror.place.clone(), seen.cloned().map(Box::new));
        let ask = ActionCall::Change { place, fields, settings, seen };
        let changed = self.link().once::<Description>(ask, &self.link().patience());
        self.mirror.changed();
        // Described after the change, so it is valid from now on.
        changed.map(|now| drop(self.shared.mirrors.put(now, Instant::now()))).map_err(Fault::into_store)
    }

    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError> {
        let ask = ActionCall::RemovedBy { place: self.mirror.place.clone(), settings: settings.clone() };
        self.link().value(ask, &self.link().patience()).map_err(Fault::into_store)
    }

    fn files(&self, deadline: Instant, _: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        let patience = Patience::within(deadline.saturating_duration_since(Instant::now()));
        let ask = ActionCall::Files { place: self.mirror.place.clone() };
        self.link().value::<WireFiles>(ask, &patience).map(Files::from).map_err(Fault::into_store)
    }
}

impl Writes for Remote {
    fn request_room(&self) -> Result<bool, WriteError> {
        let now = self.defined();
        match now.refusal() {
            Some(refusal) => Err(refusal),
            None if now.room => Ok(true),
            None if now.late => Err(WriteError::late()),
            None => {
                let ask = ActionCall::Room { place: self.mirror.place.clone() };
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

    fn write(&self, write: Write) -> Result<WriteReceipt, WriteError> {
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

    fn delete(&self, ids: &[String]) -> Result<DeleteReceipt, PartialDelete> {
        let ask = ActionCall::Delete { place: self.mirror.place.clone(), ids: ids.to_vec() };
        let deleted = self.link().once::<WireDeleted>(ask, &self.link().patience());
        self.mirror.written(deleted.as_ref().ok().map(|deleted| &deleted.position));
        match deleted {
            Ok(WireDeleted { deleted, position, .. }) => Ok(DeleteReceipt { deleted, position }),
            Err(Fault::Partly(deleted, why)) => {
                Err(PartialDelete { deleted, matched: None, why: DeleteFault::Write(why.into_write()) })
            }
            Err(fault) => Err(fault.into_write().into()),
        }
    }

    fn delete_matching(
        &self,
        predicate: &Predicate,
        at: ReadPoint,
        control: &Control,
    ) -> Result<DeleteReceipt, PartialDelete> {
        let not_started = |fault: Fault| PartialDelete::from(query_error(fault, control));
        let filter = predicate.to_json().ok_or_else(|| not_started(Fault::internal("the filter has no expression")))?;
        let (place, bytes_max) = (self.mirror.place.clone(), control.bytes_max());
        let ask = ActionCall::DeleteMatching { place, filter, at: at.into(), bytes_max };
        let done = self.link().once::<WireDeleted>(ask, &Patience::of(control));
        self.mirror.written(done.as_ref().ok().map(|done| &done.position));
        let WireDeleted { deleted, position, stopped, unreached } = done.map_err(not_started)?;
        match stopped {
            None => Ok(DeleteReceipt { deleted, position }),
            Some((matched, of_write, fault)) => {
                let why = match of_write {
                    true => DeleteFault::Write(fault.into_write()),
                    false => DeleteFault::Query(query_error(fault, control)),
                };
                Err(PartialDelete { deleted, matched: (!unreached).then_some(matched), why })
            }
        }
    }
}

impl Lookups for Remote {
    fn event(&self, id: &str) -> Result<ReadResult<Option<(Batch, Seq)>>, StoreError> {
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
            Ok(ReadResult { head, value })
        };
        ask().map_err(Fault::into_store)
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
}

impl History for Remote {
    fn position(&self) -> Positions {
        self.now();
        self.mirror.position()
    }

    fn oldest(&self) -> Seqs {
        self.now().oldest.map(Seq)
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
}

impl Part for Remote {
    fn imported(&self) -> Option<ImportOrigin> {
        self.defined().imported.clone()
    }

    fn note_use(&self, seq: Seq) {
        self.shown(seq).note();
    }

    fn count_between(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        let ask = ActionCall::CountBetween { place: self.mirror.place.clone(), after, upto };
        self.link().value(ask, &self.link().patience()).map_err(Fault::into_store)
    }

    fn rows(
        &self,
        at: ReadPoint,
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
