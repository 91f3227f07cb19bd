//! Reads a stream: determines which groups count, and what is missing.
//!
//! Positions are contiguous across the groups that count, and each message has the hash of the previous one. Only
//! unflushed positions matter: a gap or a broken link among positions that a manifest covers loses nothing.

use super::message::{Header, Kind, hash_of, records_of};
use crate::error::StoreError;
use crate::seams::LogContents;
use crate::seams::Record;
use std::path::{Path, PathBuf};

/// Messages of a log that no manifest covers yet.
#[derive(Debug)]
pub(super) struct HeldMessages {
    /// Number of the first message of the group.
    pub(super) sequence: u64,
    pub(super) last_position: u64,
    /// When its first write was taken, in microseconds since 1970.
    pub(super) time: i64,
    pub(super) bytes: u64,
    pub(super) messages: u64,
}

/// The state of a reader between two messages.
#[derive(Debug)]
pub(super) struct Chain {
    place: PathBuf,
    generation: u32,
    /// Position up to which a manifest covers writes.
    flushed: u64,
    /// The last position that counts; `None` before the first message.
    last: Option<u64>,
    /// Hash of the last message; `None` if it was unreadable, or there is none.
    before: Option<u64>,
    epoch: u64,
    open: Option<OpenGroup>,
    held: Vec<HeldMessages>,
    found: LogContents,
}

/// A group whose end has not been read yet.
#[derive(Debug)]
struct OpenGroup {
    header: Header,
    sequence: u64,
    /// `None` if its first chunks are gone, because a manifest covers it.
    content: Option<Vec<u8>>,
    bytes: u64,
    messages: u64,
}

impl Chain {
    /// Creates the state before the first message. `place` is the stream's name in messages.
    pub(super) fn new(place: &Path, generation: u32, flushed: u64) -> Chain {
        Chain {
            place: place.to_owned(),
            generation,
            flushed,
            last: None,
            before: None,
            epoch: 0,
            open: None,
            held: Vec::new(),
            found: LogContents::default(),
        }
    }

    /// Processes the next message.
    pub(super) fn take(&mut self, sequence: u64, message: &[u8]) {
        let (before, was) = (self.before, self.last);
        let read = Header::of(message).and_then(|(header, part)| match header.generation == self.generation {
            true => Ok((header, part)),
            false => Err(format!("it is of generation {}, in the stream of {}", header.generation, self.generation)),
        });
        // The hash of an unreadable message proves nothing about the next one.
        self.before = read.is_ok().then(|| hash_of(message));
        let (header, part) = match read {
            Ok(read) => read,
            Err(detail) => return self.damaged(sequence, detail),
        };
        // Everything that counts before this one has a position up to here.
        let preceding = match header.kind {
            Kind::Owner => header.position,
            Kind::Chunk | Kind::End => header.position.saturating_sub(1),
        };
        if was.is_some() && before.is_some_and(|before| before != header.before) && preceding > self.flushed {
            self.damaged(sequence, "it does not follow the message before it, so acknowledged writes may be missing");
        }
        if u64::from(header.epoch) < self.epoch {
            self.damaged(sequence, format!("its writer, of epoch {}, had been replaced by then", header.epoch));
        }
        self.epoch = self.epoch.max(u64::from(header.epoch));
        match header.kind {
            Kind::Owner => self.owner(sequence, &header),
            Kind::Chunk | Kind::End => self.chunk(sequence, header, part, message.len() as u64),
        }
    }

    fn owner(&mut self, sequence: u64, header: &Header) {
        // A group without its end was never acknowledged.
        if let Some(cut) = self.open.take() {
            self.found.torn_bytes += cut.bytes;
            // It takes space until the previous group is flushed.
            if let Some(held) = self.held.last_mut() {
                held.bytes += cut.bytes;
                held.messages += cut.messages;
            }
        }
        self.follows(sequence, header.position);
        self.last = Some(header.position);
    }

