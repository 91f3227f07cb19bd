//! How many questions run at once.

/// What the processors did since the last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Processor time that the program used, as a share of what its processors have: 0 to 1.
    pub busy: f64,
    /// Time that runnable threads waited for a processor, as a share of the time they ran or waited: 0 to 1.
    pub delayed: f64,
    /// Whether questions wait for a slot.
    pub contended: bool,
}

/// The number of slots, between a min (the number of processors) and a max (some times that).
///
/// As many as processors are right while questions compute. More are right while they wait for a disk: then processors are
/// idle though questions wait. Latency is no guide here: questions differ by a factor of a thousand.
#[derive(Debug, Clone)]
pub struct Capacity {
    min: usize,
    max: usize,
    slots: usize,
}

/// Share of time that threads may wait for a processor before there are too many of them.
const DELAYED_MAX: f64 = 0.10;
/// Share of the processors that may be idle while questions wait.
const BUSY_MIN: f64 = 0.90;

impl Capacity {
    /// `min` slots, at least one, which may become `max`.
    pub fn new(min: usize, max: usize) -> Capacity {
        let min = min.max(1);
        Capacity { min, max: max.max(min), slots: min }
    }

    /// The slots now.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Whether there are no more slots than without any load.
    pub fn is_min(&self) -> bool {
        self.slots == self.min
    }

    /// One step after a sample, some ten times a second; returns the slots.
    pub fn observe(&mut self, load: Load) -> usize {
        if load.delayed > DELAYED_MAX {
            self.slots = (self.slots - 1).max(self.min);
        } else if load.contended && load.busy < BUSY_MIN {
            self.slots = (self.slots + 1).min(self.max);
        } else if !load.contended {
            // Slots beyond the processors are for queues: without one they only delay the questions that run.
            self.slots = (self.slots - 1).max(self.min);
        }
        self.slots
    }
}
