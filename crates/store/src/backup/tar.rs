//! The tar (POSIX ustar) that a backup is sent as: plain files with short names, so that `tar` itself can unpack one.

use std::io::{self, Write};
use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// Writes entries one after another.
pub(super) struct TarWriter<'a> {
    out: &'a mut dyn Write,
    /// Bytes of the current entry still to be written, and the padding after them.
    left: u64,
    padding: usize,
    begun: bool,
}

impl<'a> TarWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> TarWriter<'a> {
        TarWriter { out, left: 0, padding: 0, begun: false }
    }

    /// Returns true if at least one entry has been written and none is open.
    pub(super) fn is_between(&self) -> bool {
        self.begun && self.left == 0
    }

    /// Begins a file of this many bytes, which [`TarWriter::data`] writes.
    pub(super) fn begin(&mut self, name: &str, bytes: u64, made: i64) -> io::Result<()> {
        let mut head = Header::new_ustar();
        head.set_path(name)?;
        head.set_entry_type(EntryType::Regular);
        head.set_mode(0o600);
        head.set_uid(0);
        head.set_gid(0);
        head.set_size(bytes);
        head.set_mtime(made.max(0) as u64);
        head.set_cksum();
        self.begun = true;
        self.left = bytes;
        self.padding = (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK;
        self.out.write_all(head.as_bytes())?;
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

    /// Writes a complete file at once.
    pub(super) fn file(&mut self, name: &str, content: &[u8], made: i64) -> io::Result<()> {
        self.begin(name, content.len() as u64, made)?;
        self.data(content)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()
    }
}
