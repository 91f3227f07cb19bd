//! Reads a chain of objects several at a time: a store answers many concurrent calls in the time of one.

use crate::seams::LogPlace;
use std::collections::VecDeque;
use std::thread::Builder;

/// Max objects read at a time, each of some MiB.
const WINDOW_MAX: usize = 8;

/// Reads ahead along a chain.
#[derive(Debug)]
pub(super) struct ReadAhead<T> {
    /// How many objects to read next. It doubles, so the end of a short chain costs few calls for absent names.
    window: usize,
    read: VecDeque<(LogPlace, T)>,
}

impl<T: Send> ReadAhead<T> {
    pub(super) fn new() -> ReadAhead<T> {
        ReadAhead { window: 1, read: VecDeque::new() }
    }

    /// Returns the object at a place. Once a writer's part of the chain has gone on, the places after it are read
    /// concurrently.
    ///
    /// A result may be older than the call: absence holds only once `read` has confirmed it again.
    pub(super) fn get(&mut self, place: LogPlace, read: impl Fn(LogPlace) -> T + Sync) -> T {
        if let Some((at, found)) = self.read.pop_front()
            && at == place
        {
            return found;
        }
        // The chain took another path, or everything read ahead is used up.
        self.read.clear();
        let later = std::iter::successors(Some(place.next()), |place| Some(place.next())).take(self.window - 1);
        self.window = (self.window * 2).min(WINDOW_MAX);
        let read = &read;
        std::thread::scope(|scope| {
            let begin = |place| Some((place, Builder::new().spawn_scoped(scope, move || read(place)).ok()?));
            let reads: Vec<_> = later.map_while(begin).collect();
            let first = read(place);
            // A read without a thread, or one that panicked, is repeated by this thread when its turn comes.
            let done = reads.into_iter().map_while(|(place, thread)| Some((place, thread.join().ok()?)));
            self.read.extend(done);
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_chain_is_read_in_order_and_few_names_beyond_its_end() {
        let calls = AtomicUsize::new(0);
        let read = |place: LogPlace| {
            calls.fetch_add(1, Ordering::Relaxed);
            (place.number <= 40).then_some(place.number)
        };
        let (mut ahead, mut at) = (ReadAhead::new(), LogPlace::FIRST);
        for number in 1..=40 {
            assert_eq!(ahead.get(at, read), Some(number));
            at = at.next();
        }
        assert_eq!(ahead.get(at, read), None);
        assert!(calls.load(Ordering::Relaxed) < 40 + WINDOW_MAX, "{calls:?}");
        // Another writer continues: the objects read ahead are not in its part.
        let other = LogPlace { epoch: 9, number: 3 };
        assert_eq!(ahead.get(other, read), Some(3));
    }
}
