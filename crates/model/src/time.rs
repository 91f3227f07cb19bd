//! Instants and intervals: microseconds since 1970 in UTC.
//!
//! Times without a zone are rejected, because guessing the zone silently shifts events. A reader of files that knows
//! the zone of its input passes it to [`parse_instant`].

use crate::civil::{DAY_US, civil_from_days, days_from_civil};
use crate::error::Invalid;
use jiff::civil;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use std::fmt::Write;

/// Earliest accepted instant: 0000-01-01T00:00:00Z, where RFC 3339 begins.
pub const TIME_MIN: i64 = -62_167_219_200_000_000;
/// Latest accepted instant: 9999-12-31T23:59:59.999999Z, where RFC 3339 ends.
pub const TIME_MAX: i64 = 253_402_300_799_999_999;
/// Length of a date in bytes: `2026-01-31`.
pub const DATE_BYTES: usize = 10;
/// Max offset from UTC in seconds: 23:59 (RFC 3339, section 5.6).
const OFFSET_MAX_S: i32 = 23 * 3_600 + 59 * 60;

/// A closed interval of time in microseconds since 1970; `i64::MIN` and `i64::MAX` are open ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// First instant, inclusive; `i64::MIN` when open.
    pub start: i64,
    /// Last instant, inclusive; `i64::MAX` when open.
    pub end: i64,
}

impl Interval {
    /// All of time.
    pub const ALWAYS: Interval = Interval { start: i64::MIN, end: i64::MAX };

    /// One instant alone.
    pub fn at(instant: i64) -> Interval {
        Interval { start: instant, end: instant }
    }

    /// Whether the two intervals share an instant.
    pub fn meets(&self, other: &Interval) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Parses the OGC `datetime` parameter: an RFC 3339 instant, a date (a whole UTC day), or `a/b` with `..` or
    /// nothing for an open end.
    pub fn parse(text: &str) -> Result<Interval, Invalid> {
        let end_of = |part: &str, open: i64, last: bool| -> Result<i64, Invalid> {
            if part.is_empty() || part == ".." {
                return Ok(open);
            }
            // The parser also accepts a date at the front of an instant.
            if let Ok(date) = part.parse::<civil::Date>()
                && !part.contains(['T', 't', ' '])
            {
                let day = date_start(date)?;
                return Ok(if last { day + DAY_US - 1 } else { day });
            }
            parse_instant(part, None)
        };
        let interval = match text.split_once('/') {
            None => Interval { start: end_of(text, i64::MIN, false)?, end: end_of(text, i64::MAX, true)? },
            Some((a, b)) => Interval { start: end_of(a, i64::MIN, false)?, end: end_of(b, i64::MAX, true)? },
        };
        if text.is_empty() || text == ".." {
            return Err(Invalid::new(
                "an empty time: expected an instant such as 2026-01-31T12:00:00Z, or an interval such as 2026-01-01T00:00:00Z/..",
            ));
        }
        if interval.start > interval.end {
            return Err(Invalid::new(format_args!("{text:?} ends before it starts")));
        }
        Ok(interval)
    }
}

/// Start of a date in UTC, in microseconds.
pub fn date_start(date: civil::Date) -> Result<i64, Invalid> {
    in_range(days_of(date) * DAY_US, &date)
}

/// Parses a date such as `2026-01-31`, or an instant that starts a UTC day, in microseconds.
pub fn parse_date(text: &str) -> Result<i64, Invalid> {
    let instant = match text.parse::<civil::Date>() {
        Ok(date) if text.len() == DATE_BYTES => return date_start(date),
        _ => parse_instant(text, Some(&TimeZone::UTC)),
    };
    let wrong = || Invalid::new(format_args!("{text:?} is not a date: expected one such as 2026-01-31"));
    instant.and_then(day).map_err(|_| wrong())
}

/// Checks that an instant starts a UTC day, in the years 0 to 9999.
pub fn day(micros: i64) -> Result<i64, Invalid> {
    match micros.rem_euclid(DAY_US) {
        0 => in_range(micros, &micros),
        _ => Err(Invalid::new(format_args!(
            "{} is not the start of a day in UTC: expected a date",
            format_instant(micros)
        ))),
    }
}

/// Days from 1970-01-01 to a date.
fn days_of(date: civil::Date) -> i64 {
    days_from_civil(date.year().into(), date.month().into(), date.day().into())
}

