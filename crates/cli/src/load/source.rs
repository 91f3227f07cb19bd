//! The bytes of an input: files and pipes, counted, decompressed, with their format detected.

use super::input_name::{InputName, STANDARD_INPUT};
use crate::failure::Failure;
use meridian_formats::{EventReader, Format, Inference, ReadError, ReadOptions, decompress, is_compressed, peek};
use meridian_model::{Invalid, Schema};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read to detect the format and, for a pipe, to derive a schema.
const SAMPLE_BYTES: usize = 8 << 20;
/// As above, if no event ends within that: room for what precedes the first event, and for the longest one.
const LONG_SAMPLE_BYTES: usize = 40 << 20;

/// One input, opened.
pub struct Source {
    /// Its name in messages and commands.
    pub name: InputName,
    /// Size on disk, if known.
    pub size: Option<u64>,
    /// Bytes read from it so far, before decompression.
    pub read: Arc<AtomicU64>,
    format: Format,
    /// The first bytes, decompressed.
    sample: Vec<u8>,
    sample_is_all: bool,
    /// All bytes, decompressed.
    bytes: Box<dyn Read + Send>,
    /// Its path, if it is read in place: from its end, or with the files beside it.
    in_place: Option<PathBuf>,
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path, format: Option<Format>, options: &ReadOptions) -> Result<Source, Failure> {
        let layer = options.layer.as_deref();
        let read = Arc::new(AtomicU64::new(0));
        let (name, size, raw): (String, Option<u64>, Box<dyn Read + Send>) = if path == Path::new("-") {
            (STANDARD_INPUT.to_owned(), None, Box::new(io::stdin()))
        } else {
            let failed = |e: io::Error| Failure::Usage(format!("{} cannot be read: {e}", path.display()));
            let file = File::open(path).map_err(failed)?;
            let meta = file.metadata().map_err(failed)?;
            if meta.is_dir() {
                // A file geodatabase is a folder.
                let name = path.display().to_string();
                let folder = || format!("{name} is a folder: name the files in it");
                let input = InputName::new(name.trim_end_matches('/').to_owned(), layer, &[]);
                return Err(Failure::Usage(refusal(&input, &[]).unwrap_or_else(folder)));
            }
            (path.display().to_string(), meta.is_file().then_some(meta.len()), Box::new(file))
        };
        let broken = |e: io::Error| Failure::Bad(format!("{name}: {}", explain(e)));
        let counted = CountingReader { inner: raw, read: read.clone() };
        let (first, packed) = peek(Box::new(counted), 4).map_err(broken)?;
        let input = InputName::new(name.clone(), layer, &first);
        let plain = decompress(packed).map_err(broken)?;
        // Kept, since a pipe cannot be read twice: the schema is inferred from the sample, which is then read again as
        // data.
        let (sample, bytes) = peek(plain, SAMPLE_BYTES).map_err(broken)?;
        if sample.is_empty() {
            return Err(Failure::Bad(format!("{name}: the input is empty: there is nothing to load")));
        }
        let head = &sample[..sample.len().min(64 << 10)];
        let format = format.map_or_else(|| detect(&input, head), Ok)?;
        let input = input.with_format(Some(format), unit(format), head).with_delimiter(options.delimiter, head);
        let sample_is_all = sample.len() < SAMPLE_BYTES;
        // Decompressed data cannot be read from its end: it is read into memory, within limits.
        let in_place = size.is_some() && lies_plain(path) && (format.reads_in_place() || head.starts_with(ZIP));
        let in_place = in_place.then(|| path.to_owned());
        // Read in pieces from its end, so the position shows no progress: all bytes count as read.
        if let Some(bytes) = size.filter(|_| in_place.is_some()) {
            read.store(bytes, Ordering::Relaxed);
        }
        let size = if in_place.is_some() { None } else { size };
        Ok(Source { name: input, size, read, format, sample, sample_is_all, bytes, in_place })
    }

    /// Infers a schema from its first events, and reports what else it seems to contain.
    pub fn infer(&mut self, options: &ReadOptions) -> Result<Inference, Failure> {
        let guess = self.guess(options)?;
        guess.map_err(|e| {
            let hint = super::surplus::hint(&self.name.text, &e, options);
            Failure::Bad(format!("{}: {}{hint}", self.name, self.name.reason(&e)))
        })
    }

    fn guess(&mut self, options: &ReadOptions) -> Result<Result<Inference, ReadError>, Failure> {
        Ok(match &self.in_place {
            Some(path) => meridian_formats::infer_path(self.format, path, options),
            None if self.sample_is_all => {
                meridian_formats::infer(self.format, Box::new(Cursor::new(self.sample.clone())), options)
            }
            None if self.has_its_end_first() => {
                return Err(Failure::Usage(format!(
                    "{}: no schema can be derived from its first {} MiB: give it as a file that is not compressed, or give --schema",
                    self.name,
                    SAMPLE_BYTES >> 20
                )));
            }
            None => match meridian_formats::infer_prefix(self.format, &self.sample, options) {
                // Its first event may be longer than the sample, rather than truncated in the input.
                Err(_) if self.sample.len() < LONG_SAMPLE_BYTES => {
                    self.lengthen()?;
                    return self.guess(options);
                }
                guess => guess,
            },
        })
    }

    /// Takes the longer sample.
    fn lengthen(&mut self) -> Result<(), Failure> {
        let bytes = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        let broken = |e: io::Error| Failure::Bad(format!("{}: {}", self.name, explain(e)));
        (self.sample, self.bytes) = peek(bytes, LONG_SAMPLE_BYTES).map_err(broken)?;
        self.sample_is_all = self.sample.len() < LONG_SAMPLE_BYTES;
        Ok(())
    }

    /// Returns true if it can be read only once its end is available.
    fn has_its_end_first(&self) -> bool {
        matches!(self.format, Format::GeoParquet | Format::GeoPackage) || self.sample.starts_with(ZIP)
    }

    /// Reads its events.
    pub fn reader(self, schema: Arc<Schema>, options: &ReadOptions) -> Result<Box<dyn EventReader>, ReadError> {
        match &self.in_place {
            Some(path) => meridian_formats::reader_of_path(self.format, path, schema, options),
            None => meridian_formats::reader(self.format, self.bytes, schema, options),
        }
    }
}

