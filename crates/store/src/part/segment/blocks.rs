//! Files of blocks: a header, blocks with a checksum each, a footer with their places, and a tail that locates the
//! footer.

use crate::codec::{Reader, put_u32, put_u64};
use crate::error::StoreError;
use crate::manifest::FileEnd;
use crate::seams::{Object, ObjectWriter, Objects, ReadHint};
use arrow_buffer::Buffer;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Version that is written of both kinds of file, and the newest that is read.
pub(crate) const VERSION: u32 = 3;
/// The oldest version that is read.
const OLDEST: u32 = 2;
/// Bytes before the first block.
const HEADER_BYTES: u64 = 16;
/// Bytes after the footer: offset of the footer (8), its length (4), its CRC32C (4), magic (8).
const TAIL_BYTES: u64 = 24;
/// Approximate size of the pieces in which the file is written.
const WRITE_BYTES: usize = 1 << 20;
/// A block is stored compressed if that saves a quarter.
const WORTH: (usize, usize) = (3, 4);

/// The place of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRef {
    pub(crate) offset: u64,
    /// Bytes in the file.
    pub(crate) stored: u32,
    /// Bytes when decompressed.
    pub(crate) raw: u32,
    /// CRC32C of the bytes in the file.
    pub(crate) crc: u32,
    pub(crate) codec: Codec,
}

/// The encoding of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    /// Used by version 2.
    Zstd,
    /// An LZ4 block without a frame.
    Lz4,
}

impl Codec {
    fn of(code: u8) -> Result<Codec, String> {
        match code {
            0 => Ok(Codec::Raw),
            1 => Ok(Codec::Zstd),
            2 => Ok(Codec::Lz4),
            _ => Err(format!("a block is kept in an unknown way ({code})")),
        }
    }

    /// Max bytes to which one byte decompresses, as the formats allow it.
    fn ratio_max(self) -> u64 {
        match self {
            Codec::Raw => 1,
            // A length is extended by up to 255 a byte.
            Codec::Lz4 => 255,
            // A block of a repeated byte: four bytes for 128 KiB (RFC 8878, 3.1.1.2).
            Codec::Zstd => 32 << 10,
        }
    }
}

/// Bytes of a [`BlockRef`] in a footer.
pub(crate) const BLOCK_REF_BYTES: usize = 21;

impl BlockRef {
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        put_u64(bytes, self.offset);
        put_u32(bytes, self.stored);
        put_u32(bytes, self.raw);
        put_u32(bytes, self.crc);
        bytes.push(self.codec as u8);
    }

    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<BlockRef, String> {
        Ok(BlockRef { offset: r.u64()?, stored: r.u32()?, raw: r.u32()?, crc: r.u32()?, codec: Codec::of(r.u8()?)? })
    }
}

/// Writes a file of blocks.
pub(crate) struct BlockWriter {
    to: Box<dyn ObjectWriter>,
    pub(crate) path: PathBuf,
    magic: &'static [u8; 8],
    buffer: Vec<u8>,
    /// Offset of the buffer in the file.
    offset: u64,
    pub(crate) blocks: Vec<BlockRef>,
}

impl BlockWriter {
    /// Begins an object of blocks.
    pub(crate) fn put(objects: &dyn Objects, name: &str, magic: &'static [u8; 8]) -> Result<BlockWriter, StoreError> {
        let path = objects.path(name);
        let to = objects.put(name).map_err(StoreError::io("create", &path))?;
        Ok(BlockWriter::new(to, path, magic))
    }

    /// Begins an object that replaces the one of this name.
    pub(crate) fn replace(
        objects: &dyn Objects,
        name: &str,
        magic: &'static [u8; 8],
    ) -> Result<BlockWriter, StoreError> {
        let path = objects.path(name);
        let to = objects.replace(name).map_err(StoreError::io("create", &path))?;
        Ok(BlockWriter::new(to, path, magic))
    }

    fn new(to: Box<dyn ObjectWriter>, path: PathBuf, magic: &'static [u8; 8]) -> BlockWriter {
        let mut buffer = magic.to_vec();
        put_u32(&mut buffer, VERSION);
        let crc = crc32c::crc32c(&buffer);
        put_u32(&mut buffer, crc);
        debug_assert_eq!(buffer.len() as u64, HEADER_BYTES);
        BlockWriter { to, path, magic, buffer, offset: 0, blocks: Vec::new() }
    }

    /// Returns the number of the next block.
    pub(crate) fn next(&self) -> u32 {
        self.blocks.len() as u32
    }

