//! A message of a stream, as bytes.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 2 | magic `MS` |
//! | 2 | 1 | version of the form |
//! | 3 | 1 | 0: a chunk; 1: the last chunk of its group; 2: an owner record |
//! | 4 | 4 | CRC32C of everything else |
//! | 8 | 4 | generation of the stream |
//! | 12 | 4 | epoch of the writer |
//! | 16 | 8 | position of the group's first record; of an owner record the last position that counts |
//! | 24 | 8 | hash of the message before: the first bytes of its SHA-256; 0 where there is none |
//! | 32 | 8 | group: random, so that no two attempts have the same bytes |
//! | 40 | 4 | records of the group |
//! | 44 | 2 | number of the chunk, from 0 |
//! | 46 | 2 | chunks of the group |
//!
//! The group's records follow as a file of the log holds them, cut into chunks where they do not fit into one message.

use crate::codec::{Reader, put_u16, put_u32, put_u64};
use crate::log::{Record, read_record};
use bytes::Bytes;

pub(super) const HEADER_BYTES: usize = 48;
const MAGIC: [u8; 2] = *b"MS";
const VERSION: u8 = 1;
/// Where the checksum stands.
const CRC_AT: std::ops::Range<usize> = 4..8;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of a group.
    Chunk,
    /// The last part of a group: with it the group counts.
    End,
    /// Another writer, or the same one after a group that was cut off: what was cut off counts no more.
    Owner,
}

/// What a message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) generation: u32,
    pub(super) epoch: u32,
    pub(super) position: u64,
    /// Hash of the message before it.
    pub(super) before: u64,
    pub(super) group: u64,
    pub(super) records: u32,
    pub(super) chunk: u16,
    pub(super) chunks: u16,
}

/// Hash of a message, as the next one has it.
pub(super) fn hash_of(message: &[u8]) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, message);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_le_bytes(first)
}

impl Header {
    /// The message of this header and a part of a group.
    pub(super) fn with(self, part: &[u8]) -> Bytes {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + part.len());
        bytes.extend_from_slice(&MAGIC);
        let kind = match self.kind {
            Kind::Chunk => 0,
            Kind::End => 1,
            Kind::Owner => 2,
        };
        bytes.extend_from_slice(&[VERSION, kind]);
        put_u32(&mut bytes, 0);
        put_u32(&mut bytes, self.generation);
        put_u32(&mut bytes, self.epoch);
        put_u64(&mut bytes, self.position);
        put_u64(&mut bytes, self.before);
        put_u64(&mut bytes, self.group);
        put_u32(&mut bytes, self.records);
        put_u16(&mut bytes, self.chunk);
        put_u16(&mut bytes, self.chunks);
        bytes.extend_from_slice(part);
        let crc = crc_of(&bytes);
        bytes[CRC_AT].copy_from_slice(&crc.to_le_bytes());
        bytes.into()
    }

    /// Reads a message: its header, and its part of a group.
    pub(super) fn of(message: &[u8]) -> Result<(Header, &[u8]), String> {
        let mut reader = Reader::new(message);
        if reader.take(2)? != MAGIC {
            return Err("it is no message of Meridian".to_owned());
        }
        let (version, kind, crc) = (reader.u8()?, reader.u8()?, reader.u32()?);
        if message.len() < HEADER_BYTES || crc != crc_of(message) {
            return Err("its checksum is wrong".to_owned());
        }
        if version != VERSION {
            return Err(format!("its version is {version}, and this program reads version {VERSION}"));
        }
        let kind = match kind {
            0 => Kind::Chunk,
            1 => Kind::End,
            2 => Kind::Owner,
            other => return Err(format!("its kind is {other}")),
        };
        let header = Header {
            kind,
            generation: reader.u32()?,
            epoch: reader.u32()?,
            position: reader.u64()?,
            before: reader.u64()?,
            group: reader.u64()?,
            records: reader.u32()?,
            chunk: reader.u16()?,
            chunks: reader.u16()?,
        };
        Ok((header, reader.rest()))
    }

    /// The last position that counts once the message's group is there whole.
    pub(super) fn last_position(&self) -> u64 {
        match self.kind {
            Kind::Owner => self.position,
            Kind::Chunk | Kind::End => self.position.saturating_add(u64::from(self.records)).saturating_sub(1),
        }
    }
}

