//! Arrow IPC, stream and file.

use super::columnar::{Batches, ColumnScope, damaged};
use crate::error::{Fault, ReadError};
use crate::guard::guarded;
use crate::options::Watch;
use crate::reference::INPUT;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;
use meridian_model::Invalid;
use std::io::Read;

/// Bytes requested from the source at a time.
const CHUNK: usize = 256 << 10;
/// Magic at the start of a file (padded to eight bytes, or to more by some writers) and at its end. In between is a
/// stream, so that a file is read without seeking; the footer only repeats the positions of batches.
const MAGIC: &[u8; 6] = b"ARROW1";

/// The source of the bytes.
enum Source {
    Read(Box<dyn Read + Send>),
    /// The whole input, decoded in place.
    Whole(Option<Buffer>),
}

/// Batches of an IPC stream, of which one message is held at a time.
pub(crate) struct Ipc {
    source: Source,
    decoder: StreamDecoder,
    chunk: Buffer,
    /// Bytes fed since the last batch was returned.
    fed: usize,
    message_bytes: usize,
    /// Watch over the bytes collected for a message.
    watch: Option<Watch>,
    begun: bool,
    is_file: bool,
    ended: bool,
    /// A batch decoded while searching for the schema.
    ready: Option<RecordBatch>,
    /// The last bytes of the input.
    tail: Vec<u8>,
}

impl Ipc {
    /// Reads from a source, one chunk at a time.
    pub(crate) fn new(source: Box<dyn Read + Send>, message_bytes: usize, watch: Option<Watch>) -> Ipc {
        Ipc {
            source: Source::Read(source),
            decoder: StreamDecoder::new(),
            chunk: Buffer::from_vec(Vec::<u8>::new()),
            fed: 0,
            message_bytes,
            watch,
            begun: false,
            is_file: false,
            ended: false,
            ready: None,
            tail: Vec::new(),
        }
    }

    /// Reads from bytes that are all in memory.
    pub(crate) fn whole(bytes: Buffer, message_bytes: usize) -> Ipc {
        Ipc { source: Source::Whole(Some(bytes)), ..Ipc::new(Box::new(std::io::empty()), message_bytes, None) }
    }

    /// Reads the next chunk; returns false at the end of the input.
    fn fill(&mut self) -> Result<bool, Fault> {
        let mut bytes = match &mut self.source {
            Source::Whole(bytes) => bytes.take().unwrap_or_default(),
            Source::Read(source) => {
                let mut bytes = Vec::new();
                source.by_ref().take(CHUNK as u64).read_to_end(&mut bytes)?;
                Buffer::from_vec(bytes)
            }
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        if self.is_file {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(MAGIC.len())..]);
            self.tail.drain(..self.tail.len().saturating_sub(MAGIC.len()));
        }
        if !self.begun {
            self.begun = true;
            if bytes.starts_with(MAGIC) {
                self.is_file = true;
                self.tail = bytes[bytes.len().saturating_sub(MAGIC.len())..].to_vec();
                // No message begins with eight zeros: those are padding.
                let padding = bytes.get(8..).unwrap_or_default().chunks_exact(8).take_while(|c| *c == [0; 8]).count();
                bytes.advance(bytes.len().min(8 + 8 * padding));
            }
        }
        // The decoder collects a message before it returns a batch. This counts and bounds what it may hold.
        self.fed += bytes.len();
        if self.fed > self.message_bytes {
            return Err(Fault::stop(Invalid::new(format!(
                "an Arrow batch of more than {} bytes is too large: write smaller batches",
                self.message_bytes
            ))));
        }
        if self.watch.as_ref().is_some_and(|watch| !watch.goes_on_reading(self.fed)) {
            return Err(Fault::Stop(ReadError::Stopped));
        }
        self.chunk = bytes;
        Ok(true)
    }

    /// Decodes until a batch is complete or, with `schema_only`, the schema is known.
    fn advance(&mut self, schema_only: bool) -> Result<Option<RecordBatch>, Fault> {
        loop {
            if self.ended || (schema_only && self.decoder.schema().is_some()) {
                return Ok(None);
            }
            if self.chunk.is_empty() && !self.fill()? {
                self.ended = true;
                return self.finish().map(|()| None);
            }
            let (decoder, chunk) = (&mut self.decoder, &mut self.chunk);
            let decoded = guarded("Arrow", || Ok(decoder.decode(chunk)))?;
            match decoded {
                Ok(None) => {}
                Ok(Some(batch)) => {
                    // Rows take at least a bit each, so a count without data is forged.
                    if batch.num_rows() > self.fed.saturating_mul(8) {
                        return Err(Fault::stop(Invalid::new("the Arrow data is damaged: rows without values")));
                    }
                    self.fed = self.chunk.len();
                    return Ok(Some(batch));
                }
                // Past its end the stream decoder takes no more bytes: in a file the footer follows.
                Err(_) if self.is_file && self.decoder.finish().is_ok() => {
                    self.ended = true;
                    return self.drain().map(|()| None);
                }
                // Rejected because a length claimed by a hostile stream would be allocated unchecked.
                Err(error) if error.to_string().contains("decompression requires") => {
                    return Err(compressed(self.is_file));
                }
                Err(error) => return Err(damaged("Arrow", &error)),
            }
        }
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if self.decoder.schema().is_none() && !self.begun {
            return Err(Fault::stop(Invalid::new("the input is empty: expected an Arrow stream")));
        }
        if self.is_file || self.decoder.finish().is_err() {
            return Err(cut_off());
        }
        Ok(())
    }

    /// Reads the footer of a file, of which only the last bytes matter.
    fn drain(&mut self) -> Result<(), Fault> {
        loop {
            self.fed = 0;
            if !self.fill()? {
                break;
            }
        }
        // A file repeats the magic at its end. Without it the footer is missing, and batches may be missing too.
        if self.tail == MAGIC { Ok(()) } else { Err(cut_off()) }
    }
}

fn cut_off() -> Fault {
    Fault::stop(Invalid::new("the Arrow data ends before it is complete: was it cut off?"))
}

/// Names the command that makes it readable: pandas compresses by default.
fn compressed(is_file: bool) -> Fault {
    let read = if is_file { "open_file" } else { "open_stream" };
    Fault::stop(Invalid::new(format!(
        "compressed Arrow batches are not supported: use compression='uncompressed' in to_feather of pandas, or \
         convert it: python3 -c \"import sys; from pyarrow import feather, ipc; \
         feather.write_feather(ipc.{read}(open(sys.argv[1], 'rb')).read_all(), 'converted.arrow', \
         compression='uncompressed')\" {INPUT}"
    )))
}

impl Batches for Ipc {
    fn open(&mut self) -> Result<(SchemaRef, Option<String>), Fault> {
        self.ready = self.advance(true)?;
        let schema = self.decoder.schema().ok_or_else(cut_off)?;
        let geo = schema.metadata().get("geo").cloned();
        Ok((schema, geo))
    }

    fn want(&mut self, _columns: &[usize]) -> Result<ColumnScope, Fault> {
        Ok(ColumnScope::All)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, Fault> {
        match self.ready.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.advance(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_refused_with_the_command_that_reads_it() {
        for (is_file, read) in [(true, "ipc.open_file("), (false, "ipc.open_stream(")] {
            let Fault::Stop(refusal) = compressed(is_file) else { panic!() };
            let refusal = refusal.to_string();
            assert!(refusal.contains(read) && refusal.ends_with("compression='uncompressed')\" INPUT"), "{refusal}");
        }
    }
}
