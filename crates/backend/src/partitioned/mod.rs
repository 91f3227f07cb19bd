//! A collection of several partitions, assembled from these.
//!
//! Each partition is a collection with a part of the events (see `split.rs`), a log and a snapshot of its own. A query
//! is sent to each, and the results are merged: rows by their cursors (`rows.rs`), numbers as partial results. A
//! snapshot of the collection is a vector of the partitions' snapshots. So the writes it shows are whole in each
//! partition, and not across them.
//!
//! The first error ends a result, which is then an error: it is never taken for a complete result.
//!
//! A change of the schema reaches the last partition first and the first one last. Fields are only added. So the schema
//! of the first partition, read before the others, is part of theirs, and results are cut to it.

mod changes;
mod gather;
pub(crate) mod imported;
mod queries;
mod rows;
mod split;
#[cfg(test)]
mod tests;
mod write;

use crate::collection::Collection;
use crate::collection::Part;
use crate::history::History;
use crate::lookups::Lookups;
use crate::read::{Head, Near, ReadPoint, ReadResult, RowSink};
use crate::receipts::{DeleteReceipt, Files, WriteReceipt};
use crate::writes::{Append, PartialDelete, Writes};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, IdRole, Invalid, Layout, Schema, Seq, SeqLayout, Seqs, partition_of};
use meridian_query::partial::Partial;
use meridian_query::wire::{Question, WireError};
use meridian_query::{Control, QueryError, Tile};
use meridian_store::seams::Random;
use meridian_store::{CollectionStats, Definition, Problem, Settings, SnapshotGone, StoreError, Write, WriteError};
use std::ops::Range;
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// A collection assembled from its partitions.
#[derive(Debug)]
pub struct Partitioned {
    parts: Vec<Arc<dyn Part>>,
}

impl Partitioned {
    /// Makes a collection of all its partitions, in their order. A single partition behaves as on its own.
    pub fn new(parts: Vec<Arc<dyn Part>>) -> Partitioned {
        Partitioned { parts }
    }

    /// The first partition, whose name, schema and settings are the collection's.
    fn first(&self) -> &dyn Part {
        &*self.parts[0]
    }

    /// Splits a snapshot of the collection into those of its partitions.
    fn each(&self, at: &ReadPoint) -> Result<Vec<ReadPoint>, QueryError> {
        let Some(seqs) = &at.seq else { return Ok(vec![at.clone(); self.parts.len()]) };
        if seqs.len() != self.parts.len() {
            // Of another collection with this name: refused like one that is gone.
            return Err(SnapshotGone { seq: seqs.at(0) }.into());
        }
        let one = |seq: &Seq| ReadPoint { seq: Some(Seqs::one(*seq)), ..at.clone() };
        Ok(seqs.as_slice().iter().map(one).collect())
    }

    /// Returns the partitions that may have the event with an id. Empty if no event of the collection can have this id.
    fn parts_of(&self, id: &str) -> Range<usize> {
        // The number in an id may be that of no partition.
        let one = |partition: usize| if partition < self.parts.len() { partition..partition + 1 } else { 0..0 };
        match (self.first().schema().id, Seq::from_id(id)) {
            (IdRole::Given, _) => one(partition_of(id.as_bytes(), self.parts.len())),
            (IdRole::Made, Err(_)) => 0..0,
            // Numbered with a different number of partitions, so all of them have to be searched.
            (IdRole::Made, Ok(seq)) if self.first().imported().is_some_and(|all| seq.position() <= all.upto) => {
                0..self.parts.len()
            }
            (IdRole::Made, Ok(seq)) => one(usize::from(SeqLayout::Partitioned.partition(seq))),
        }
    }

    /// Returns a value for each partition.
    fn vector<T>(&self, of: impl Fn(&dyn Part) -> T) -> meridian_model::Vector<T> {
        self.parts.iter().map(|part| of(&**part)).collect()
    }

    /// Returns the merged partial results of all partitions.
    fn ask(&self, at: &ReadPoint, question: &Question, control: &Control) -> Result<ReadResult<Partial>, QueryError> {
        let (mut heads, mut answers) = (Vec::new(), Vec::new());
        // Whether a tile is drawn depends on all of them together.
        let may_draw = matches!(question, Question::Tile(tile) if !tile.density);
        for (part, at) in self.parts.iter().zip(self.each(at)?) {
            control.check()?;
            let ReadResult { head, value } = part.partial(at, question, control)?;
            heads.push(head);
            answers.push(value);
            // Merged immediately, as keeping a grid or the groups of each of 256 partitions would take that many times
            // the memory.
            if answers.len() > 1 && !may_draw {
                answers = vec![Partial::merge(answers, question).map_err(merge_error)?.ok_or_else(other_answer)?];
            }
        }
        let head = join(heads)?;
        match Partial::merge(answers, question).map_err(merge_error)? {
            Some(value) => Ok(ReadResult { head, value }),
            None => {
                let Question::Tile(tile) = question else { return Err(other_answer()) };
                if tile.density {
                    return Err(other_answer());
                }
                // Together they are too many to draw. All are queried again, on the same snapshots, as one that drew
                // has no counts.
                self.ask(
                    &ReadPoint { seq: Some(head.seq), ..at.clone() },
                    &Question::Tile(Tile { density: true, ..tile.clone() }),
                    control,
                )
            }
        }
    }
}

