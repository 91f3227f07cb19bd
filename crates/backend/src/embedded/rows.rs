//! Results in this process: streams of rows and changes, and rows passed one by one.

use crate::measured::counts;
use crate::read::{Changes, Head, PriorEvents, RowSink, Rows};
use meridian_model::{Batch, Projection, Seq, Seqs};
use meridian_observe::{self as observe, Stage};
use meridian_query::near::Chunks;
use meridian_query::{Cursor, Hits, QueryError, Stats};
use meridian_store::{EventsSince, PriorEventReader, Problem, Snapshot, StoreError};

/// The events of one snapshot as a stream.
pub(super) struct LocalRows {
    pub(super) head: Head,
    pub(super) answer: meridian_query::Rows,
    /// The cost already counted.
    pub(super) counted: Stats,
}

impl Iterator for LocalRows {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut scan = observe::stage(Stage::Scan);
        let hits = self.answer.next();
        let stats = self.answer.stats();
        scan.count(&counts(&stats, &std::mem::replace(&mut self.counted, stats)));
        hits
    }
}

impl Rows for LocalRows {
    fn head(&self) -> &Head {
        &self.head
    }

    fn stats(&self) -> Stats {
        self.answer.stats()
    }

    fn number_matched(&self) -> Option<u64> {
        self.answer.number_matched()
    }

    fn next_page(&self) -> Option<&Cursor> {
        self.answer.next_page()
    }

    fn is_over(&self) -> bool {
        self.answer.is_over()
    }

    fn limit_batches(&mut self, events: usize) {
        self.answer.at_most(events);
    }

    fn park(&mut self) -> usize {
        self.answer.rest()
    }
}

impl Changes for EventsSince {
    fn read(&mut self) -> Result<Option<(Batch, Vec<Seq>)>, StoreError> {
        self.read()
    }

    fn upto(&self) -> Seqs {
        Seqs::one(self.upto())
    }

    fn left_out(&self) -> u64 {
        self.left_out()
    }

    fn missing(&self) -> &[Problem] {
        self.missing()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn park(&mut self) {
        self.rest();
    }
}

impl PriorEvents for PriorEventReader {
    fn object(&self, batch: &Batch, row: usize) -> Option<u64> {
        self.object(batch, row)
    }

    fn before(
        &self,
        batch: &Batch,
        row: usize,
        before: Seq,
        columns: &Projection,
    ) -> Result<Option<(Batch, Seq)>, StoreError> {
        self.before(batch, row, before, columns)
    }
}

/// A row of a snapshot: its part, its row number there, and its distance in an order by distance.
pub(super) type RowRef = (usize, u32, Option<f64>);

/// Passes rows of a snapshot to a sink.
pub(super) fn pass_rows(
    snapshot: &Snapshot,
    total: u64,
    rows: impl ExactSizeIterator<Item = RowRef>,
    sink: &mut dyn RowSink,
) -> Result<(), StoreError> {
    let columns = sink.begin(&snapshot.schema, &snapshot.layout, total, rows.len());
    let rows: Vec<RowRef> = rows.collect();
    snapshot.load(&rows.iter().map(|(part, row, _)| (*part, *row..row + 1)).collect::<Vec<_>>(), &columns);
    let mut chunks = Chunks::new(columns);
    let made_ids = snapshot.layout.id.is_none();
    for (part, row, distance_m) in rows {
        let view = &snapshot.parts[part];
        // The sink needs only made ids; given ones are a column of the batch.
        let seq = match made_ids {
            true => view.seqs(row..row + 1)?.first().copied().map(Seq),
            false => None,
        };
        let (batch, first) = chunks.get(part, view, row)?;
        sink.row(batch, (row - first) as usize, seq, distance_m);
    }
    Ok(())
}
