//! The name of a batch: a digest of everything read from an input up to its end.

use meridian_model::{Batch, Invalid};
use std::io::{self, Write};
use twox_hash::XxHash3_128;

/// Names the batches of one input so that the same events always get the same names.
///
/// The digest covers the decoded events, not the bytes of the file. So an interrupted load resumes with the same keys.
/// A file that is corrected after its last good batch keeps the keys of its stored batches. A pipe, which cannot be
/// read twice, has the same keys as a file.
pub struct Digest {
    hash: XxHash3_128,
    ordinal: u64,
    salt: u64,
}

impl Digest {
    /// Starts an input. The salt is 0, unless the load is to count as new.
    pub fn new(salt: u64) -> Digest {
        Digest { hash: XxHash3_128::new(), ordinal: 0, salt }
    }

    /// The idempotency key of the next batch.
    pub fn key(&mut self, batch: &Batch) -> Result<String, Invalid> {
        let record = batch.to_record_batch()?;
        let failed = |e: arrow_schema::ArrowError| Invalid::new(format!("a batch could not be encoded: {e}"));
        let mut writer =
            arrow_ipc::writer::StreamWriter::try_new(HashWriter(&mut self.hash), &record.schema()).map_err(failed)?;
        writer.write(&record).and_then(|()| writer.finish()).map_err(failed)?;
        drop(writer);
        // Two batches without rows between them would have the same digest; the ordinal distinguishes them.
        let ordinal = self.ordinal;
        self.ordinal += 1;
        Ok(format!("load:{:032x}:{ordinal}{}", self.hash.finish_128(), salt_text(self.salt)))
    }
}

fn salt_text(salt: u64) -> String {
    if salt == 0 { String::new() } else { format!(":{salt:x}") }
}

struct HashWriter<'a>(&'a mut XxHash3_128);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Through a writer, so that the encoded batch is hashed as it is produced and never held.
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
