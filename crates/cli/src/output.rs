//! Standard output and standard error, which may be pipes that their readers close early.

use crate::failure::Failure;
use std::io::{self, BufWriter, ErrorKind, Read, Write};

/// Prints lines; a closed output is no error.
pub fn say(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints lines for people on standard error; if it is closed, the command goes on without them.
pub fn remark(text: &str) {
    // In one write, so that no line of another process comes between.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Passes standard output to `write`; a closed output ends it silently.
pub fn with_stdout(write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = OutputWriter { inner: BufWriter::with_capacity(1 << 16, io::stdout().lock()), gone: false };
    let outcome = write(&mut out);
    let flushed = out.flush();
    // First: the error of a write to a closed pipe is no failure of the command.
    if out.gone {
        return Ok(());
    }
    outcome?;
    flushed.map_err(|e| unwritable(&e))
}

/// Copies a response; a broken response and a full disk are different errors.
pub fn copy(from: &mut dyn Read, to: &mut dyn Write) -> Result<u64, Failure> {
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(Failure::Refused(format!("the answer broke off: {e}"))),
        };
        to.write_all(&buffer[..n]).map_err(|e| unwritable(&e))?;
        bytes += n as u64;
    }
}

/// Returns the failure for an unwritable output.
pub fn unwritable(error: &io::Error) -> Failure {
    Failure::Refused(format!("the output cannot be written: {error}"))
}

struct OutputWriter<W> {
    inner: W,
    gone: bool,
}

impl<W: Write> Write for OutputWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.inner.write(bytes);
        self.gone |= matches!(&outcome, Err(e) if e.kind() == ErrorKind::BrokenPipe);
        outcome
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.inner.flush();
        self.gone |= matches!(&outcome, Err(e) if e.kind() == ErrorKind::BrokenPipe);
        outcome
    }
}
