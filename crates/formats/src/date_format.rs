//! Times in forms other than RFC 3339, described by a pattern.

use jiff::civil::Time;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use meridian_model::{Invalid, time};

/// A pattern of times, such as `%d.%m.%Y %H:%M`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat {
    pattern: String,
}

/// Patterns for a column that looks like times, the likeliest first.
/// Seconds come without a fraction first: a pattern with one reads them too.
const CUSTOMARY: &[&str] = &[
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    // A date alone in this form looks like the number of a version.
    "%d.%m.%y %H:%M:%S",
    "%d.%m.%y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S%.f",
    "%m/%d/%Y %H:%M:%S%.f",
    "%m/%d/%Y %I:%M:%S %p",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S%.f",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y",
    // As GDAL writes times into CSV and KML.
    "%Y/%m/%d %H:%M:%S%z",
    "%Y/%m/%d %H:%M:%S%.f%z",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y.%m.%d %H:%M:%S",
    "%Y.%m.%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S UTC",
    "%Y-%m-%d %H:%M:%S%.f UTC",
    "%Y%m%dT%H%M%S%z",
    "%Y%m%dT%H%M%SZ",
    "%Y%m%d%H%M%S",
    "%a, %d %b %Y %H:%M:%S %z",
    // As ctime and date(1) write times, and some interfaces.
    "%a %b %d %H:%M:%S %Y",
    "%a %b %d %H:%M:%S UTC %Y",
    "%a %b %d %H:%M:%S %z %Y",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%d %b %Y",
    "%b %d, %Y",
    "%d-%b-%Y %H:%M:%S",
    "%d-%b-%Y %H:%M",
    "%d-%b-%y %H:%M:%S",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%Y%m%d",
];

impl DateFormat {
    /// Parses a pattern in `strftime` notation. Dates: `%d` day, `%m` month, `%b` name of a month, `%Y` year of four
    /// digits. Times: `%H` hour, `%M` minute, `%S` second, `%.f` fraction, `%z` offset: `+02`, `+0200` or `+02:00`.
    pub fn new(pattern: &str) -> Result<DateFormat, Invalid> {
        // A pattern that cannot format a time cannot parse one.
        let sample = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
        jiff::fmt::strtime::format(pattern, &sample)
            .map_err(|e| Invalid::new(format!("{pattern:?}: {e}: expected a pattern such as \"%d.%m.%Y %H:%M\"")))?;
        let names_a_day = ["%d", "%e", "%j", "%D", "%F", "%s"].iter().any(|part| pattern.contains(part));
        if !names_a_day {
            let detail = format!("{pattern:?} has no day: expected a pattern such as \"%d.%m.%Y %H:%M\"");
            return Err(Invalid::new(detail));
        }
        Ok(DateFormat { pattern: pattern.to_owned() })
    }

    /// Returns the pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Reads a time in this form, in microseconds since 1970; without an offset it is in UTC. `None` for other texts.
    pub fn instant(&self, text: &str) -> Option<i64> {
        time::parse_instant(&self.iso(text)?, Some(&TimeZone::UTC)).ok()
    }

    /// Converts a time in this form to RFC 3339: a date alone, or a time with an offset if one was given. `None` for
    /// other texts.
    pub(crate) fn iso(&self, text: &str) -> Option<String> {
        iso(&self.pattern, text)
    }
}

