//! A message of a stream, encoded as bytes.
//!
//! | at | bytes | content |
//! |---|---|---|
//! | 0 | 2 | magic `MS` |
//! | 2 | 1 | version of the format |
//! | 3 | 1 | 0: a chunk; 1: the last chunk of its group; 2: an owner record |
//! | 4 | 4 | CRC32C of everything else |
//! | 8 | 4 | generation of the stream |
//! | 12 | 4 | epoch of the writer |
//! | 16 | 8 | position of the group's first record; in an owner record the last position that counts |
//! | 24 | 8 | hash of the previous message: the first bytes of its SHA-256; 0 if there is none |
//! | 32 | 8 | group: random, so that no two attempts have the same bytes |
//! | 40 | 4 | records of the group |
//! | 44 | 2 | number of the chunk, from 0 |
//! | 46 | 2 | chunks of the group |
//!
//! The group's records follow, split into chunks if they do not fit into one message. A record is its kind (1 byte),
//! its time (8 bytes), its number of events, the lengths of key and body, then key and body. The three numbers have
//! seven bits per byte, the lowest first. Other fields of a record in a log file (`log/record.rs`) would be redundant:
//! header, checksum and hash cover the whole group.

use crate::codec::{Reader, put_i64, put_u8, put_u16, put_u32, put_u64};
use crate::seams::Kind as RecordKind;
use crate::seams::Record;
use bytes::Bytes;

pub(super) const HEADER_BYTES: usize = 48;
const MAGIC: [u8; 2] = *b"MS";
const VERSION: u8 = 1;
/// Position of the checksum.
const CRC_AT: std::ops::Range<usize> = 4..8;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of a group.
    Chunk,
    /// The last part of a group, with which the group counts.
    End,
    /// Another writer, or the same one after an incomplete group: the incomplete part no longer counts.
    Owner,
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) generation: u32,
    pub(super) epoch: u32,
    pub(super) position: u64,
    /// Hash of the previous message.
    pub(super) before: u64,
    pub(super) group: u64,
    pub(super) records: u32,
    pub(super) chunk: u16,
    pub(super) chunks: u16,
}

/// Returns the hash of a message, as stored in the next one.
pub(super) fn hash_of(message: &[u8]) -> u64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, message);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_le_bytes(first)
}

impl Header {
    /// Encodes a message of this header and a part of a group.
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

    /// Decodes a message: its header, and its part of a group.
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
            position: reader.position()?,
            before: reader.u64()?,
            group: reader.u64()?,
            records: reader.u32()?,
            chunk: reader.u16()?,
            chunks: reader.u16()?,
        };
        Ok((header, reader.rest()))
    }

    /// Returns the last position that counts once the message's group is complete.
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

/// Returns the messages of a group, each of at most `message_max` bytes. `head` is the header of the first.
///
/// `None` if there would be more chunks than can be numbered.
pub(super) fn group_of(head: Header, records: &[Record], message_max: usize) -> Option<Vec<Bytes>> {
    let mut content = Vec::with_capacity(records.iter().map(Record::stored_len).sum());
    for record in records {
        put_record(record, &mut content);
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

fn put_record(record: &Record, content: &mut Vec<u8>) {
    put_u8(content, code_of(record.kind));
    put_i64(content, record.time);
    put_number(content, u64::from(record.events));
    put_number(content, record.key.len() as u64);
    put_number(content, record.body.len() as u64);
    content.extend_from_slice(&record.key);
    content.extend_from_slice(&record.body);
}

fn code_of(kind: RecordKind) -> u8 {
    match kind {
        RecordKind::Write => 1,
        RecordKind::Replace => 2,
        RecordKind::Delete => 3,
        RecordKind::Expire => 4,
    }
}

/// Appends a number in seven bits per byte, the lowest first; all bytes but the last have the high bit.
fn put_number(content: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        put_u8(content, n as u8 | 0x80);
        n >>= 7;
    }
    put_u8(content, n as u8);
}

/// Decodes a number encoded by [`put_number`].
fn number(reader: &mut Reader<'_>) -> Result<u64, String> {
    let mut n = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = reader.u8()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        n |= bits << shift;
        if byte < 0x80 {
            return Ok(n);
        }
    }
    Err("a number passes 64 bits".to_owned())
}

