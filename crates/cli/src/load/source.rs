//! The bytes of an input: files and pipes, counted, decompressed, with their format detected.

use crate::failure::Failure;
use meridian_formats::{EventReader, Format, ReadError, ReadOptions, decompress, peek};
use meridian_model::Schema;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read to detect the format and, for a pipe, to derive a schema.
const SAMPLE_BYTES: usize = 8 << 20;

/// One input, opened.
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Size on disk, where known.
    pub size: Option<u64>,
    /// Bytes read from it so far, before decompression.
    pub read: Arc<AtomicU64>,
    format: Format,
    /// The first bytes, decompressed.
    sample: Vec<u8>,
    sample_is_all: bool,
    /// All bytes, decompressed.
    bytes: Box<dyn Read + Send>,
    /// A Parquet file, which is read from its end.
    parquet: Option<File>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Source, Failure> {
        let read = Arc::new(AtomicU64::new(0));
        let (name, size, raw): (String, Option<u64>, Box<dyn Read + Send>) = if path == Path::new("-") {
            ("standard input".to_owned(), None, Box::new(io::stdin()))
        } else {
            let failed = |e: io::Error| Failure::Usage(format!("{} cannot be read: {e}", path.display()));
            let file = File::open(path).map_err(failed)?;
            let meta = file.metadata().map_err(failed)?;
            if meta.is_dir() {
                return Err(Failure::Usage(format!("{} is a folder: name the files in it", path.display())));
            }
            (path.display().to_string(), meta.is_file().then_some(meta.len()), Box::new(file))
        };
        let broken = |e: io::Error| Failure::Bad(format!("{name}: {}", explain(e)));
        let counted = Counted { inner: raw, read: read.clone() };
        let plain = decompress(Box::new(counted)).map_err(broken)?;
        // Kept, since a pipe cannot be read twice: the schema is inferred from the sample, which is then read again as
        // data.
        let (sample, bytes) = peek(plain, SAMPLE_BYTES).map_err(broken)?;
        if sample.is_empty() {
            return Err(Failure::Bad(format!("{name}: the input is empty: there is nothing to load")));
        }
        let format =
            format.or_else(|| Format::detect(&name, &sample[..sample.len().min(64 << 10)])).ok_or_else(|| {
                Failure::Usage(format!("{name}: the format cannot be detected from the content: give it with --format"))
            })?;
        let sample_is_all = sample.len() < SAMPLE_BYTES;
        // Decompressed data cannot be read from its end, as Parquet needs: it is read into memory, within limits.
        let lies_plain = size.is_some_and(|size| size >= 4) && format == Format::GeoParquet && is_parquet(path);
        let parquet = lies_plain.then(|| File::open(path)).transpose().map_err(broken)?;
        // Parquet is read in pieces from its end, so bytes read so far do not show progress.
        let size = if parquet.is_some() { None } else { size };
        Ok(Source { name, size, read, format, sample, sample_is_all, bytes, parquet })
    }

    /// Infers a schema from its first events.
    pub fn infer(&self, options: &ReadOptions) -> Result<Schema, Failure> {
        let guess = match &self.parquet {
            Some(file) => file
                .try_clone()
                .map_err(ReadError::from)
                .and_then(|file| meridian_formats::infer_file(self.format, file, options)),
            None if self.sample_is_all => {
                meridian_formats::infer(self.format, Box::new(Cursor::new(self.sample.clone())), options)
            }
            None => meridian_formats::infer_prefix(self.format, &self.sample, options),
        };
        guess.map_err(|e| Failure::Bad(format!("{}: {}{}", self.name, reason(&e), super::surplus::hint(&e))))
    }

    /// Reads its events.
    pub fn reader(self, schema: Arc<Schema>, options: &ReadOptions) -> Result<Box<dyn EventReader>, ReadError> {
        match self.parquet {
            Some(file) => meridian_formats::reader_of_file(self.format, file, schema, options),
            None => meridian_formats::reader(self.format, self.bytes, schema, options),
        }
    }
}

fn is_parquet(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut first)).is_ok() && &first == b"PAR1"
}

/// The sentence of a reading error: its first error.
pub fn reason(error: &ReadError) -> String {
    error.first().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The sentence of an input error, which may wrap an error in the data.
pub fn explain(error: io::Error) -> String {
    match error.downcast::<meridian_model::Invalid>() {
        Ok(mistake) => mistake.to_string(),
        Err(error) => format!("reading failed: {error}"),
    }
}

struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        // Relaxed: only the progress display reads it.
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
