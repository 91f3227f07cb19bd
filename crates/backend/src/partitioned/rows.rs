//! Rows of all partitions in one order.

use super::{join, shape};
use crate::collection::Part;
use crate::measured::counts;
use crate::read::{Head, ReadPoint, Rows};
use meridian_model::{Layout, Schema};
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{MergedRows, PartialRows, RowStream, RowsSummary};
use meridian_query::{Control, Cursor, Hits, Items, QueryError, Stats};
use std::sync::Arc;

/// The events of all partitions as a stream.
pub(super) struct PartitionedRows {
    head: Head,
    rows: MergedRows<OnePart>,
    /// The cost already counted.
    counted: Stats,
}

/// Opens the rows of all partitions.
pub(super) fn open(
    parts: &[Arc<dyn Part>],
    ats: Vec<ReadPoint>,
    question: &Items,
    control: &Control,
) -> Result<PartitionedRows, QueryError> {
    let _plan = observe::stage(Stage::Plan);
    let (mut heads, mut streams) = (Vec::new(), Vec::new());
    for (part, at) in parts.iter().zip(ats) {
        let (head, rows) = part.rows(at, question, control)?;
        heads.push(head);
        streams.push(rows);
    }
    let head = join(heads)?;
    let shape = shape(head.schema.clone());
    let streams = streams.into_iter().map(|rows| OnePart { rows, shape: shape.clone() });
    Ok(PartitionedRows { head, rows: MergedRows::new(streams, question), counted: Stats::default() })
}

/// The rows of one partition, in the schema of the result.
struct OnePart {
    rows: Box<dyn RowStream<Item = Result<PartialRows, QueryError>> + Send>,
    shape: (Arc<Schema>, Arc<Layout>),
}

impl Iterator for OnePart {
    type Item = Result<PartialRows, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (schema, layout) = &self.shape;
        let cut = |rows: PartialRows| {
            let batch = rows.batch.within(schema, layout)?;
            Ok(PartialRows { batch, cursors: rows.cursors })
        };
        self.rows.next().map(|rows| rows.and_then(cut))
    }
}

impl RowStream for OnePart {
    fn summary(&self) -> RowsSummary {
        self.rows.summary()
    }

    fn at_most(&mut self, events: usize) {
        self.rows.at_most(events);
    }

    fn rest(&mut self) -> usize {
        self.rows.rest()
    }
}

impl Iterator for PartitionedRows {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut scan = observe::stage(Stage::Scan);
        let hits = self.rows.next();
        let stats = self.rows.stats();
        scan.count(&counts(&stats, &std::mem::replace(&mut self.counted, stats)));
        hits
    }
}

impl Rows for PartitionedRows {
    fn head(&self) -> &Head {
        &self.head
    }

    fn stats(&self) -> Stats {
        self.rows.stats()
    }

    fn number_matched(&self) -> Option<u64> {
        self.rows.number_matched()
    }

    fn next_page(&self) -> Option<&Cursor> {
        self.rows.next_page()
    }

    fn is_over(&self) -> bool {
        self.rows.is_over()
    }

    fn limit_batches(&mut self, events: usize) {
        self.rows.at_most(events);
    }

    fn park(&mut self) -> usize {
        self.rows.rest()
    }
}
