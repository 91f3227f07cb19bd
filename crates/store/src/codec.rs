//! Little-endian numbers in byte strings, and small files framed by a checksum.

use crate::error::StoreError;
use meridian_model::seq::POSITION_BITS;
use std::path::Path;

pub(crate) fn put_u8(bytes: &mut Vec<u8>, n: u8) {
    bytes.push(n);
}

pub(crate) fn put_u16(bytes: &mut Vec<u8>, n: u16) {
    bytes.extend_from_slice(&n.to_le_bytes());
}

pub(crate) fn put_u32(bytes: &mut Vec<u8>, n: u32) {
    bytes.extend_from_slice(&n.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, n: u64) {
    bytes.extend_from_slice(&n.to_le_bytes());
}

pub(crate) fn put_i64(bytes: &mut Vec<u8>, n: i64) {
    bytes.extend_from_slice(&n.to_le_bytes());
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_u32(bytes, part.len() as u32);
    bytes.extend_from_slice(part);
}

/// Reads numbers off the front of a byte string; running out is an error, never a panic.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (head, rest) =
            self.0.split_at_checked(len).ok_or_else(|| format!("ends {} bytes early", len - self.0.len()))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, String> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads the position of a write.
    pub(crate) fn position(&mut self) -> Result<u64, String> {
        expect_position(self.u64()?)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, String> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], String> {
        let len = self.u32()? as usize;
        self.take(len)
    }

    pub(crate) fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn end(self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", self.0.len())) }
    }
}

/// Returns the position of a write that was read, if it can be one. The limit is half of what a sequence number holds: no
/// log gets that far, and writes follow.
pub(crate) fn expect_position(position: u64) -> Result<u64, String> {
    match position < 1 << (POSITION_BITS - 1) {
        true => Ok(position),
        false => Err(format!("{position} is beyond the positions of writes")),
    }
}

/// Bytes of the frame around a small file: magic (8), format version (4), checksum (4).
pub(crate) const FRAME_BYTES: usize = 16;

/// Frames the content of a small file: magic, version, CRC32C of magic, version and content, then the content.
pub(crate) fn frame(magic: &[u8; 8], version: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_BYTES + content.len());
    bytes.extend_from_slice(magic);
    put_u32(&mut bytes, version);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), content);
    put_u32(&mut bytes, crc);
    bytes.extend_from_slice(content);
    bytes
}

/// Verifies and removes the frame of [`frame`]. The checksum is verified first and covers the version, so a flipped bit
/// in the version is damage, not a newer format. So every version keeps this frame.
pub(crate) fn unframe<'a>(
    path: &Path,
    magic: &[u8; 8],
    supported: u32,
    bytes: &'a [u8],
) -> Result<&'a [u8], StoreError> {
    let mut reader = Reader::new(bytes);
    let wrong = |detail: String| StoreError::corrupt(path, detail);
    if reader.take(8).map_err(wrong)? != magic {
        return Err(wrong("it does not begin as such a file does".to_owned()));
    }
    let version = reader.u32().map_err(wrong)?;
    let crc = reader.u32().map_err(wrong)?;
    let content = reader.rest();
    // The checksum comes before the version: a flipped bit in the version must be reported as damage, not as a
    // newer program.
    if crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), content) != crc {
        return Err(wrong("its checksum is wrong".to_owned()));
    }
    if version > supported {
        return Err(StoreError::NewerFormat { path: path.to_owned(), found: version, supported });
    }
    Ok(content)
}

/// Hashes a client-supplied id (or idempotency key). The collection's secret seed keys the hash, so that no client can
/// choose colliding ids.
///
/// Part of the file format. Eight bytes at a time are folded in by multiplication and rotation: little-endian, the
/// last ones padded with zeros. Then come the length and the finalizer of MurmurHash3.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = mix(seed ^ STEP);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state.rotate_left(23) ^ u64::from_le_bytes(word).wrapping_mul(STEP) ^ seed);
    }
    mix(state ^ bytes.len() as u64)
}

/// Mixes the bits of a number (the finalizer of MurmurHash3).
pub(crate) fn mix(mut n: u64) -> u64 {
    n ^= n >> 33;
    n = n.wrapping_mul(0xff51_afd7_ed55_8ccd);
    n ^= n >> 33;
    n = n.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    n ^ (n >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_tells_damage_from_a_newer_version() {
        let path = Path::new("F");
        let good = frame(b"MRDNTEST", 1, b"content");
        assert_eq!(unframe(path, b"MRDNTEST", 1, &good).unwrap(), b"content");
        let newer = frame(b"MRDNTEST", 2, b"content");
        assert!(matches!(
            unframe(path, b"MRDNTEST", 1, &newer),
            Err(StoreError::NewerFormat { found: 2, supported: 1, .. })
        ));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let found = unframe(path, b"MRDNTEST", 1, &bad);
            assert!(matches!(found, Err(StoreError::Corrupt { .. })), "bit {bit}: {found:?}");
        }
        for len in 0..good.len() {
            assert!(unframe(path, b"MRDNTEST", 1, &good[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn hashes_differ_by_seed_length_and_content() {
        assert_ne!(hash(1, b"a"), hash(2, b"a"));
        assert_ne!(hash(1, b"a"), hash(1, b"a\0"));
        assert_ne!(hash(1, b""), hash(1, b"\0"));
        assert_ne!(hash(1, b"abcdefgh1"), hash(1, b"abcdefgh2"));
        // Part of the file format: these must never change.
        assert_eq!(hash(0, b""), hash(0, b""));
    }
}
