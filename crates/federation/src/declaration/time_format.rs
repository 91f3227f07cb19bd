//! The time formats of sources.

use super::path::text;
use meridian_formats::DateFormat;
use meridian_model::time;
use serde_json::Value;

/// The time format of a source: `time_format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// RFC 3339, RFC 2822 or a plain date.
    Text,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// A strptime format, as `meridian load --date-format` takes; UTC if it has no offset.
    Letters(DateFormat),
}

impl TimeFormat {
    /// Parses a `time_format`; `None` is [`TimeFormat::Text`].
    pub fn parse(format: Option<&str>) -> Result<TimeFormat, String> {
        Ok(match format {
            None => TimeFormat::Text,
            Some("unix") => TimeFormat::Seconds,
            Some("unix-ms") => TimeFormat::Millis,
            Some(letters) => TimeFormat::Letters(DateFormat::new(letters).map_err(|e| e.to_string())?),
        })
    }

    /// Converts a value to microseconds since 1970; `None` if it is not in this format.
    pub fn read(&self, value: &Value) -> Option<i64> {
        let written = text(value)?;
        let micros = match self {
            TimeFormat::Seconds => shifted(&written, 6)?,
            TimeFormat::Millis => shifted(&written, 3)?,
            TimeFormat::Letters(format) => format.instant(&written)?,
            TimeFormat::Text => match time::parse_instant(&written, Some(&jiff::tz::TimeZone::UTC)) {
                Ok(micros) => micros,
                Err(_) => jiff::fmt::rfc2822::parse(&written).ok()?.timestamp().as_microsecond(),
            },
        };
        time::in_range(micros, &written).ok()
    }
}

/// Multiplies a decimal number by a power of ten, rounded down. Exact, as a float is not: from the year 2100 on it would
/// be up to two microseconds off.
fn shifted(written: &str, digits: usize) -> Option<i64> {
    let (sign, magnitude) = written.strip_prefix('-').map_or((1, written), |rest| (-1, rest));
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) {
        // With an exponent, for one.
        let micros = written.parse::<f64>().ok()? * 10_f64.powi(digits as i32);
        return (micros.abs() < 9e18).then_some(micros.floor() as i64);
    }
    let (kept, cut) = fraction.split_at(fraction.len().min(digits));
    let micros: i64 = format!("{whole}{kept:0<digits$}").parse().ok()?;
    let is_cut = cut.bytes().any(|digit| digit != b'0');
    Some(sign * micros - i64::from(is_cut && sign < 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(format: &str, written: &str) -> Option<i64> {
        TimeFormat::parse(Some(format)).expect("a format").read(&json!(written))
    }

    #[test]
    fn numbers_with_exponents_are_read_and_words_are_not() {
        assert_eq!(read("unix", "1.7e9"), Some(1_700_000_000_000_000));
        assert_eq!(read("unix-ms", ".5"), Some(500));
        for wrong in ["", "-", ".", "soon", "1,5", "1e300", "NaN", "99999999999999999999"] {
            assert_eq!(read("unix", wrong), None, "{wrong}");
        }
    }

    #[test]
    fn letters_follow_the_rules_of_a_load() {
        for (letters, written, micros) in [
            ("%d.%m.%Y", "02.01.1970", Some(86_400_000_000)),
            ("%d.%m.%Y", "02.01.70", None),
            ("%d.%m.%y", "02.01.70", Some(86_400_000_000)),
            ("%Y-%m-%d %H:%M:%S%z", "1970-01-01 02:00:01+02", Some(1_000_000)),
        ] {
            assert_eq!(read(letters, written), micros, "{letters} {written}");
        }
        assert!(TimeFormat::parse(Some("%H:%M")).is_err(), "it has no day");
    }

    proptest! {
        #[test]
        fn decimal_times_are_exact(micros in -60_000_000_000_000_000_i64..250_000_000_000_000_000) {
            let (sign, n) = (if micros < 0 { "-" } else { "" }, micros.unsigned_abs());
            let seconds = format!("{sign}{}.{:06}", n / 1_000_000, n % 1_000_000);
            let millis = format!("{sign}{}.{:03}", n / 1_000, n % 1_000);
            prop_assert_eq!(read("unix", &seconds), Some(micros), "{}", seconds);
            prop_assert_eq!(read("unix-ms", &millis), Some(micros), "{}", millis);
            prop_assert_eq!(read("unix", &format!("{seconds}000")), Some(micros));
            // What is beyond a microsecond is cut off towards the past.
            prop_assert_eq!(read("unix", &format!("{seconds}9")), Some(micros - i64::from(micros < 0)));
        }

        #[test]
        fn a_time_is_read_in_the_format_it_was_written_in(seconds in -30_000_000_000_i64..250_000_000_000) {
            let at = jiff::Timestamp::from_second(seconds).expect("a time");
            prop_assert_eq!(TimeFormat::Text.read(&json!(at.to_string())), Some(seconds * 1_000_000));
            for letters in ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y%m%dT%H%M%SZ"] {
                let written = at.strftime(letters).to_string();
                prop_assert_eq!(read(letters, &written), Some(seconds * 1_000_000), "{}", written);
            }
        }
    }
}
