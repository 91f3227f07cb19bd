//! The number of queries that run concurrently.

/// Processor activity since the last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Processor time used by the program, as a share of its processors' capacity: 0 to 1.
    pub busy: f64,
    /// Time that runnable threads waited for a processor, as a share of the time they ran or waited: 0 to 1.
    pub delayed: f64,
    /// Whether queries wait for a slot.
    pub contended: bool,
}

/// The number of slots, between a min (the number of processors) and a max (a multiple of it).
///
/// One slot per processor is right while queries compute. More are right while they wait for a disk: then processors
/// are idle although queries are queued. Latency is no guide here: queries differ by a factor of a thousand.
#[derive(Debug, Clone)]
pub struct Capacity {
    min: usize,
    max: usize,
    slots: usize,
}

/// Share of time that threads may wait for a processor before there are too many of them.
const DELAYED_MAX: f64 = 0.10;
/// Min share of the processors in use while queries wait; below it, slots are added.
const BUSY_MIN: f64 = 0.90;

impl Capacity {
    /// Starts at `min` slots (at least one) and may grow to `max`.
    pub fn new(min: usize, max: usize) -> Capacity {
        let min = min.max(1);
        Capacity { min, max: max.max(min), slots: min }
    }

    /// Current number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Whether the number of slots is at its minimum.
    pub fn is_min(&self) -> bool {
        self.slots == self.min
    }

    /// Adjusts the slots after a sample, about ten times a second; returns the new number.
    pub fn observe(&mut self, load: Load) -> usize {
        if load.delayed > DELAYED_MAX {
            self.slots = (self.slots - 1).max(self.min);
        } else if load.contended && load.busy < BUSY_MIN {
            self.slots = (self.slots + 1).min(self.max);
        } else if !load.contended {
            // Slots beyond the processors are for queues: without one they only delay the running queries.
            self.slots = (self.slots - 1).max(self.min);
        }
        self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load() -> impl Strategy<Value = Load> {
        let busy = prop::sample::select(vec![0.0, 0.5, 0.89, BUSY_MIN, 1.0]);
        let delayed = prop::sample::select(vec![0.0, 0.05, DELAYED_MAX, 0.11, 1.0]);
        (busy, delayed, any::<bool>()).prop_map(|(busy, delayed, contended)| Load { busy, delayed, contended })
    }

    proptest! {
        /// The slots stay within their bounds and change by one. They grow only while queries wait for idle processors.
        /// They shrink while threads wait for processors, and while no query waits.
        #[test]
        fn slots_follow_the_load_within_bounds(
            min in 0..5usize,
            max in 0..12usize,
            loads in prop::collection::vec(load(), 0..60),
        ) {
            let (low, high) = (min.max(1), max.max(min).max(1));
            let mut capacity = Capacity::new(min, max);
            prop_assert!(capacity.slots() == low && capacity.is_min());
            for load in loads {
                let before = capacity.slots();
                let after = capacity.observe(load);
                let is_delayed = load.delayed > DELAYED_MAX;
                let is_idle = load.busy < BUSY_MIN;
                prop_assert_eq!(after > before, load.contended && is_idle && !is_delayed && before < high);
                prop_assert_eq!(after < before, (is_delayed || !load.contended) && before > low);
                prop_assert!(after.abs_diff(before) <= 1 && (low..=high).contains(&after), "{} {}", before, after);
                prop_assert_eq!((capacity.slots(), capacity.is_min()), (after, after == low));
            }
        }
    }
}
