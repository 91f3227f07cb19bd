//! PMTiles 3: vector tiles in one file, found by range requests.
//!
//! The file begins with space for the header and the root directory, followed by the tiles. Header and directory are
//! written last, when the offsets of all tiles are known.

use crate::write::WriteError;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Seek, SeekFrom, Write};

/// Bytes of the header, and of the header with the root directory: readers request this many first.
const HEADER_BYTES: u64 = 127;
const ROOT_END: u64 = 16_384;
/// Entries of a leaf directory.
const LEAF_ENTRIES: usize = 4_096;
const GZIP: u8 = 2;
const MVT: u8 = 1;

/// Writes an archive of vector tiles.
pub struct PmTilesWriter<W: Write + Seek> {
    out: W,
    entries: Vec<Entry>,
    /// Bytes of tiles so far.
    bytes: u64,
    zooms: Option<(u8, u8)>,
}

/// Location of tiles with consecutive numbers, stored one after the other.
#[derive(Debug, Clone, Copy)]
struct Entry {
    tile: u64,
    offset: u64,
    length: u32,
    /// 0 marks an entry of a leaf directory.
    run: u32,
}

impl<W: Write + Seek> PmTilesWriter<W> {
    /// Begins an archive at the start of the output.
    pub fn new(mut out: W) -> Result<PmTilesWriter<W>, WriteError> {
        out.seek(SeekFrom::Start(ROOT_END)).map_err(WriteError::of)?;
        Ok(PmTilesWriter { out, entries: Vec::new(), bytes: 0, zooms: None })
    }

    /// Adds a tile, uncompressed. Tiles come in the order of [`tile_number`].
    pub fn add(&mut self, zoom: u8, column: u32, row: u32, tile: &[u8]) -> Result<(), WriteError> {
        let number = tile_number(zoom, column, row);
        if self.entries.last().is_some_and(|last| last.tile >= number) {
            return Err(WriteError::of(format!("the tile {zoom}/{column}/{row} is out of order")));
        }
        let packed = gzip(tile)?;
        self.out.write_all(&packed).map_err(WriteError::of)?;
        self.entries.push(Entry { tile: number, offset: self.bytes, length: packed.len() as u32, run: 1 });
        self.bytes += packed.len() as u64;
        let (min_zoom, max_zoom) = self.zooms.unwrap_or((zoom, zoom));
        self.zooms = Some((min_zoom.min(zoom), max_zoom.max(zoom)));
        Ok(())
    }

    /// Returns the number of tiles so far.
    pub fn tiles(&self) -> usize {
        self.entries.len()
    }

    /// Writes the directories, the metadata (a JSON object) and the header, for tiles that cover west, south, east and
    /// north.
    pub fn finish(mut self, metadata: &str, bounds: [f64; 4]) -> Result<W, WriteError> {
        let metadata = gzip(metadata.as_bytes())?;
        let metadata_at = ROOT_END + self.bytes;
        self.out.write_all(&metadata).map_err(WriteError::of)?;
        let leaves_at = metadata_at + metadata.len() as u64;
        let (root, leaves) = directories(&self.entries)?;
        self.out.write_all(&leaves).map_err(WriteError::of)?;
        let (min_zoom, max_zoom) = self.zooms.unwrap_or((0, 0));
        let count = self.entries.len() as u64;
        let mut header = b"PMTiles\x03".to_vec();
        for number in [
            HEADER_BYTES,
            root.len() as u64,
            metadata_at,
            metadata.len() as u64,
            leaves_at,
            leaves.len() as u64,
            ROOT_END,
            self.bytes,
            // Addressed tiles, entries and contents: one each, as no two tiles share one.
            count,
            count,
            count,
        ] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        // Clustered: tiles are stored in the order of their numbers.
        header.extend_from_slice(&[1, GZIP, GZIP, MVT, min_zoom, max_zoom]);
        let [west, south, east, north] = bounds;
        let e7 = |degrees: f64| ((degrees * 1e7).round() as i32).to_le_bytes();
        for degrees in [west, south, east, north] {
            header.extend_from_slice(&e7(degrees));
        }
        header.push(min_zoom);
        header.extend_from_slice(&e7(f64::midpoint(west, east)));
        header.extend_from_slice(&e7(f64::midpoint(south, north)));
        self.out.seek(SeekFrom::Start(0)).map_err(WriteError::of)?;
        self.out.write_all(&header).and_then(|()| self.out.write_all(&root)).map_err(WriteError::of)?;
        Ok(self.out)
    }
}

