//! Durations for people.

/// Formats a duration, given in milliseconds, in its largest unit: `9.9 s`, `2 min`.
pub fn span(milliseconds: i64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        ..10 => format!("{}.{} s", seconds, milliseconds % 1_000 / 100),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let spans = [400, 9_999, 10_000, 119_000, 120_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(spans, ["0.4 s", "9.9 s", "10 s", "119 s", "2 min", "2 h", "2 days"]);
    }
}
