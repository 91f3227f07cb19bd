//! The trend of a column's numbers from event to event, and the grid that follows from it.

use meridian_model::schema::TIME_UNIT_DEFAULT_US;

/// Events that a time unit should hold. Each unit has its own leaves, and a query about a place over all time opens at
/// least one leaf in each. With about a hundred leaves per unit, events elsewhere are pruned.
const EVENTS_PER_UNIT: f64 = 8192.0;
/// Min events to estimate the density: a few test events do not show it.
const SAMPLE_MIN: u64 = 1_000;
/// Max time unit chosen by default.
const TIME_UNIT_MAX_US: i64 = TIME_UNIT_DEFAULT_US << 12;

/// Min, max and direction of the numbers of a sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct NumberTrend {
    span: Option<(f64, f64)>,
    last: f64,
    values: u64,
    up: u64,
    down: u64,
}

impl NumberTrend {
    /// Records the next number.
    pub(crate) fn note(&mut self, value: f64) {
        let (min, max) = self.span.unwrap_or((value, value));
        if self.span.is_some() {
            self.up += u64::from(value > self.last);
            self.down += u64::from(value < self.last);
        }
        self.span = Some((min.min(value), max.max(value)));
        self.last = value;
        self.values += 1;
    }

    /// Returns the max magnitude.
    pub(crate) fn magnitude(&self) -> f64 {
        self.span.map_or(0.0, |(min, max)| min.abs().max(max.abs()))
    }

    /// Returns whether it nearly always goes one way. The sample is then a stretch of the input, as dense as the rest.
    fn goes_one_way(&self) -> bool {
        self.up.min(self.down) * 20 <= self.up + self.down
    }

    /// Returns the time unit of a grid for events at these times, of `unit` microseconds: a week, doubled until it
    /// holds enough events. An unordered sample that is not `whole` does not show the density of the input, so it
    /// gives a week.
    pub(crate) fn time_unit(&self, unit: i64, whole: bool) -> i64 {
        let span_us = self.span.map_or(0.0, |(min, max)| (max - min) * unit as f64);
        if self.values < SAMPLE_MIN || !(whole || self.goes_one_way()) || span_us <= 0.0 {
            return TIME_UNIT_DEFAULT_US;
        }
        let per_us = self.values as f64 / span_us;
        let mut chosen = TIME_UNIT_DEFAULT_US;
        // Beyond the span of a whole input, a longer unit only affects later events.
        while (chosen as f64) * per_us < EVENTS_PER_UNIT && chosen < TIME_UNIT_MAX_US && (chosen as f64) < span_us {
            chosen *= 2;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: i64 = TIME_UNIT_DEFAULT_US;

    fn trend(times: impl Iterator<Item = i64>) -> NumberTrend {
        let mut trend = NumberTrend::default();
        times.for_each(|time| trend.note(time as f64));
        trend
    }

    #[test]
    fn the_unit_grows_until_it_holds_enough_events() {
        let hour = 3_600_000_000;
        // 168 a week: 64 weeks hold 10,752, and 32 weeks too few.
        assert_eq!(trend((0..50_000).map(|i| i * hour)).time_unit(1, false), WEEK * 64);
        assert_eq!(trend((0..50_000).rev().map(|i| i * hour)).time_unit(1, false), WEEK * 64);
        assert_eq!(trend((0..50_000).map(|i| i * 3600)).time_unit(1_000_000, false), WEEK * 64);
        // A thousand times as many fit in a week.
        assert_eq!(trend((0..50_000).map(|i| i * hour / 1000)).time_unit(1, false), WEEK);
    }

    #[test]
    fn a_sample_in_no_order_tells_nothing_unless_it_is_all() {
        let times = || (0..50_000i64).map(|i| i * 7_919 % 50_000 * 3_600_000_000);
        assert_eq!(trend(times()).time_unit(1, false), WEEK);
        assert_eq!(trend(times()).time_unit(1, true), WEEK * 64);
    }

    #[test]
    fn few_events_make_no_unit_longer_than_they_reach() {
        assert_eq!(trend((0..2_000).map(|i| i % 2 * WEEK * 5)).time_unit(1, true), WEEK * 8);
        assert_eq!(trend((0..2_000).map(|_| 0)).time_unit(1, true), WEEK);
        assert_eq!(trend([0, WEEK * 5].into_iter()).time_unit(1, true), WEEK);
    }
}
