//! The log of one partition in a stream.
//!
//! A writer begins with an owner record, which expects the last number of the stream. Once it is stored, every
//! expectation of the previous writer fails forever, because numbers only grow. A group is one or more messages, and
//! counts once its last one is stored.

mod read;
mod state;

use super::chain::{End, HeldMessages};
use super::message::{Header, Kind, group_of, hash_of};
use super::publish::{Failure, NextMessage, publish};
use super::{Stream, Streams};
use crate::error::StoreError;
use crate::seams::Record;
use crate::seams::{AppendError, LogContents, LogPlace, Removal, Seams, WriteLog};
use bytes::Bytes;
use meridian_model::Invalid;
use meridian_model::policy::lease::next_epoch;
use state::{LogBreak, State, Writer};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Max searches for the end of the stream while others publish to it.
const TURNS: usize = 32;
/// Max bytes that a server adds to a message besides its subject: its own 34, and a header with the expectation.
const FRAME: u64 = 128;

/// The log of one partition in a stream.
#[derive(Debug)]
pub(crate) struct StreamLog {
    streams: Arc<dyn Streams>,
    seams: Seams,
    /// The prefix of the stream names of all generations.
    prefix: String,
    /// The epoch of this process's lease; 0 without one.
    term: u64,
    accept_loss: bool,
    /// Random, so that no other writer's owner records have the same bytes.
    id: u64,
    /// Generation of the stream that is written to.
    generation: u64,
    state: State,
    /// The last acknowledged position, here or in a manifest.
    position: u64,
    /// Groups that no manifest covers, oldest first.
    held: VecDeque<HeldMessages>,
    /// Messages below the first number are removed. Those below the second may be, by the last removal.
    purged: (u64, u64),
}

impl StreamLog {
    /// Creates the log in streams whose names begin with `prefix`. `term` is the lease's epoch, 0 without one.
    pub(crate) fn new(
        streams: Arc<dyn Streams>,
        accept_loss: bool,
        seams: &Seams,
        prefix: String,
        term: u64,
    ) -> StreamLog {
        StreamLog {
            streams,
            seams: seams.clone(),
            prefix,
            term,
            accept_loss,
            id: seams.random.next_u64(),
            generation: 0,
            state: State::Closed,
            position: 0,
            held: VecDeque::new(),
            purged: (0, 0),
        }
    }

    fn name(&self, generation: u64) -> String {
        format!("{}{generation}", self.prefix)
    }

    fn path(&self) -> PathBuf {
        Path::new(&self.streams.place()).join(self.name(self.generation))
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = self.path();
        move |source| StoreError::Io { action, path, source }
    }

    /// Creates the stream if it is absent, and opens it.
    fn make(&self, name: &str) -> Result<Arc<dyn Stream>, StoreError> {
        self.streams.create(name).map_err(self.failed("create"))?;
        let made = self.streams.open(name).map_err(self.failed("open"))?;
        // Not a loss: the answer came from a server that does not know of it yet.
        made.ok_or_else(|| self.failed("open")(io::Error::other("it was just made, and is not there: try again later")))
    }

    fn header(&self, kind: Kind, epoch: u32, position: u64, before: u64) -> Result<Header, StoreError> {
        let generation = number_of(self.generation)?;
        Ok(Header { kind, generation, epoch, position, before, group: self.id, records: 0, chunk: 0, chunks: 0 })
    }

    /// Ends the part of every earlier writer, if the stream is still as it was read. Returns false if it is not.
    fn fence(&mut self, stream: Arc<dyn Stream>, last: u64, end: &End) -> Result<bool, StoreError> {
        let epoch = number_of(self.term.max(next_epoch(0, 0, end.epoch)))?;
        let record = self.header(Kind::Owner, epoch, end.position, end.before)?.with(&[]);
        match publish(stream.as_ref(), self.seams.clock.as_ref(), last, std::slice::from_ref(&record)) {
            Ok(NextMessage::Ours) => {
                self.state = State::Writing(Writer { stream, epoch, sequence: last + 1, before: hash_of(&record) });
                Ok(true)
            }
            // If the content there was released, this record may have been stored: another process has continued after
            // it all the same.
            Ok(NextMessage::Theirs | NextMessage::Released | NextMessage::GoneBack) => Ok(false),
            Err(Failure::Clean(error, _) | Failure::Unknown(error)) => Err(self.failed("publish to")(error)),
        }
    }

