//! How sources write instants.

use super::path::text;
use meridian_model::time;
use serde_json::Value;

/// The way in which a source writes instants: `time_format`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// RFC 3339, RFC 2822 or a plain date.
    Text,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Millis,
    /// In strptime's letters; UTC where they name no offset.
    Letters(String),
}

impl When {
    /// Reads a `time_format`; nothing is [`When::Text`].
    pub fn parse(format: Option<&str>) -> Result<When, String> {
        Ok(match format {
            None => When::Text,
            Some("unix") => When::Seconds,
            Some("unix-ms") => When::Millis,
            Some(letters) => {
                // What cannot be written cannot be read either.
                let written =
                    jiff::fmt::strtime::format(letters, &jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC));
                written.map_err(|e| e.to_string())?;
                When::Letters(letters.to_owned())
            }
        })
    }

    /// Microseconds since 1970 of what a source wrote; `None` where it is no such instant.
    pub fn read(&self, value: &Value) -> Option<i64> {
        let written = text(value)?;
        let scaled = |scale: f64| {
            let micros = written.parse::<f64>().ok()? * scale;
            (micros.abs() < 9e18).then_some(micros.floor() as i64)
        };
        let micros = match self {
            When::Seconds => scaled(1e6)?,
            When::Millis => scaled(1e3)?,
            When::Letters(letters) => {
                let read = jiff::fmt::strtime::parse(letters, &written).ok()?;
                let at = read.to_timestamp().or_else(|e| match read.to_datetime() {
                    Ok(local) => local.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                    Err(_) => read.to_date().map_err(|_| e)?.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp()),
                });
                time::floor_micros(at.ok()?)
            }
            When::Text => match time::parse_instant(&written, Some(&jiff::tz::TimeZone::UTC)) {
                Ok(micros) => micros,
                Err(_) => jiff::fmt::rfc2822::parse(&written).ok()?.timestamp().as_microsecond(),
            },
        };
        time::in_range(micros, &written).ok()
    }
}
