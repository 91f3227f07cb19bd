//! Gzip and zstd, detected by content.

use meridian_model::Invalid;
use std::io::{self, BufReader, Cursor, Read};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Decompresses gzip or zstd, detected by the first bytes; any other input passes unchanged.
///
/// Consecutive members or frames are read as one. A stream that ends inside one gives an error that states this, as an
/// [`Invalid`] inside the [`io::Error`].
pub fn decompress(input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    // The window of `zstd --long=27`, the largest that the command line accepts by default.
    decompress_within(input, 128 << 20)
}

/// Like [`decompress`], for a body over HTTP: its zstd window is at most 8 MiB (RFC 9659).
pub fn decompress_body(input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    decompress_within(input, 8 << 20)
}

fn decompress_within(input: Box<dyn Read + Send>, window: u32) -> io::Result<Box<dyn Read + Send>> {
    let (first, input) = peek(input, ZSTD.len())?;
    if first.starts_with(&GZIP) {
        let plain = flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, input));
        return Ok(Box::new(ErrorContext { plain, name: "gzip" }));
    }
    if first == ZSTD {
        let mut plain = zstd::stream::read::Decoder::new(input)?;
        plain.window_log_max(window.ilog2())?;
        return Ok(Box::new(ErrorContext { plain, name: "zstd" }));
    }
    Ok(input)
}

/// Returns whether input that begins with these bytes would be decompressed by [`decompress`].
pub fn is_compressed(first: &[u8]) -> bool {
    first.starts_with(&GZIP) || first.starts_with(&ZSTD)
}

/// Returns the first bytes of an input, up to the number requested, and the whole input again.
pub fn peek(mut input: Box<dyn Read + Send>, bytes: usize) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut first = Vec::new();
    let got = input.by_ref().take(bytes as u64).read_to_end(&mut first)?;
    if got < bytes {
        return Ok((first.clone(), Box::new(Cursor::new(first))));
    }
    Ok((first.clone(), Box::new(Cursor::new(first).chain(input))))
}

/// A reader that describes errors in compressed data for users.
struct ErrorContext<R> {
    plain: R,
    name: &'static str,
}

impl<R: Read> Read for ErrorContext<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.plain.read(out).map_err(|error| {
            let name = self.name;
            let detail = match error.kind() {
                io::ErrorKind::UnexpectedEof => format!("the {name} data ends before it is complete: was it cut off?"),
                // The library's name for a window that is too large.
                _ if error.to_string().contains("too much memory") => {
                    "the zstd data needs too large a window: compress it without --long or --ultra".to_owned()
                }
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
                    format!("the {name} data is damaged: {error}")
                }
                _ => return error,
            };
            io::Error::new(io::ErrorKind::InvalidData, Invalid::new(detail))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        decompress(Box::new(Cursor::new(bytes)))
            .and_then(|mut r| r.read_to_end(&mut out))
            .map(|_| out)
            .map_err(|e| e.to_string())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn several_members_read_as_one() {
        let text = b"one two three ".repeat(1000);
        for whole in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            assert_eq!(read([whole.clone(), whole].concat()).unwrap(), text.repeat(2));
        }
    }

    #[test]
    fn what_is_not_compressed_passes() {
        for text in [&b""[..], b"a", b"abc", b"abcdefgh"] {
            assert_eq!(read(text.to_vec()).unwrap(), text);
        }
    }

    #[test]
    fn a_cut_is_told_at_every_byte() {
        let text = b"some text that is long enough to hold a few bytes of payload".repeat(20);
        for (whole, name) in [(gzip(&text), "gzip"), (zstd::encode_all(&text[..], 1).unwrap(), "zstd")] {
            for cut in 5..whole.len() {
                let error = read(whole[..cut].to_vec()).unwrap_err();
                assert!(error.contains(name) && error.contains("ends before"), "{name} cut at {cut}: {error}");
            }
        }
    }

    #[test]
    fn damage_is_told() {
        let mut whole = gzip(&b"some text".repeat(100));
        let middle = whole.len() / 2;
        whole[middle] ^= 0xff;
        assert!(read(whole).unwrap_err().contains("gzip"));
    }

    #[test]
    fn a_body_with_a_large_window_is_refused() {
        let body = |window: u32| {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window).unwrap();
            encoder.write_all(b"some text").unwrap();
            encoder.finish().unwrap()
        };
        let read = |bytes: Vec<u8>| -> io::Result<Vec<u8>> {
            let mut out = Vec::new();
            decompress_body(Box::new(Cursor::new(bytes)))?.read_to_end(&mut out)?;
            Ok(out)
        };
        assert_eq!(read(body(23)).unwrap(), b"some text");
        assert!(read(body(24)).unwrap_err().to_string().contains("--long"));
    }
}
