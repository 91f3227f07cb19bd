//! Archives of segments: GeoParquet 1.1 with the rows of the segment in their order.
//!
//! Once the manifest names it, this file is the source and the rest of a segment is a cache. The Parquet library writes
//! no checksums. So the directory holds a CRC32C of every 16 KiB before it, and the manifest holds one of the
//! directory.

use super::RowSource;
use crate::error::StoreError;
use crate::manifest::ArchiveEntry;
use crate::pace::Pace;
use crate::part::rows::CHUNK_ROWS;
use crate::part::{CacheFill, Part};
use crate::seams::{Object, ObjectWriter, Objects};
use arrow_array::ArrayRef;
use bytes::Bytes;
use meridian_formats::{GeoParquetWriter, RestFile as Directory, WriteError};
use meridian_model::{Schema, Seq};
use parking_lot::Mutex;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of a row group: some readers share work by groups, others hold one in memory.
const GROUP_ROWS: u32 = 1 << 16;
/// Bytes under one checksum.
const CHECKED_BYTES: u64 = 16 << 10;
/// Approximate size of the pieces in which the file is written.
const WRITE_BYTES: usize = 1 << 20;
/// Key in the directory that holds the checksums: 8 hexadecimal digits each.
const CHECKSUMS_NOTE: &str = "meridian.crc32c";