/// Returns the root directory, and the leaf directories that it points to if it would be too long.
fn directories(entries: &[Entry]) -> Result<(Vec<u8>, Vec<u8>), WriteError> {
    let root = directory(entries)?;
    if root.len() as u64 <= ROOT_END - HEADER_BYTES {
        return Ok((root, Vec::new()));
    }
    let mut per_leaf = LEAF_ENTRIES;
    loop {
        let (mut pointers, mut leaves) = (Vec::new(), Vec::new());
        for part in entries.chunks(per_leaf) {
            let leaf = directory(part)?;
            let (offset, length) = (leaves.len() as u64, leaf.len() as u32);
            pointers.push(Entry { tile: part[0].tile, offset, length, run: 0 });
            leaves.extend(leaf);
        }
        let root = directory(&pointers)?;
        if root.len() as u64 <= ROOT_END - HEADER_BYTES {
            return Ok((root, leaves));
        }
        per_leaf *= 2;
    }
}

/// Encodes a directory column by column, as differences.
fn directory(entries: &[Entry]) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    varint(entries.len() as u64, &mut out);
    let mut last = 0;
    for entry in entries {
        varint(entry.tile - last, &mut out);
        last = entry.tile;
    }
    entries.iter().for_each(|entry| varint(entry.run.into(), &mut out));
    entries.iter().for_each(|entry| varint(entry.length.into(), &mut out));
    let mut next = None;
    for entry in entries {
        // 0 means directly behind the previous one.
        varint(if next == Some(entry.offset) { 0 } else { entry.offset + 1 }, &mut out);
        next = Some(entry.offset + u64::from(entry.length));
    }
    gzip(&out)
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, WriteError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(WriteError::of)
}

/// Returns the number of a tile: by zoom, then along a Hilbert curve.
pub fn tile_number(zoom: u8, column: u32, row: u32) -> u64 {
    // The tiles of all lower zooms: 1 + 4 + 16 ...
    let before = ((1u64 << (2 * u64::from(zoom))) - 1) / 3;
    let (mut x, mut y, mut along) = (u64::from(column), u64::from(row), 0);
    for level in (0..zoom).rev() {
        let side = 1u64 << level;
        let (right, below) = (u64::from(x & side > 0), u64::from(y & side > 0));
        along += side * side * ((3 * right) ^ below);
        if below == 0 {
            if right == 1 {
                (x, y) = (side.wrapping_sub(1).wrapping_sub(x), side.wrapping_sub(1).wrapping_sub(y));
            }
            (x, y) = (y, x);
        }
    }
    before + along
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tiles_are_those_of_the_format() {
        // From the format's description.
        for (zoom, column, row, number) in [
            (0, 0, 0, 0),
            (1, 0, 0, 1),
            (1, 0, 1, 2),
            (1, 1, 1, 3),
            (1, 1, 0, 4),
            (2, 0, 0, 5),
            (12, 3423, 1763, 19_078_479),
        ] {
            assert_eq!(tile_number(zoom, column, row), number, "{zoom}/{column}/{row}");
        }
        for zoom in 0..6u8 {
            let side = 1u32 << zoom;
            let mut all: Vec<u64> = (0..side).flat_map(|x| (0..side).map(move |y| tile_number(zoom, x, y))).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), (side * side) as usize);
        }
    }
}