    pub(crate) fn block(&mut self, raw: &[u8], compress: bool) -> Result<(), StoreError> {
        let packed = compress.then(|| lz4_flex::block::compress(raw));
        // A block that hardly shrinks is stored raw: reading it then needs no copy.
        let packed = packed.filter(|p| p.len() * WORTH.1 <= raw.len() * WORTH.0);
        let stored = packed.as_deref().unwrap_or(raw);
        let len = |bytes: &[u8]| {
            u32::try_from(bytes.len()).map_err(|_| StoreError::corrupt(&self.path, "a block would pass 4 GiB"))
        };
        // Blocks begin at multiples of 8.
        self.buffer.resize(self.buffer.len().next_multiple_of(8), 0);
        self.blocks.push(BlockRef {
            offset: self.offset + self.buffer.len() as u64,
            stored: len(stored)?,
            raw: len(raw)?,
            crc: crc32c::crc32c(stored),
            codec: if packed.is_some() { Codec::Lz4 } else { Codec::Raw },
        });
        self.buffer.extend_from_slice(stored);
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.to.write(&self.buffer).map_err(StoreError::io("write", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        // The offset stays a multiple of 8 because blocks are padded before they begin.
        let padding = self.offset.next_multiple_of(8) - self.offset;
        self.buffer.resize(padding as usize, 0);
        Ok(())
    }

    /// Writes footer and tail, and finishes the object; returns its end. The caller syncs the names.
    pub(crate) fn finish(mut self, footer: &[u8]) -> Result<FileEnd, StoreError> {
        let at = self.offset + self.buffer.len() as u64;
        self.buffer.extend_from_slice(footer);
        put_u64(&mut self.buffer, at);
        put_u32(&mut self.buffer, footer.len() as u32);
        let crc32c = crc32c::crc32c(footer);
        put_u32(&mut self.buffer, crc32c);
        self.buffer.extend_from_slice(self.magic);
        let bytes = self.offset + self.buffer.len() as u64;
        self.to.write(&self.buffer).map_err(StoreError::io("write", &self.path))?;
        self.to.finish().map_err(StoreError::io("sync", &self.path))?;
        Ok(FileEnd { bytes, footer: at, crc32c, version: VERSION })
    }
}

/// An open file of blocks.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: Arc<dyn Object>,
    name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) version: u32,
    magic: &'static [u8; 8],
}