/// First bytes of a zip archive.
const ZIP: &[u8] = b"PK\x03\x04";

/// Returns true if a file is not compressed as a whole.
fn lies_plain(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut first)).is_ok() && !is_compressed(&first)
}

/// Returns the format of an input, by its content and name.
fn detect(input: &InputName, head: &[u8]) -> Result<Format, Failure> {
    // First: some formats that are not read look like a table, or like lines of JSON.
    if let Some(refusal) = part_refusal(input).or_else(|| refusal(input, head)) {
        return Err(Failure::Usage(refusal));
    }
    Format::detect(&input.text, head).ok_or_else(|| {
        Failure::Usage(format!("{input}: the format cannot be detected from the content: give it with --format"))
    })
}

/// Returns the refusal of an input in a format that is not read, with the command that converts it.
fn refusal(input: &InputName, head: &[u8]) -> Option<String> {
    let foreign = Format::foreign(&input.text, head)?;
    let ending = foreign.extension().filter(|_| Format::foreign(&input.text, &[]) != Some(foreign));
    let converts = input.clone().with_format(None, "line", head).with_ending(ending).insert(&foreign.conversion());
    Some(format!("{input}: {} is not read: {converts}", foreign.name))
}

/// Returns the refusal of a file that is a part of a MapInfo table, whose main file lies beside it. Its rows look like
/// a dBASE table, which GDAL does not open by this name.
fn part_refusal(input: &InputName) -> Option<String> {
    let path = Path::new(&input.text);
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_part = ["dat", "map", "id", "ind"].contains(&ending.as_str());
    let main = is_part.then(|| ["tab", "TAB"].map(|ending| path.with_extension(ending)))?;
    let main = main.into_iter().find(|main| main.is_file())?;
    let mut head = Vec::new();
    File::open(&main).and_then(|file| file.take(4 << 10).read_to_end(&mut head)).ok()?;
    let refusal = refusal(&input.of_main_file(main.display().to_string()), &head)?;
    Some(format!("{input}: a part of {refusal}"))
}

/// Returns what the mistakes of a format are counted by: only a line of its own tells where an event is.
fn unit(format: Format) -> &'static str {
    match format {
        Format::GeoJsonSeq => "record",
        Format::NdJson | Format::Csv | Format::Gdelt | Format::Nmea => "line",
        Format::GeoJson | Format::Kml | Format::FlatGeobuf | Format::GeoPackage | Format::Shapefile => "feature",
        Format::GeoParquet | Format::Arrow => "row",
        Format::Gpx => "point",
        Format::GtfsRt => "vehicle",
    }
}

/// Returns a sentence for an input error, which may wrap an error in the data.
pub fn explain(error: io::Error) -> String {
    match error.downcast::<Invalid>() {
        Ok(mistake) => mistake.to_string(),
        Err(error) => format!("reading failed: {error}"),
    }
}

struct CountingReader<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        // Relaxed: only the progress display reads it.
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
