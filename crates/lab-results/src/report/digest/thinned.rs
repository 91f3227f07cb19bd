//! Points, thinned evenly.

use crate::stats::slope::{Line, Sums};

/// Max points of a scatter, and bars of a time line: more cannot be distinguished by eye.
pub(super) const POINTS_MAX: usize = 3_000;

/// Points, and the least-squares line through all of them, kept or not.
#[derive(Debug, Default)]
pub(crate) struct Scatter {
    pub(crate) points: Subsample<(f64, f64)>,
    sums: Sums,
}

/// At most a given number of items, evenly selected from all that arrived.
#[derive(Debug)]
pub(crate) struct Subsample<T> {
    pub(crate) kept: Vec<T>,
    most: usize,
    step: u64,
    seen: u64,
}

impl<T> Subsample<T> {
    pub(super) fn new(most: usize) -> Subsample<T> {
        Subsample { kept: Vec::new(), most, step: 1, seen: 0 }
    }

    pub(super) fn add(&mut self, item: T) {
        if self.seen.is_multiple_of(self.step) {
            if self.kept.len() == self.most {
                let mut at = 0;
                // Every second item is dropped and the step doubles. The kept items stay evenly spread, without
                // knowing how many will come.
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step *= 2;
            }
            if self.seen.is_multiple_of(self.step) {
                self.kept.push(item);
            }
        }
        self.seen += 1;
    }

    /// Returns the number of items per kept one.
    pub(crate) fn step(&self) -> u64 {
        self.step
    }
}

impl<T> Default for Subsample<T> {
    fn default() -> Self {
        Subsample::new(POINTS_MAX)
    }
}

impl Scatter {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.points.add((x, y));
        self.sums.add(x, y);
    }

    /// Returns the least-squares line; `None` if all points share an x.
    pub(crate) fn line(&self) -> Option<Line> {
        self.sums.line()
    }
}