/// Writes the rows of a part, a chunk at a time. The caller syncs the names.
pub(crate) fn write(
    objects: &dyn Objects,
    name: &str,
    source: &dyn RowSource,
    (stop, mut pace): (&AtomicBool, Pace<'_>),
) -> Result<ArchiveEntry, StoreError> {
    let path = objects.path(name);
    let to = objects.put(name).map_err(StoreError::io("create", &path))?;
    let sink = Sink { to, path: path.clone(), buffer: Vec::new(), offset: 0, crcs: Vec::new(), crc: 0, crc_bytes: 0 };
    let failed = |e: WriteError| StoreError::Io { action: "write", path: path.clone(), source: io::Error::other(e) };
    let made = GeoParquetWriter::for_archive(sink, source.schema(), GROUP_ROWS as usize, CHUNK_ROWS as usize);
    let mut writer = made.map_err(|e| StoreError::corrupt(&path, e.to_string()))?;
    for from in (0..source.rows()).step_by(CHUNK_ROWS as usize) {
        if stop.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        let (batch, seqs) = source.chunk(from..source.rows().min(from + CHUNK_ROWS))?;
        let seqs: Vec<Seq> = seqs.into_iter().map(Seq).collect();
        writer.write(&batch, &seqs).map_err(failed)?;
        pace.block();
    }
    writer.end_group().map_err(failed)?;
    let (directory, checksums) = writer.output().checked();
    writer.note(CHECKSUMS_NOTE, checksums.iter().map(|crc| format!("{crc:08x}")).collect());
    let mut sink = writer.finish().map_err(failed)?;
    sink.flush().map_err(StoreError::io("write", &path))?;
    let bytes = sink.to.finish().map_err(StoreError::io("sync", &path))?;
    // Read back from the file, so that its checksum also covers the write itself.
    let mut tail = vec![0; (bytes - directory) as usize];
    let written = objects.open(name).map_err(StoreError::io("open", &path))?;
    written.read_at(directory, &mut tail).map_err(StoreError::io("read", &path))?;
    Ok(ArchiveEntry { bytes, directory, crc32c: crc32c::crc32c(&tail) })
}

/// Bytes being written to the file, and their checksums.
struct Sink {
    to: Box<dyn ObjectWriter>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file.
    offset: u64,
    crcs: Vec<u32>,
    /// Checksum of the last, incomplete piece; the next field has its bytes so far.
    crc: u32,
    crc_bytes: u64,
}

impl Sink {
    /// Returns the bytes taken so far, and the checksums of all of them.
    fn checked(&self) -> (u64, Vec<u32>) {
        let last = (self.crc_bytes > 0).then_some(self.crc);
        (self.offset + self.buffer.len() as u64, self.crcs.iter().copied().chain(last).collect())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut left = bytes;
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min((CHECKED_BYTES - self.crc_bytes) as usize));
            self.crc = crc32c::crc32c_append(self.crc, now);
            self.crc_bytes += now.len() as u64;
            if self.crc_bytes == CHECKED_BYTES {
                self.crcs.push(std::mem::take(&mut self.crc));
                self.crc_bytes = 0;
            }
            left = later;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let action = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", self.path.display()));
        self.to.write(&self.buffer).map_err(action)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// An open archive.
#[derive(Debug)]
pub(crate) struct Archive {
    open: Arc<OpenArchive>,
    directory: Directory,
    pub(crate) entry: ArchiveEntry,
    pub(crate) name: String,
}

impl Archive {
    /// Opens a file and reads its directory.
    pub(crate) fn open(objects: &dyn Objects, name: &str, entry: ArchiveEntry) -> Result<Archive, StoreError> {
        let path = &objects.path(name);
        let corrupt = |detail: String| StoreError::corrupt(path, detail);
        let file = objects.open_known(name, &entry.end()).map_err(StoreError::io("open", path))?;
        let bytes = file.len().map_err(StoreError::io("read", path))?;
        // Checked before anything is allocated by numbers from the file.
        if bytes != entry.bytes || entry.directory > bytes {
            return Err(corrupt(format!("it has {bytes} bytes where the manifest says {}", entry.bytes)));
        }
        let mut tail = vec![0; (bytes - entry.directory) as usize];
        file.read_at(entry.directory, &mut tail).map_err(StoreError::io("read", path))?;
        if crc32c::crc32c(&tail) != entry.crc32c {
            file.forget(entry.directory..bytes);
            return Err(corrupt("the checksum of its directory is wrong".to_owned()));
        }
        let mut open = OpenArchive {
            file,
            path: path.to_owned(),
            entry,
            tail: tail.into(),
            crcs: Vec::new(),
            sick: Arc::default(),
        };
        let read = |e: ParquetError| corrupt(format!("its directory does not read: {e}"));
        let directory = Directory::load(&Pages::of(&Arc::new(open.clone()))).map_err(read)?;
        let checksums = directory.note(CHECKSUMS_NOTE).ok_or_else(|| corrupt("it has no checksums".to_owned()))?;
        let stretches = entry.directory.div_ceil(CHECKED_BYTES) as usize;
        open.crcs =
            (0..stretches).filter_map(|i| u32::from_str_radix(checksums.get(i * 8..i * 8 + 8)?, 16).ok()).collect();
        if open.crcs.len() != stretches || checksums.len() != stretches * 8 {
            return Err(corrupt("its checksums are not complete".to_owned()));
        }
        // Not read again.
        open.tail = Bytes::new();
        Ok(Archive { open: Arc::new(open), directory, entry, name: name.to_owned() })
    }

    /// Opens a file that no manifest describes: its directory records where it begins. Only the checksums of the pages
    /// and a readable directory prove it intact.
    pub(crate) fn find(objects: &dyn Objects, name: &str) -> Result<Archive, StoreError> {
        let path = &objects.path(name);
        let file = objects.open(name).map_err(StoreError::io("open", path))?;
        let bytes = file.len().map_err(StoreError::io("read", path))?;
        let whole = UncheckedFile { file, bytes };
        let read = |e: ParquetError| StoreError::corrupt(path, format!("its directory does not read: {e}"));
        let found = Directory::load(&whole).map_err(read)?.directory().filter(|directory| *directory <= bytes);
        let directory = found.ok_or_else(|| StoreError::corrupt(path, "its directory does not say where it begins"))?;
        let tail = whole.get_bytes(directory, (bytes - directory) as usize).map_err(read)?;
        Archive::open(objects, name, ArchiveEntry { bytes, directory, crc32c: crc32c::crc32c(&tail) })
    }

    /// Returns true if a read found damage.
    pub(crate) fn is_damaged(&self) -> bool {
        // Relaxed: the flag is only ever set, and maintenance that misses it sees it at its next check.
        self.open.sick.load(Ordering::Relaxed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.open.path
    }

    pub(crate) fn rows(&self) -> u32 {
        self.directory.rows()
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.directory.schema
    }

    /// Returns the physical columns that are read together with this one, including itself.
    pub(crate) fn family(&self, column: usize) -> Range<usize> {
        self.directory.family(column)
    }

    /// Returns the values of the columns of [`Archive::family`] in one chunk.
    pub(crate) fn columns(&self, chunk: u32, column: usize) -> Result<Vec<ArrayRef>, StoreError> {
        self.pages(|pages| self.directory.read(pages, column, self.rows_of(chunk)))
    }

    /// Returns the sequence numbers of one chunk.
    pub(crate) fn seqs(&self, chunk: u32) -> Result<Vec<u64>, StoreError> {
        self.pages(|pages| self.directory.seqs(pages, self.rows_of(chunk)))
    }

    fn rows_of(&self, chunk: u32) -> Range<u32> {
        let from = chunk.saturating_mul(CHUNK_ROWS).min(self.rows());
        from..self.rows().min(from.saturating_add(CHUNK_ROWS))
    }

    /// Reads pages through the library. Its error is a text, so that of the file is kept beside it: a bucket that does
    /// not answer is no damage.
    fn pages<T>(&self, read: impl FnOnce(Pages) -> Result<T, ParquetError>) -> Result<T, StoreError> {
        let pages = Pages::of(&self.open);
        let failed = pages.failed.clone();
        read(pages).map_err(|e| failed.lock().take().unwrap_or_else(|| StoreError::corrupt(self.path(), e.to_string())))
    }

    /// Verifies every checksum.
    pub(crate) fn verify(&self) -> Vec<StoreError> {
        let open = &self.open;
        let stretch = |i: usize| {
            let from = i as u64 * CHECKED_BYTES;
            open.read(from..(from + CHECKED_BYTES).min(open.entry.directory)).err()
        };
        (0..open.crcs.len()).filter_map(stretch).collect()
    }
}

/// The bytes of a file without a known entry.
struct UncheckedFile {
    file: Arc<dyn Object>,
    bytes: u64,
}

impl Length for UncheckedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for UncheckedFile {
    type T = Box<dyn Read + Send>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let bytes = self.get_bytes(start, self.bytes.saturating_sub(start) as usize)?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on are beyond its end")));
        }
        let mut bytes = vec![0; length];
        self.file.read_at(start, &mut bytes).map_err(|e| ParquetError::External(Box::new(e)))?;
        Ok(bytes.into())
    }
}

/// The bytes of an archive, verified as the Parquet library reads them.
#[derive(Debug, Clone)]
struct Pages {
    open: Arc<OpenArchive>,
    /// Why the file could not be read.
    failed: Arc<Mutex<Option<StoreError>>>,
}

impl Pages {
    fn of(open: &Arc<OpenArchive>) -> Pages {
        Pages { open: open.clone(), failed: Arc::default() }
    }
}

#[derive(Debug, Clone)]
struct OpenArchive {
    file: Arc<dyn Object>,
    path: PathBuf,
    entry: ArchiveEntry,
    /// The directory, while it is being read.
    tail: Bytes,
    crcs: Vec<u32>,
    /// Set once a checksum mismatch was found.
    sick: Arc<AtomicBool>,
}

impl OpenArchive {
    /// Reads bytes before the directory.
    fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let first = range.start / CHECKED_BYTES;
        let from = first * CHECKED_BYTES;
        // Reads are widened to whole checksummed pieces: a part of one cannot be verified.
        let to = range.end.next_multiple_of(CHECKED_BYTES).min(self.entry.directory);
        let mut bytes = vec![0; (to - from) as usize];
        let read = self.file.read_at(from, &mut bytes).map_err(StoreError::io("read", &self.path));
        read.map_err(StoreError::absence_is_damage)?;
        for (stretch, crc) in bytes.chunks(CHECKED_BYTES as usize).zip(self.crcs.iter().skip(first as usize)) {
            if crc32c::crc32c(stretch) != *crc {
                // Maintenance sees the flag and replaces the archive, if the Arrow rows still exist.
                self.sick.store(true, Ordering::Relaxed);
                self.file.forget(from..to);
                let detail = format!("a checksum of the bytes {from} to {to} is wrong");
                return Err(StoreError::corrupt(&self.path, detail));
            }
        }
        Ok(Bytes::from(bytes).slice((range.start - from) as usize..(range.end - from) as usize))
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.open.entry.bytes
    }
}

