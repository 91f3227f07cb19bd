//! An input with a deadline and a max length.

use crate::error::Halt;
use crate::options::{ReadOptions, Watch};
use std::io::{self, Read};

/// Max bytes read between two polls of the watch.
const BYTES_WATCHED: usize = 1 << 20;

/// An input under the watch and the limit of the options. Wraps decompressed bytes: a few compressed bytes may expand
/// into any number.
pub(super) fn watched(input: Box<dyn Read + Send>, options: &ReadOptions) -> Box<dyn Read + Send> {
    if options.watch.is_none() && options.input_bytes == u64::MAX {
        return input;
    }
    Box::new(WatchedInput { input, watch: options.watch.clone(), left: options.input_bytes, most: options.input_bytes })
}

struct WatchedInput {
    input: Box<dyn Read + Send>,
    watch: Option<Watch>,
    left: u64,
    most: u64,
}

impl Read for WatchedInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.watch.as_ref().is_some_and(|watch| !watch.goes_on()) {
            return Err(io::Error::other(Halt::Stopped));
        }
        // A single large read could otherwise run long past the deadline.
        let room = out.len().min(BYTES_WATCHED);
        let read = self.input.read(&mut out[..room])?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(Halt::TooLong(self.most))),
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use crate::{BatchLimits, Format, ReadError, ReadOptions, Watch, reader};
    use meridian_model::Schema;
    use std::io::{self, Read};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn read(format: Format, bytes: u64, options: &ReadOptions) -> ReadError {
        let blanks = Box::new(io::repeat(b' ').take(bytes));
        reader(format, blanks, Arc::new(Schema::default()), options)
            .and_then(|mut events| events.next_batch(&BatchLimits::default()))
            .unwrap_err()
    }

    #[test]
    fn an_input_that_never_ends_is_given_up_when_its_time_is_over() {
        for format in Format::ALL {
            let asked = Arc::new(AtomicU32::new(0));
            let count = asked.clone();
            let watch = Watch::new(move |_| count.fetch_add(1, Ordering::Relaxed) < 3);
            let options = ReadOptions { watch: Some(watch), record_bytes: 1 << 30, ..ReadOptions::default() };
            // Some formats detect earlier that blanks are not theirs.
            match read(format, u64::MAX, &options) {
                ReadError::Stopped => assert_eq!(asked.load(Ordering::Relaxed), 4, "{format}"),
                ReadError::Invalid(_) => assert!(asked.load(Ordering::Relaxed) < 4, "{format}"),
                other => panic!("{format}: {other}"),
            }
        }
    }

    #[test]
    fn an_input_that_is_too_long_is_given_up_before_its_end() {
        let options = ReadOptions { input_bytes: 1 << 20, ..ReadOptions::default() };
        assert!(matches!(read(Format::GeoJson, 1 << 40, &options), ReadError::TooLong(n) if n == 1 << 20));
        assert!(matches!(read(Format::GeoJson, 1 << 20, &options), ReadError::Invalid(_)));
    }
}