fn record_of(reader: &mut Reader<'_>, position: u64) -> Result<Record, String> {
    let code = reader.u8()?;
    let kinds = [RecordKind::Write, RecordKind::Replace, RecordKind::Delete, RecordKind::Expire];
    let kind = kinds.into_iter().find(|kind| code_of(*kind) == code).ok_or_else(|| format!("its kind is {code}"))?;
    let time = reader.i64()?;
    let events = number(reader)?;
    let events = u32::try_from(events).map_err(|_| format!("it has {events} events"))?;
    let (key, body) = (number(reader)?, number(reader)?);
    let mut take = |len: u64| reader.take(usize::try_from(len).unwrap_or(usize::MAX)).map(<[u8]>::to_vec);
    Ok(Record { position, kind, time, events, key: take(key)?, body: take(body)? })
}

/// Decodes the records of a complete group.
pub(super) fn records_of(header: &Header, content: &[u8]) -> Result<Vec<Record>, String> {
    let (mut reader, mut records) = (Reader::new(content), Vec::new());
    while reader.left() > 0 {
        let position = header.position.saturating_add(records.len() as u64);
        let record = record_of(&mut reader, position);
        records.push(record.map_err(|detail| format!("write {position} of its group does not read: {detail}"))?);
    }
    match records.len() as u64 == u64::from(header.records) {
        true => Ok(records),
        false => Err(format!("its group has {} records, and should have {}", records.len(), header.records)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_group_of_many_small_writes_takes_less_than_in_a_folder() {
        // A server adds some 104 bytes to a message (`tests/store/stream/bytes.rs`).
        for (writes, body) in [(8, 70), (64, 70), (64, 700)] {
            let records: Vec<Record> = records(body).into_iter().cycle().take(writes).collect();
            let folder: usize = records.iter().map(Record::stored_len).sum();
            let messages = group_of(Header { records: writes as u32, ..head() }, &records, 1 << 20).unwrap();
            let stream: usize = messages.iter().map(|message| message.len() + 104).sum();
            assert!(stream < folder, "{writes} writes of {body} bytes: {folder} in a folder, {stream} in a stream");
        }
    }

    #[test]
    fn a_record_comes_back_and_a_group_of_other_records_is_refused() {
        let (kinds, lens) = ([RecordKind::Replace, RecordKind::Delete, RecordKind::Expire], [0, 127, 128, 70_000]);
        for (kind, len) in kinds.into_iter().flat_map(|kind| lens.map(|len| (kind, len))) {
            let record = Record {
                position: 41,
                kind,
                time: -1,
                events: u32::MAX,
                key: vec![1; len.min(1_000)],
                body: vec![2; len],
            };
            let mut content = Vec::new();
            put_record(&record, &mut content);
            assert_eq!(records_of(&Header { records: 1, ..head() }, &content).unwrap(), [record]);
            for cut in 1..content.len().min(1_000) {
                assert!(
                    records_of(&Header { records: 1, ..head() }, &content[..cut]).is_err(),
                    "{kind:?} cut at {cut}"
                );
            }
        }
        let mut content = Vec::new();
        records(9).iter().for_each(|record| put_record(record, &mut content));
        assert!(records_of(&head(), &content).is_ok());
        assert!(records_of(&Header { records: 3, ..head() }, &content).is_err());
        assert!(records_of(&Header { records: 1, ..head() }, &content).is_err());
        assert!(records_of(&head(), &[&content[..], &[0]].concat()).is_err(), "a kind that there is not");
        // No memory is allocated for a length beyond the content.
        let endless = [&[1][..], &[0; 8], &[1, 0], &[0xff; 9], &[1]].concat();
        assert!(records_of(&Header { records: 1, ..head() }, &endless).is_err());
        let mut reader = Reader::new(&[0xff; 20]);
        assert!(number(&mut reader).is_err());
    }
}
