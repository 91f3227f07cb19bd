//! Messages of streams for `fuzz/targets`. Not part of the crate's interface.

use super::message::{HEADER_BYTES, Header, Kind, group_of, records_of};

/// Decodes a message and encodes it again; returns the error if it is invalid.
pub fn message(bytes: &[u8]) -> Result<Vec<u8>, String> {
    Header::of(bytes).map(|(header, part)| header.with(part).to_vec())
}

/// Decodes the content of a group of `count` records and encodes it again; returns the error if it is invalid.
pub fn records(count: u32, content: &[u8]) -> Result<Vec<u8>, String> {
    let header = Header {
        kind: Kind::End,
        generation: 1,
        epoch: 1,
        position: 1,
        before: 0,
        group: 0,
        records: count,
        chunk: 0,
        chunks: 1,
    };
    let messages = group_of(header, &records_of(&header, content)?, usize::MAX).unwrap_or_default();
    Ok(messages.iter().flat_map(|message| &message[HEADER_BYTES..]).copied().collect())
}
