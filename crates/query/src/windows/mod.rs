//! Time windows, such as hours of a day and calendar months, in any zone.
//!
//! A window is half open, `[start, end)`, and every instant lies in exactly one. The rules:
//!
//! * Hours, minutes and seconds that divide a day (`PT1H`, `PT15M`, `PT6H`) count from each local midnight in elapsed
//!   time. A day of 23 or 25 hours therefore has 23 or 25 windows of an hour. A last window that would cross the next
//!   midnight is cut there.
//! * Other lengths of time (`PT5H`, `PT36H`) count in elapsed time from the local midnight of 1970-01-01.
//! * Days and weeks (`P1D`, `P10D`, `P1W`) are calendar days; whole weeks begin on a Monday, other counts of days are
//!   counted from 1970-01-01.
//! * Months and years (`P1M`, `P3M`, `P1Y`) are calendar months counted from January of the year 0.
//!
//! Midnight is the first instant of a local date, which is 01:00 on a day that skips midnight.

mod finder;

pub use finder::Finder;

use jiff::Span;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use meridian_model::civil::{DAY_US, civil_from_days, days_from_civil};
use meridian_model::{Interval, Invalid};
use std::cell::OnceCell;
use std::sync::Arc;

/// Min window: a millisecond.
pub const WINDOW_MIN_US: i64 = 1_000;

/// 1969-12-29, a Monday, in days since 1970-01-01.
const MONDAY: i64 = -3;

/// Max starts of days or months precomputed for a query; others are computed on demand.
const PREPARED_MAX: i64 = 50_000;

/// 9999-12-29 in days since 1970-01-01: the last date whose instants [`jiff`] represents in every zone.
const LAST_DAY: i64 = 2_932_894;

/// Days of 400 years. Beyond its tables, a zone's clocks repeat after them, as the calendar and its weekdays do.
const CYCLE_DAYS: i64 = 146_097;

/// Instants from here on are in no exact window: open ends, which no search for a window may reach.
const SEARCH_END_US: i64 = i64::MAX / 2;

/// -9999-01-01 in UTC, where the calendar begins.
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
    /// Elapsed microseconds that divide a day, counted from each midnight.
    OfDay(i64),
    /// Elapsed microseconds, counted from the local midnight of 1970-01-01.
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
    /// The offset from UTC in microseconds, if the zone has a fixed one.
    fixed_us: Option<i64>,
    /// Local midnight of 1970-01-01, for [`Step::Elapsed`].
    epoch: i64,
    /// Duration and zone as given.
    text: Arc<[String; 2]>,
}

impl Windows {
    /// Parses an ISO 8601 duration such as `PT1H`, `P1D`, `P1W`, `P1M` or `P1Y`, in a zone by name (see
    /// [`meridian_model::time::zone`]). Only one kind of unit is allowed: `P1M2D` has no meaning as a grid.
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

    /// The duration and the zone, as accepted by [`Windows::parse`].
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

    /// Min number of windows from the one that starts at `first` to the one that starts at `last`.
    pub(crate) fn count_at_least(&self, first: i64, last: i64) -> u64 {
        // Offsets, and the few dates that zones skipped, shift the first and the last midnight by a few days at most.
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

    /// A finder of windows that is fast for instants in `extent` and correct for all.
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

    /// The day, run of days or run of months that contains an instant.
    fn unit_at(&self, time: i64) -> Window {
        let unit = self.unit_index_at(time);
        Window { start: self.unit_start(unit), end: self.unit_start(unit + 1) }
    }

    /// The number of that unit. The local date is only a first guess. If clocks go back across midnight, a date is
    /// entered, left and entered again. The unit is the last one that has begun.
    fn unit_index_at(&self, time: i64) -> i64 {
        let day = self.local_day(time);
        let mut unit = match self.step {
            Step::OfDay(_) | Step::Elapsed(_) => day,
            Step::Days(n) => (day - days_anchor(n)).div_euclid(n),
            Step::Months(n) => {
                let (year, month, _) = civil_from_days(day);
                (year * 12 + month - 1).div_euclid(n)
            }
        };
        while time < SEARCH_END_US && time >= self.unit_start(unit + 1) {
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
                self.midnight(days_from_civil(month.div_euclid(12), month.rem_euclid(12) + 1, 1))
            }
        }
    }

    /// First instant of a local date, given in days since 1970-01-01.
    fn midnight(&self, day: i64) -> i64 {
        if let Some(offset) = self.fixed_us {
            return day.saturating_mul(DAY_US).saturating_sub(offset).max(CALENDAR_START_US);
        }
        let cycles = cycles_after(day, LAST_DAY, CYCLE_DAYS);
        let start = i32::try_from(day - cycles * CYCLE_DAYS)
            .ok()
            .and_then(|d| EPOCH.checked_add(Span::new().try_days(d).ok()?).ok())
            .and_then(|date| date.to_zoned(self.zone.clone()).ok())
            .and_then(|zoned| zoned.start_of_day().ok());
        let start = start.map_or(CALENDAR_START_US, |zoned| zoned.timestamp().as_microsecond());
        start.saturating_add(cycles.saturating_mul(CYCLE_DAYS * DAY_US))
    }

    /// The local date of an instant, in days since 1970-01-01.
    fn local_day(&self, time: i64) -> i64 {
        let cycles = cycles_after(time, LAST_DAY * DAY_US, CYCLE_DAYS * DAY_US);
        let time = (time - cycles * CYCLE_DAYS * DAY_US).max(meridian_model::time::TIME_MIN);
        let date = jiff::Timestamp::from_microsecond(time).map_or(EPOCH, |t| t.to_zoned(self.zone.clone()).date());
        days_of(date) + cycles * CYCLE_DAYS
    }
}

const EPOCH: Date = jiff::civil::date(1970, 1, 1);

/// Number of cycles by which `at` must go back to be at most `last`.
fn cycles_after(at: i64, last: i64, cycle: i64) -> i64 {
    match at.saturating_sub(last) {
        beyond @ 1.. => (beyond - 1) / cycle + 1,
        _ => 0,
    }
}

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

#[cfg(test)]
mod tests;
