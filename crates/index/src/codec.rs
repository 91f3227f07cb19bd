//! Typed arrays in a flat buffer: written aligned, read in place.

use crate::error::IndexError;
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};

#[cfg(target_endian = "big")]
compile_error!("encoded arrays are little-endian and are read where they lie");

/// Alignment of each array in bytes.
const ALIGNMENT: usize = 64;

/// Appends a number.
pub(crate) fn write_u32(bytes: &mut Vec<u8>, n: u32) {
    bytes.extend_from_slice(&n.to_le_bytes());
}

/// Appends an array, padded with zeros to a multiple of [`ALIGNMENT`].
pub(crate) fn write_array<T: ArrowNativeType>(bytes: &mut Vec<u8>, values: &ScalarBuffer<T>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    bytes.extend_from_slice(values.inner().as_slice());
}

/// Reads from the front of a buffer, with bounds checks.
pub(crate) struct Reader<'a> {
    what: &'static str,
    bytes: &'a Buffer,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Checks the magic and the version, which are the first five of eight bytes.
    pub(crate) fn open(
        what: &'static str,
        bytes: &'a Buffer,
        magic: [u8; 4],
        version: u8,
    ) -> Result<Reader<'a>, IndexError> {
        let mut reader = Reader { what, bytes, at: 0 };
        let head = reader.take(8)?;
        if head[..4] != magic {
            return Err(reader.damaged(format!("it begins with {:?}, not {magic:?}", &head[..4])));
        }
        if head[4] != version {
            return Err(reader.damaged(format!("version {}: expected {version}", head[4])));
        }
        Ok(reader)
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> IndexError {
        IndexError::Damaged { what: self.what, detail: detail.into() }
    }

    /// Number of bytes not read yet; no allocation may exceed what they can fill.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], IndexError> {
        if len > self.left() {
            return Err(self.damaged(format!("it is cut off after {} bytes", self.bytes.len())));
        }
        // `len` is at most the remaining length, so the sum cannot overflow.
        let piece = &self.bytes.as_slice()[self.at..self.at + len];
        self.at += len;
        Ok(piece)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, IndexError> {
        Ok(self.take(4)?.iter().rev().fold(0, |n, &byte| n << 8 | u32::from(byte)))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, IndexError> {
        Ok(self.take(8)?.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    /// An array of `len` values: a view of the buffer, or a copy if the buffer is misaligned in memory.
    pub(crate) fn array<T: ArrowNativeType>(&mut self, len: usize) -> Result<ScalarBuffer<T>, IndexError> {
        self.take(self.at.next_multiple_of(ALIGNMENT) - self.at)?;
        let from = self.at;
        let len_bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| self.damaged("an array is too long"))?;
        let piece = self.take(len_bytes)?;
        // The offset is aligned, but the buffer itself need not be: bytes from a network lie anywhere.
        let buffer = if piece.as_ptr().align_offset(align_of::<T>()) == 0 {
            self.bytes.slice_with_length(from, len_bytes)
        } else {
            Buffer::from_slice_ref(piece)
        };
        Ok(ScalarBuffer::new(buffer, 0, len))
    }

    /// Checks that no bytes are left over.
    pub(crate) fn finish(self) -> Result<(), IndexError> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.damaged(format!("{left} bytes are left over"))),
        }
    }
}
