//! The next event: a heap over an integer microsecond clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Microseconds from the start of the simulated trial.
pub type Micros = u64;

/// Converts seconds to microseconds; negative values and NaN become zero.
pub fn micros(seconds: f64) -> Micros {
    (seconds * 1e6).round() as Micros
}

/// Converts microseconds to seconds.
pub fn seconds(micros: Micros) -> f64 {
    micros as f64 / 1e6
}

/// Events in order of time. Simultaneous events leave in order of insertion, so that a run depends only on its seed.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    now: Micros,
    entered: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Micros,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<E> Default for EventQueue<E> {
    /// Creates an empty queue at time zero.
    fn default() -> Self {
        EventQueue { heap: BinaryHeap::new(), now: 0, entered: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Returns the time of the last event taken.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Inserts an event; one in the past happens now.
    pub fn at(&mut self, at: Micros, event: E) {
        self.entered += 1;
        // The clock never goes back: a delay that rounds to the past would reorder what has already happened.
        self.heap.push(Reverse(Entry { at: at.max(self.now), order: self.entered, event }));
    }

    /// Inserts an event at this delay from now.
    pub fn after(&mut self, delay: Micros, event: E) {
        self.at(self.now + delay, event);
    }

    /// Takes the next event and moves the clock to it.
    pub fn take(&mut self) -> Option<E> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Events leave by time, those of one time in the order in which they were entered, and the clock never goes
        /// back.
        #[test]
        fn events_leave_in_order(times in proptest::collection::vec(0_u64..50, 0..60)) {
            let mut queue = EventQueue::default();
            for (n, at) in times.iter().enumerate() {
                queue.at(*at, (*at, n));
            }
            let mut due: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
            due.sort_unstable();
            let mut left = Vec::new();
            while let Some(event) = queue.take() {
                prop_assert_eq!(queue.now(), event.0);
                left.push(event);
            }
            prop_assert_eq!(left, due);
        }
    }
}