impl ChunkReader for Pages {
    type T = Box<dyn Read + Send>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let end = if start < self.open.entry.directory { self.open.entry.directory } else { self.open.entry.bytes };
        let bytes = self.get_bytes(start, end.saturating_sub(start) as usize)?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let open = &self.open;
        let (directory, end) = (open.entry.directory, start.saturating_add(length as u64));
        if start >= directory {
            let range = (start - directory) as usize..(end - directory) as usize;
            if range.end > open.tail.len() {
                return Err(ParquetError::EOF(format!("the bytes {start} to {end} are beyond its end")));
            }
            return Ok(open.tail.slice(range));
        }
        if end > directory {
            return Err(ParquetError::EOF(format!("the bytes {start} to {end} run into its directory")));
        }
        open.read(start..end).map_err(|e| {
            let text = ParquetError::General(e.to_string());
            *self.failed.lock() = Some(e);
            text
        })
    }
}

/// Checks that the archive holds the rows of the segment, as it is served.
pub(crate) fn same_rows(part: &Part, archive: &Archive) -> Result<(), StoreError> {
    let Some(segment) = part.segment() else { return Ok(()) };
    let wrong = |what: &str| StoreError::corrupt(archive.path(), what);
    for chunk in 0..part.rows.div_ceil(CHUNK_ROWS) {
        let rows = chunk * CHUNK_ROWS..part.rows.min((chunk + 1) * CHUNK_ROWS);
        if archive.seqs(chunk)? != segment.seqs(rows.clone())? {
            return Err(wrong("its sequence numbers are not those of the segment"));
        }
        let mut column = 0;
        while column < usize::from(segment.footer.columns) {
            for array in archive.columns(chunk, column)? {
                let served = segment.column(column, rows.clone(), CacheFill::Pass)?;
                if served.is_none_or(|served| served.to_data() != array.to_data()) {
                    return Err(wrong("its events are not those of the segment"));
                }
                column += 1;
            }
        }
    }
    Ok(())
}
