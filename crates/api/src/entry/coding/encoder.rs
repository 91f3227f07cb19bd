//! The encoders, behind one interface.

use super::Coding;
use std::io::{self, Write};

/// Window of zstd, as a power of two. Its default for a stream of unknown length is 2 MiB per response.
const ZSTD_WINDOW: u32 = 17;
const ZSTD_LEVEL: i32 = 3;
/// Window of brotli, as a power of two.
const BROTLI_WINDOW: u32 = 18;
const BROTLI_QUALITY: u32 = 4;
/// Bytes that brotli collects before it compresses.
const BROTLI_BUFFER: usize = 16 << 10;
const GZIP_LEVEL: u32 = 4;

/// Compresses a stream of bytes. Finished output is taken after each call.
pub enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// Creates an encoder at the start of a stream.
    ///
    /// # Errors
    /// If its memory cannot be allocated.
    pub fn new(coding: Coding) -> io::Result<Encoder> {
        Ok(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW)?;
                Encoder::Zstd(encoder)
            }
            Coding::Brotli => {
                let encoder = brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER, BROTLI_QUALITY, BROTLI_WINDOW);
                Encoder::Brotli(Box::new(encoder))
            }
            Coding::Gzip => {
                Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))
            }
        })
    }

    /// Returns the bytes charged for an encoder with its finished output, estimated from its tables and its window.
    pub const fn bytes(coding: Coding) -> usize {
        match coding {
            Coding::Zstd => 1536 << 10,
            Coding::Brotli => 2048 << 10,
            Coding::Gzip => 384 << 10,
        }
    }

    /// Compresses some bytes, and returns the output that is ready.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Zstd(encoder) => encoder.write_all(bytes)?,
            Encoder::Brotli(encoder) => encoder.write_all(bytes)?,
            Encoder::Gzip(encoder) => encoder.write_all(bytes)?,
        }
        Ok(self.take())
    }

    /// Returns all output for the bytes written so far, so that the client can read up to this point.
    pub fn flush(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Zstd(encoder) => encoder.flush()?,
            Encoder::Brotli(encoder) => encoder.flush()?,
            Encoder::Gzip(encoder) => encoder.flush()?,
        }
        Ok(self.take())
    }

    /// Ends the stream, and returns its last bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Brotli(encoder) => Ok(encoder.into_inner()),
            Encoder::Gzip(encoder) => encoder.finish(),
        }
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Encoder::Zstd(encoder) => encoder.get_mut(),
            Encoder::Brotli(encoder) => encoder.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    fn decoded(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match coding {
            Coding::Zstd => zstd::stream::read::Decoder::new(bytes)?.read_to_end(&mut out)?,
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out)?,
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out)?,
        };
        Ok(out)
    }

    /// Decodes the readable part of a stream that has not ended.
    fn readable(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut read: Box<dyn Read> = match coding {
            Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
            Coding::Brotli => Box::new(brotli::Decompressor::new(bytes, 4096)),
            Coding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        };
        let mut piece = [0; 4096];
        while let Ok(n @ 1..) = read.read(&mut piece) {
            out.extend_from_slice(&piece[..n]);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_stream_is_read_back_and_every_flush_shows_all_before_it(
            pieces in proptest::collection::vec((proptest::collection::vec(0u8..20, 0..40_000), any::<bool>()), 0..6),
        ) {
            for coding in Coding::ALL {
                let (mut encoder, mut sent, mut coded) = (Encoder::new(coding).unwrap(), Vec::new(), Vec::new());
                for (piece, flushes) in &pieces {
                    sent.extend_from_slice(piece);
                    coded.extend(encoder.write(piece).unwrap());
                    if *flushes {
                        coded.extend(encoder.flush().unwrap());
                        prop_assert!(readable(coding, &coded) == sent, "{coding:?} after a flush");
                    }
                }
                coded.extend(encoder.finish().unwrap());
                prop_assert!(decoded(coding, &coded).unwrap() == sent, "{coding:?}");
            }
        }
    }

    #[test]
    fn a_zstd_frame_has_a_window_that_every_client_reads() {
        let mut encoder = Encoder::new(Coding::Zstd).unwrap();
        let mut bytes = encoder.write(&vec![b'x'; 1 << 20]).unwrap();
        bytes.extend(encoder.finish().unwrap());
        // Frame_Header_Descriptor without the single-segment flag, then the window (RFC 8878, 3.1.1.1.2).
        assert_eq!(bytes[4] & 0x20, 0);
        assert_eq!(u32::from(bytes[5] >> 3) + 10, ZSTD_WINDOW);
    }
}
