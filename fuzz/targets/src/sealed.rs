//! Corrects checksums, so that the protected content is read whatever the bytes are (docs/format.md).

use crc32c::{crc32c, crc32c_append};
use serde_json::Value;
use std::ops::Range;

/// Frame size of a small file in bytes: magic, version, checksum.
pub const FRAME: usize = 16;
/// Header size of a log record in bytes.
const HEADER: usize = 48;
/// Size of a block entry in a footer, and the offset of its checksum.
const BLOCK: (usize, Range<usize>) = (21, 16..20);
/// Header size of a group in a bucket: writer, epoch, number, checksum of the previous object, kind.
const GROUP_HEAD: usize = 29;
/// Header size of a manifest in a bucket: writer, number, kind, and the number of old numbers that follow.
const MANIFEST_HEAD: usize = 21;
/// Size of the trailer after a footer: its offset, its length, its checksum, a magic.
const TAIL: usize = 24;

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn put(bytes: &mut [u8], at: usize, checksum: u32) {
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
}

/// The content of a small file in its frame.
pub fn framed(magic: &[u8; 8], version: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = [&magic[..], &version.to_le_bytes(), &[0; 4], content].concat();
    frame(&mut bytes);
    bytes
}

/// Corrects the checksum of a small file.
pub fn frame(bytes: &mut [u8]) {
    if bytes.len() >= FRAME {
        let checksum = crc32c_append(crc32c(&bytes[..12]), &bytes[FRAME..]);
        put(bytes, 12, checksum);
    }
}

/// Corrects the checksums of the records in a log file, from `from` on.
pub fn records(bytes: &mut [u8], from: usize, epoch: u64) {
    let mut at = from;
    while let Some(magic) = bytes.get(at..at + HEADER).map(|header| &header[..4]) {
        if magic != b"MRLG" {
            at += 8;
            continue;
        }
        let body = number(bytes, at + 12).unwrap_or(0);
        let key = usize::from(u16::from_le_bytes([bytes[at + 42], bytes[at + 43]]));
        let end = (at + HEADER).saturating_add(key).saturating_add(body);
        if let Some(content) = bytes.get(at + HEADER..end) {
            let checksum = crc32c(content);
            put(bytes, at + 8, checksum);
        }
        let checksum = crc32c_append(crc32c(&epoch.to_le_bytes()), &bytes[at + 8..at + HEADER]);
        put(bytes, at + 4, checksum);
        // A body that reaches past the end leaves room for a record after its header.
        at = if end <= bytes.len() { end.next_multiple_of(8) } else { at + HEADER };
    }
}

/// Corrects the checksums of a file of blocks: of its header, its blocks and its footer. Blocks are located by the
/// footer.
pub fn blocks(bytes: &mut [u8]) {
    if bytes.len() < FRAME + TAIL {
        return;
    }
    let checksum = crc32c(&bytes[..12]);
    put(bytes, 12, checksum);
    let tail = bytes.len() - TAIL;
    let length = number(bytes, tail + 8).unwrap_or(0).min(tail);
    let footer = tail - length;
    bytes[tail..tail + 8].copy_from_slice(&(footer as u64).to_le_bytes());
    bytes[tail + 8..tail + 12].copy_from_slice(&(length as u32).to_le_bytes());
    // The list of blocks ends the footer, prefixed with its length.
    let listed = (0..=length / BLOCK.0).find(|n| {
        let at = tail.checked_sub(n * BLOCK.0 + 4).filter(|at| *at >= footer);
        at.and_then(|at| number(bytes, at)) == Some(*n)
    });
    for n in 0..listed.unwrap_or(0) {
        let at = tail - (n + 1) * BLOCK.0;
        let offset = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let stored = number(bytes, at + 8).unwrap_or(0);
        if let Some(block) = offset.checked_add(stored).and_then(|end| bytes.get(offset..end)) {
            let checksum = crc32c(block);
            put(bytes, at + BLOCK.1.start, checksum);
        }
    }
    let checksum = crc32c(&bytes[footer..tail]);
    put(bytes, tail + 12, checksum);
}

/// Corrects an object of a bucket: a file of blocks, or a small one in its frame, with log records or a manifest.
pub fn object(name: &str, bytes: &mut [u8]) {
    if name.ends_with(".segment") || name.ends_with(".rows") {
        return blocks(bytes);
    }
    if name.contains("/wal/")
        && let Some(epoch) = bytes.get(FRAME + 8..FRAME + 16)
    {
        let epoch = u64::from_le_bytes(epoch.try_into().unwrap());
        if let Some(group) = bytes.get_mut(FRAME + GROUP_HEAD..) {
            records(group, 0, epoch);
        }
    }
    if name.contains("/manifests/")
        && let Some(old) = number(bytes, FRAME + MANIFEST_HEAD - 4)
        && let Some(manifest) = bytes.get_mut((FRAME + MANIFEST_HEAD).saturating_add(8 * old)..)
    {
        frame(manifest);
    }
    frame(bytes);
}

/// Splits the messages of a stream, each prefixed with its length, and corrects their checksums and hash chain.
pub fn messages(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut rest, mut all) = (bytes, Vec::<Vec<u8>>::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = (u32::from_le_bytes(*length) as usize).min(after.len());
        let (message, after) = after.split_at(length);
        let mut message = message.to_vec();
        if message.len() >= HEADER {
            if let Some(before) = all.last() {
                let digest = ring::digest::digest(&ring::digest::SHA256, before);
                message[24..32].copy_from_slice(&digest.as_ref()[..8]);
            }
            let checksum = crc32c_append(crc32c(&message[..4]), &message[8..]);
            put(&mut message, 4, checksum);
        }
        all.push(message);
        rest = after;
    }
    all
}

/// Lines of the audit log, each with the hash of the previous one.
pub fn lines(bytes: &[u8]) -> Vec<u8> {
    let (mut all, mut before) = (Vec::new(), Vec::<u8>::new());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let mut written = text.to_vec();
        if !before.is_empty()
            && let Ok(Value::Object(mut line)) = serde_json::from_slice(text)
        {
            let digest = ring::digest::digest(&ring::digest::SHA256, &before);
            line.insert("previous".to_owned(), data_encoding::HEXLOWER.encode(digest.as_ref()).into());
            written = Value::Object(line).to_string().into_bytes();
        }
        all.extend_from_slice(&written);
        all.extend_from_slice(&line[text.len()..]);
        before = written;
    }
    all
}
