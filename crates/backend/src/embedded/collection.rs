//! A collection in this process: each query reads one snapshot of the store.

use super::commit::CommitExecutor;
use super::rows::{LocalRows, pass_rows};
use crate::collection::Collection;
use crate::collection::Part;
use crate::history::History;
use crate::lookups::Lookups;
use crate::measured::counted;
use crate::partitioned::imported;
use crate::queries::Queries;
use crate::read::{Changes, Head, Near, PriorEvents, ReadPoint, ReadResult, RowSink, Rows};
use crate::receipts::{DeleteReceipt, Files, WriteReceipt};
use crate::writes::{Append, DeleteFault, PartialDelete, Writes};
use meridian_model::filter::Predicate;
use meridian_model::{Batch, Field, Invalid, Positions, Projection, Schema, Seq, Seqs};
use meridian_observe::{self as observe, Stage};
use meridian_query::near::{Circle, Walk};
use meridian_query::partial::{PartRows, Partial, RowStream};
use meridian_query::wire::Question;
use meridian_query::{
    Aggregate, Aggregated, Control, Cursor, Density, DensityCounts, Explanation, Items, Passages, PassagesResult,
    QueryError, Stats, Tile, TileResult, Track, TrackResult, browse,
};
use meridian_store::seams::Random;
use meridian_store::{
    CollectionStats, Definition, ImportOrigin, PartView, Partitions, Settings, Snapshot, StoreError, Write, WriteError,
};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Events per step of a deletion by filter.
const DELETE_STEP_EVENTS: usize = 65_536;
/// Max bytes of a batch that may be committed on the caller's thread while commits are quick.
const SMALL_BYTES: usize = 64 << 10;

/// A collection of the store.
#[derive(Debug, Clone)]
pub(super) struct LocalCollection {
    /// The partitions of the collection in this process, including its own. No separate reference to its own is kept:
    /// every query clones this struct, and all threads change the same reference counts.
    pub(super) held: Partitions,
    /// Index of its own partition.
    pub(super) own: usize,
    pub(super) commits: Arc<CommitExecutor>,
}

impl LocalCollection {
    fn collection(&self) -> &Arc<meridian_store::Collection> {
        &self.held[self.own]
    }

    fn snapshot(&self, at: ReadPoint) -> Result<Snapshot, QueryError> {
        let collection = self.collection();
        let seq = at.seq.map(|seqs| the_one(&seqs)).transpose()?;
        Ok(match (seq, at.history) {
            (None, false) => collection.snapshot(),
            (None, true) => collection.history(),
            (Some(seq), false) => collection.snapshot_at(seq)?,
            (Some(seq), true) => collection.history_at(seq)?,
        })
    }

    /// Runs a query on one snapshot.
    fn query<T>(
        &self,
        at: ReadPoint,
        question: impl FnOnce(&Snapshot) -> Result<T, QueryError>,
    ) -> Result<ReadResult<T>, QueryError> {
        let snapshot = self.snapshot(at)?;
        let value = question(&snapshot)?;
        Ok(ReadResult { head: Head::of(&snapshot), value })
    }
}

/// Returns the number of a snapshot of one partition.
fn the_one(seqs: &Seqs) -> Result<Seq, Invalid> {
    match seqs.as_slice() {
        &[seq] => Ok(seq),
        other => Err(Invalid::new(format!("a snapshot of {} partitions, of a collection that has one", other.len()))),
    }
}

