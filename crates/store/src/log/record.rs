//! Records of the log.
//!
//! A record is a header of 48 bytes, the idempotency key, the body, and zeros up to a multiple of 8:
//!
//! | at | bytes | content |
//! |---|---|---|
//! | 0 | 4 | magic `MRLG` |
//! | 4 | 4 | CRC32C of the file's epoch (8 bytes) and of bytes 8..48 |
//! | 8 | 4 | CRC32C of key and body |
//! | 12 | 4 | length of the body |
//! | 16 | 8 | position |
//! | 24 | 8 | time of the write, in microseconds since 1970 |
//! | 32 | 8 | offset in this file up to which everything was synced when the record was written |
//! | 40 | 2 | kind |
//! | 42 | 2 | length of the key |
//! | 44 | 4 | number of events |

use crate::codec::{Reader, put_i64, put_u16, put_u32, put_u64};
use crate::seams::{Kind, Record};

pub(crate) const HEADER_BYTES: usize = 48;
const MAGIC: u32 = u32::from_le_bytes(*b"MRLG");

impl Record {
    /// Returns the bytes that the record takes in a file.
    pub(crate) fn stored_len(&self) -> usize {
        stored_len(&self.key, &self.body)
    }

    /// Appends the record, encoded for a file of this epoch.
    pub(crate) fn encode(&self, epoch: u64, synced: u64, out: &mut Vec<u8>) {
        let start = out.len();
        put_u32(out, MAGIC);
        put_u32(out, 0);
        put_u32(out, crc32c::crc32c_append(crc32c::crc32c(&self.key), &self.body));
        put_u32(out, self.body.len() as u32);
        put_u64(out, self.position);
        put_i64(out, self.time);
        put_u64(out, synced);
        put_u16(out, self.kind.code());
        put_u16(out, self.key.len() as u16);
        put_u32(out, self.events);
        let crc = header_crc(epoch, &out[start + 8..start + HEADER_BYTES]);
        out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.body);
        // Aligned to 8 bytes: a scan for the next header after damage tries every eighth byte only.
        out.resize(start + self.stored_len(), 0);
    }
}

fn stored_len(key: &[u8], body: &[u8]) -> usize {
    (HEADER_BYTES + key.len() + body.len()).next_multiple_of(8)
}

fn header_crc(epoch: u64, header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&epoch.to_le_bytes()), header)
}

/// The header of a record; its body need not be readable.
pub(crate) struct Header {
    pub(crate) position: u64,
    /// Offset up to which the file was synced when the record was written.
    pub(crate) synced: u64,
    pub(crate) events: u32,
}

/// Returns the header at `at`, if it is valid for this epoch.
pub(crate) fn header_at(bytes: &[u8], at: usize, epoch: u64) -> Option<Header> {
    let header = bytes.get(at..at + HEADER_BYTES)?;
    // The magic is a cheap filter for the scan; the checksum decides.
    if header[..4] != MAGIC.to_le_bytes() {
        return None;
    }
    let mut reader = Reader::new(&header[4..]);
    if reader.u32().ok()? != header_crc(epoch, &header[8..]) {
        return None;
    }
    reader.take(8).ok()?;
    let position = reader.position().ok()?;
    reader.i64().ok()?;
    let synced = reader.u64().ok()?;
    reader.take(4).ok()?;
    Some(Header { position, synced, events: reader.u32().ok()? })
}

/// A good record in its file's bytes, not copied.
pub(crate) struct RecordView<'a> {
    pub(crate) position: u64,
    /// Offset up to which the file was synced when the record was written.
    pub(crate) synced: u64,
    kind: Kind,
    time: i64,
    events: u32,
    key: &'a [u8],
    body: &'a [u8],
}

impl RecordView<'_> {
    /// Returns the bytes that the record takes in the file.
    pub(crate) fn stored_len(&self) -> usize {
        stored_len(self.key, self.body)
    }

    /// Returns an owned copy.
    pub(crate) fn to_record(&self) -> Record {
        let &RecordView { position, kind, time, events, key, body, .. } = self;
        Record { position, kind, time, events, key: key.to_vec(), body: body.to_vec() }
    }
}

/// Returns the record at `at`; `None` if there is no complete record of this epoch.
pub(crate) fn read_at(bytes: &[u8], at: usize, epoch: u64) -> Option<RecordView<'_>> {
    header_at(bytes, at, epoch)?;
    let mut reader = Reader::new(&bytes[at + 8..]);
    let crc = reader.u32().ok()?;
    let body_len = reader.u32().ok()? as usize;
    let position = reader.position().ok()?;
    let time = reader.i64().ok()?;
    let synced = reader.u64().ok()?;
    let kind = Kind::of(reader.u16().ok()?)?;
    let key_len = usize::from(reader.u16().ok()?);
    let events = reader.u32().ok()?;
    let key = reader.take(key_len).ok()?;
    let body = reader.take(body_len).ok()?;
    let sound = crc32c::crc32c_append(crc32c::crc32c(key), body) == crc;
    sound.then_some(RecordView { position, synced, kind, time, events, key, body })
}
