//! The body of an HTTP/1.1 response while it arrives: its end is found without copying.

/// How the end of the body is determined (RFC 9112, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// The number of bytes still to come.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// When the connection ends.
    Close,
}

/// Position within the chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// In the hexadecimal size; the number of digits read.
    Size(u64, u8),
    /// Between the size and the end of its line.
    Extension(u64),
    /// In the data; the number of bytes still to come.
    Data(u64),
    /// At the line end after the data.
    AfterData,
    /// In a trailer line; whether it has content.
    Trailer(bool),
    /// After the last line.
    End,
}

/// The outcome of a feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FeedOutcome {
    /// Bytes of the input that belong to this response.
    pub used: usize,
    /// Whether the body is complete.
    pub whole: bool,
}

impl Framing {
    /// Returns whether no bytes are still to come.
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunk::End))
    }

    /// Takes the next bytes from the wire and passes those of the body to `sink`.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<FeedOutcome, &'static str> {
        match self {
            Framing::Close => {
                sink(bytes);
                Ok(FeedOutcome { used: bytes.len(), whole: false })
            }
            Framing::Length(left) => {
                let take = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                if take > 0 {
                    sink(&bytes[..take]);
                }
                *left -= take as u64;
                Ok(FeedOutcome { used: take, whole: *left == 0 })
            }
            Framing::Chunked(state) => {
                let mut used = 0;
                while used < bytes.len() && *state != Chunk::End {
                    used += state.step(&bytes[used..], &mut sink)?;
                }
                Ok(FeedOutcome { used, whole: *state == Chunk::End })
            }
        }
    }
}

impl Chunk {
    /// Consumes at least one byte and returns how many.
    fn step(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> Result<usize, &'static str> {
        let byte = bytes[0];
        *self = match *self {
            Chunk::Size(size, digits) => match (byte as char).to_digit(16) {
                // 15 digits are 60 bits, so the product above cannot overflow.
                Some(_) if digits == 15 => return Err("a chunk is too large"),
                Some(digit) => Chunk::Size(size * 16 + u64::from(digit), digits + 1),
                None if digits == 0 => return Err("a chunk has no size"),
                None if byte == b'\n' => after_size(size),
                None if matches!(byte, b'\r' | b';' | b' ' | b'\t') => Chunk::Extension(size),
                None => return Err("a chunk has no size"),
            },
            Chunk::Extension(size) if byte == b'\n' => after_size(size),
            Chunk::Extension(size) => Chunk::Extension(size),
            Chunk::Data(left) => {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                sink(&bytes[..take]);
                let left = left - take as u64;
                *self = if left == 0 { Chunk::AfterData } else { Chunk::Data(left) };
                return Ok(take);
            }
            Chunk::AfterData => match byte {
                b'\r' => Chunk::AfterData,
                b'\n' => Chunk::Size(0, 0),
                _ => return Err("a chunk is longer than it said"),
            },
            Chunk::Trailer(held) => match byte {
                b'\r' => Chunk::Trailer(held),
                b'\n' if !held => Chunk::End,
                b'\n' => Chunk::Trailer(false),
                _ => Chunk::Trailer(true),
            },
            Chunk::End => return Ok(0),
        };
        Ok(1)
    }
}

fn after_size(size: u64) -> Chunk {
    if size == 0 { Chunk::Trailer(false) } else { Chunk::Data(size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_cut_anywhere_give_the_body_and_leave_the_next_answer(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 0..6),
            cuts in prop::collection::vec(1..20_usize, 1..60),
            trailer: bool,
        ) {
            let mut wire = Vec::new();
            for part in &parts {
                wire.extend_from_slice(format!("{:x};ext=1\r\n", part.len()).as_bytes());
                wire.extend_from_slice(part);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(if trailer { b"0\r\nx: y\r\n\r\n" } else { b"0\r\n\r\n" });
            let length = wire.len();
            wire.extend_from_slice(b"HTTP/1.1");
            let (mut framing, mut body, mut used) = (Framing::Chunked(Chunk::Size(0, 0)), Vec::new(), 0);
            let mut cuts = cuts.iter().cycle();
            loop {
                let end = (used + cuts.next().copied().unwrap_or(1)).min(wire.len());
                let fed = framing.feed(&wire[used..end], |bytes| body.extend_from_slice(bytes)).expect("sound chunks");
                used += fed.used;
                if fed.whole {
                    break;
                }
                prop_assert!(used < length);
            }
            prop_assert_eq!(used, length);
            prop_assert_eq!(body, parts.concat());
        }

        #[test]
        fn garbage_is_refused_or_waited_for_but_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Framing::Chunked(Chunk::Size(0, 0)).feed(&bytes, |_| {});
        }
    }

    #[test]
    fn a_chunk_without_a_size_is_refused() {
        for wire in ["xyz\r\n", "\r\n", "fffffffffffffffff\r\n", "1\r\nab\r\n"] {
            assert!(Framing::Chunked(Chunk::Size(0, 0)).feed(wire.as_bytes(), |_| {}).is_err(), "{wire:?}");
        }
    }
}
