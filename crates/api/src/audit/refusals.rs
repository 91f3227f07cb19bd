//! How many refused attempts are recorded.

/// Refused attempts that get a line in a minute.
const LINES_A_MINUTE: u32 = 60;
const MINUTE: i64 = 60_000_000;

/// Counts refused attempts by the minute.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The minute of the wall clock.
    minute: i64,
    lines: u32,
    /// Attempts without a line since the last one with a line.
    unrecorded: u64,
}

impl Refusals {
    /// Takes a line at this time, in microseconds since 1970, and gives the attempts without one before it; `None` where there
    /// are too many.
    pub fn take(&mut self, now: i64) -> Option<u64> {
        let minute = now.div_euclid(MINUTE);
        if minute != self.minute {
            (self.minute, self.lines) = (minute, 0);
        }
        if self.lines >= LINES_A_MINUTE {
            self.unrecorded += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.unrecorded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_takes_few_lines_and_is_counted() {
        let mut refusals = Refusals::default();
        let recorded = (0..1_000).filter(|n| refusals.take(MINUTE + n).is_some()).count();
        assert_eq!(recorded, LINES_A_MINUTE as usize);
        assert_eq!((refusals.take(2 * MINUTE), refusals.take(2 * MINUTE)), (Some(1_000 - recorded as u64), Some(0)));
    }
}
