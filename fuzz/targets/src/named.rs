//! Inputs of several kinds: a line with the kind's name, and then the bytes.

/// Max length of a name in bytes.
const NAME_BYTES_MAX: usize = 200;

/// The name and the bytes; `None` without a valid name line.
pub fn of(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n').filter(|end| (1..=NAME_BYTES_MAX).contains(end))?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

/// Builds an input.
pub fn input(name: &str, bytes: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"\n", bytes].concat()
}
