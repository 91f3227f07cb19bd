//! Windows of time, such as hours of a day and months of a calendar, in any zone.
//!
//! A window is half open, `[start, end)`, and every instant lies in exactly one. The rules:
//!
//! * Hours, minutes and seconds that divide a day (`PT1H`, `PT15M`, `PT6H`) count from each local midnight
//!   in elapsed time. A day of 23 or 25 hours therefore has 23 or 25 windows of an hour; where the last
//!   window would pass the next midnight it is cut there.
//! * Other lengths of time (`PT5H`, `PT36H`) count in elapsed time from the local midnight of 1970-01-01.
//! * Days and weeks (`P1D`, `P10D`, `P1W`) are calendar days; whole weeks begin on a Monday, other
//!   counts of days are counted from 1970-01-01.
//! * Months and years (`P1M`, `P3M`, `P1Y`) are calendar months counted from January of the year 0.
//!
//! Midnight is the first instant of a local date, which is 01:00 on a day that skips midnight.

use jiff::Span;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use meridian_model::civil::{DAY_US, days_from_civil};
use meridian_model::{Interval, Invalid};
use std::cell::OnceCell;
use std::sync::Arc;

/// Shortest window: a millisecond.
pub const WINDOW_MIN_US: i64 = 1_000;

/// 1969-12-29, a Monday, in days since 1970-01-01.
const MONDAY: i64 = -3;
/// Most starts of days or months prepared ahead of a question; others are worked out when met.
const PREPARED_MAX: i64 = 50_000;
/// 10000-01-01 in UTC, where the calendar of [`jiff`] ends: the end of every last window.
const CALENDAR_END_US: i64 = 253_402_300_800_000_000;
/// -9999-01-01 in UTC, where it begins.
const CALENDAR_START_US: i64 = -377_705_116_800_000_000;

/// One window: microseconds since 1970, start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// First instant.
    pub start: i64,
    /// First instant of the next window.
    pub end: i64,
}

impl Window {
    /// Whether an instant lies in the window.
    pub fn holds(&self, time: i64) -> bool {
        self.start <= time && time < self.end
    }
}

/// The unit of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Elapsed microseconds that divide a day, from each midnight.
    OfDay(i64),
    /// Elapsed microseconds from the local midnight of 1970-01-01.
    Elapsed(i64),
    /// Calendar days.
    Days(i64),
    /// Calendar months.
    Months(i64),
}

/// A division of time into windows in a zone; cheap to clone.
#[derive(Debug, Clone)]
pub struct Windows {
    step: Step,
    zone: TimeZone,
    /// The offset from UTC in microseconds where the zone has but one.
    fixed_us: Option<i64>,
    /// Local midnight of 1970-01-01, for [`Step::Elapsed`].
    epoch: i64,
    /// Duration and zone as they were given.
    text: Arc<[String; 2]>,
}

impl Windows {
    /// Reads an ISO 8601 duration such as `PT1H`, `P1D`, `P1W`, `P1M` or `P1Y`, in a zone by name
    /// (see [`meridian_model::time::zone`]). One kind of unit at a time: `P1M2D` has no meaning as a grid.
    pub fn parse(duration: &str, zone: &str) -> Result<Windows, Invalid> {
        let text = Arc::new([duration.to_owned(), zone.to_owned()]);
        let zone = meridian_model::time::zone(zone)?;
        let wrong = |why: &str| {
            Invalid::field(
                "window",
                format!(
                    "{duration:?} {why}: expected an ISO 8601 duration of one kind of unit, such as PT15M, PT1H, P1D, P1W, P1M or P1Y"
                ),
            )
        };
        if !duration.starts_with(['P', 'p']) {
            return Err(wrong("is not a window"));
        }
        let span: Span = duration.parse().map_err(|_| wrong("is not a window"))?;
        if !span.is_positive() {
            return Err(wrong("is not longer than nothing"));
        }
        let months = i64::from(span.get_years()) * 12 + i64::from(span.get_months());
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let micros = i128::from(span.get_hours()) * 3_600_000_000
            + i128::from(span.get_minutes()) * 60_000_000
            + i128::from(span.get_seconds()) * 1_000_000
            + i128::from(span.get_milliseconds()) * 1_000
            + i128::from(span.get_microseconds())
            + i128::from(span.get_nanoseconds()) / 1_000;
        let step = match (months, days, micros) {
            (m @ 1..=120_000, 0, 0) => Step::Months(m),
            (0, d @ 1..=3_660_000, 0) => Step::Days(d),
            (0, 0, us) if us >= i128::from(WINDOW_MIN_US) && us <= i128::from(DAY_US) * 3_660_000 => {
                let us = us as i64;
                if DAY_US % us == 0 { Step::OfDay(us) } else { Step::Elapsed(us) }
            }
            (0, 0, us) if us < i128::from(WINDOW_MIN_US) => return Err(wrong("is shorter than a millisecond")),
            (0, 0, _) | (0, _, 0) | (_, 0, 0) => return Err(wrong("is longer than ten thousand years")),
            _ => return Err(wrong("mixes units")),
        };
        let fixed_us = zone.to_fixed_offset().ok().map(|o: Offset| i64::from(o.seconds()) * 1_000_000);
        let mut windows = Windows { step, zone, fixed_us, epoch: 0, text };
        windows.epoch = windows.midnight(0);
        Ok(windows)
    }

