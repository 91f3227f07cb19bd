//! Finds the windows of many instants.

use super::{Step, Window, Windows, within_day};
use meridian_model::Interval;
use std::cell::OnceCell;
use std::sync::Arc;

/// Finds windows for many instants: remembers the last one, and the starts of days or months in its extent.
#[derive(Debug, Clone)]
pub struct Finder {
    pub(super) windows: Windows,
    pub(super) extent: Interval,
    /// Starts of consecutive units, plus the end of the last; empty if arithmetic is enough.
    pub(super) starts: Arc<Vec<i64>>,
    pub(super) last: Window,
    /// The windows of the extent by number, unless there are too many; created on first use.
    pub(super) numbers: OnceCell<Option<Numbers>>,
}

impl Finder {
    /// The window of an instant.
    #[inline]
    pub fn find(&mut self, time: i64) -> Window {
        if !self.last.holds(time) {
            self.last = self.search(time);
        }
        self.last
    }

    /// The number of an instant's window among those of the extent, unless there are too many.
    #[inline]
    pub(crate) fn number(&self, time: i64) -> Option<usize> {
        let made = || Numbers::of(self.extent, |time| self.search(time));
        self.numbers.get_or_init(made).as_ref()?.of_instant(time)
    }

    fn search(&self, time: i64) -> Window {
        let (Some(first), Some(end)) = (self.starts.first(), self.starts.last()) else {
            return self.windows.window_of(time);
        };
        if time < *first || time >= *end {
            return self.windows.window_of(time);
        }
        let i = self.starts.partition_point(|&s| s <= time);
        let unit = Window { start: self.starts[i - 1], end: self.starts[i] };
        match self.windows.step {
            Step::OfDay(us) => within_day(unit, time, us),
            _ => unit,
        }
    }
}

/// Consecutive windows by number, and a table that maps an instant to its number without a division. The table has
/// the window in which each short stretch of time begins.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    /// Starts of the windows, plus the end of the last.
    pub(super) starts: Vec<i64>,
    begins: Vec<u32>,
    /// Log2 of the length of a stretch.
    shift: u32,
}

/// Max number of numbered windows.
const NUMBERED_MAX: usize = 1 << 14;

impl Numbers {
    fn of(extent: Interval, find: impl Fn(i64) -> Window) -> Option<Numbers> {
        if extent.start > extent.end {
            return None;
        }
        let mut window = find(extent.start);
        // Windows of one query have similar lengths; this avoids creating starts that would be discarded.
        let length = (i128::from(window.end) - i128::from(window.start)).max(1);
        if (i128::from(extent.end) - i128::from(extent.start)) / length > 2 * NUMBERED_MAX as i128 {
            return None;
        }
        let mut starts = vec![window.start];
        loop {
            if window.end <= window.start || starts.len() > NUMBERED_MAX {
                return None;
            }
            starts.push(window.end);
            if window.end > extent.end {
                break;
            }
            window = find(window.end);
        }
        let (first, count) = (starts[0], starts.len() - 1);
        let span = window.end.checked_sub(first)? as u64;
        let mut shift = 0;
        while span >> shift > 4 * count as u64 {
            shift += 1;
        }
        let mut number = 0;
        let begins = (0..=span >> shift).map(|stretch| {
            while number + 1 < count && starts[number + 1] <= first + (stretch << shift) as i64 {
                number += 1;
            }
            number as u32
        });
        Some(Numbers { begins: begins.collect(), starts, shift })
    }

    #[inline]
    fn of_instant(&self, time: i64) -> Option<usize> {
        let (first, end) = (*self.starts.first()?, *self.starts.last()?);
        if time < first || time >= end {
            return None;
        }
        let mut number = *self.begins.get(((time - first) as u64 >> self.shift) as usize)? as usize;
        while *self.starts.get(number + 1)? <= time {
            number += 1;
        }
        Some(number)
    }
}
