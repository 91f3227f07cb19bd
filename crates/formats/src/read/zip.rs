//! The files in a zip archive, found by its directory and inflated as they are read.

use crate::error::Fault;
use bytes::{Buf, Bytes};
use flate2::read::DeflateDecoder;
use meridian_model::Invalid;
use std::io::Read;

/// Most entries of a directory: an archive of one data set has a few.
const ENTRIES_MAX: usize = 10_000;
const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
/// Bytes of the end of the directory and of an entry before its names.
const END_BYTES: usize = 22;
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;

/// An archive, all of it in memory.
pub(crate) struct Zip {
    bytes: Bytes,
    entries: Vec<Entry>,
}

/// One file of an archive.
struct Entry {
    name: String,
    method: u16,
    encrypted: bool,
    packed: usize,
    local: usize,
}

fn damaged(what: &str) -> Fault {
    Fault::stop(Invalid::new(format!("the zip archive is damaged or cut off: {what}")))
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

impl Zip {
    /// Reads the directory.
    pub(crate) fn open(bytes: Bytes) -> Result<Zip, Fault> {
        let tail = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
        let end = memchr::memmem::rfind(&bytes[tail..], END).ok_or_else(|| damaged("it has no directory"))? + tail;
        let read = |at: usize| long(&bytes, end + at).ok_or_else(|| damaged("its directory"));
        let count = short(&bytes, end + 10).ok_or_else(|| damaged("its directory"))?;
        if count > ENTRIES_MAX {
            return Err(Fault::stop(Invalid::new(format!("a zip archive of {count} files: at most {ENTRIES_MAX}"))));
        }
        let mut at = read(16)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry = bytes.get(at..).filter(|rest| rest.starts_with(ENTRY)).ok_or_else(|| damaged("an entry"))?;
            let part = |at: usize| short(entry, at).ok_or_else(|| damaged("an entry"));
            let (name, extra, comment) = (part(28)?, part(30)?, part(32)?);
            let name = entry.get(ENTRY_BYTES..ENTRY_BYTES + name).ok_or_else(|| damaged("an entry"))?;
            entries.push(Entry {
                name: String::from_utf8_lossy(name).into_owned(),
                method: part(10)? as u16,
                encrypted: part(8)? & 1 != 0,
                packed: long(entry, 20).ok_or_else(|| damaged("an entry"))?,
                local: long(entry, 42).ok_or_else(|| damaged("an entry"))?,
            });
            at += ENTRY_BYTES + name.len() + extra + comment;
        }
        Ok(Zip { bytes, entries })
    }

    /// The names of the files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// A file by its name, without regard to case; `None` if there is none.
    pub(crate) fn file(&self, name: &str) -> Result<Option<Box<dyn Read + Send>>, Fault> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) else {
            return Ok(None);
        };
        if entry.encrypted {
            return Err(Fault::stop(Invalid::new("the zip archive is encrypted: unpack it first")));
        }
        let local = self.bytes.get(entry.local..).filter(|rest| rest.starts_with(LOCAL));
        let local = local.ok_or_else(|| damaged("a file"))?;
        let names = short(local, 26).zip(short(local, 28)).map(|(name, extra)| name + extra);
        let from = entry.local + LOCAL_BYTES + names.ok_or_else(|| damaged("a file"))?;
        if from + entry.packed > self.bytes.len() {
            return Err(damaged("a file"));
        }
        let packed = self.bytes.slice(from..from + entry.packed).reader();
        match entry.method {
            0 => Ok(Some(Box::new(packed))),
            8 => Ok(Some(Box::new(DeflateDecoder::new(packed)))),
            other => Err(Fault::stop(Invalid::new(format!(
                "a file in the zip archive is packed by method {other}: unpack it first"
            )))),
        }
    }
}