/// Parses an RFC 3339 instant. A time without a zone is interpreted in `zone`, or rejected if there is none.
///
/// Fractions finer than a microsecond are rounded down, also before 1970. A leap second, `:60`, equals the preceding
/// second, as in POSIX. Offsets go to 23:59 on either side.
pub fn parse_instant(text: &str, zone: Option<&TimeZone>) -> Result<i64, Invalid> {
    let Ok(pieces) = Pieces::parse(text) else {
        return Err(Invalid::new(format_args!(
            "{text:?} is not a time: expected RFC 3339 such as 2026-01-31T12:00:00Z"
        )));
    };
    let local = pieces.date().to_datetime(pieces.time().unwrap_or(civil::Time::midnight()));
    let offset = match (pieces.to_numeric_offset(), zone) {
        (Some(offset), _) => offset,
        (None, Some(zone)) => offset_in(zone, local),
        (None, None) => {
            return Err(Invalid::new(format_args!(
                "{text:?} has no time zone: add Z or an offset such as +02:00 (when loading a file, --zone names the zone of its times)"
            )));
        }
    };
    check_offset(offset).map_err(|e| Invalid::new(format_args!("{text:?} {e}")))?;
    let second = i64::from(local.hour()) * 3_600 + i64::from(local.minute()) * 60 + i64::from(local.second());
    // Computed here rather than as a jiff timestamp, whose range with offsets ends in the year 9999.
    let seconds = days_of(local.date()) * 86_400 + second - i64::from(offset.seconds());
    in_range(seconds * 1_000_000 + i64::from(local.subsec_nanosecond() / 1_000), &text)
}

/// The offset of a local time in a zone: the earlier of two where clocks go back, the previous one where they go
/// forward. Unlike the instant itself, it is known up to the end of the year 9999.
fn offset_in(zone: &TimeZone, local: civil::DateTime) -> Offset {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    }
}

fn check_offset(offset: Offset) -> Result<(), &'static str> {
    match offset.seconds().abs() <= OFFSET_MAX_S {
        true => Ok(()),
        false => Err("has an offset that no clock has: expected at most +23:59 or -23:59"),
    }
}

/// Checks that an instant lies in the years 0 to 9999.
pub fn in_range(micros: i64, shown: &dyn std::fmt::Display) -> Result<i64, Invalid> {
    if (TIME_MIN..=TIME_MAX).contains(&micros) {
        Ok(micros)
    } else {
        Err(Invalid::new(format_args!("the time {shown} is out of range: expected a year from 0000 to 9999, in UTC")))
    }
}

/// Formats the UTC day of an instant, such as `2026-01-31`.
pub fn format_date(micros: i64) -> String {
    let mut text = format_instant(micros);
    text.truncate(text.find('T').unwrap_or(text.len()));
    text
}