/// Joins the heads of all partitions, in their order.
fn join(heads: Vec<Head>) -> Result<Head, QueryError> {
    // The shortest schema is part of the others. In one process it is that of the first partition; followers may be at
    // different points.
    let shortest = heads.iter().min_by_key(|head| head.schema.fields.len()).ok_or_else(other_answer)?;
    Ok(Head {
        seq: heads.iter().map(|head| head.seq.at(0)).collect(),
        schema: shortest.schema.clone(),
        taken_at: heads.iter().map(|head| head.taken_at).min().unwrap_or(shortest.taken_at),
        missing: heads.iter().flat_map(|head| head.missing.iter().cloned()).collect(),
        rows: heads.iter().fold(0u64, |all, head| all.saturating_add(head.rows)),
    })
}

fn merge_error(error: WireError) -> QueryError {
    match error {
        WireError::Refused(error) => error,
        other => Invalid::new(other.to_string()).into(),
    }
}

fn other_answer() -> QueryError {
    Invalid::new("a partition answered another question").into()
}

impl Collection for Partitioned {
    fn name(&self) -> &str {
        self.first().name()
    }

    fn created(&self) -> i64 {
        self.first().created()
    }

    fn began(&self) -> i64 {
        self.first().began()
    }

    fn schema(&self) -> Arc<Schema> {
        self.first().schema()
    }

    fn settings(&self) -> Settings {
        self.first().settings()
    }

    fn stats(&self) -> CollectionStats {
        let mut all = CollectionStats::default();
        self.parts.iter().for_each(|part| all.add(&part.stats()));
        all
    }

    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError> {
        Ok(self.parts.get(number).cloned())
    }

    fn change_from(
        &self,
        seen: Option<&Definition>,
        fields: Vec<Field>,
        settings: Option<Settings>,
    ) -> Result<(), StoreError> {
        write::change(&self.parts, seen, &fields, settings.as_ref())
    }

    fn removed_by(&self, settings: &Settings) -> Result<u64, StoreError> {
        self.parts.iter().try_fold(0u64, |all, part| Ok(all.saturating_add(part.removed_by(settings)?)))
    }

    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        let (mut seqs, mut paths, mut kept_until) = (Vec::new(), Vec::new(), i64::MAX);
        for part in &self.parts {
            let files = part.files(deadline, cancelled)?;
            seqs.push(files.seq.at(0));
            paths.extend(files.paths);
            kept_until = kept_until.min(files.kept_until);
        }
        Ok(Files { seq: seqs.into_iter().collect(), paths, kept_until })
    }
}

impl Writes for Partitioned {
    fn request_room(&self) -> Result<bool, WriteError> {
        // All are asked, as each has its own flush to make.
        self.parts.iter().try_fold(true, |room, part| Ok(part.request_room()? && room))
    }

    fn has_room(&self) -> bool {
        self.parts.iter().all(|part| part.has_room())
    }

    fn room_wait(&self) -> Duration {
        self.parts.iter().map(|part| part.room_wait()).max().unwrap_or_default()
    }

    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError> {
        write::append(&self.parts, &self.schema(), write, deadline)
    }

    fn write(&self, write: Write) -> Result<WriteReceipt, WriteError> {
        write::write(&self.parts, &self.schema(), write)
    }

    fn delete(&self, ids: &[String]) -> Result<DeleteReceipt, PartialDelete> {
        let mut of_parts = vec![Vec::new(); self.parts.len()];
        for id in ids {
            of_parts[self.parts_of(id)].iter_mut().for_each(|ids| ids.push(id.clone()));
        }
        write::delete(&self.parts, &of_parts)
    }

    fn delete_matching(
        &self,
        predicate: &Predicate,
        at: ReadPoint,
        control: &Control,
    ) -> Result<DeleteReceipt, PartialDelete> {
        let ats = self.each(&at)?;
        write::delete_matching(&self.parts, ats, predicate, control)
    }
}

impl Lookups for Partitioned {
    fn event(&self, id: &str) -> Result<ReadResult<Option<(Batch, Seq)>>, StoreError> {
        let positions = self.position();
        let (asked, mut missing) = (self.parts_of(id), Vec::<Problem>::new());
        let last = asked.end.saturating_sub(1);
        // The first one answers for an id that no event can have.
        for part in asked.start.min(last)..=last {
            let ReadResult { head, value } = self.parts[part].event(id)?;
            missing.extend(head.missing.iter().cloned());
            if value.is_some() || part == last {
                // The snapshots of the others are not part of the result.
                let seq = positions.ends().with(part, head.seq.at(0));
                return Ok(ReadResult { head: Head { seq, missing: missing.into(), ..head }, value });
            }
        }
        Err(StoreError::Closed)
    }

    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        gather::near(&self.parts, question, rows_max, sink)
    }

    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError> {
        gather::page(&self.parts, (skip, limit), control, sink)
    }

    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        for part in &self.parts[self.parts_of(id)] {
            if part.find(id, sink)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sample(&self, random: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError> {
        gather::sample(&self.parts, random, control, sink)
    }
}

/// Returns the schema that results are cut to, with its layout.
fn shape(schema: Arc<Schema>) -> (Arc<Schema>, Arc<Layout>) {
    let layout = Arc::new(Layout::of(&schema));
    (schema, layout)
}
