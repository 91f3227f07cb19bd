//! Rows of one partition as a blocking iterator, each with its cursor, to be merged with those of other partitions.

use super::answer::{Message, MessageStream};
use super::engine::Patience;
use super::link::WINDOW_BYTES;
use super::remote::question_json;
use super::rows::{head, query_error};
use super::scans::QueryRoute;
use super::uses::SnapshotGuard;
use crate::wire::answer::RowsSoFar;
use crate::wire::fault::{Fault, shown};
use meridian_backend::measured::counts;
use meridian_backend::{Head, Problem, ReadPoint};
use meridian_model::Schema;
use meridian_observe::{self as observe, Stage};
use meridian_query::partial::{PartialRows, RowStream, RowsSummary};
use meridian_query::wire::Question;
use meridian_query::{Control, Cursor, Items, Order, QueryError, Stats};
use std::sync::Arc;

/// The rows of a partition held by another process. If a scan server fails, another one continues after the last
/// received row.
pub(super) struct RemotePartRows {
    /// `None` once the rows have ended.
    running: Option<(QueryRoute, MessageStream)>,
    control: Control,
    head: Head,
    /// Its snapshot, if a process other than the owner shows it.
    shown: Option<SnapshotGuard>,
    /// Schema of the current response. Another server's may have additional fields.
    schema: Arc<Schema>,
    so_far: RowsSoFar,
    /// Cost of the responses that broke off.
    lost: Stats,
    at: ReadPoint,
    question: Items,
    /// Rows received so far, and the place of the last.
    arrived: usize,
    last: Option<Cursor>,
    /// Remainder of a batch larger than requested.
    rest: Option<PartialRows>,
    batch_max: usize,
}

impl RemotePartRows {
    /// Wraps a response that has begun.
    pub(super) fn new(
        (via, answer, mut first): (QueryRoute, MessageStream, Message),
        (at, question): (ReadPoint, &Items),
        control: &Control,
        known: &Arc<Schema>,
    ) -> Result<RemotePartRows, Fault> {
        let head = head(&mut first, known)?;
        Ok(RemotePartRows {
            running: Some((via, answer)),
            control: control.clone(),
            schema: head.schema.clone(),
            so_far: first.meta.rows.unwrap_or_default(),
            lost: Stats::default(),
            // A server that takes over reads the same snapshot.
            at: ReadPoint { seq: Some(head.seq.clone()), ..at },
            head,
            shown: None,
            question: question.clone(),
            arrived: 0,
            last: None,
            rest: None,
            batch_max: usize::MAX,
        })
    }

    /// Keeps the owner informed that the snapshot is shown: now, and whenever rows arrive.
    pub(super) fn showing(self, shown: Option<SnapshotGuard>) -> RemotePartRows {
        shown.iter().for_each(SnapshotGuard::note);
        RemotePartRows { shown, ..self }
    }

