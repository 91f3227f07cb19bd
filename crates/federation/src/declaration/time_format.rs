//! The time formats of sources.

use super::path::text;
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
    /// A strptime format; UTC if it has no offset.
    Letters(String),
}

impl TimeFormat {
    /// Parses a `time_format`; `None` is [`TimeFormat::Text`].
    pub fn parse(format: Option<&str>) -> Result<TimeFormat, String> {
        Ok(match format {
            None => TimeFormat::Text,
            Some("unix") => TimeFormat::Seconds,
            Some("unix-ms") => TimeFormat::Millis,
            Some(letters) => {
                // A format that cannot be written cannot be parsed either.
                let written =
                    jiff::fmt::strtime::format(letters, &jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC));
                written.map_err(|e| e.to_string())?;
                TimeFormat::Letters(letters.to_owned())
            }
        })
    }

    /// Converts a value to microseconds since 1970; `None` if it is not in this format.
    pub fn read(&self, value: &Value) -> Option<i64> {
        let written = text(value)?;
        let scaled = |scale: f64| {
            let micros = written.parse::<f64>().ok()? * scale;
            (micros.abs() < 9e18).then_some(micros.floor() as i64)
        };
        let micros = match self {
            TimeFormat::Seconds => scaled(1e6)?,
            TimeFormat::Millis => scaled(1e3)?,
            TimeFormat::Letters(letters) => {
                let read = jiff::fmt::strtime::parse(letters, &written).ok()?;
                let at = read.to_timestamp().or_else(|e| match read.to_datetime() {
                    Ok(local) => local.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                    Err(_) => read.to_date().map_err(|_| e)?.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                });
                time::floor_micros(at.ok()?)
            }
            TimeFormat::Text => match time::parse_instant(&written, Some(&jiff::tz::TimeZone::UTC)) {
                Ok(micros) => micros,
                Err(_) => jiff::fmt::rfc2822::parse(&written).ok()?.timestamp().as_microsecond(),
            },
        };
        time::in_range(micros, &written).ok()
    }
}
