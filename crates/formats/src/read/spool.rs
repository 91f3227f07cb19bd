//! Loads inputs into memory, up to a limit, if their format cannot be read front to back.

use crate::error::ReadError;
use bytes::Bytes;
use meridian_model::Invalid;
use std::io::Read;

/// Reads a whole source, up to the given number of bytes; `what` names the format in the refusal of more.
pub(crate) fn spool(source: Box<dyn Read + Send>, bytes_max: usize, what: &str) -> Result<Bytes, ReadError> {
    limited(source, bytes_max, &format!("a {what} stream"), "give it as a file")
}

/// Reads an archive, which is loaded into memory even from a file.
pub(crate) fn archive(source: Box<dyn Read + Send>, bytes_max: usize) -> Result<Bytes, ReadError> {
    limited(source, bytes_max, "a zip archive", "unpack it first")
}

fn limited(source: Box<dyn Read + Send>, bytes_max: usize, what: &str, remedy: &str) -> Result<Bytes, ReadError> {
    let mut bytes = Vec::new();
    // One byte more than allowed shows that it is too long.
    source.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(Invalid::new(format!("{what} of more than {bytes_max} bytes is too large: {remedy}")).into());
    }
    Ok(bytes.into())
}