    fn chunk(&mut self, sequence: u64, header: Header, part: &[u8], bytes: u64) {
        if header.chunk == 0 {
            if let Some(cut) = self.open.take() {
                let detail = "it is cut off, and the writer went on as if it were whole";
                self.damaged(cut.sequence, detail);
            }
            self.follows(sequence, header.position.saturating_sub(1));
            self.last = self.last.or(Some(header.position.saturating_sub(1)));
            self.open = Some(OpenGroup { header, sequence, content: Some(part.to_vec()), bytes, messages: 1 });
        } else {
            let next = |open: &OpenGroup| open.header.group == header.group && open.header.chunk + 1 == header.chunk;
            match &mut self.open {
                Some(open) if next(open) => {
                    open.header = header;
                    open.bytes += bytes;
                    open.messages += 1;
                    if let Some(content) = &mut open.content {
                        content.extend_from_slice(part);
                    }
                }
                // A stream may begin in the middle of a flushed group.
                None if self.last.is_none() => {
                    self.last = Some(header.position.saturating_sub(1));
                    self.open = Some(OpenGroup { header, sequence, content: None, bytes, messages: 1 });
                }
                _ => {
                    self.open = None;
                    return self.damaged(sequence, "the chunk before it is missing");
                }
            }
        }
        if header.kind == Kind::End
            && let Some(group) = self.open.take()
        {
            self.close(sequence, group);
        }
    }

    /// Counts a complete group.
    fn close(&mut self, sequence: u64, group: OpenGroup) {
        let last = group.header.last_position();
        if last > self.flushed {
            match group.content.map(|content| records_of(&group.header, &content)) {
                Some(Ok(records)) => {
                    let (flushed, time) = (self.flushed, records.first().map_or(0, |record| record.time));
                    self.found.records.extend(records.into_iter().filter(|record: &Record| record.position > flushed));
                    let (sequence, bytes, messages) = (group.sequence, group.bytes, group.messages);
                    self.held.push(HeldMessages { sequence, last_position: last, time, bytes, messages });
                }
                Some(Err(detail)) => self.damaged(sequence, detail),
                None => self.missing(sequence, self.flushed.saturating_add(1), last),
            }
        }
        self.last = Some(last);
    }

    /// Checks that nothing is missing or duplicated before a message that follows a position.
    fn follows(&mut self, sequence: u64, preceding: u64) {
        // Positions that a manifest covers need not be in the stream.
        let have = self.last.map_or(self.flushed, |last| last.max(self.flushed));
        if preceding > have {
            self.missing(sequence, have + 1, preceding);
        }
        if self.last.is_some_and(|last| last > preceding && last > self.flushed) {
            self.damaged(sequence, format!("it follows write {preceding}, and later writes are before it"));
        }
    }

    fn missing(&mut self, sequence: u64, from: u64, to: u64) {
        self.damaged(sequence, format!("the acknowledged writes {from} to {to} are missing before it"));
    }

    fn damaged(&mut self, sequence: u64, detail: impl Into<String>) {
        let message = self.place.join(format!("message {sequence}"));
        self.found.damage.push(StoreError::corrupt(&message, detail));
    }

    /// Ends the read: returns what was found, and where it ends.
    ///
    /// `new` means that the stream may still be empty, `numbered` that it has assigned a number.
    pub(super) fn end(mut self, new: bool, numbered: bool) -> (LogContents, End) {
        // An incomplete group at the end was never acknowledged, as the owner record that follows states.
        self.found.torn_bytes += self.open.take().map_or(0, |cut| cut.bytes);
        let (ends, flushed) = (self.last.unwrap_or(0), self.flushed);
        let empty = self.last.is_none();
        let begins = empty && new && !numbered;
        // The last message of a stream always stays. So one without any, or one that ends before the flushed position,
        // has lost some.
        let emptied = empty && numbered;
        if !begins && (ends < flushed || emptied) {
            let detail = format!(
                "it ends with write {ends}, and held writes up to {flushed} at least: acknowledged writes after that may be missing"
            );
            self.found.damage.push(StoreError::corrupt(&self.place, detail));
        }
        // Missing writes stay missing: a later reader finds the same.
        let position = if begins { flushed } else { ends };
        let (before, epoch, held) = (self.before.unwrap_or(0), self.epoch, self.held);
        (self.found, End { position, before, epoch, emptied, held })
    }
}

/// The end of a chain.
#[derive(Debug)]
pub(super) struct End {
    /// The last position that counts.
    pub(super) position: u64,
    /// Hash of the last message; 0 if there is none.
    pub(super) before: u64,
    /// The highest epoch of a message.
    pub(super) epoch: u64,
    /// Whether all messages are gone.
    pub(super) emptied: bool,
    /// Groups that no manifest covers yet, oldest first.
    pub(super) held: Vec<HeldMessages>,
}