    /// The duration and the zone, as [`Windows::parse`] takes them.
    pub fn text(&self) -> (&str, &str) {
        let [duration, zone] = &*self.text;
        (duration, zone)
    }

    /// The window of an instant.
    pub fn window_of(&self, time: i64) -> Window {
        match (self.step, self.fixed_us) {
            (Step::Elapsed(us), _) => floor_window(time, self.epoch, us),
            (Step::OfDay(us), Some(offset)) => floor_window(time, -offset, us),
            (Step::OfDay(us), None) => within_day(self.unit_at(time), time, us),
            _ => self.unit_at(time),
        }
    }

    /// How many windows there are at least from the one that starts at `first` to the one that starts at `last`.
    pub(crate) fn count_at_least(&self, first: i64, last: i64) -> u64 {
        // Offsets, and the few dates that zones skipped, move the first and the last midnight by some days in all.
        const SLACK_US: i64 = 4 * DAY_US;
        let (longest, slack) = match self.step {
            // A day ends with a shorter window, never with a longer one.
            Step::OfDay(us) | Step::Elapsed(us) => (us, 0),
            Step::Days(days) => (days.saturating_mul(DAY_US), SLACK_US),
            Step::Months(months) => (months.saturating_mul(31 * DAY_US), SLACK_US),
        };
        let span = (i128::from(last) - i128::from(first) - i128::from(slack)).max(0);
        u64::try_from(span / i128::from(longest)).map_or(u64::MAX, |full| full.saturating_add(1))
    }

    /// A finder of windows that is fast for instants of `extent` and right for all.
    pub fn finder(&self, extent: Interval) -> Finder {
        let mut starts = Vec::new();
        if !self.is_arithmetic() && extent.start <= extent.end {
            let first = self.unit_index_at(extent.start.max(meridian_model::time::TIME_MIN));
            let last = self.unit_index_at(extent.end.min(meridian_model::time::TIME_MAX));
            if first <= last && last - first < PREPARED_MAX {
                starts.extend((first..=last + 1).map(|unit| self.unit_start(unit)));
            }
        }
        let last = Window { start: 0, end: 0 };
        Finder { windows: self.clone(), extent, starts: Arc::new(starts), last, numbers: OnceCell::new() }
    }

    /// Whether every window follows from one division.
    fn is_arithmetic(&self) -> bool {
        matches!((self.step, self.fixed_us), (Step::Elapsed(_), _) | (Step::OfDay(_), Some(_)))
    }

    /// The day, run of days or run of months that holds an instant.
    fn unit_at(&self, time: i64) -> Window {
        let unit = self.unit_index_at(time);
        Window { start: self.unit_start(unit), end: self.unit_start(unit + 1) }
    }

    /// The number of that unit. The local date is only a first guess: where clocks go back across
    /// midnight, a date is met, left and met again, and the unit is the last one that has begun.
    fn unit_index_at(&self, time: i64) -> i64 {
        let date = self.local_date(time);
        let mut unit = match self.step {
            Step::OfDay(_) | Step::Elapsed(_) => days_of(date),
            Step::Days(n) => (days_of(date) - days_anchor(n)).div_euclid(n),
            Step::Months(n) => (i64::from(date.year()) * 12 + i64::from(date.month()) - 1).div_euclid(n),
        };
        while time < CALENDAR_END_US && time >= self.unit_start(unit + 1) {
            unit += 1;
        }
        while time >= CALENDAR_START_US && time < self.unit_start(unit) {
            unit -= 1;
        }
        unit
    }

    fn unit_start(&self, unit: i64) -> i64 {
        match self.step {
            Step::OfDay(_) | Step::Elapsed(_) => self.midnight(unit),
            Step::Days(n) => self.midnight(unit.saturating_mul(n).saturating_add(days_anchor(n))),
            Step::Months(n) => {
                let month = unit.saturating_mul(n);
                let year = month.div_euclid(12);
                match i16::try_from(year).ok().and_then(|y| Date::new(y, month.rem_euclid(12) as i8 + 1, 1).ok()) {
                    Some(date) => self.midnight(days_of(date)),
                    None if year > 0 => CALENDAR_END_US,
                    None => CALENDAR_START_US,
                }
            }
        }
    }

