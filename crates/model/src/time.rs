//! Instants and intervals: microseconds since 1970 in UTC.
//!
//! The rule for times without a zone: they are refused, because a guess of the zone silently shifts
//! events. A reader of files may be told the zone of its input and then passes it to [`parse_instant`].

use crate::error::Invalid;
use jiff::{Timestamp, civil, tz::TimeZone};

/// Least instant that Meridian takes: 0001-01-01T00:00:00Z.
pub const TIME_MIN: i64 = -62_135_596_800_000_000;
/// Greatest instant that Meridian takes: 9999-12-30T22:00:00Z, the last one that every zone can show.
pub const TIME_MAX: i64 = 253_402_207_200_000_000;

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

    /// Reads the OGC `datetime` parameter: an RFC 3339 instant, a date (the whole day in UTC), or
    /// `a/b` with `..` or nothing for an open end.
    pub fn parse(text: &str) -> Result<Interval, Invalid> {
        let end_of = |part: &str, open: i64, last: bool| -> Result<i64, Invalid> {
            if part.is_empty() || part == ".." {
                return Ok(open);
            }
            if let Ok(date) = part.parse::<civil::Date>()
                && !part.contains(['T', 't', ' '])
            {
                let day = date_start(date)?;
                return Ok(if last { day + 86_400_000_000 - 1 } else { day });
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
            return Err(Invalid::new(format!("{text:?} ends before it starts")));
        }
        Ok(interval)
    }

    /// Whether the two share an instant.
    pub fn touches(&self, other: &Interval) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// Start of a date in UTC, in microseconds.
pub fn date_start(date: civil::Date) -> Result<i64, Invalid> {
    let stamp = date
        .to_zoned(TimeZone::UTC)
        .map_err(|e| Invalid::new(format!("the date {date} is out of range: {e}")))?
        .timestamp()
        .as_microsecond();
    in_range(stamp, &date)
}

/// Reads an RFC 3339 instant. A time without a zone is read in `zone`, or refused where none is given.
/// Fractions finer than a microsecond are cut off.
pub fn parse_instant(text: &str, zone: Option<&TimeZone>) -> Result<i64, Invalid> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return in_range(stamp.as_microsecond(), &text);
    }
    let Ok(local) = text.parse::<civil::DateTime>() else {
        return Err(Invalid::new(format!("{text:?} is not a time: expected RFC 3339 such as 2026-01-31T12:00:00Z")));
    };
    let Some(zone) = zone else {
        return Err(Invalid::new(format!(
            "{text:?} has no time zone: add Z or an offset such as +02:00 (when loading a file, --zone names the zone of its times)"
        )));
    };
    let stamp =
        zone.to_timestamp(local).map_err(|e| Invalid::new(format!("{text:?} is not a time in this zone: {e}")))?;
    in_range(stamp.as_microsecond(), &text)
}

/// Checks that an instant lies in the years 1 to 9999.
pub fn in_range(micros: i64, shown: &dyn std::fmt::Display) -> Result<i64, Invalid> {
    if (TIME_MIN..=TIME_MAX).contains(&micros) {
        Ok(micros)
    } else {
        Err(Invalid::new(format!("the time {shown} is out of range: expected a year from 1 to 9999")))
    }
}

/// Writes an instant as RFC 3339 in UTC with as many decimals as it needs; open ends are `..`.
pub fn format_instant(micros: i64) -> String {
    match micros {
        i64::MIN | i64::MAX => "..".to_owned(),
        _ => Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |t| t.to_string()),
    }
}

/// Finds a time zone by its IANA name, such as `Europe/Paris`, or an offset such as `+02:00`.
pub fn zone(name: &str) -> Result<TimeZone, Invalid> {
    if name.eq_ignore_ascii_case("utc") || name == "Z" {
        return Ok(TimeZone::UTC);
    }
    if let Ok(zone) = TimeZone::get(name) {
        return Ok(zone);
    }
    jiff::fmt::temporal::DateTimeParser::new().parse_time_zone(name).map_err(|_| {
        Invalid::field(
            "zone",
            format!(
                "{name:?} is not a time zone: expected an IANA name such as Europe/Paris, or an offset such as +02:00"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_come_back_as_written() {
        for text in
            ["2026-01-31T12:00:00Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "2017-01-21T12:39:41.74Z"]
        {
            assert_eq!(format_instant(parse_instant(text, None).unwrap()), text);
        }
        assert_eq!(parse_instant("2026-01-31T14:00:00+02:00", None), parse_instant("2026-01-31T12:00:00Z", None));
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