/// Implements methods by those of the store.
macro_rules! of_the_store {
    ($($name:ident($($given:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($given: $type),*) -> $result {
            self.collection().$name($($given),*)
        })*
    };
}

/// Implements queries of one snapshot.
macro_rules! of_a_snapshot {
    ($($name:ident($question:ty) -> $answer:ty;)*) => {
        $(fn $name(&self, at: ReadPoint, question: &$question, control: &Control) -> Result<ReadResult<$answer>, QueryError> {
            let mut scan = observe::stage(Stage::Scan);
            let read = self.query(at, |snapshot| meridian_query::$name(snapshot, question, control))?;
            counted(&mut scan, &read.value.stats);
            Ok(read)
        })*
    };
}

impl Collection for LocalCollection {
    of_the_store! {
        name() -> &str;
        created() -> i64;
        began() -> i64;
        schema() -> Arc<Schema>;
        settings() -> Settings;
        stats() -> CollectionStats;
        change_from(seen: Option<&Definition>, fields: Vec<Field>, settings: Option<Settings>) -> Result<(), StoreError>;
        removed_by(settings: &Settings) -> Result<u64, StoreError>;
    }

    fn part(&self, number: usize) -> Result<Option<Arc<dyn Part>>, StoreError> {
        let held = self.held.iter().position(|one| one.partition() as usize == number);
        Ok(held.map(|own| Arc::new(LocalCollection { own, ..self.clone() }) as Arc<dyn Part>))
    }

    fn files(&self, deadline: Instant, cancelled: &dyn Fn() -> bool) -> Result<Files, StoreError> {
        self.collection().files(deadline.into_std(), cancelled).map(Files::from)
    }
}

impl Writes for LocalCollection {
    of_the_store! {
        has_room() -> bool;
        room_wait() -> Duration;
    }

    fn write(&self, write: Write) -> Result<WriteReceipt, WriteError> {
        self.collection().write(write).map(WriteReceipt::from)
    }

    fn delete(&self, ids: &[String]) -> Result<DeleteReceipt, PartialDelete> {
        Ok(self.collection().delete(ids)?.into())
    }

    fn request_room(&self) -> Result<bool, WriteError> {
        self.collection().ask_for_room()
    }

    fn append(&self, write: Write, deadline: Instant) -> Result<Append, WriteError> {
        // Encoding and writing a large batch would block a worker, however quick the disk is.
        let small = write.batch.bytes() <= SMALL_BYTES;
        let pending = self.collection().submit(write)?;
        let (commits, current) = (self.commits.clone(), observe::current());
        Ok(Box::pin(async move {
            let commit = current.stage(Stage::Commit);
            let within = commit.span.within(current);
            observe::within(within, commits.finish(pending, deadline, small)).await.map(WriteReceipt::from)
        }))
    }

    fn delete_matching(
        &self,
        predicate: &Predicate,
        at: ReadPoint,
        control: &Control,
    ) -> Result<DeleteReceipt, PartialDelete> {
        let snapshot = self.snapshot(at)?;
        // Found in one snapshot before the first deletion: later events that match are not part of this request.
        let found = meridian_query::matching_rows(&snapshot, predicate, control)?;
        let matched = Some(found.iter().map(|(_, rows)| rows.len() as u64).sum());
        let mut all = DeleteReceipt { deleted: 0, position: self.position() };
        // What matched in the snapshot is deleted, unless another write has replaced it since. Small steps keep a large
        // deletion from delaying other writes.
        for step in steps(&found) {
            let done = control.check().map_err(DeleteFault::Query);
            let done = done.and_then(|()| self.collection().delete_rows(&step).map_err(DeleteFault::Write));
            let done = done.map_err(|why| PartialDelete { deleted: all.deleted, matched, why })?;
            all = DeleteReceipt { deleted: all.deleted + done.deleted, position: Positions::one(done.position) };
        }
        Ok(all)
    }
}

impl Queries for LocalCollection {
    of_a_snapshot! {
        explain(Items) -> Explanation;
        aggregate(Aggregate) -> Aggregated;
        density(Density) -> DensityCounts;
        tile(Tile) -> TileResult;
        track(Track) -> TrackResult;
        passages(Passages) -> PassagesResult;
    }

    fn may_be_brief(&self) -> bool {
        true
    }

    fn head(&self, at: &ReadPoint) -> Option<Head> {
        self.snapshot(at.clone()).ok().map(|snapshot| Head::of(&snapshot))
    }

    fn items(&self, at: ReadPoint, question: &Items, control: &Control) -> Result<Box<dyn Rows>, QueryError> {
        let _plan = observe::stage(Stage::Plan);
        let snapshot = self.snapshot(at)?;
        let answer = meridian_query::items(&snapshot, question, control)?;
        Ok(Box::new(LocalRows { head: Head::of(&snapshot), answer, counted: Stats::default() }))
    }

    fn cuts(&self, at: ReadPoint, parts: usize, control: &Control) -> Result<Vec<Cursor>, QueryError> {
        let _plan = observe::stage(Stage::Plan);
        meridian_query::cuts(&self.snapshot(at)?, parts, control)
    }

    fn partial(
        &self,
        at: ReadPoint,
        question: &Question,
        control: &Control,
    ) -> Result<ReadResult<Partial>, QueryError> {
        self.query(at, |snapshot| Partial::of(snapshot, question, control))
    }

    fn count(
        &self,
        at: ReadPoint,
        predicate: &Predicate,
        tested_max: u64,
        control: &Control,
    ) -> Result<Option<u64>, QueryError> {
        let mut scan = observe::stage(Stage::Scan);
        let (count, stats) = meridian_query::count(&self.snapshot(at)?, predicate, tested_max, control)?;
        counted(&mut scan, &stats);
        Ok(count)
    }
}

impl Lookups for LocalCollection {
    fn event(&self, id: &str) -> Result<ReadResult<Option<(Batch, Seq)>>, StoreError> {
        // The history, because an id names an event even if a newer one of its object hides it.
        let snapshot = self.collection().history();
        let value = match snapshot.find(id)? {
            None => None,
            Some((view, row)) => {
                let batch = view.read(row..row + 1, &Projection::all(&snapshot.layout))?;
                let seq = view.seqs(row..row + 1)?.first().copied().unwrap_or_default();
                Some((batch, Seq(seq)))
            }
        };
        Ok(ReadResult { head: Head::of(&snapshot), value })
    }

    fn near(&self, question: &Near, rows_max: Option<usize>, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        let (snapshot, circle) =
            (self.collection().snapshot(), Circle::new(question.lon, question.lat, question.radius_m));
        // Opening reads, so it is for a thread that may block.
        if rows_max.is_some() && !snapshot.is_open() {
            return Ok(false);
        }
        let snapshot = if snapshot.is_open() { snapshot } else { snapshot.open_within(&circle.bounds())? };
        // Bounded by the rows: `k` sizes a heap, and it comes from the client.
        let k = question.skip.saturating_add(question.limit).min(snapshot.rows() as usize);
        // The walk reads only trees, which are in memory.
        let walk = Walk::new(&snapshot, circle);
        // Nothing has been read yet, so the caller can repeat the query on a thread that may block.
        if rows_max.is_some_and(|max| walk.rows_to_read(k) > max) {
            return Ok(false);
        }
        let (total, hits) = walk.finish(&snapshot, k)?;
        let shown = hits.get(question.skip..).unwrap_or_default();
        pass_rows(&snapshot, total, shown.iter().map(|hit| (hit.part, hit.row, Some(hit.distance_m))), sink)?;
        Ok(true)
    }

    fn page(&self, skip: u64, limit: usize, control: &Control, sink: &mut dyn RowSink) -> Result<(), QueryError> {
        let snapshot = self.collection().snapshot().open_all()?;
        let page = browse::page(&snapshot, skip, limit, control)?;
        Ok(pass_rows(&snapshot, page.total, page.rows.into_iter().map(|(part, row)| (part, row, None)), sink)?)
    }

    fn find(&self, id: &str, sink: &mut dyn RowSink) -> Result<bool, StoreError> {
        let snapshot = self.collection().snapshot().open_for_id(id)?;
        for (part, view) in snapshot.parts.iter().enumerate() {
            if let Some(row) = view.find_id(id)? {
                pass_rows(&snapshot, 1, std::iter::once((part, row, None)), sink)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sample(&self, random: &dyn Random, control: &Control, sink: &mut dyn RowSink) -> Result<bool, QueryError> {
        let snapshot = self.collection().snapshot().open_all()?;
        let Some((part, row)) = browse::sample(&snapshot, random, control)? else { return Ok(false) };
        pass_rows(&snapshot, 1, std::iter::once((part, row, None)), sink)?;
        Ok(true)
    }
}

impl History for LocalCollection {
    fn position(&self) -> Positions {
        Positions::one(self.collection().position())
    }

    fn oldest(&self) -> Seqs {
        Seqs::one(self.collection().oldest())
    }

    fn changes_after(&self, after: &Seqs, max: usize, step_bytes: usize) -> Result<Box<dyn Changes>, StoreError> {
        Ok(Box::new(self.collection().written_after(the_one(after)?, max)?.in_steps_of(step_bytes)))
    }

    fn changes_between(&self, after: &Positions, upto: &Positions, max: usize) -> Result<Box<dyn Changes>, StoreError> {
        let (after, left_out) = imported::pass(&[self], after)?;
        Ok(Box::new(self.collection().written_since(after.at(0), upto.at(0), max)?.after_others(left_out)))
    }

    fn prior_events(&self) -> Box<dyn PriorEvents> {
        Box::new(self.collection().prior_events())
    }
}

impl Part for LocalCollection {
    fn rows(
        &self,
        at: ReadPoint,
        question: &Items,
        control: &Control,
    ) -> Result<(Head, Box<dyn RowStream + Send>), QueryError> {
        let snapshot = self.snapshot(at)?;
        let rows = PartRows::of(&snapshot, question, control)?;
        Ok((Head::of(&snapshot), Box::new(rows)))
    }

    fn imported(&self) -> Option<ImportOrigin> {
        self.collection().imported()
    }

    fn note_use(&self, seq: Seq) {
        self.collection().note_use(seq);
    }

    fn count_between(&self, after: u64, upto: u64) -> Result<u64, StoreError> {
        Ok(self.collection().written_since(after, upto, 0)?.left_out())
    }
}

/// Splits rows into steps of a bounded number.
fn steps(found: &[(PartView, Vec<u32>)]) -> Vec<Vec<(PartView, Vec<u32>)>> {
    let (mut steps, mut room) = (vec![Vec::new()], DELETE_STEP_EVENTS);
    for (view, rows) in found {
        let mut rows = rows.as_slice();
        while !rows.is_empty() {
            if room == 0 {
                steps.push(Vec::new());
                room = DELETE_STEP_EVENTS;
            }
            let (now, later) = rows.split_at(rows.len().min(room));
            if let Some(step) = steps.last_mut() {
                step.push((view.clone(), now.to_vec()));
            }
            (rows, room) = (later, room - now.len());
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}