    /// Continues in the next generation, once a manifest names it.
    fn renew(&mut self) -> Result<(), StoreError> {
        let State::Broken(writer, LogBreak::Flushed) = &self.state else { return Ok(()) };
        let (writer, epoch) = (writer.clone(), u64::from(writer.epoch));
        // The old one first: from here on no write is acknowledged there.
        self.streams.delete(&self.name(self.generation)).map_err(self.failed("remove"))?;
        let (old, position) = (self.generation, self.position);
        let stream = self.make(&self.name(old + 1))?;
        (self.generation, self.purged) = (old + 1, (0, 0));
        // The same bytes in each attempt, so that a record whose answer was lost is found again.
        let end = End { position, before: 0, epoch: epoch.saturating_sub(1), emptied: false, held: Vec::new() };
        match self.fence(stream, 0, &end) {
            Ok(true) => Ok(()),
            Ok(false) => {
                // The manifest names the beginning of this generation.
                self.state = State::Fenced(Writer { sequence: 0, ..writer });
                Err(self.fenced())
            }
            Err(error) => {
                self.generation = old;
                Err(error)
            }
        }
    }

    fn fenced(&self) -> StoreError {
        let name = self.name(self.generation);
        StoreError::Fenced(format!(
            "another process has taken the collection over: the stream {name} goes on with its messages"
        ))
    }

    fn broken(&self) -> StoreError {
        StoreError::Busy(format!(
            "the stream {} has lost writes that it had acknowledged; they are in memory, and are flushed to the bucket before others are taken: \
             try again",
            self.name(self.generation)
        ))
    }

    /// Returns the writer, able to take a group.
    fn ready(&mut self) -> Result<Writer, AppendError> {
        if let State::Broken(_, LogBreak::Flushed) = &self.state {
            self.renew().map_err(AppendError::Clean)?;
        }
        match &self.state {
            State::Writing(writer) => Ok(writer.clone()),
            State::Cut(writer) => {
                let writer = writer.clone();
                // Until this record stands, the stored part could be taken for the beginning of the next group.
                let header = self.header(Kind::Owner, writer.epoch, self.position, writer.before);
                let record = header.map_err(AppendError::Clean)?.with(&[]);
                self.send(writer, vec![record])
            }
            State::Closed | State::Stopped(_) => Err(AppendError::Clean(StoreError::Closed)),
            State::Broken(..) => Err(AppendError::Clean(self.broken())),
            State::Fenced(_) => Err(AppendError::Fenced(self.fenced())),
        }
    }

    /// Publishes messages; returns the writer after them.
    fn send(&mut self, writer: Writer, messages: Vec<Bytes>) -> Result<Writer, AppendError> {
        let after = |stored: usize| Writer {
            sequence: writer.sequence + stored as u64,
            before: stored.checked_sub(1).and_then(|at| messages.get(at)).map_or(writer.before, |last| hash_of(last)),
            ..writer.clone()
        };
        match publish(writer.stream.as_ref(), self.seams.clock.as_ref(), writer.sequence, &messages) {
            Ok(NextMessage::Ours) => {
                let writer = after(messages.len());
                self.state = State::Writing(writer.clone());
                Ok(writer)
            }
            Ok(NextMessage::Theirs) if self.has_kept(&writer) => {
                // The groups stay known: the manifest of a flush that began earlier has to name the first one after it.
                self.state = State::Fenced(writer);
                Err(AppendError::Fenced(self.fenced()))
            }
            Ok(NextMessage::Theirs | NextMessage::GoneBack) => Err(AppendError::Clean(self.breaks(writer))),
            Ok(NextMessage::Released) => {
                self.state = State::Stopped(writer);
                let detail = "another process has gone on, and released what stood here";
                Err(AppendError::Unknown(self.failed("publish to")(io::Error::other(detail))))
            }
            // No server takes messages: the stream may have been removed, or its leader may be away.
            Err(Failure::Clean(error, 0)) if error.kind() == io::ErrorKind::NotConnected && self.is_gone() => {
                Err(AppendError::Clean(self.breaks(writer)))
            }
            Err(Failure::Clean(error, stored)) => {
                if stored > 0 {
                    self.state = State::Cut(after(stored));
                    // It takes space until the previous group is flushed.
                    if let Some(held) = self.held.back_mut() {
                        held.bytes += messages.iter().take(stored).map(|message| message.len() as u64).sum::<u64>();
                        held.messages += stored as u64;
                    }
                }
                Err(AppendError::Clean(self.failed("publish to")(error)))
            }
            Err(Failure::Unknown(error)) => {
                self.state = State::Stopped(writer);
                Err(AppendError::Unknown(self.failed("publish to")(error)))
            }
        }
    }

