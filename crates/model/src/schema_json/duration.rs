//! Durations in ISO 8601.

use crate::error::Invalid;
use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Formats a length of time as an ISO 8601 duration, such as `PT168H`.
pub fn duration_text(micros: i64) -> String {
    SignedDuration::from_micros(micros).to_string()
}

/// Parses an ISO 8601 duration of fixed length, such as `P7D` or `PT1H`, in microseconds; days have 24 hours.
pub fn parse_duration(text: &str) -> Result<i64, Invalid> {
    let wrong = || {
        Invalid::new(format_args!(
            "{text:?} is not a fixed length of time: expected an ISO 8601 duration in weeks, days, hours, minutes or seconds, such as P7D or PT1H"
        ))
    };
    let span: Span = text.parse().map_err(|_| wrong())?;
    if !text.starts_with(['P', 'p']) || span.get_years() != 0 || span.get_months() != 0 {
        return Err(wrong());
    }
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    i64::try_from(length.as_micros()).ok().filter(|&us| us > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_duration_is_read_as_it_was_written(micros in 1..=366 * 86_400_000_000_i64) {
            proptest::prop_assert_eq!(parse_duration(&duration_text(micros)).unwrap(), micros);
        }

        #[test]
        fn weeks_days_and_times_add_up(weeks in 0..99i64, days in 0..999i64, hours in 0..999i64, seconds in 1..9999i64) {
            let text = format!("P{weeks}W{days}DT{hours}H{seconds}S");
            let total = ((weeks * 7 + days) * 86_400 + hours * 3_600 + seconds) * 1_000_000;
            proptest::prop_assert_eq!(parse_duration(&text).unwrap(), total);
            // Months have no fixed length, and durations are not negative.
            for wrong in [format!("P1M{weeks}W"), format!("-{text}"), text[1..].to_owned()] {
                proptest::prop_assert!(parse_duration(&wrong).is_err(), "{}", wrong);
            }
        }
    }
}
