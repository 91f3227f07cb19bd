//! Fast parsing and formatting of instants: the common shape here, everything else through the model.

use crate::options::ReadOptions;
use jiff::tz::TimeZone;
use meridian_model::civil::{civil_from_days, days_from_civil};
use meridian_model::error::shorten;
use meridian_model::{FieldType, Invalid, time};

/// Reads a value of a field of this kind (date or instant), in the form that the options name or in RFC 3339.
pub(crate) fn parse_as(kind: FieldType, text: &str, options: &ReadOptions) -> Result<i64, Invalid> {
    let iso = options.date_format.as_ref().and_then(|format| format.iso(text));
    let written = iso.as_deref().unwrap_or(text);
    let read = match kind {
        FieldType::Date => time::parse_date(written),
        _ => parse(written, options.zone.as_ref()),
    };
    match (&options.date_format, read) {
        (Some(format), Err(_)) if iso.is_none() => {
            let detail = format!("{:?} is not a time: expected {} or RFC 3339", shorten(text), format.pattern());
            Err(Invalid::new(detail))
        }
        (_, read) => read,
    }
}

/// Reads an RFC 3339 instant into microseconds since 1970, as [`time::parse_instant`] does.
pub(crate) fn parse(text: &str, zone: Option<&TimeZone>) -> Result<i64, Invalid> {
    match utc(text.as_bytes()) {
        Some(micros) => Ok(micros),
        None => time::parse_instant(text, zone),
    }
}

/// Parses `2026-01-31T12:00:00[.123456]Z`; `None` for anything else, valid or not.
fn utc(text: &[u8]) -> Option<i64> {
    let (b'Z', true) = (*text.last()?, (20..=27).contains(&text.len())) else { return None };
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    };
    // Anything else goes to the model, so that an invalid time always gets the same message.
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| text[at] != mark) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = 0;
    if text.len() > 20 {
        let digits = text.len() - 21;
        if text[19] != b'.' || digits == 0 {
            return None;
        }
        micros = number(20, 20 + digits)? * 10i64.pow(6 - digits as u32);
    }
    Some((days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micros)
}

/// Appends a value of a field of this kind: a date, or an instant.
pub(crate) fn write_as(kind: FieldType, micros: i64, out: &mut Vec<u8>) {
    match kind {
        FieldType::Date => out.extend_from_slice(time::format_date(micros).as_bytes()),
        _ => write(micros, out),
    }
}

/// Appends an instant as [`time::format_instant`] writes it: RFC 3339 in UTC with as many decimals as it needs.
pub fn write(micros: i64, out: &mut Vec<u8>) {
    // Two digits per part suffice only for the years 0 to 9999.
    if !(time::TIME_MIN..=time::TIME_MAX).contains(&micros) {
        out.extend_from_slice(time::format_instant(micros).as_bytes());
        return;
    }
    let seconds = micros.div_euclid(1_000_000);
    let fraction = micros.rem_euclid(1_000_000) as u32;
    let (year, month, day) = civil_from_days(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let pair = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
    let century = pair(year / 100);
    let of_century = pair(year % 100);
    let (month, day) = (pair(month), pair(day));
    let (hour, minute, second) = (pair(of_day / 3600), pair(of_day / 60 % 60), pair(of_day % 60));
    out.extend_from_slice(&[
        century[0],
        century[1],
        of_century[0],
        of_century[1],
        b'-',
        month[0],
        month[1],
        b'-',
        day[0],
        day[1],
        b'T',
        hour[0],
        hour[1],
        b':',
        minute[0],
        minute[1],
        b':',
        second[0],
        second[1],
    ]);
    if fraction > 0 {
        out.push(b'.');
        let mut rest = fraction;
        let mut place = 100_000;
        while rest > 0 {
            out.push(b'0' + (rest / place) as u8);
            rest %= place;
            place /= 10;
        }
    }
    out.push(b'Z');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(micros: i64) -> String {
        let mut out = Vec::new();
        write(micros, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn agrees_with_the_model(micros in time::TIME_MIN..=time::TIME_MAX, coarse in 0u32..7) {
            let unit = 10i64.pow(coarse);
            let micros = (micros / unit * unit).clamp(time::TIME_MIN, time::TIME_MAX);
            let text = written(micros);
            prop_assert_eq!(&text, &time::format_instant(micros));
            prop_assert_eq!(parse(&text, None).unwrap(), micros);
        }

        #[test]
        fn takes_nothing_that_the_model_refuses(text in "[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,10})?Z?") {
            if let Some(micros) = utc(text.as_bytes()) {
                prop_assert_eq!(time::parse_instant(&text, None), Ok(micros));
            }
        }
    }

    #[test]
    fn a_local_time_that_comes_twice_is_the_first_and_one_that_never_comes_is_later() {
        let zone = time::zone("Europe/Paris").unwrap();
        for (local, utc) in [
            ("2026-03-29T01:59:59", "2026-03-29T00:59:59Z"),
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
            ("2026-03-29T03:30:00", "2026-03-29T01:30:00Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
            ("2026-10-25T03:00:00", "2026-10-25T02:00:00Z"),
        ] {
            assert_eq!(parse(local, Some(&zone)), parse(utc, None), "{local}");
        }
    }

    #[test]
    fn open_ends_are_dots() {
        assert_eq!(written(i64::MAX), "..");
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
    }
}
