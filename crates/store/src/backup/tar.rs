//! As much of tar (POSIX ustar) as a backup needs: plain files with short names, so that `tar` itself can unpack one.

use std::io::{self, Read, Write};

const BLOCK: usize = 512;
/// Offset of the size, in octal digits, and the byte behind it.
const SIZE: std::ops::Range<usize> = 124..136;
/// Numbers from here on do not fit into eleven octal digits.
const OCTAL_END: u64 = 1 << 33;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Writes entries one after another.
pub(super) struct TarWriter<'a> {
    out: &'a mut dyn Write,
    /// Bytes that the entry in hand still lacks, and the padding after them.
    left: u64,
    padding: usize,
    begun: bool,
}

impl<'a> TarWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> TarWriter<'a> {
        TarWriter { out, left: 0, padding: 0, begun: false }
    }

    /// Whether an entry has been written, and none is in hand.
    pub(super) fn is_between(&self) -> bool {
        self.begun && self.left == 0
    }

    /// Begins a file of so many bytes, which [`TarWriter::data`] gives.
    pub(super) fn begin(&mut self, name: &str, bytes: u64, made: i64) -> io::Result<()> {
        let mut head = [0u8; BLOCK];
        let field = |head: &mut [u8; BLOCK], at: usize, text: &str| {
            head[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        if name.len() >= 100 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} does not fit into a tar")));
        }
        field(&mut head, 0, name);
        field(&mut head, 100, "0000600\0");
        field(&mut head, 108, "0000000\0");
        field(&mut head, 116, "0000000\0");
        if bytes < OCTAL_END {
            field(&mut head, SIZE.start, &format!("{bytes:011o}\0"));
        } else {
            // As GNU tar and others do: a number in bytes, marked by the highest bit.
            head[SIZE.start] = 0x80;
            head[SIZE.end - 8..SIZE.end].copy_from_slice(&bytes.to_be_bytes());
        }
        field(&mut head, 136, &format!("{:011o}\0", made.clamp(0, OCTAL_END as i64 - 1)));
        field(&mut head, 156, "0");
        field(&mut head, 257, "ustar\x0000");
        let sum = checksum(&head);
        field(&mut head, CHECKSUM.start, &format!("{sum:06o}\0 "));
        self.begun = true;
        self.left = bytes;
        self.padding = (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK;
        self.out.write_all(&head)?;
        if bytes == 0 { self.pad() } else { Ok(()) }
    }

    pub(super) fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        if self.left == 0 { self.pad() } else { Ok(()) }
    }

    fn pad(&mut self) -> io::Result<()> {
        let padding = std::mem::take(&mut self.padding);
        self.out.write_all(&[0; BLOCK][..padding])
    }

    /// A whole file at once.
    pub(super) fn file(&mut self, name: &str, content: &[u8], made: i64) -> io::Result<()> {
        self.begin(name, content.len() as u64, made)?;
        self.data(content)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()
    }
}

/// Sum of all bytes, those of the checksum taken as spaces.
fn checksum(head: &[u8; BLOCK]) -> u32 {
    let byte = |(i, b): (usize, &u8)| if CHECKSUM.contains(&i) { u32::from(b' ') } else { u32::from(*b) };
    head.iter().enumerate().map(byte).sum()
}

/// The next entry's name and size; `None` at the end. The caller reads the content, then calls [`skip_padding`].
pub(super) fn next_entry(input: &mut dyn Read) -> io::Result<Option<(String, u64)>> {
    let mut head = [0u8; BLOCK];
    input.read_exact(&mut head)?;
    if head.iter().all(|b| *b == 0) {
        return Ok(None);
    }
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let number = |field: &[u8]| {
        if let Some((0x80, bytes)) = field.split_first() {
            return Ok(bytes.iter().fold(0, |n: u64, b| n << 8 | u64::from(*b)));
        }
        let text: String = field.iter().take_while(|b| **b != 0 && **b != b' ').map(|b| *b as char).collect();
        u64::from_str_radix(&text, 8).map_err(|_| wrong("a number in a tar header does not read"))
    };
    if number(&head[CHECKSUM])? != u64::from(checksum(&head)) || head[156] != b'0' {
        return Err(wrong("this is not the tar of a backup"));
    }
    let name = head[..100].split(|b| *b == 0).next().unwrap_or_default();
    let name = std::str::from_utf8(name).map_err(|_| wrong("a name in the tar is not text"))?;
    Ok(Some((name.to_owned(), number(&head[SIZE])?)))
}

/// Reads over what fills the last block of an entry of this size.
pub(super) fn skip_padding(input: &mut dyn Read, bytes: u64) -> io::Result<()> {
    let padding = (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK;
    input.read_exact(&mut [0; BLOCK][..padding])
}