    /// Records that the stream has lost acknowledged messages.
    fn breaks(&mut self, writer: Writer) -> StoreError {
        tracing::error!(
            stream = self.name(self.generation),
            "the stream has lost acknowledged writes: they are flushed from memory, and a new stream follows"
        );
        self.state = State::Broken(writer, LogBreak::Unflushed);
        self.broken()
    }

    /// Returns true if the stream no longer exists; false if that is unknown.
    fn is_gone(&self) -> bool {
        matches!(self.streams.open(&self.name(self.generation)), Ok(None))
    }

    /// Returns true if the stream still has this writer's last message or a later one, or if that is unknown. Returns
    /// false if it has lost it.
    fn has_kept(&self, writer: &Writer) -> bool {
        match writer.stream.get(writer.sequence) {
            Ok(Some(message)) => hash_of(&message) == writer.before,
            Ok(None) => writer.stream.bounds().map_or(true, |bounds| bounds.first > writer.sequence),
            Err(_) => true,
        }
    }

    /// Returns true if groups may take this much more of the stream.
    fn has_room(&self, stream: &dyn Stream, bytes: u64, messages: u64) -> bool {
        let max = stream.bytes_max();
        let frame = FRAME + self.prefix.len() as u64 + 20;
        let taken = |bytes: u64, messages: u64| bytes.saturating_add(messages.saturating_mul(frame));
        let held = self.held.iter().map(|held| taken(held.bytes, held.messages));
        max == u64::MAX || held.fold(taken(bytes, messages), u64::saturating_add) <= max
    }
}

impl WriteLog for StreamLog {
    fn replay(&mut self, flushed: u64, from: Option<LogPlace>) -> Result<LogContents, StoreError> {
        let from = from.unwrap_or(LogPlace::FIRST);
        (self.generation, self.state, self.position) = (from.epoch, State::Closed, flushed);
        self.held.clear();
        self.purged = (0, 0);
        if let Some(before) = self.generation.checked_sub(1) {
            self.streams.delete(&self.name(before)).map_err(self.failed("remove"))?;
        }
        // The stream of the first generation is created with the collection, that of a later one by the owner that
        // needs it.
        let (name, new) = (self.name(self.generation), from.number == 1);
        let stream = match self.streams.open(&name).map_err(self.failed("open"))? {
            Some(stream) => stream,
            None if (new && self.generation > 0) || self.accept_loss => self.make(&name)?,
            None => {
                let detail = "it is gone, and acknowledged writes with it; is this the NATS of the bucket?";
                let damage = vec![StoreError::corrupt(&self.path(), detail)];
                return Ok(LogContents { damage, ..LogContents::default() });
            }
        };
        for _ in 0..TURNS {
            let (last, found, end) = self.read(stream.as_ref(), flushed, new)?;
            // A record there would make it look as if nothing had been before it.
            if end.emptied && !self.accept_loss {
                return Ok(found);
            }
            // A loss that an operator accepts is final: a later reader finds the log complete.
            let end = match self.accept_loss {
                true => End { position: end.position.max(flushed), ..end },
                false => end,
            };
            // The writer continued, or another candidate was first: its message is read like the rest. Each turn means
            // that another process made progress.
            if self.fence(stream.clone(), last, &end)? {
                self.position = end.position.max(flushed);
                self.held = end.held.into();
                return Ok(self.settle(found));
            }
        }
        Err(StoreError::Busy(format!("other processes publish to the stream {name} without end: try again later")))
    }

