//! The reads of a stream: the events after its position, one message at a time.
//!
//! A stream needs only its position. While its client reads, it also keeps the read in progress, so that events are
//! listed and read once. That takes memory, so the read is kept only if the memory for responses has room, and dropped
//! when the client pauses. The same events are then read again.

use super::fence::{Fence, numbered};
use super::message::{Framing, RenderedEvents};
use super::request::StreamRequest;
use crate::collections::reproject::reproject;
use crate::protocol::problem::{Problem, Result};
use crate::request::errors;
use meridian_admission::{ByteBudget, ByteShare, Ledger};
use meridian_backend::{Changes, Collection};
use meridian_formats::FeatureWriter;
use meridian_model::policy::quota::Quota;
use meridian_model::{Batch, FenceTransition, Schema, Seq, Seqs};
use std::sync::Arc;

/// Max event numbers listed at a time: a megabyte.
const SEQS_MAX: usize = 1 << 16;
/// Bytes per number in that list.
const SEQ_BYTES: usize = 16;
/// Target size in bytes of one read of events, and of one that is not kept.
const READ_BYTES: usize = 256 << 10;
const READ_BYTES_SHORT: usize = 32 << 10;
/// Events in a read that is not kept, while their size is unknown.
const EVENTS_UNKNOWN: usize = 4;
/// Max reads with one permit, if few events match.
const READS_MAX: usize = 16;

/// How a read ended.
pub(super) enum Step {
    /// Events for the client.
    Message(RenderedEvents),
    /// The next event alone takes this many bytes, more than the available room.
    Larger(usize),
    /// Some files are damaged: events may be missing from here on.
    Missing(String),
    /// No match among the events listed or read so far, but more events follow.
    NoMatch,
    /// There are no more events.
    CaughtUp,
}

/// The position of a stream, and the read in progress.
pub(super) struct LiveReader {
    collection: Arc<dyn Collection>,
    ledger: Arc<Ledger>,
    request: StreamRequest,
    framing: Framing,
    writer: FeatureWriter,
    schema: Arc<Schema>,
    /// Set if the client asked for transitions of moving objects.
    fence: Option<Fence>,
    /// Everything up to this position was read, and rendered if it matched.
    at: Seqs,
    ahead: Option<PendingRead>,
    /// The memory of the read in progress.
    share: ByteShare,
    answers: ByteBudget,
    /// Estimated bytes per event, from the last read.
    event_bytes: Option<usize>,
    reported_missing: bool,
}

/// The read in progress.
struct PendingRead {
    changes: Box<dyn Changes>,
    matches: Option<Matches>,
}

/// The matching events of the last read that are not rendered yet.
struct Matches {
    events: Batch,
    seqs: Vec<Seq>,
    whens: Vec<Option<FenceTransition>>,
    next: usize,
    /// The position after the read, whether or not its last event matches.
    end: Seqs,
}

impl LiveReader {
    pub(super) fn new(
        collection: Arc<dyn Collection>,
        ledger: Arc<Ledger>,
        mut request: StreamRequest,
        framing: Framing,
        answers: ByteBudget,
        objects: usize,
    ) -> Result<LiveReader> {
        let schema = collection.schema();
        Ok(LiveReader {
            writer: writer_of(&schema, &request)?,
            fence: request.when.take().map(|when| Fence::new(when, objects)),
            at: request.after.clone(),
            share: answers.empty(),
            ahead: None,
            event_bytes: None,
            reported_missing: false,
            collection,
            ledger,
            request,
            framing,
            schema,
            answers,
        })
    }

    pub(super) fn collection(&self) -> &Arc<dyn Collection> {
        &self.collection
    }

    /// Returns the position.
    pub(super) fn at(&self) -> Seqs {
        self.at.clone()
    }

    /// Returns whether there is anything after the position.
    pub(super) fn is_behind(&self) -> bool {
        self.ahead.is_some() || !self.at.covers(&self.collection.position().ends())
    }

    /// Returns whether a read is in progress.
    pub(super) fn is_reading(&self) -> bool {
        self.ahead.is_some()
    }

    /// Drops the read in progress: the client pauses, or the memory is needed.
    pub(super) fn rest(&mut self) {
        let rendered_all = self.ahead.take().is_none_or(|ahead| ahead.matches.is_none());
        self.share.shrink(self.share.bytes());
        // The fence holds the objects' states after events that will be read again, so it must forget them.
        if let Some(fence) = self.fence.as_mut().filter(|_| !rendered_all) {
            fence.forget();
        }
    }

