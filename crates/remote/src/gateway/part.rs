//! Rows of one partition as a blocking iterator, each with its cursor, for a merge with those of the others.

use super::answer::{Answer, Message};
use super::link::{Link, Patience, WINDOW_BYTES};
use super::rows::{head, query_error};
use crate::wire::answer::RowsSoFar;
use crate::wire::fault::Fault;
use meridian_backend::Head;
use meridian_backend::measured::counts;
use meridian_model::Schema;
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{PartialRows, RowStream, RowsSummary};
use meridian_query::{Control, Items, Order, QueryError};
use std::sync::Arc;

/// The rows of a partition that another process has.
pub(super) struct RemotePartRows {
    link: Arc<Link>,
    control: Control,
    /// `None` once the rows have ended.
    answer: Option<Answer>,
    head: Head,
    so_far: RowsSoFar,
    order: Order,
    /// What is left of a batch that was larger than wanted.
    rest: Option<PartialRows>,
    batch_max: usize,
}

impl RemotePartRows {
    pub(super) fn new(
        link: Arc<Link>,
        control: Control,
        answer: Answer,
        mut first: Message,
        question: &Items,
        known: &Arc<Schema>,
    ) -> Result<RemotePartRows, Fault> {
        let head = head(&mut first, known)?;
        let so_far = first.meta.rows.unwrap_or_default();
        let (answer, order) = (Some(answer), question.order.clone());
        Ok(RemotePartRows { link, control, answer, head, so_far, order, rest: None, batch_max: usize::MAX })
    }

    /// The snapshot of the partition.
    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    fn receive(&mut self) -> Result<Option<PartialRows>, Fault> {
        while let Some(answer) = self.answer.take() {
            let mut scan = observe::stage(Stage::Scan);
            let (answer, message) = answer.wait(&self.link, &Patience::of(&self.control))?;
            let Some(Message { columns, meta }) = message else { return Ok(None) };
            if let Some(so_far) = meta.rows {
                let (now, before) = (so_far.stats, self.so_far.stats);
                scan.count(&counts(&now, &before));
                self.control.charge_elsewhere(now.bytes_read.saturating_sub(before.bytes_read));
                self.so_far = so_far;
            }
            self.answer = Some(answer).filter(|_| !meta.done);
            if let Some(columns) = columns {
                let rows = PartialRows::from_arrow(&columns, &self.order, &self.head.schema);
                return rows.map(Some).map_err(|e| Fault::internal(e.to_string()));
            }
        }
        Ok(None)
    }
}

impl Iterator for RemotePartRows {
    type Item = Result<PartialRows, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = match self.rest.take() {
            Some(rest) => rest,
            None => match self.receive() {
                Ok(rows) => rows?,
                Err(fault) => return Some(Err(query_error(fault, &self.control))),
            },
        };
        let (now, later) = split(rows, self.batch_max);
        self.rest = later;
        Some(Ok(now))
    }
}

/// The first rows, at most so many, and the rest.
fn split(rows: PartialRows, most: usize) -> (PartialRows, Option<PartialRows>) {
    let count = rows.batch.rows();
    if count <= most {
        return (rows, None);
    }
    let PartialRows { batch, mut cursors } = rows;
    let later = PartialRows { cursors: cursors.split_off(most), batch: batch.slice(most, count - most) };
    (PartialRows { batch: batch.slice(0, most), cursors }, Some(later))
}

impl RowStream for RemotePartRows {
    fn summary(&self) -> RowsSummary {
        RowsSummary { matched: self.so_far.matched, stats: self.so_far.stats }
    }

    fn at_most(&mut self, events: usize) {
        self.batch_max = events.max(1);
    }

    fn rest(&mut self) -> usize {
        // The sender goes on until the window is full, and waits then without a thread.
        let rest = self.rest.as_ref().map_or(0, |rest| rest.batch.bytes());
        if self.answer.is_some() { rest + WINDOW_BYTES as usize } else { rest }
    }
}