    fn append(&mut self, records: &[Record]) -> Result<u64, AppendError> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(0) };
        let writer = self.ready()?;
        let head = self.header(Kind::End, writer.epoch, first.position, writer.before).map_err(AppendError::Clean)?;
        let head = Header { group: self.seams.random.next_u64(), records: records.len() as u32, ..head };
        let Some(messages) = group_of(head, records, self.streams.message_max()) else {
            let max = u64::from(u16::MAX) * self.streams.message_max() as u64;
            let detail = format!("the writes are too large for the log: at most {max} bytes at a time");
            return Err(AppendError::Clean(Invalid::new(detail).into()));
        };
        let bytes = messages.iter().map(|message| message.len() as u64).sum();
        let (sequence, count) = (writer.sequence + 1, messages.len() as u64);
        // The server has room beyond this limit, and keeps it for the next owner.
        if !self.has_room(writer.stream.as_ref(), bytes, count) {
            return Err(AppendError::Clean(self.failed("publish to")(io::ErrorKind::StorageFull.into())));
        }
        self.send(writer, messages)?;
        self.position = last.position;
        self.held.push_back(HeldMessages {
            sequence,
            last_position: last.position,
            time: first.time,
            bytes,
            messages: count,
        });
        Ok(bytes)
    }

    fn release(&mut self, flushed: u64, named: Option<LogPlace>) -> Result<Option<Removal>, StoreError> {
        while self.held.front().is_some_and(|held| held.last_position <= flushed) {
            self.held.pop_front();
        }
        match &mut self.state {
            State::Writing(writer) | State::Cut(writer) => {
                // The last message stays: it shows which positions and which epoch were assigned.
                let below = self.held.front().map_or(writer.sequence, |held| held.sequence.min(writer.sequence));
                self.purged.1 = below;
                if self.purged.0 == below {
                    return Ok(None);
                }
                let (stream, place) = (writer.stream.clone(), self.streams.place());
                Ok(Some(Box::new(move || stream.purge(below).map_err(StoreError::io("purge", Path::new(&place))))))
            }
            // It may have broken after the manifest was made: then that names no next generation.
            State::Broken(_, broken) if named.is_some_and(|named| named.epoch > self.generation) => {
                *broken = LogBreak::Flushed;
                self.renew().map(|()| None)
            }
            // The groups of a fenced writer are the new writer's to release.
            State::Broken(..) | State::Closed | State::Stopped(_) | State::Fenced(_) => Ok(None),
        }
    }

    fn removed(&mut self) {
        self.purged.0 = self.purged.1;
    }

    fn place(&self, flushed: u64) -> Option<LogPlace> {
        let next = match &self.state {
            State::Broken(..) if flushed >= self.position => {
                return Some(LogPlace { epoch: self.generation + 1, ..LogPlace::FIRST });
            }
            State::Writing(writer)
            | State::Cut(writer)
            | State::Broken(writer, _)
            | State::Stopped(writer)
            | State::Fenced(writer) => writer.sequence + 1,
            State::Closed => return None,
        };
        let held = self.held.iter().find(|held| held.last_position > flushed);
        Some(LogPlace { epoch: self.generation, number: held.map_or(next, |held| held.sequence) })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn oldest(&self, flushed: u64) -> Option<i64> {
        // The clock may have been set back between two groups.
        self.held.iter().filter(|held| held.last_position > flushed).map(|held| held.time).min()
    }

    fn tail_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.bytes).sum()
    }

    fn wants_flush(&self) -> bool {
        matches!(self.state, State::Broken(_, LogBreak::Unflushed))
    }
}

fn number_of(n: u64) -> Result<u32, StoreError> {
    u32::try_from(n)
        .map_err(|_| Invalid::new(format!("the log has come to epoch or generation {n}, past what it can hold")).into())
}
