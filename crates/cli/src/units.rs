//! Sizes and durations as people write them.

use jiff::{SignedDuration, Span, SpanRelativeTo};
use std::time::Duration;

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads a size such as `64 MiB`, `2GB` or `1000`, in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size: expected one such as \"64 MiB\" or \"2 GB\"");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = text[digits..].trim();
    let factor = match unit {
        "" => 1,
        _ => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?.1,
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// Writes a size in the largest binary unit that shows it exactly.
pub fn size_text(bytes: u64) -> String {
    // Only exact units, so that a setting keeps its value when it is shown and parsed again.
    let exact = UNITS[..4].iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor));
    exact.map_or_else(|| format!("{bytes} B"), |(name, factor)| format!("{} {name}", bytes / factor))
}

/// Formats a size for people: three digits and a unit.
pub fn size_short(bytes: u64) -> String {
    let Some((name, factor)) = UNITS[4..8].iter().find(|(_, factor)| bytes >= *factor) else {
        return format!("{bytes} B");
    };
    let value = bytes as f64 / *factor as f64;
    // At these limits rounding adds a digit before the point.
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$} {name}")
}

/// Formats a count for people, in groups of three digits.
pub fn count_text(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Parses a duration such as `90s`, `15m`, `2h`, `7d`, `1w` or `PT1H`; days have 24 hours.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a length of time: expected one such as 30s, 15m, 2h, 7d or PT1H");
    let span: Span = text.trim().parse().map_err(|_| wrong())?;
    // Their length depends on the date, so they are no fixed duration.
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(wrong());
    }
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(length).map_err(|_| wrong())
}

/// Formats a duration so that [`duration`] can parse it.
pub fn duration_text(length: Duration) -> String {
    SignedDuration::try_from(length).map_or_else(|_| format!("{}s", length.as_secs()), |d| format!("{d:#}"))
}

/// Formats a duration as ISO 8601.
pub fn duration_iso(length: Duration) -> String {
    SignedDuration::try_from(length).map_or_else(|_| format!("PT{}S", length.as_secs()), |d| d.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes in any::<u64>(), ms in 0..10_000_000_000u64) {
            prop_assert_eq!(size(&size_text(bytes)), Ok(bytes));
            prop_assert_eq!(size(&size_text(bytes >> 30 << 30)), Ok(bytes >> 30 << 30));
            let length = Duration::from_millis(ms);
            prop_assert_eq!(duration(&duration_text(length)), Ok(length));
        }
    }

    #[test]
    fn people_read_and_write_units() {
        assert_eq!(size("64 MiB"), Ok(64 << 20));
        assert_eq!(size("2gb"), Ok(2_000_000_000));
        assert_eq!(size("17"), Ok(17));
        assert!(["", "MiB", "-1", "1.5 GiB", "3 parsecs", "99999999 TiB"].iter().all(|t| size(t).is_err()));
        assert_eq!([size_short(7), size_short(1_234), size_short(56_780_000)], ["7 B", "1.23 kB", "56.8 MB"]);
        assert_eq!([count_text(0), count_text(1_000), count_text(1_234_567)], ["0", "1,000", "1,234,567"]);
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(duration("1w"), duration("P7D"));
        assert_eq!(duration("90s"), duration("PT1M30S"));
        assert!(["", "soon", "1 month", "-5s", "5"].iter().all(|t| duration(t).is_err()));
    }
}