    /// First instant of a local date, given in days since 1970-01-01.
    fn midnight(&self, day: i64) -> i64 {
        if let Some(offset) = self.fixed_us {
            return day.saturating_mul(DAY_US).saturating_sub(offset).clamp(CALENDAR_START_US, CALENDAR_END_US);
        }
        let start = i32::try_from(day)
            .ok()
            .and_then(|d| EPOCH.checked_add(Span::new().try_days(d).ok()?).ok())
            .and_then(|date| date.to_zoned(self.zone.clone()).ok())
            .and_then(|zoned| zoned.start_of_day().ok());
        match start {
            Some(zoned) => zoned.timestamp().as_microsecond(),
            None if day > 0 => CALENDAR_END_US,
            None => CALENDAR_START_US,
        }
    }

    fn local_date(&self, time: i64) -> Date {
        // The last instant that every zone can show comes before the last one that events have: a first guess.
        let time = time.clamp(meridian_model::time::TIME_MIN, jiff::Timestamp::MAX.as_microsecond());
        jiff::Timestamp::from_microsecond(time).map_or(EPOCH, |t| t.to_zoned(self.zone.clone()).date())
    }
}

const EPOCH: Date = jiff::civil::date(1970, 1, 1);

fn days_anchor(days: i64) -> i64 {
    if days % 7 == 0 { MONDAY } else { 0 }
}

/// Days since 1970-01-01.
fn days_of(date: Date) -> i64 {
    days_from_civil(date.year().into(), date.month().into(), date.day().into())
}

fn floor_window(time: i64, anchor: i64, step: i64) -> Window {
    let start = time.checked_sub(anchor).and_then(|past| time.checked_sub(past.rem_euclid(step)));
    if let Some((start, end)) = start.and_then(|start| Some((start, start.checked_add(step)?))) {
        return Window { start, end };
    }
    // In 128 bits: open ends are the extremes of 64.
    let (time, anchor, step) = (i128::from(time), i128::from(anchor), i128::from(step));
    let start = (time - anchor).div_euclid(step) * step + anchor;
    let narrow = |x: i128| x.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    Window { start: narrow(start), end: narrow(start + step) }
}

fn within_day(day: Window, time: i64, step: i64) -> Window {
    let window = floor_window(time, day.start, step);
    Window { start: window.start, end: window.end.min(day.end) }
}

/// Finds windows for many instants: remembers the last one, and the starts of days or months of its extent.
#[derive(Debug, Clone)]
pub struct Finder {
    windows: Windows,
    extent: Interval,
    /// Starts of consecutive units, one more than there are units; empty where arithmetic is enough.
    starts: Arc<Vec<i64>>,
    last: Window,
    /// The windows of the extent by number, unless they are too many; made when first asked for.
    numbers: OnceCell<Option<Numbers>>,
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