impl BlockFile {
    /// Opens a file, checks header and tail, and reads the footer. `end` is the manifest's record of the file, which
    /// saves reads where these are slow.
    pub(crate) fn open(
        objects: &dyn Objects,
        name: &str,
        magic: &'static [u8; 8],
        end: Option<&FileEnd>,
    ) -> Result<(BlockFile, Vec<u8>), StoreError> {
        let path = objects.path(name);
        let begin = |file: Arc<dyn Object>, bytes| BlockFile {
            file,
            name: name.to_owned(),
            path: path.clone(),
            bytes,
            version: VERSION,
            magic,
        };
        if let Some(end) = end {
            let file = objects.open_known(name, end).map_err(StoreError::io("open", &path))?;
            if file.end().is_some() {
                let opened = begin(file, end.bytes);
                match opened.footer_at(end) {
                    Ok(footer) => return Ok((BlockFile { version: end.version, ..opened }, footer)),
                    // The file may have been rebuilt since, and then its own tail is right. If not, the tail is damaged
                    // too.
                    Err(StoreError::Corrupt { .. }) => {}
                    // The file may be shorter than the manifest says. An absent file stays absent.
                    Err(StoreError::Io { source, .. }) if source.kind() != ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let file = objects.open(name).map_err(StoreError::io("open", &path))?;
        let bytes = file.len().map_err(StoreError::io("read", &path))?;
        let mut opened = begin(file, bytes);
        let ends = opened.ends();
        if ends.is_err() {
            opened.file.forget(0..bytes);
        }
        let (version, footer) = ends?;
        opened.version = version;
        Ok((opened, footer))
    }

    /// Reads the footer from its place in the manifest, with one read.
    fn footer_at(&self, end: &FileEnd) -> Result<Vec<u8>, StoreError> {
        if end.version > VERSION {
            let (path, found) = (self.path.clone(), end.version);
            return Err(StoreError::NewerFormat { path, found, supported: VERSION });
        }
        let corrupt = |detail: &str| StoreError::corrupt(&self.path, detail);
        let len = end.bytes.checked_sub(TAIL_BYTES).and_then(|tail| tail.checked_sub(end.footer));
        let len = len.ok_or_else(|| corrupt("the manifest has no place for its footer"))?;
        let footer = self.checked(end.footer, len as usize, end.crc32c)?;
        footer.ok_or_else(|| corrupt("its footer is not the one that the manifest describes"))
    }

    /// Returns some bytes, if they match this checksum. Cached bytes that failed are not trusted a second time.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if they reach beyond the file.
    fn checked(&self, offset: u64, len: usize, crc: u32) -> Result<Option<Vec<u8>>, StoreError> {
        // Before memory of that length is requested.
        if offset.checked_add(len as u64).is_none_or(|end| end > self.bytes) {
            let detail = format!("{len} bytes at byte {offset} reach beyond its {} bytes", self.bytes);
            return Err(StoreError::corrupt(&self.path, detail));
        }
        let (mut bytes, mut tried) = (vec![0; len], false);
        loop {
            self.file.read_at(offset, &mut bytes).map_err(StoreError::io("read", &self.path))?;
            if crc32c::crc32c(&bytes) == crc {
                return Ok(Some(bytes));
            }
            // Ends after two reads: the second one's bytes are dropped from caches, too, for later reads.
            let kept = self.file.forget(offset..offset + len as u64);
            if !kept || tried {
                return Ok(None);
            }
            tried = true;
        }
    }

    /// Returns a range of its bytes to be read ahead; `None` if that makes no difference.
    pub(crate) fn ahead(&self, range: Range<u64>) -> Option<ReadHint> {
        Some(ReadHint { name: self.name.clone(), end: self.file.end()?, range })
    }

    /// Returns the bytes of a block, to be read ahead.
    pub(crate) fn block_ahead(&self, block: &BlockRef) -> Option<ReadHint> {
        self.ahead(block.offset..block.offset + u64::from(block.stored))
    }

    /// Reads and verifies what surrounds the blocks: the version and the footer.
    fn ends(&self) -> Result<(u32, Vec<u8>), StoreError> {
        let BlockFile { file, path, bytes, magic, .. } = self;
        let (bytes, magic) = (*bytes, &magic[..]);
        let corrupt = |detail: String| StoreError::corrupt(path, detail);
        if bytes < HEADER_BYTES + TAIL_BYTES {
            return Err(corrupt(format!("{bytes} bytes are too few for such a file")));
        }
        let read = |offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            file.read_at(offset, &mut bytes).map_err(StoreError::io("read", path)).map(|()| bytes)
        };
        let header = read(0, HEADER_BYTES as usize)?;
        let mut reader = Reader::new(&header);
        if reader.take(8).map_err(corrupt)? != magic {
            return Err(corrupt("it does not begin as such a file does".to_owned()));
        }
        let version = reader.u32().map_err(corrupt)?;
        // The checksum first: a flipped bit in the version is damage, not a newer format.
        if reader.u32().map_err(corrupt)? != crc32c::crc32c(&header[..12]) || version < OLDEST {
            return Err(corrupt("its header is damaged".to_owned()));
        }
        if version > VERSION {
            return Err(StoreError::NewerFormat { path: path.to_owned(), found: version, supported: VERSION });
        }
        // The magic is repeated at the end, so a truncated file is detected without reading its blocks.
        let tail = read(bytes - TAIL_BYTES, TAIL_BYTES as usize)?;
        let mut reader = Reader::new(&tail);
        let offset = reader.u64().map_err(corrupt)?;
        let len = reader.u32().map_err(corrupt)?;
        let crc = reader.u32().map_err(corrupt)?;
        if reader.rest() != magic || offset.checked_add(u64::from(len) + TAIL_BYTES) != Some(bytes) {
            return Err(corrupt("its end is damaged or cut off".to_owned()));
        }
        let footer = read(offset, len as usize)?;
        if crc32c::crc32c(&footer) != crc {
            return Err(corrupt("the checksum of its footer is wrong".to_owned()));
        }
        Ok((version, footer))
    }

    /// Reads, verifies and decompresses one block.
    pub(crate) fn fetch(&self, block: BlockRef, what: &str) -> Result<Buffer, StoreError> {
        let stored = self.checked(block.offset, block.stored as usize, block.crc)?;
        let wrong = |detail: &str| {
            let at = format!("{what} at byte {} ({} bytes): {detail}", block.offset, block.stored);
            StoreError::corrupt(&self.path, at)
        };
        let stored = stored.ok_or_else(|| wrong("its checksum is wrong"))?;
        // Before memory of that length is requested.
        if u64::from(block.raw) > u64::from(block.stored) * block.codec.ratio_max() {
            return Err(wrong("it cannot decompress to the length in the footer"));
        }
        let raw = match block.codec {
            Codec::Raw => return Ok(Buffer::from(stored)),
            Codec::Zstd => zstd::bulk::decompress(&stored, block.raw as usize).map_err(|e| wrong(&e.to_string()))?,
            Codec::Lz4 => {
                lz4_flex::block::decompress(&stored, block.raw as usize).map_err(|e| wrong(&e.to_string()))?
            }
        };
        if raw.len() != block.raw as usize {
            // Decoders rely on the raw length: a wrong one would cause an index error far away.
            return Err(wrong("it decompresses to another length"));
        }
        Ok(Buffer::from(raw))
    }

    /// Verifies every checksum, of the blocks and around them, bypassing the cache.
    pub(crate) fn verify(&self, blocks: &[BlockRef]) -> Vec<StoreError> {
        let bad = |(i, block): (usize, &BlockRef)| self.fetch(*block, &format!("block {i}")).err();
        self.ends().err().into_iter().chain(blocks.iter().enumerate().filter_map(bad)).collect()
    }
}
