//! Rows from the owner as a blocking iterator.

use super::answer::{Message, MessageStream};
use super::engine::Patience;
use super::link::{Link, WINDOW_BYTES};
use crate::wire::answer::RowsSoFar;
use crate::wire::fault::Fault;
use crate::wire::rows::Events;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use meridian_backend::measured::counts;
use meridian_backend::{Head, Rows};
use meridian_model::Schema;
use meridian_observe::{self as observe, Stage};
use meridian_query::{Control, Cursor, Hits, QueryError, Stats};
use std::sync::Arc;

/// Converts a fault to the error of a query, and updates the query's account.
pub(super) fn query_error(fault: Fault, control: &Control) -> QueryError {
    if matches!(fault, Fault::ReadsTooMuch { .. }) {
        control.refused_elsewhere();
    }
    fault.into_query()
}

/// Decodes the header of a response from its first message.
pub(super) fn head(first: &mut Message, known: &Arc<Schema>) -> Result<Head, Fault> {
    let head = first.meta.head.take().ok_or_else(|| Fault::internal("an answer without a snapshot"))?;
    Ok(head.into_head(known))
}

/// The rows of an items query.
pub(super) struct RemoteRows {
    link: Arc<Link>,
    control: Control,
    /// `None` once the rows have ended.
    answer: Option<MessageStream>,
    head: Head,
    so_far: RowsSoFar,
    next: Option<Cursor>,
    /// Remainder of a batch larger than requested.
    rest: Option<Hits>,
    batch_max: usize,
}

impl RemoteRows {
    pub(super) fn new(
        link: Arc<Link>,
        control: Control,
        answer: MessageStream,
        mut first: Message,
        known: &Arc<Schema>,
    ) -> Result<RemoteRows, Fault> {
        let head = head(&mut first, known)?;
        let so_far = first.meta.rows.unwrap_or_default();
        let answer = Some(answer);
        Ok(RemoteRows { link, control, answer, head, so_far, next: None, rest: None, batch_max: usize::MAX })
    }

    fn receive(&mut self) -> Result<Option<Hits>, Fault> {
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
            if let Some(text) = &self.so_far.next {
                let cursor = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| Cursor::from_bytes(&bytes));
                self.next = Some(cursor.ok_or_else(|| Fault::internal("a cursor that cannot be read"))?);
            }
            self.answer = Some(answer).filter(|_| !meta.done);
            if let Some(columns) = columns {
                let Events { batch, seqs, distances } = Events::from_arrow(&columns, &self.head.schema)?;
                return Ok(Some(Hits { batch, seqs, distances }));
            }
        }
        Ok(None)
    }
}

impl Iterator for RemoteRows {
    type Item = Result<Hits, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        let hits = match self.rest.take() {
            Some(rest) => rest,
            None => match self.receive() {
                Ok(hits) => hits?,
                Err(fault) => return Some(Err(query_error(fault, &self.control))),
            },
        };
        let (now, later) = split(hits, self.batch_max);
        self.rest = later;
        Some(Ok(now))
    }
}

/// Splits off the first events, at most `most`; returns them and the rest.
fn split(hits: Hits, most: usize) -> (Hits, Option<Hits>) {
    let rows = hits.batch.rows();
    if rows <= most {
        return (hits, None);
    }
    let Hits { batch, mut seqs, mut distances } = hits;
    let later_seqs = seqs.split_off(most);
    let later_distances = distances.as_mut().map(|distances| distances.split_off(most));
    let later = Hits { batch: batch.slice(most, rows - most), seqs: later_seqs, distances: later_distances };
    (Hits { batch: batch.slice(0, most), seqs, distances }, Some(later))
}

impl Rows for RemoteRows {
    fn head(&self) -> &Head {
        &self.head
    }

    fn stats(&self) -> Stats {
        self.so_far.stats
    }

    fn number_matched(&self) -> Option<u64> {
        self.so_far.matched
    }

    fn next_page(&self) -> Option<&Cursor> {
        self.next.as_ref()
    }

    fn is_over(&self) -> bool {
        self.so_far.over && self.rest.is_none()
    }

    fn limit_batches(&mut self, events: usize) {
        self.batch_max = events.max(1);
    }

    fn park(&mut self) -> usize {
        // The owner keeps sending until the window is full, and then waits without a thread.
        let rest = self.rest.as_ref().map_or(0, |rest| rest.batch.bytes());
        if self.answer.is_some() { rest + WINDOW_BYTES as usize } else { rest }
    }
}
