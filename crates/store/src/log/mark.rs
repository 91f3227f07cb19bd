//! The head of a log file: two marks, each with the end of the acknowledged writes.
//!
//! A mark is written after the sync of a group, to the two slots in turn. It is on disk with the sync of the next
//! group. So one readable mark always exists, even if a power failure tore the other. Each slot has its own page, so a
//! torn write of one does not reach the other.
//!
//! | at | bytes | content |
//! |---|---|---|
//! | 0 | 8 | magic `MRDNMARK` |
//! | 8 | 8 | position of the last acknowledged write, in any file |
//! | 16 | 8 | offset in this file at which acknowledged records end |
//! | 24 | 4 | CRC32C of the file's epoch (8 bytes) and of bytes 0..24 |

use crate::codec::{Reader, put_u32, put_u64};
use crate::seams::DiskFile;
use std::io;

/// Bytes before the first record.
pub(super) const HEAD_BYTES: u64 = 2 * SLOT_BYTES;
const SLOT_BYTES: u64 = 4096;
const MAGIC: &[u8; 8] = b"MRDNMARK";
const MARK_BYTES: usize = 28;

/// A file's mark of acknowledged writes. The larger of two marks is the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// Position of the last acknowledged write.
    pub(super) position: u64,
    /// Offset in the file at which the records of acknowledged writes end.
    pub(super) end: u64,
}

impl Mark {
    /// Encodes the head of a new file: the mark in both slots.
    pub(super) fn head(self, epoch: u64) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES as usize];
        let mark = self.encode(epoch);
        for slot in head.chunks_mut(SLOT_BYTES as usize) {
            slot[..MARK_BYTES].copy_from_slice(&mark);
        }
        head
    }

    /// Writes the mark to a slot. It is durable with the next sync of the file.
    pub(super) fn write(self, file: &dyn DiskFile, epoch: u64, slot: Slot) -> io::Result<()> {
        file.write_at(slot.offset(), &self.encode(epoch))
    }

    fn encode(self, epoch: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MARK_BYTES);
        bytes.extend_from_slice(MAGIC);
        put_u64(&mut bytes, self.position);
        put_u64(&mut bytes, self.end);
        // With the epoch in the checksum, the marks of a file's former use do not validate.
        let crc = crc(epoch, &bytes);
        put_u32(&mut bytes, crc);
        bytes
    }

    fn read(bytes: &[u8], epoch: u64, slot: Slot) -> Option<Mark> {
        let from = slot.offset() as usize;
        let bytes = bytes.get(from..from + MARK_BYTES)?.strip_prefix(MAGIC)?;
        let mut reader = Reader::new(bytes);
        let mark = Mark { position: reader.u64().ok()?, end: reader.u64().ok()? };
        (mark.encode(epoch)[MAGIC.len()..] == *bytes).then_some(mark)
    }

    /// Returns the newer mark of a file of this epoch, and the slot for the next one. `None` if neither is readable.
    pub(super) fn newest(bytes: &[u8], epoch: u64) -> Option<(Mark, Slot)> {
        let [first, second] = [Slot::First, Slot::Second].map(|slot| Mark::read(bytes, epoch, slot));
        // The next mark overwrites the older slot, so the newer one survives a torn write.
        if first > second { Some((first?, Slot::Second)) } else { Some((second?, Slot::First)) }
    }
}

/// One of the two places of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    First,
    Second,
}

impl Slot {
    fn offset(self) -> u64 {
        match self {
            Slot::First => 0,
            Slot::Second => SLOT_BYTES,
        }
    }

    /// Returns the other slot.
    pub(super) fn other(self) -> Slot {
        match self {
            Slot::First => Slot::Second,
            Slot::Second => Slot::First,
        }
    }
}

fn crc(epoch: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&epoch.to_le_bytes()), bytes)
}