    /// Continues from the position, with `room` bytes for a message. Blocks.
    pub(super) fn read(&mut self, room: usize) -> Result<Step> {
        let step = self.steps(room);
        self.keep_within_budget();
        step
    }

    fn steps(&mut self, room: usize) -> Result<Step> {
        // Bounded, so that a stream with a narrow filter gives its permit back between reads.
        for _ in 0..READS_MAX {
            let mut ahead = match self.ahead.take() {
                Some(ahead) => ahead,
                None => PendingRead { changes: self.list()?, matches: None },
            };
            let missing = ahead.changes.missing().first().filter(|_| !self.reported_missing).map(ToString::to_string);
            if let Some(missing) = missing {
                self.reported_missing = true;
                self.ahead = Some(ahead);
                return Ok(Step::Missing(missing));
            }
            if ahead.matches.is_none() {
                let Some((batch, seqs)) = ahead.changes.read().map_err(errors::store_problem)? else {
                    // Not the last event read: writes without an event, such as deletions, also move the position.
                    self.at = ahead.changes.upto();
                    // A list is bounded, so its end need not be the end of the events.
                    return Ok(if ahead.changes.left_out() > 0 { Step::NoMatch } else { Step::CaughtUp });
                };
                // The client may take long to read this, and maintenance should not wait for it.
                ahead.changes.park();
                ahead.matches = Some(self.matches(batch, seqs)?);
            }
            let step = ahead.matches.as_mut().and_then(|matches| self.render(matches, room));
            ahead.matches.take_if(|matches| matches.next == matches.seqs.len());
            self.ahead = Some(ahead);
            if let Some(step) = step {
                return Ok(step);
            }
        }
        Ok(Step::NoMatch)
    }

    /// Lists the events after the position by number.
    fn list(&self) -> Result<Box<dyn Changes>> {
        let (events, bytes) = if self.answers.is_short_here() {
            // The list will not be kept, so it covers at most one read.
            let events = self.event_bytes.map_or(EVENTS_UNKNOWN, |one| READ_BYTES_SHORT / one.max(SEQ_BYTES));
            (events.max(1), READ_BYTES_SHORT)
        } else {
            (SEQS_MAX.min(self.answers.limit() / 64 / SEQ_BYTES).max(EVENTS_UNKNOWN), READ_BYTES)
        };
        self.collection.changes_after(&self.at, events, bytes).map_err(errors::store_problem)
    }

    /// Returns the matching events of a read.
    fn matches(&mut self, batch: Batch, seqs: Vec<Seq>) -> Result<Matches> {
        self.ledger.charge(Quota::ScannedBytesPerSecond, batch.bytes() as u64);
        self.event_bytes = Some(batch.bytes() / seqs.len().max(1));
        if !Arc::ptr_eq(batch.schema(), &self.schema) {
            // Fields were added to the collection.
            self.schema = batch.schema().clone();
            self.writer = writer_of(&self.schema, &self.request)?;
        }
        let predicate = &self.request.predicate;
        let batch = numbered(batch, &seqs, predicate);
        let selected: Vec<(u32, Option<FenceTransition>)> = match &mut self.fence {
            None => predicate.evaluate(&batch).set_indices().map(|row| (row as u32, None)).collect(),
            Some(fence) => {
                let transitions = fence.transitions(self.collection.as_ref(), predicate, &batch, &seqs)?;
                transitions.into_iter().map(|(row, when)| (row, Some(when))).collect()
            }
        };
        let end = seqs.last().map_or_else(|| self.at.clone(), |last| self.at.past(*last));
        let (rows, whens): (Vec<u32>, Vec<Option<FenceTransition>>) = selected.into_iter().unzip();
        let seqs = rows.iter().map(|row| seqs[*row as usize]).collect();
        Ok(Matches { events: reproject(&batch.take(&rows), self.request.crs)?, seqs, whens, next: 0, end })
    }