    /// The snapshot of the partition.
    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    fn receive(&mut self) -> Result<Option<PartialRows>, Fault> {
        while let Some((mut via, answer)) = self.running.take() {
            let mut scan = observe::stage(Stage::Scan);
            let (answer, message) = match answer.wait(via.link(), &Patience::of(&self.control)) {
                Ok(received) => received,
                Err(fault) => {
                    via.lost(fault)?;
                    if self.has_all() {
                        return Ok(None);
                    }
                    self.go_on(via)?;
                    continue;
                }
            };
            self.shown.iter().for_each(SnapshotGuard::note);
            let Some(Message { columns, meta }) = message else {
                via.done();
                return Ok(None);
            };
            if let Some(so_far) = meta.rows {
                let (now, before) = (so_far.stats, self.so_far.stats);
                scan.count(&counts(&now, &before));
                self.control.charge_elsewhere(now.bytes_read.saturating_sub(before.bytes_read));
                self.so_far = RowsSoFar { matched: so_far.matched.or(self.so_far.matched), ..so_far };
            }
            match meta.done {
                true => via.done(),
                false => self.running = Some((via, answer)),
            }
            if let Some(columns) = columns {
                let rows = PartialRows::from_arrow(&columns, &self.question.order, &self.schema);
                let rows = rows.map_err(|e| Fault::internal(e.to_string()))?;
                self.arrived += rows.cursors.len();
                self.last = rows.cursors.last().cloned().or(self.last.take());
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    /// Returns true once as many rows as one partition contributes have arrived.
    fn has_all(&self) -> bool {
        let nearest = match (&self.question.order, &self.question.after) {
            (Order::Near { k: Some(k), .. }, Some(Cursor::Near { given, .. })) => {
                Some(k.saturating_sub(*given as usize))
            }
            (Order::Near { k, .. }, _) => *k,
            _ => None,
        };
        self.question.limit.is_some_and(|limit| self.arrived > limit) || nearest.is_some_and(|k| self.arrived >= k)
    }

    /// Requests the rows after the last received one, from the same snapshot.
    fn go_on(&mut self, mut via: QueryRoute) -> Result<(), Fault> {
        let rest = Question::Items(rest_of(&self.question, self.arrived, self.last.clone()));
        via.ask_for(self.at.clone(), question_json(&rest, &self.head.schema, &self.control)?);
        let (via, answer) = loop {
            let (mut next, answer, mut first) = via.again(&Patience::of(&self.control))?;
            let found = head(&mut first, &self.head.schema)?;
            match lacks_more(&self.head, &found) {
                None => {
                    self.schema = found.schema;
                    break (next, answer);
                }
                // A third one may have these events.
                Some(fault) => next.lost(fault)?,
            }
            via = next;
        };
        self.lost.merge(&self.so_far.stats);
        self.so_far = RowsSoFar { stats: Stats::default(), ..self.so_far.clone() };
        self.running = Some((via, answer));
        Ok(())
    }
}

/// Returns what a server lacks by damage that the one before it had. The response has already stated what it lacks, so
/// it cannot go on without that.
fn lacks_more(before: &Head, now: &Head) -> Option<Fault> {
    // By their names, as servers may have the bucket at different paths.
    let is_stated = |lost: &Problem| before.missing.iter().any(|known| known.path.file_name() == lost.path.file_name());
    let lost = now.missing.iter().find(|lost| !is_stated(lost))?;
    Some(Fault::Corrupt { path: shown(&lost.path), detail: lost.detail.clone() })
}

/// Returns the query for the rows after the first `arrived` of a response; `last` is the place of the last one.
fn rest_of(question: &Items, arrived: usize, last: Option<Cursor>) -> Items {
    let after = match (last, &question.after) {
        // A nearest-first order with a limit counts the rows before the cursor as well.
        (Some(Cursor::Near { distance_m, seq, .. }), before) => {
            let given = if let Some(Cursor::Near { given, .. }) = before { *given } else { 0 };
            Some(Cursor::Near { distance_m, seq, given: given + arrived as u64 })
        }
        (last, before) => last.or_else(|| before.clone()),
    };
    // A partition returns one row more than the limit. With only that one missing the limit would become 0, which is
    // refused; one row too many does no harm.
    let limit = question.limit.map(|limit| limit.saturating_sub(arrived).max(1));
    Items { after, limit, ..question.clone() }
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

/// Splits off the first rows, at most `most`; returns them and the rest.
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
        let mut stats = self.lost;
        stats.merge(&self.so_far.stats);
        RowsSummary { matched: self.so_far.matched, stats }
    }

    fn at_most(&mut self, events: usize) {
        self.batch_max = events.max(1);
    }

    fn rest(&mut self) -> usize {
        // The sender continues until the window is full, and then waits without a thread.
        let rest = self.rest.as_ref().map_or(0, |rest| rest.batch.bytes());
        if self.running.is_some() { rest + WINDOW_BYTES as usize } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::{Seq, Seqs, schema_spec};

    #[test]
    fn a_server_that_lacks_what_is_not_stated_is_left_and_named() {
        let schema = Arc::new(schema_spec::parse("n:Integer,*geom:Point:srid=4326").unwrap());
        let with = |missing: &[&str]| {
            let problem = |path: &&str| Problem { path: (*path).into(), detail: "damaged".to_owned() };
            let missing = missing.iter().map(problem).collect();
            Head { seq: Seqs::one(Seq(7)), schema: schema.clone(), taken_at: 0, missing, rows: 9 }
        };
        let stated = with(&["/a/00000001-0000000000000005"]);
        assert!(lacks_more(&stated, &stated).is_none() && lacks_more(&stated, &with(&[])).is_none());
        assert!(lacks_more(&stated, &with(&["/b/00000001-0000000000000005"])).is_none(), "the same object");
        let found = lacks_more(&stated, &with(&["/a/00000001-0000000000000005", "/a/00000001-0000000000000006"]));
        assert!(matches!(&found, Some(Fault::Corrupt { path, .. }) if path.ends_with("06")), "{found:?}");
        assert!(found.is_some_and(|fault| fault.is_of_the_reader()), "another server is asked");
    }

    #[test]
    fn the_rest_of_an_answer_is_a_question_that_a_server_takes() {
        let all = Items::all(&schema_spec::parse("n:Integer,*geom:Point:srid=4326").unwrap());
        let page = Items { limit: Some(5), ..all.clone() };
        let limits: Vec<Option<usize>> = [0, 3, 4, 5].map(|arrived| rest_of(&page, arrived, None).limit).into();
        assert_eq!(limits, [Some(5), Some(2), Some(1), Some(1)]);
        assert_eq!(rest_of(&all, 9, None).limit, None);
        let near = |given| Some(Cursor::Near { distance_m: 2.0, seq: Seq(7), given });
        let order = Order::Near { lon: 0.0, lat: 0.0, k: Some(30) };
        let second = Items { order, after: near(10), ..all };
        assert_eq!(rest_of(&second, 4, near(0)).after, near(14));
        assert_eq!(rest_of(&second, 0, None).after, near(10));
    }
}