fn iso(pattern: &str, text: &str) -> Option<String> {
    let parse = |pattern: &str, text: &str| {
        let parts = BrokenDownTime::parse(pattern, text).ok()?;
        let early = parts.year().is_some_and(|year| year < 1000);
        (!early || has_whole_year(pattern, text)).then_some(parts)
    };
    let parts = parse(pattern, text).or_else(|| {
        // jiff reads four digits as `%z`. Many programs write a colon between them, or two for whole hours.
        let (before, _) = pattern.split_once("%z")?;
        let (_, start) = BrokenDownTime::parse_prefix(before, text).ok()?;
        let (until, rest) = text.split_at_checked(start + "+00".len())?;
        match rest.starts_with(':') {
            true => parse(&pattern.replace("%z", "%:z"), text),
            false => parse(pattern, &format!("{until}00{rest}")),
        }
    })?;
    if pattern.contains("%s") {
        return parts.to_timestamp().ok().map(|stamp| stamp.to_string());
    }
    let date = parts.to_date().ok()?;
    if parts.hour().is_none() {
        return Some(date.to_string());
    }
    let time = parts.to_time().unwrap_or(Time::midnight());
    let offset = match parts.offset() {
        Some(offset) => {
            let seconds = offset.seconds();
            let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
        None if names_utc(pattern) => "Z".to_owned(),
        None => String::new(),
    };
    Some(format!("{date}T{time}{offset}"))
}

/// Returns whether a pattern has letters that stand for themselves and mean UTC.
fn names_utc(pattern: &str) -> bool {
    pattern.ends_with('Z') || pattern.contains("UTC")
}

/// Returns whether times in this pattern need a zone of their own.
pub(crate) fn lacks_zone(pattern: &str) -> bool {
    ["%H", "%I"].iter().any(|hour| pattern.contains(hour)) && !pattern.contains("%z") && !names_utc(pattern)
}

/// Returns whether the year of a text that a pattern reads has four digits. `%Y` takes two as well, which would be a
/// year of antiquity.
fn has_whole_year(pattern: &str, text: &str) -> bool {
    let pattern = pattern.replace("%F", "%Y-%m-%d");
    let Some((before, _)) = pattern.split_once("%Y") else { return true };
    let end_of = |prefix: &str| BrokenDownTime::parse_prefix(prefix, text).ok().map(|(_, end)| end);
    let year = end_of(before).zip(end_of(&format!("{before}%Y"))).and_then(|(start, end)| text.get(start..end));
    year.map(str::trim_start).is_some_and(|year| year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether a text is a time in this pattern.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    iso(pattern, text).is_some()
}

/// Returns the customary patterns of some texts, the likeliest first: those with the fewest misfits, of which
/// `others_max` are allowed.
pub(crate) fn fitting(texts: &[&str], others_max: usize) -> Vec<&'static str> {
    let mut fewest = others_max.min(texts.len().saturating_sub(1));
    let mut found = Vec::new();
    for pattern in CUSTOMARY {
        // Counting stops at one more than allowed.
        let others = texts.iter().filter(|text| !fits(pattern, text)).take(fewest + 1).count();
        if others < fewest {
            fewest = others;
            found.clear();
        }
        // One with a fraction fits wherever the same one without does: it is found only if some texts have a fraction.
        let whole_seconds = pattern.replace("%.f", "");
        if others == fewest && !texts.is_empty() && !found.contains(&whole_seconds.as_str()) {
            found.push(*pattern);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::civil::{DAY_US, civil_from_days, days_from_civil};
    use proptest::prelude::*;

    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MINUTE_US: i64 = 60_000_000;

    /// Writes a wall time, in microseconds since 1970, without the library that reads it.
    fn written(pattern: &str, wall: i64, offset: &str) -> String {
        let (days, of_day) = (wall.div_euclid(DAY_US), wall.rem_euclid(DAY_US));
        let (year, month, day) = civil_from_days(days);
        let (hour, minute) = (of_day / (60 * MINUTE_US), of_day / MINUTE_US % 60);
        // The first day of 1970 was a Thursday.
        let weekday = WEEKDAYS[(days + 3).rem_euclid(7) as usize];
        pattern
            .replace("%a", weekday)
            .replace("%d", &format!("{day:02}"))
            .replace("%m", &format!("{month:02}"))
            .replace("%b", MONTHS[month as usize - 1])
            .replace("%Y", &format!("{year:04}"))
            .replace("%y", &format!("{:02}", year % 100))
            .replace("%H", &format!("{hour:02}"))
            .replace("%I", &format!("{:02}", (hour + 11) % 12 + 1))
            .replace("%p", if hour < 12 { "AM" } else { "PM" })
            .replace("%M", &format!("{minute:02}"))
            .replace("%S", &format!("{:02}", of_day / 1_000_000 % 60))
            .replace("%.f", &format!(".{:06}", of_day % 1_000_000))
            .replace("%z", offset)
    }

    fn of_day() -> impl Strategy<Value = i64> {
        prop_oneof![
            0..DAY_US,
            // Midnight and noon, where a clock of twelve hours says 12, and the end of the day.
            prop::sample::select(vec![0, MINUTE_US, DAY_US / 2 - 1, DAY_US / 2, DAY_US / 2 + MINUTE_US, DAY_US - 1]),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_a_pattern_writes_it_reads_and_it_is_guessed(
            pattern in prop::sample::select(CUSTOMARY.to_vec()),
            // An offset leads out of the first and the last day of all years.
            days in days_from_civil(0, 1, 2)..=days_from_civil(9999, 12, 30),
            of_day in of_day(),
            offset in -1439i64..=1439,
            form in 0..3u8,
        ) {
            // Two digits name the years 1969 to 2068.
            let (first, last) = (days_from_civil(1969, 1, 1), days_from_civil(2068, 12, 31));
            let days = if pattern.contains("%y") { first + days.rem_euclid(last - first + 1) } else { days };
            let wall = days * DAY_US + of_day;
            let offset = match form {
                _ if !pattern.contains("%z") => 0,
                // The form of two digits has no minutes.
                0 => offset / 60 * 60,
                _ => offset,
            };
            let (sign, hours, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60, offset.abs() % 60);
            let zone = match form {
                0 => format!("{sign}{hours:02}"),
                1 => format!("{sign}{hours:02}{minutes:02}"),
                _ => format!("{sign}{hours:02}:{minutes:02}"),
            };
            let text = written(pattern, wall, &zone);
            let is_date = !pattern.contains("%M");
            let unit = match pattern {
                _ if is_date => DAY_US,
                p if p.contains("%.f") => 1,
                p if p.contains("%S") => 1_000_000,
                _ => MINUTE_US,
            };
            let iso = DateFormat::new(pattern).unwrap().iso(&text);
            let read = iso.as_deref().map(|iso| match is_date {
                true => time::parse_date(iso),
                false => crate::instant::parse(iso, Some(&TimeZone::UTC)),
            });
            prop_assert_eq!(read, Some(Ok(wall.div_euclid(unit) * unit - offset * MINUTE_US)), "{} {}", pattern, text);
            prop_assert!(fitting(&[text.as_str()], 0).contains(&pattern), "{} {}", pattern, text);
        }
    }

    #[test]
    fn times_are_read_by_their_pattern() {
        for (pattern, text, expected) in [
            ("%d.%m.%Y %H:%M", "31.01.2026 12:05", Some("2026-01-31T12:05:00")),
            ("%d.%m.%Y", "31.01.2026", Some("2026-01-31")),
            ("%m/%d/%Y %I:%M %p", "01/31/2026 1:05 PM", Some("2026-01-31T13:05:00")),
            ("%Y%m%dT%H%M%S%z", "20260131T120500+0530", Some("2026-01-31T12:05:00+05:30")),
            ("%Y%m%dT%H%M%SZ", "20260131T120500Z", Some("2026-01-31T12:05:00Z")),
            ("%Y/%m/%d %H:%M:%S%z", "1984/09/14 00:00:00+00", Some("1984-09-14T00:00:00+00:00")),
            ("%Y/%m/%d %H:%M:%S%z", "1984/09/14 00:00:00-0330", Some("1984-09-14T00:00:00-03:30")),
            ("%Y/%m/%d %H:%M:%S%z", "1984/09/14 00:00:00+05:30", Some("1984-09-14T00:00:00+05:30")),
            ("%Y/%m/%d %H:%M:%S%.f%z", "1984/09/14 00:00:00.25+01", Some("1984-09-14T00:00:00.25+01:00")),
            ("%Y/%m/%d %H:%M:%S%z", "1984/09/14 00:00:00", None),
            ("%Y/%m/%d %H:%M:%S%z", "1984/09/14 00:00:00+0", None),
            ("%d %b %Y", "3 Feb 2026", Some("2026-02-03")),
            ("%d-%b-%Y %H:%M:%S", "31-Jan-2026 12:05:00", Some("2026-01-31T12:05:00")),
            ("%Y-%m-%d %H:%M:%S UTC", "2016-12-31 23:59:59 UTC", Some("2016-12-31T23:59:59Z")),
            ("%Y-%m-%d %H:%M:%S UTC", "2016-12-31 23:59:59", None),
            ("%a %b %d %H:%M:%S %Y", "Sun Feb  1 12:05:00 2026", Some("2026-02-01T12:05:00")),
            ("%a %b %d %H:%M:%S UTC %Y", "Sat Jan 31 12:05:00 UTC 2026", Some("2026-01-31T12:05:00Z")),
            ("%d.%m.%y %H:%M", "31.01.26 12:05", Some("2026-01-31T12:05:00")),
            ("%d.%m.%y %H:%M", "31.01.2026 12:05", None),
            ("%d.%m.%Y %H:%M:%S", "01.02.0000 03:04:05", Some("0000-02-01T03:04:05")),
            ("%d.%m.%Y", "01.02.0001", Some("0001-02-01")),
            ("%d %b %Y %H:%M:%S %z", "3 Feb 0999 03:04:05 +0100", Some("0999-02-03T03:04:05+01:00")),
            ("%b %d %H:%M:%S %z %Y", "Feb 03 03:04:05 +01 0026", Some("0026-02-03T03:04:05+01:00")),
            ("%b %d %H:%M:%S %z %Y", "Feb 03 03:04:05 -03:30 2026", Some("2026-02-03T03:04:05-03:30")),
            ("%z %Y-%m-%d %H", "+0 2026-01-31 00", None),
            ("%z %Y-%m-%d %H", "é", None),
            ("%F", "0026-01-31", Some("0026-01-31")),
            ("%F", "26-01-31", None),
            ("%d.%m.%Y", "31.01.26", None),
            ("%d.%m.%Y", "31.01.026", None),
            ("%d.%m.%Y", "31.01.-026", None),
            ("%H%M %d.%m.%Y", "0026 31.01.26", None),
            ("%d.%m.%y", "31.01.26", Some("2026-01-31")),
            ("%d.%m.%Y", "31.02.2026", None),
            ("%d.%m.%Y", "31.01.2026 12:05", None),
            ("%s", "1767225600", Some("2026-01-01T00:00:00Z")),
        ] {
            assert_eq!(DateFormat::new(pattern).unwrap().iso(text).as_deref(), expected, "{text}");
        }
        assert!(DateFormat::new("%Q").is_err() && DateFormat::new("%H:%M").is_err());
    }

    #[test]
    fn a_pattern_is_guessed_and_what_is_ambiguous_has_two() {
        let guess = |texts: &[&str]| fitting(texts, 0);
        assert_eq!(guess(&["31.01.2026 12:05", "01.02.2026 00:00"]), ["%d.%m.%Y %H:%M"]);
        assert_eq!(guess(&["01/02/2026", "03/04/2026"]), ["%d/%m/%Y", "%m/%d/%Y"]);
        assert_eq!(guess(&["01/31/2026", "03/04/2026"]), ["%m/%d/%Y"]);
        // Of two patterns that fit nearly all texts, the one that fits more.
        assert_eq!(fitting(&["01/31/2026", "03/04/2026", "05/06/2026", "unknown"], 2), ["%m/%d/%Y"]);
        assert!(guess(&["01/31/2026", "unknown"]).is_empty() && fitting(&["unknown"], 1).is_empty());
        // GDAL's form, and no fraction where the data have none.
        assert_eq!(guess(&["1984/09/14 00:00:00+00", "2026/01/31 12:05:00+0530"]), ["%Y/%m/%d %H:%M:%S%z"]);
        assert_eq!(guess(&["1984/09/14 00:00:00", "2026/01/31 12:05:09"]), ["%Y/%m/%d %H:%M:%S"]);
        assert_eq!(guess(&["1984/09/14 00:00:00", "2026/01/31 12:05:09.5"]), ["%Y/%m/%d %H:%M:%S%.f"]);
        assert_eq!(guess(&["01/02/2026 00:00:00"]), ["%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"]);
        assert_eq!(guess(&["31-Jan-2026 12:05:00"]), ["%d-%b-%Y %H:%M:%S"]);
        assert_eq!(guess(&["2016-12-31 23:59:59 UTC"]), ["%Y-%m-%d %H:%M:%S UTC"]);
        assert_eq!(guess(&["Sat Jan 31 12:05:00 2026", "Sun Feb  1 00:00:00 2026"]), ["%a %b %d %H:%M:%S %Y"]);
        assert_eq!(guess(&["31.01.26 12:05"]), ["%d.%m.%y %H:%M"]);
        assert!(guess(&["1.10.12"]).is_empty());
        assert!(guess(&["Tuesday"]).is_empty() && guess(&[]).is_empty());
    }
}