fn crc_of(message: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&message[..CRC_AT.start]), &message[CRC_AT.end..])
}

/// The messages of a group, each of at most `message_max` bytes. `head`: the header of the first.
///
/// `None`: there would be more chunks than can be numbered.
pub(super) fn group_of(head: Header, records: &[Record], message_max: usize) -> Option<Vec<Bytes>> {
    let mut content = Vec::with_capacity(records.iter().map(Record::stored_len).sum());
    for record in records {
        record.encode(u64::from(head.epoch), 0, &mut content);
    }
    let part = message_max.saturating_sub(HEADER_BYTES).max(1);
    let chunks = u16::try_from(content.len().div_ceil(part)).ok()?;
    let (mut before, mut messages) = (head.before, Vec::with_capacity(usize::from(chunks)));
    for (chunk, part) in (0..chunks).zip(content.chunks(part)) {
        let kind = if chunk + 1 == chunks { Kind::End } else { Kind::Chunk };
        let message = Header { kind, before, chunk, chunks, ..head }.with(part);
        before = hash_of(&message);
        messages.push(message);
    }
    Some(messages)
}

/// The records of a whole group.
pub(super) fn records_of(header: &Header, content: &[u8]) -> Result<Vec<Record>, String> {
    let (mut records, mut at) = (Vec::new(), 0);
    while at < content.len() {
        let stored = read_record(content, at, u64::from(header.epoch))
            .ok_or_else(|| format!("no record stands at byte {at} of its group"))?;
        let expected = header.position + records.len() as u64;
        if stored.position != expected {
            return Err(format!("it has write {} in the place of write {expected}", stored.position));
        }
        at += stored.stored_len();
        records.push(stored.to_record());
    }
    match records.len() as u64 == u64::from(header.records) {
        true => Ok(records),
        false => Err(format!("its group has {} records, and should have {}", records.len(), header.records)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Kind as RecordKind;

    fn head() -> Header {
        let (generation, epoch, position) = (3, 7, 41);
        Header { kind: Kind::End, generation, epoch, position, before: 5, group: 9, records: 2, chunk: 0, chunks: 1 }
    }

    fn records(body: usize) -> Vec<Record> {
        let record = |position| Record {
            position,
            kind: RecordKind::Write,
            time: 1,
            events: 1,
            key: b"key".to_vec(),
            body: vec![position as u8; body],
        };
        (41..43).map(record).collect()
    }

    #[test]
    fn a_group_comes_back_from_its_chunks_and_no_flipped_bit_passes() {
        for message_max in [100, 600, 10_000] {
            let messages = group_of(head(), &records(500), message_max).unwrap();
            let (mut content, mut before) = (Vec::new(), 5);
            for (chunk, message) in messages.iter().enumerate() {
                assert!(message.len() <= message_max);
                let (header, part) = Header::of(message).unwrap();
                assert_eq!((usize::from(header.chunk), header.before), (chunk, before));
                assert_eq!(header.kind == Kind::End, chunk + 1 == messages.len());
                content.extend_from_slice(part);
                before = hash_of(message);
            }
            assert_eq!(records_of(&head(), &content).unwrap(), records(500));
        }
        let message = head().with(b"part");
        for bit in 0..message.len() * 8 {
            let mut bad = message.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::of(&bad).is_err(), "bit {bit}");
        }
        for len in 0..message.len() {
            assert!(Header::of(&message[..len]).is_err(), "length {len}");
        }
        assert!(group_of(head(), &records(100_000), HEADER_BYTES + 1).is_none());
    }

    #[test]
    fn records_that_do_not_follow_one_another_are_refused() {
        let mut content = Vec::new();
        records(9).iter().for_each(|record| record.encode(7, 0, &mut content));
        assert!(records_of(&Header { position: 40, ..head() }, &content).is_err());
        assert!(records_of(&Header { records: 3, ..head() }, &content).is_err());
        assert!(records_of(&Header { epoch: 8, ..head() }, &content).is_err());
        assert!(records_of(&head(), &content).is_ok());
    }
}