/// Formats an instant as RFC 3339 in UTC with as many decimals as needed; open ends are `..`. A year beyond RFC 3339,
/// which only the end of a window may have, gets a sign and six digits (ISO 8601).
pub fn format_instant(micros: i64) -> String {
    if micros == i64::MIN || micros == i64::MAX {
        return "..".to_owned();
    }
    let (days, of_day) = (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US));
    let (year, month, day) = civil_from_days(days);
    let (second, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let mut text = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    // Formatting into a string cannot fail.
    let _ = write!(text, "-{month:02}-{day:02}T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    if fraction > 0 {
        let _ = write!(text, ".{fraction:06}");
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push('Z');
    text
}

/// Finds a time zone by its IANA name, such as `Europe/Paris`, or an offset such as `+02:00`.
pub fn zone(name: &str) -> Result<TimeZone, Invalid> {
    if name.eq_ignore_ascii_case("utc") || name == "Z" {
        return Ok(TimeZone::UTC);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Ok(zone);
    }
    let zone = jiff::fmt::temporal::DateTimeParser::new().parse_time_zone(name).ok();
    let has_clocks = |zone: &TimeZone| zone.to_fixed_offset().map_or(true, |offset| check_offset(offset).is_ok());
    zone.filter(has_clocks).ok_or_else(|| {
        Invalid::field(
            "zone",
            format_args!(
                "{name:?} is not a time zone: expected an IANA name such as Europe/Paris, or an offset such as +02:00"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Instants of every scale that events may have.
    fn instants() -> impl Strategy<Value = i64> {
        prop_oneof![
            TIME_MIN..=TIME_MAX,
            (TIME_MIN / 1_000_000..=TIME_MAX / 1_000_000).prop_map(|s| s * 1_000_000),
            (-1_000_000i64..1_000_000).prop_map(|day| (day * DAY_US).clamp(TIME_MIN, TIME_MAX)),
            prop::sample::select(vec![TIME_MIN, TIME_MAX, -1, 0, 1]),
        ]
    }

    proptest! {
        #[test]
        fn instants_and_days_come_back(t in instants()) {
            let text = format_instant(t);
            prop_assert_eq!(parse_instant(&text, None), Ok(t));
            prop_assert_eq!(parse_date(&format_date(t)), Ok(t.div_euclid(DAY_US) * DAY_US));
            prop_assert_eq!(Interval::parse(&text), Ok(Interval::at(t)));
        }

        #[test]
        fn offsets_move_an_instant_by_themselves(t in instants(), minutes in -1439i64..=1439) {
            // The local time must be representable.
            let local = t + minutes * 60_000_000;
            prop_assume!((TIME_MIN..=TIME_MAX).contains(&local));
            let sign = if minutes < 0 { '-' } else { '+' };
            let offset = format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
            let text = format_instant(local).replace('Z', &offset);
            prop_assert_eq!(parse_instant(&text, None), Ok(t), "{}", text);
        }

        #[test]
        fn intervals_come_back_and_never_end_before_they_start(a in instants(), b in instants()) {
            let text = format!("{}/{}", format_instant(a), format_instant(b));
            let read = Interval::parse(&text);
            prop_assert_eq!(read.clone().ok(), (a <= b).then_some(Interval { start: a, end: b }));
            let open = Interval::parse(&format!("{}/..", format_instant(a))).unwrap();
            prop_assert_eq!(open, Interval { start: a, end: i64::MAX });
            if let Ok(read) = read {
                prop_assert!(read.meets(&open) && open.meets(&read) && read.meets(&Interval::at(b)));
            }
        }

        #[test]
        fn no_text_makes_a_reader_of_times_panic(text in "[-0-9TZ:+./ ]{0,30}|\\PC{0,20}", t in instants()) {
            let damaged = format!("{}{text}", &format_instant(t)[..10]);
            for text in [&text, &damaged] {
                let _ = (parse_date(text), zone(text));
                if let Ok(t) = parse_instant(text, Some(&TimeZone::UTC)) {
                    prop_assert!((TIME_MIN..=TIME_MAX).contains(&t));
                }
                if let Ok(interval) = Interval::parse(text) {
                    prop_assert!(interval.start <= interval.end);
                }
            }
        }
    }

    #[test]
    fn instants_come_back_as_written() {
        for text in [
            "2026-01-31T12:00:00Z",
            "1969-12-31T23:59:59.999999Z",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "2017-01-21T12:39:41.74Z",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(format_instant(parse_instant(text, None).unwrap()), text);
        }
        assert_eq!(parse_instant("2026-01-31T14:00:00+02:00", None), parse_instant("2026-01-31T12:00:00Z", None));
    }

    #[test]
    fn the_years_of_rfc_3339_are_taken_and_no_others() {
        assert_eq!(parse_instant("9999-12-31T23:59:59.999999Z", None), Ok(TIME_MAX));
        assert_eq!(parse_instant("9999-12-31T23:59:59+23:59", None), parse_instant("9999-12-31T00:00:59Z", None));
        assert_eq!(parse_instant("9999-12-31T23:59:59.9999999Z", None), Ok(TIME_MAX));
        assert_eq!(parse_instant("2016-12-31T23:59:60Z", None), parse_instant("2016-12-31T23:59:59Z", None));
        let paris = zone("Europe/Paris").unwrap();
        assert_eq!(
            parse_instant("9999-12-31T23:59:59", Some(&paris)),
            parse_instant("9999-12-31T23:59:59+01:00", None),
            "local times too"
        );
        assert_eq!(Interval::parse("9999-12-31").unwrap().end, TIME_MAX);
        for bad in [
            "-000001-12-31T00:00:00Z",
            "-0001-12-31T00:00:00Z",
            "+010000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-00:01",
            "0000-01-01T00:00:00+00:01",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:61Z",
            "2026-02-29T12:00:00Z",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+25:00",
            "2026-01-31T12:00:00-23:59:30",
        ] {
            assert!(parse_instant(bad, None).is_err(), "{bad}");
        }
        assert_eq!(format_instant(TIME_MAX + 1), "+010000-01-01T00:00:00Z");
        for bad in ["+25:00", "-24:00", "+99:00"] {
            assert!(zone(bad).is_err(), "{bad}");
        }
        assert!(zone("-23:59").is_ok());
    }

    #[test]
    fn what_is_finer_than_a_microsecond_is_rounded_down_before_1970_too() {
        for (text, micros) in [
            ("1969-12-31T23:59:59.9999999Z", -1),
            ("1969-12-31T23:59:59.9999990Z", -1),
            ("1969-12-31T23:59:59.9999989Z", -2),
            ("1970-01-01T00:00:00.0000009Z", 0),
        ] {
            assert_eq!(parse_instant(text, None), Ok(micros), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_refused_unless_one_is_given() {
        let error = parse_instant("2026-01-31T12:00:00", None).unwrap_err();
        assert!(error.detail.contains("no time zone"), "{error}");
        let paris = zone("Europe/Paris").unwrap();
        assert_eq!(parse_instant("2026-01-31T13:00:00", Some(&paris)), parse_instant("2026-01-31T12:00:00Z", None));
        assert!(zone("Nowhere/Town").is_err());
    }

    #[test]
    fn intervals_have_open_ends_and_whole_days() {
        let day = Interval::parse("2026-01-31").unwrap();
        assert_eq!(day.end - day.start, 86_400_000_000 - 1);
        let open = Interval::parse("2026-01-31T00:00:00Z/..").unwrap();
        assert_eq!((open.start, open.end), (day.start, i64::MAX));
        assert_eq!(Interval::parse("/2026-01-31").unwrap(), Interval { start: i64::MIN, end: day.end });
        assert_eq!(Interval::parse("../..").unwrap(), Interval::ALWAYS);
        for bad in
            ["", "..", "2026-02-01T00:00:00Z/2026-01-01T00:00:00Z", "yesterday", "12026-01-01T00:00:00Z", "a/b/c"]
        {
            assert!(Interval::parse(bad).is_err(), "{bad}");
        }
    }
}