    /// The number of an instant's window among those of the extent, where these are not too many.
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

/// Consecutive windows by number, and a table that leads from an instant to its number without a division: of each
/// short stretch of time, the window in which it begins.
#[derive(Debug, Clone)]
struct Numbers {
    /// One more than there are windows.
    starts: Vec<i64>,
    begins: Vec<u32>,
    /// A stretch is this power of two long.
    shift: u32,
}

/// Most windows that are numbered.
const NUMBERED_MAX: usize = 1 << 14;

impl Numbers {
    fn of(extent: Interval, find: impl Fn(i64) -> Window) -> Option<Numbers> {
        if extent.start > extent.end {
            return None;
        }
        let mut window = find(extent.start);
        // Windows of one question are of about one length; this spares making what would be thrown away.
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

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::time::{format_instant, parse_instant};
    use proptest::prelude::*;

    fn at(text: &str) -> i64 {
        parse_instant(text, None).unwrap()
    }

    fn check(duration: &str, zone: &str, time: &str, start: &str, end: &str) {
        let windows = Windows::parse(duration, zone).unwrap();
        let found = windows.window_of(at(time));
        assert_eq!(
            (format_instant(found.start).as_str(), format_instant(found.end).as_str()),
            (start, end),
            "{duration} {zone} {time}"
        );
        let around = Interval { start: at(time) - 40 * DAY_US, end: at(time) + 40 * DAY_US };
        assert_eq!(windows.finder(around).find(at(time)), found);
    }

    #[test]
    fn windows_are_aligned_to_the_zones_midnight() {
        check("PT1H", "UTC", "2026-03-01T10:59:59.999999Z", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z");
        check("PT1H", "Asia/Kolkata", "2026-03-01T10:10:00Z", "2026-03-01T09:30:00Z", "2026-03-01T10:30:00Z");
        check("PT1H", "+05:45", "2026-03-01T10:10:00Z", "2026-03-01T09:15:00Z", "2026-03-01T10:15:00Z");
        check("P1D", "Europe/Paris", "2026-01-15T23:30:00Z", "2026-01-15T23:00:00Z", "2026-01-16T23:00:00Z");
        check("P1W", "UTC", "2026-11-21T09:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
        check("P1M", "America/New_York", "2026-03-31T23:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z");
        check("P3M", "UTC", "1969-12-31T23:59:59Z", "1969-10-01T00:00:00Z", "1970-01-01T00:00:00Z");
        check("P1Y", "UTC", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z");
        check("PT5H", "UTC", "1970-01-01T05:00:00Z", "1970-01-01T05:00:00Z", "1970-01-01T10:00:00Z");
    }

    #[test]
    fn days_of_23_and_25_hours_are_cut_at_their_midnights() {
        // Paris, 2026-03-29: 02:00 becomes 03:00. Paris, 2026-10-25: 03:00 becomes 02:00.
        check("P1D", "Europe/Paris", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
        check("P1D", "Europe/Paris", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
        check("PT6H", "Europe/Paris", "2026-10-25T22:30:00Z", "2026-10-25T22:00:00Z", "2026-10-25T23:00:00Z");
        check("PT6H", "Europe/Paris", "2026-03-29T21:30:00Z", "2026-03-29T17:00:00Z", "2026-03-29T22:00:00Z");
        // Sao Paulo skipped midnight on 2018-11-04: the day began at 01:00, which is 03:00Z.
        check("P1D", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z");
    }

    #[test]
    fn what_is_not_a_window_is_refused() {
        for bad in ["", "1h", "PT0S", "-PT1H", "P1M2D", "P1DT1H", "P", "PT0.0001S", "P99999Y", "hour", "PT"] {
            let error = Windows::parse(bad, "UTC").unwrap_err();
            assert_eq!(error.field.as_deref(), Some("window"), "{bad}: {error}");
        }
        assert_eq!(Windows::parse("PT1H", "Mars/Base").unwrap_err().field.as_deref(), Some("zone"));
    }

    #[test]
    fn windows_are_counted_before_they_are_made() {
        for (duration, zone, first, last) in [
            ("PT1H", "UTC", "2026-03-01T00:00:00Z", "2026-03-08T05:00:00Z"),
            ("PT6H", "Europe/Paris", "2026-10-20T22:00:00Z", "2026-10-30T05:00:00Z"),
            ("P1D", "America/Sao_Paulo", "2018-10-30T03:00:00Z", "2018-11-20T02:00:00Z"),
            ("P1M", "Pacific/Apia", "2011-01-01T12:00:00Z", "2012-12-01T10:00:00Z"),
        ] {
            let windows = Windows::parse(duration, zone).unwrap();
            let (first, last) = (windows.window_of(at(first)), windows.window_of(at(last)));
            let (mut window, mut made) = (first, 1);
            while window != last {
                (window, made) = (windows.window_of(window.end), made + 1);
            }
            let least = windows.count_at_least(first.start, last.start);
            assert!(least <= made && least * 4 > made * 3 - 8, "{duration} {zone}: {least} of {made}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_instant_lies_in_one_window_and_the_finder_agrees(
            time in meridian_model::time::TIME_MIN..=meridian_model::time::TIME_MAX,
            near in -2_000_000_000_000_000i64..4_000_000_000_000_000,
            duration in prop::sample::select(vec!["PT1H", "PT15M", "PT7H", "P1D", "P3D", "P1W", "P1M", "P3M", "P1Y", "P100Y"]),
            zone in prop::sample::select(vec![
                "UTC", "Europe/Paris", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "+05:45",
            ]),
        ) {
            let windows = Windows::parse(duration, zone).unwrap();
            let mut finder = windows.finder(Interval { start: near - 90 * DAY_US, end: near + 90 * DAY_US });
            // 180 days by the quarter of an hour are 17,280 windows: too many.
            prop_assert_eq!(finder.number(near).is_some(), duration != "PT15M");
            for t in [time, near, near + 1, near - 3_600_000_000] {
                let found = windows.window_of(t);
                prop_assert!(found.holds(t), "{t} is not in {found:?}");
                prop_assert_eq!(windows.window_of(found.start), found);
                prop_assert_eq!(windows.window_of(found.end - 1), found);
                if found.end <= meridian_model::time::TIME_MAX {
                    prop_assert_eq!(windows.window_of(found.end).start, found.end);
                }
                prop_assert_eq!(finder.find(t), found);
                if let Some(number) = finder.number(t) {
                    prop_assert_eq!(finder.numbers.get().unwrap().as_ref().unwrap().starts[number], found.start);
                }
            }
        }
    }
}
