//! FlatGeobuf without empty geometries.
//!
//! The library gives every feature a geometry, and GDAL rejects an empty one: it reports the file as damaged. So the
//! finished file passes through here, and a feature without a position loses its entry in the field table of its
//! message. Lengths and offsets stay unchanged.

use crate::read::index_bytes;
use flatgeobuf::{Feature, Header, size_prefixed_root_as_feature, size_prefixed_root_as_header};
use std::io::{self, Write};

/// Bytes of the mark and the version at the start.
const MAGIC_BYTES: u64 = 8;
/// Bytes of the length before each message.
const PREFIX_BYTES: usize = 4;

/// Copies a file, one message at a time.
pub(super) struct Placeless<W> {
    out: W,
    /// Bytes still to be copied unchanged: first the mark, later the index.
    passed: u64,
    has_header: bool,
    message: Vec<u8>,
}

impl<W: Write> Placeless<W> {
    pub(super) fn new(out: W) -> Placeless<W> {
        Placeless { out, passed: MAGIC_BYTES, has_header: false, message: Vec::new() }
    }

    /// Bytes still missing from the message, as far as known.
    fn lacking(&self) -> usize {
        match self.message.first_chunk::<PREFIX_BYTES>() {
            None => PREFIX_BYTES - self.message.len(),
            Some(prefix) => PREFIX_BYTES + u32::from_le_bytes(*prefix) as usize - self.message.len(),
        }
    }

    /// Removes the geometry of a feature without a position, and the box in the header of a file without positions.
    fn mend(&mut self) -> io::Result<()> {
        let entry = if self.has_header {
            let feature = size_prefixed_root_as_feature(&self.message).map_err(io::Error::other)?;
            let is_empty = |geometry: flatgeobuf::Geometry<'_>| {
                geometry.xy().is_none_or(|xy| xy.is_empty()) && geometry.parts().is_none_or(|parts| parts.is_empty())
            };
            feature.geometry().is_some_and(is_empty).then_some(Feature::VT_GEOMETRY)
        } else {
            let header = size_prefixed_root_as_header(&self.message).map_err(io::Error::other)?;
            let index = index_bytes(header.features_count(), header.index_node_size());
            self.passed = index.ok_or_else(|| io::Error::other("an index of unknown size"))?;
            self.has_header = true;
            let is_endless = header.envelope().is_some_and(|sides| sides.iter().any(|side| !side.is_finite()));
            is_endless.then_some(Header::VT_ENVELOPE)
        };
        if let Some(entry) = entry {
            // The message starts with an offset to its root table; the table's field list precedes it.
            let word = |at: usize| Some(i32::from_le_bytes(*self.message.get(at..)?.first_chunk()?));
            let root = word(PREFIX_BYTES).map(|offset| PREFIX_BYTES + offset as usize);
            let fields = root.and_then(|root| root.checked_add_signed(-(word(root)? as isize)));
            let entry =
                fields.and_then(|fields| self.message.get_mut(fields + usize::from(entry)..)?.first_chunk_mut());
            *entry.ok_or_else(|| io::Error::other("a message without a table"))? = [0, 0];
        }
        Ok(())
    }
}

impl<W: Write> Write for Placeless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.passed > 0 {
            let taken = bytes.len().min(usize::try_from(self.passed).unwrap_or(usize::MAX));
            self.out.write_all(&bytes[..taken])?;
            self.passed -= taken as u64;
            return Ok(taken);
        }
        let taken = bytes.len().min(self.lacking());
        self.message.extend_from_slice(&bytes[..taken]);
        if self.lacking() == 0 {
            self.mend()?;
            self.out.write_all(&self.message)?;
            self.message.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
