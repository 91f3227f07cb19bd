//! Files in a zip archive, found by its directory and inflated as they are read.

use crate::error::Fault;
use bytes::{Buf, Bytes};
use flate2::read::DeflateDecoder;
use meridian_model::Invalid;
use std::io::Read;

/// Max entries of a directory: an archive of one data set has a few.
const ENTRIES_MAX: usize = 10_000;
const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
/// Signatures of the end of a ZIP64 directory, and of its locator, which precedes the other end.
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
const LOCATOR_64_BYTES: usize = 20;
/// Id of the extra field with an entry's ZIP64 sizes, and the placeholder for a number stored there.
const EXTRA_64: usize = 1;
const SEE_EXTRA: usize = u32::MAX as usize;
/// Bytes of the end of the directory and of an entry before its names.
const END_BYTES: usize = 22;
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;

/// An archive, held completely in memory.
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

fn longest(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
}

/// Returns how many entries a directory has, and where it begins.
fn directory(bytes: &[u8], end: usize) -> Option<(usize, usize)> {
    let locator = end.checked_sub(LOCATOR_64_BYTES).map(|at| &bytes[at..]);
    match locator.filter(|locator| locator.starts_with(LOCATOR_64)) {
        Some(locator) => {
            let end = bytes.get(longest(locator, 8)?..).filter(|end| end.starts_with(END_64))?;
            Some((longest(end, 32)?, longest(end, 48)?))
        }
        None => Some((short(bytes, end + 10)?, long(bytes, end + 16)?)),
    }
}

/// Returns the packed size of an entry and the location of its file. A number that does not fit 32 bits is in its extra
/// field.
fn extent(entry: &[u8], extra: &[u8]) -> Option<(usize, usize)> {
    let (whole, mut packed, mut local) = (long(entry, 24)?, long(entry, 20)?, long(entry, 42)?);
    let mut at = 0;
    while let (Some(id), Some(length)) = (short(extra, at), short(extra, at + 2)) {
        let field = extra.get(at + 4..at + 4 + length)?;
        if id == EXTRA_64 {
            // Only the numbers that do not fit, in this order.
            let mut next = if whole == SEE_EXTRA { 8 } else { 0 };
            for number in [&mut packed, &mut local] {
                if *number == SEE_EXTRA {
                    *number = longest(field, next)?;
                    next += 8;
                }
            }
        }
        at += 4 + length;
    }
    Some((packed, local))
}

impl Zip {
    /// Reads the directory.
    pub(crate) fn open(bytes: Bytes) -> Result<Zip, Fault> {
        let tail = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
        let end = memchr::memmem::rfind(&bytes[tail..], END).ok_or_else(|| damaged("it has no directory"))? + tail;
        let (count, mut at) = directory(&bytes, end).ok_or_else(|| damaged("its directory"))?;
        if count > ENTRIES_MAX {
            return Err(Fault::stop(Invalid::new(format!("a zip archive of {count} files: at most {ENTRIES_MAX}"))));
        }
        let mut entries = Vec::new();
        for _ in 0..count {
            let entry = bytes.get(at..).filter(|rest| rest.starts_with(ENTRY)).ok_or_else(|| damaged("an entry"))?;
            let part = |at: usize| short(entry, at).ok_or_else(|| damaged("an entry"));
            let (name, extra, comment) = (part(28)?, part(30)?, part(32)?);
            let names = entry.get(ENTRY_BYTES..ENTRY_BYTES + name + extra).ok_or_else(|| damaged("an entry"))?;
            let (name, more) = names.split_at(name);
            let (packed, local) = extent(entry, more).ok_or_else(|| damaged("an entry"))?;
            entries.push(Entry {
                name: String::from_utf8_lossy(name).into_owned(),
                method: part(10)? as u16,
                encrypted: part(8)? & 1 != 0,
                packed,
                local,
            });
            at += ENTRY_BYTES + name.len() + extra + comment;
        }
        Ok(Zip { bytes, entries })
    }

    /// Returns the names of the files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Returns a file by its name, ignoring case; `None` if absent.
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
        let to =
            from.checked_add(entry.packed).filter(|to| *to <= self.bytes.len()).ok_or_else(|| damaged("a file"))?;
        let packed = self.bytes.slice(from..to).reader();
        match entry.method {
            0 => Ok(Some(Box::new(packed))),
            8 => Ok(Some(Box::new(DeflateDecoder::new(packed)))),
            other => Err(Fault::stop(Invalid::new(format!(
                "a file in the zip archive is packed by method {other}: unpack it first"
            )))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an archive of one stored file, with 64-bit sizes and offsets.
    fn zip64(name: &str, content: &[u8]) -> Vec<u8> {
        let mut out = LOCAL.to_vec();
        out.extend([45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend([0xff; 8]);
        out.extend((name.len() as u16).to_le_bytes());
        out.extend(20u16.to_le_bytes());
        out.extend(name.as_bytes());
        let sizes = [(content.len() as u64).to_le_bytes(), (content.len() as u64).to_le_bytes()].concat();
        out.extend([[1, 0, 16, 0].as_slice(), &sizes].concat());
        out.extend(content);
        let directory = out.len() as u64;
        out.extend(ENTRY);
        out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend([0xff; 8]);
        out.extend((name.len() as u16).to_le_bytes());
        // Another extra field comes first.
        out.extend(34u16.to_le_bytes());
        out.extend([0; 10]);
        out.extend([0xff; 4]);
        out.extend(name.as_bytes());
        out.extend([9, 0, 2, 0, 7, 7, 1, 0, 24, 0]);
        out.extend([sizes.as_slice(), &0u64.to_le_bytes()].concat());
        let end = out.len() as u64;
        out.extend(END_64);
        out.extend(44u64.to_le_bytes());
        out.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        [1, 1, end - directory, directory].iter().for_each(|n| out.extend(n.to_le_bytes()));
        out.extend(LOCATOR_64);
        out.extend([0; 4]);
        out.extend(end.to_le_bytes());
        out.extend([1, 0, 0, 0]);
        out.extend(END);
        out.extend([0; 4]);
        out.extend([0xff; 12]);
        out.extend([0; 2]);
        out
    }

    #[test]
    fn sizes_and_places_of_64_bits_are_read() {
        let bytes = zip64("a.kml", b"content");
        let zip = Zip::open(bytes.clone().into()).unwrap();
        assert_eq!(zip.names().collect::<Vec<_>>(), ["a.kml"]);
        let mut content = String::new();
        zip.file("A.KML").unwrap().unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
        // Damaged archives are refused.
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                if let Ok(zip) = Zip::open(damaged.into()) {
                    let names: Vec<String> = zip.names().map(str::to_owned).collect();
                    names.iter().for_each(|name| drop(zip.file(name)));
                }
            }
        }
    }
}