    /// Renders the next events, and moves the position past them; `None` if there are none.
    fn render(&mut self, matches: &mut Matches, room: usize) -> Option<Step> {
        let features = self.writer.rows(&matches.events, &matches.seqs);
        let mut message = RenderedEvents::after(self.at.clone());
        let mut larger = None;
        while let Some(seq) = matches.seqs.get(matches.next) {
            let when = matches.whens[matches.next];
            let fits = message.push(self.framing, *seq, room, |out| {
                features.feature_with(matches.next, out, |out| {
                    let mut member = |name: &str, value: &str| {
                        for piece in [",\"", name, "\":\"", value, "\""] {
                            out.extend_from_slice(piece.as_bytes());
                        }
                    };
                    member("position", &self.at.past(*seq).to_id());
                    if let Some(when) = when {
                        member("when", when.word());
                    }
                });
            });
            if let Err(bytes) = fits {
                larger = Some(bytes);
                break;
            }
            matches.next += 1;
        }
        if matches.next == matches.seqs.len() {
            // Also past events that did not match: otherwise a stream with a narrow filter would read the same events
            // again after each reconnect.
            self.at = matches.end.clone();
        } else if let Some(last) = message.last() {
            self.at = last;
        }
        match larger {
            Some(bytes) if message.is_empty() => Some(Step::Larger(bytes)),
            _ if message.is_empty() => None,
            _ => Some(Step::Message(message.fitted())),
        }
    }

    /// Keeps the read in progress if there is room for it.
    fn keep_within_budget(&mut self) {
        let Some(ahead) = &self.ahead else { return self.share.shrink(self.share.bytes()) };
        let events =
            ahead.matches.as_ref().map_or(0, |matches| matches.events.bytes() + SEQ_BYTES * matches.seqs.len());
        let bytes = ahead.changes.bytes() + events;
        // The other half, of all or of the tenant's part, is left to messages.
        if self.answers.is_short_here() || !self.share.try_grow(bytes) {
            return self.rest();
        }
        self.share.shrink(self.share.bytes() - bytes);
    }
}

fn writer_of(schema: &Schema, request: &StreamRequest) -> Result<FeatureWriter> {
    let fields: Option<Vec<String>> = request
        .properties
        .as_ref()
        .map(|names| names.iter().filter(|name| schema.field_index(name).is_some()).cloned().collect());
    FeatureWriter::new(schema, fields.as_deref()).map_err(|e| Problem::invalid_parameter("properties", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::params::crs::Crs;
    use meridian_backend::{Backend, Embedded, Seams, Write};
    use meridian_model::builder::Value;
    use meridian_model::filter::{Predicate, parse_text};
    use meridian_model::{BatchBuilder, schema_spec};
    use meridian_store::{Options, Settings, Store};

    const ROOM: usize = 1 << 10;

    /// Creates a stream of a collection of 100 events, from the oldest on, and the store that contains them.
    fn reading(filter: &str, answers: &ByteBudget) -> (Arc<Embedded>, LiveReader) {
        let store = Embedded::new(Arc::new(Store::open(Options::ephemeral(), Seams::real()).unwrap()));
        let schema = schema_spec::parse("n:Integer,*geom:Point").unwrap();
        let collection = store.create("default", "q", schema, Settings::default()).unwrap();
        let mut events = BatchBuilder::new(collection.schema());
        for n in 0..100 {
            events.set(0, Value::Int(n)).unwrap();
            events.end_event().unwrap();
        }
        collection.write(Write::new(events.finish().unwrap())).unwrap();
        let predicate = Predicate::bind(&parse_text(filter).unwrap(), &collection.schema()).unwrap();
        let request =
            StreamRequest { predicate, properties: None, crs: Crs::default(), when: None, after: Seqs::default() };
        let ledger = Arc::new(Ledger::new("default"));
        let reading = LiveReader::new(collection, ledger, request, Framing::Texts, answers.clone(), 8).unwrap();
        (store, reading)
    }

    #[test]
    fn the_end_of_a_list_is_not_the_end_of_the_events() {
        // Room for lists of 16 events.
        let (_store, mut reading) = reading("n < 0", &ByteBudget::new(16 << 10));
        let mut lists = 0;
        loop {
            match reading.read(ROOM).unwrap() {
                Step::NoMatch => lists += 1,
                Step::CaughtUp => break,
                _ => panic!("no event matches"),
            }
        }
        assert!(lists > 1 && !reading.is_behind(), "{lists} lists, up to {}", reading.at());
    }

    #[test]
    fn memory_that_another_tenant_holds_does_not_drop_the_read_in_progress() {
        let answers = ByteBudget::new(4 << 20);
        answers.guarantee([("one".into(), 1), ("other".into(), 1)]);
        let (one, other) = (answers.of(&"one".into()), answers.of(&"other".into()));
        let _others = one.try_take_some(4 << 20).unwrap();
        let (_store, mut reading) = reading("n >= 0", &other);
        assert!(matches!(reading.read(ROOM).unwrap(), Step::Message(_)) && reading.is_reading());
        let _own = other.try_take(600 << 10).unwrap();
        assert!(matches!(reading.read(ROOM).unwrap(), Step::Message(_)) && !reading.is_reading());
    }
}
